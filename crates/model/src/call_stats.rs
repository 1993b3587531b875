use super::MicroDollars;

/// Statistics of a completed tool call, for usage, metrics and spans.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallStats {
    /// The name of the operation, or of the tool if it calls no operation.
    pub operation: String,
    /// The estimated number of tokens of the text.
    pub tokens: u64,
    /// The cost that Exa charged; zero for a cached result.
    pub cost: MicroDollars,
    /// Whether the result came from the cache.
    pub cached: bool,
}

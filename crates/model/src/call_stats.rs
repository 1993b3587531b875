use super::MicroDollars;

/// Facts about an answered tool call, for usage, metrics and spans.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallStats {
    /// Name of the operation, or of the tool where it calls none.
    pub operation: String,
    /// Estimated tokens of the text that is shown.
    pub tokens: u64,
    /// What Exa charged; nothing for a cached result.
    pub cost: MicroDollars,
    /// The result came from the cache.
    pub cached: bool,
}

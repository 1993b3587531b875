//! Stand-in.

/// Stand-in.
pub fn estimate(text: &str) -> usize {
    text.len().div_ceil(3)
}

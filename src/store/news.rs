//! What processes that share a store tell each other.

use std::sync::Arc;

/// What others tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// A word, as it was told.
    Told(Arc<str>),
    /// Words may have been told that nobody here has heard.
    Missed,
}

//! Messages between the processes that share a store.

use std::sync::Arc;

/// A message from another process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreMessage {
    /// The text of the message.
    Received(Arc<str>),
    /// Messages may have been lost.
    Missed,
}

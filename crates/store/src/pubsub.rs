//! Messages between the servers that share a store.

use std::sync::Arc;

/// An event of a subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreMessage {
    /// A message was received.
    Received(Arc<str>),
    /// Messages may have been lost.
    Missed,
}

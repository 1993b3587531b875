//! How much of a connection's work is waiting.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts the open requests of one connection and the messages that its client has not taken yet.
///
/// The transport keeps the figures as they are: nothing is added and subtracted per request, so that a
/// cancelled request or the one response to a batch cannot leave a remainder behind.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    open_requests: AtomicUsize,
    queued_messages: AtomicUsize,
    queued_bytes: AtomicUsize,
}

impl Backlog {
    /// Returns the number of requests without a response and of messages that wait to be written.
    pub(crate) fn messages(&self) -> usize {
        let open = self.open_requests.load(Ordering::Relaxed);
        open.saturating_add(self.queued_messages.load(Ordering::Relaxed))
    }

    /// Returns the size of the messages that wait to be written.
    pub(crate) fn bytes(&self) -> usize {
        self.queued_bytes.load(Ordering::Relaxed)
    }

    /// Sets the number of requests without a response.
    pub(super) fn set_open_requests(&self, count: usize) {
        self.open_requests.store(count, Ordering::Relaxed);
    }

    /// Counts a message that is about to be queued.
    pub(super) fn queue(&self, bytes: usize) {
        self.queued_messages.fetch_add(1, Ordering::Relaxed);
        self.queued_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts a message that left the queue.
    pub(super) fn dequeue(&self, bytes: usize) {
        self.queued_messages.fetch_sub(1, Ordering::Relaxed);
        self.queued_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

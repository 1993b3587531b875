//! The amount of pending work on a connection.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts a connection's open requests and its unread outgoing messages.
///
/// The transport stores totals instead of adding and subtracting per request, so a cancelled request or the
/// single response to a batch cannot skew the count.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    open_requests: AtomicUsize,
    queued_messages: AtomicUsize,
    queued_bytes: AtomicUsize,
}

impl Backlog {
    /// Returns the number of requests without a response plus the number of unwritten messages.
    pub(crate) fn messages(&self) -> usize {
        let open = self.open_requests.load(Ordering::Relaxed);
        open.saturating_add(self.queued_messages.load(Ordering::Relaxed))
    }

    /// Returns the size of the unwritten messages in bytes.
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

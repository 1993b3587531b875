//! The deadline of an attempt.

use std::{future::Future, time::Duration};

use tokio::time::{Instant, timeout_at};

/// The time at which an attempt times out.
pub(super) struct Deadline(Instant);

impl Deadline {
    /// Creates a deadline this far in the future.
    pub(super) fn after(time: Duration) -> Self {
        Self(Instant::now() + time)
    }

    /// Runs `work`; returns `None` if the deadline passes first.
    pub(super) async fn bound<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        timeout_at(self.0, work).await.ok()
    }

    /// Extends the deadline by time that was not spent on the API.
    pub(super) fn extend(&mut self, waited: Duration) {
        self.0 += waited;
    }
}

//! The end of the time that one attempt may take.

use std::{future::Future, time::Duration};

use tokio::time::{Instant, timeout_at};

/// When an attempt has taken too long.
pub(super) struct Deadline(Instant);

impl Deadline {
    /// So much time from now on.
    pub(super) fn after(time: Duration) -> Self {
        Self(Instant::now() + time)
    }

    /// Backoff for `work`; `None` where it is not done in time.
    pub(super) async fn bound<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        timeout_at(self.0, work).await.ok()
    }

    /// Moves the end on by what was waited for something else than the API.
    pub(super) fn extend(&mut self, waited: Duration) {
        self.0 += waited;
    }
}

//! The sandbox's own time: real time plus what `POST /sandbox/clock` added.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

pub(super) struct Clock {
    started: Instant,
    /// Milliseconds since 1970 at the start.
    base: u64,
    ahead: u64,
}

impl Clock {
    pub(super) fn new() -> Self {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Clock {
            started: Instant::now(),
            base: u64::try_from(since.as_millis()).unwrap_or(0),
            ahead: 0,
        }
    }

    pub(super) fn now(&self) -> u64 {
        let passed = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.base.saturating_add(passed).saturating_add(self.ahead)
    }

    pub(super) fn advance(&mut self, ms: u64) {
        // Stays far below where dates stop having four-digit years.
        const FARTHEST: u64 = 1_000 * 365 * crate::time::DAY;
        self.ahead = self.ahead.saturating_add(ms).min(FARTHEST);
    }
}

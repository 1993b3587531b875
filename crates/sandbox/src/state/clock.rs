//! The sandbox clock: real time plus the offset set by `POST /sandbox/clock`.

use std::time::Instant;

use crate::time::DAY;

/// Maximum offset; keeps dates far below five-digit years.
const MAX_OFFSET: u64 = 1_000 * 365 * DAY;

pub(crate) struct Clock {
    /// Milliseconds since 1970 at the last start or stop of the clock.
    base: u64,
    /// When the clock last started to run, or `None` while it is frozen.
    running_since: Option<Instant>,
    offset: u64,
}

impl Clock {
    pub(super) fn new() -> Self {
        Clock {
            base: exa_mcp_model::time::now(),
            running_since: Some(Instant::now()),
            offset: 0,
        }
    }

    fn without_offset(&self) -> u64 {
        let elapsed = self.running_since.map(|since| since.elapsed().as_millis());
        let elapsed = u64::try_from(elapsed.unwrap_or(0)).unwrap_or(0);
        self.base.saturating_add(elapsed)
    }

    pub(super) fn now(&self) -> u64 {
        self.without_offset().saturating_add(self.offset)
    }

    /// Starts the clock at this time.
    pub(crate) fn start_at(&mut self, time: u64) {
        self.base = time;
        self.running_since = Some(Instant::now());
        self.offset = 0;
    }

    /// Stops the clock at this time, to repeat what happened then.
    pub(crate) fn stop_at(&mut self, time: u64) {
        self.base = time;
        self.running_since = None;
        self.offset = 0;
    }

    pub(crate) fn is_frozen(&self) -> bool {
        self.running_since.is_none()
    }

    pub(crate) fn set_frozen(&mut self, frozen: bool) {
        self.base = self.without_offset();
        self.running_since = (!frozen).then(Instant::now);
    }

    pub(crate) fn advance(&mut self, ms: u64) {
        self.offset = self.offset.saturating_add(ms).min(MAX_OFFSET);
    }
}

//! The sandbox's own time: real time plus what `POST /sandbox/clock` added.

use std::time::Instant;

use crate::time::DAY;

/// Farthest the clock can be moved; dates stay far below years of five digits.
const FARTHEST: u64 = 1_000 * 365 * DAY;

pub(crate) struct Clock {
    /// Milliseconds since 1970 at the start of the present run of the clock.
    base: u64,
    /// When it was last let go; none while it is frozen.
    running: Option<Instant>,
    ahead: u64,
}

impl Clock {
    pub(super) fn new() -> Self {
        Clock {
            base: exa_mcp_model::time::now(),
            running: Some(Instant::now()),
            ahead: 0,
        }
    }

    fn plain(&self) -> u64 {
        let passed = self.running.map(|since| since.elapsed().as_millis());
        let passed = u64::try_from(passed.unwrap_or(0)).unwrap_or(0);
        self.base.saturating_add(passed)
    }

    pub(super) fn now(&self) -> u64 {
        self.plain().saturating_add(self.ahead)
    }

    pub(crate) fn is_frozen(&self) -> bool {
        self.running.is_none()
    }

    pub(crate) fn freeze(&mut self, freeze: bool) {
        self.base = self.plain();
        self.running = (!freeze).then(Instant::now);
    }

    pub(crate) fn advance(&mut self, ms: u64) {
        self.ahead = self.ahead.saturating_add(ms).min(FARTHEST);
    }
}

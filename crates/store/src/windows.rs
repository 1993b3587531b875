//! So much in so much time: what limits are made of.

use std::collections::HashMap;
use std::time::Duration;

use super::end;

/// How many windows there may be before ended ones are looked for.
const FEW: usize = 1_024;

/// So much of something in so much time.
///
/// A window begins when something is first taken from it and ends `length` later, by the clock of the
/// store; whatever is taken after that begins the next one. All processes that share a store take from
/// the same windows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// Which window.
    pub key: String,
    /// How much there is in it.
    pub most: u64,
    /// How much is wanted: all of it is taken, or nothing. Nothing at all begins no window.
    pub amount: u64,
    /// How long it lasts. One that has begun keeps its end.
    pub length: Duration,
}

/// What came of taking something from a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// It was taken.
    pub allowed: bool,
    /// What has been taken from the window, this time included.
    pub used: u64,
    /// How long it takes until the window ends; nothing, if there was room.
    pub retry_after: Duration,
}

impl Window {
    /// What comes of it, and what is to be kept then: how much is used, and when the window ends.
    pub fn take(&self, present: Option<(u64, u64)>, now: u64) -> (Taken, Option<(u64, u64)>) {
        let present = present.filter(|(_, ends)| *ends > now);
        let (used, ends) = present.unwrap_or((0, end(now, self.length)));
        let wanted = used.saturating_add(self.amount);
        let allowed = wanted <= self.most;
        let taken = Taken {
            allowed,
            used: if allowed { wanted } else { used },
            retry_after: match allowed {
                true => Duration::ZERO,
                // Whoever had to wait for a turn comes with a moment from before the window began.
                false => Duration::from_millis(ends.saturating_sub(now)).min(self.length),
            },
        };
        let kept = (allowed && self.amount > 0).then_some((wanted, ends));
        (taken, kept)
    }
}

/// Windows in memory.
#[derive(Default)]
pub struct Windows {
    open: HashMap<String, (u64, u64)>,
    /// How many there may be before ended ones are looked for again.
    room: usize,
}

impl Windows {
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    /// Takes from a window, or says when to come back.
    pub fn take(&mut self, window: Window, now: u64) -> Taken {
        let (taken, kept) = window.take(self.open.get(&window.key).copied(), now);
        if let Some(kept) = kept {
            self.open.insert(window.key, kept);
        }
        if self.open.len() > self.room.max(FEW) {
            self.open.retain(|_, (_, ends)| *ends > now);
            self.room = self.open.len().saturating_mul(2);
        }
        taken
    }
}

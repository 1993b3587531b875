//! Fixed windows for rate limits.

use std::collections::HashMap;
use std::time::Duration;

use super::expiry;

/// How many windows may exist before expired ones are removed.
const MIN_CLEANUP_SIZE: usize = 1_024;

/// A request to consume some of a rate limit.
///
/// A window opens when something is first consumed from it and closes `length` later, by the clock of the store;
/// the next request opens a new one. All processes that share a store share its windows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowRequest {
    /// The name of the window.
    pub key: String,
    /// How much may be consumed within the window.
    pub limit: u64,
    /// How much to consume: all of it, or nothing. Zero does not open a window.
    pub amount: u64,
    /// How long a new window lasts. An open window keeps its end.
    pub length: Duration,
}

/// The result of a [`WindowRequest`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowDecision {
    /// Whether the amount was consumed.
    pub allowed: bool,
    /// How much of the limit is used, including this request.
    pub used: u64,
    /// How long until the window closes; zero if the request was allowed.
    pub retry_after: Duration,
}

/// The stored state of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WindowState {
    pub(super) used: u64,
    /// When the window closes, in milliseconds since 1970.
    pub(super) ends_at: u64,
}

impl WindowRequest {
    /// Returns the decision, and the state to store if it changes.
    pub(super) fn decide(
        &self,
        current: Option<WindowState>,
        now: u64,
    ) -> (WindowDecision, Option<WindowState>) {
        let open = current.filter(|state| state.ends_at > now);
        let WindowState { used, ends_at } = open.unwrap_or_else(|| WindowState {
            used: 0,
            ends_at: expiry(now, self.length),
        });
        let total = used.saturating_add(self.amount);
        let allowed = total <= self.limit;
        let decision = WindowDecision {
            allowed,
            used: if allowed { total } else { used },
            retry_after: if allowed {
                Duration::ZERO
            } else {
                // A caller that had to wait for the store may carry a time from before the window opened.
                Duration::from_millis(ends_at.saturating_sub(now)).min(self.length)
            },
        };
        let state = WindowState {
            used: total,
            ends_at,
        };
        (decision, (allowed && self.amount > 0).then_some(state))
    }
}

/// Windows in memory.
#[derive(Default)]
pub struct MemoryWindows {
    windows: HashMap<String, WindowState>,
    /// How many windows may exist before expired ones are removed again.
    cleanup_size: usize,
}

impl MemoryWindows {
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.windows.len()
    }

    /// Consumes from a window, or reports when to retry.
    pub fn consume(&mut self, request: WindowRequest, now: u64) -> WindowDecision {
        let current = self.windows.get(&request.key).copied();
        let (decision, state) = request.decide(current, now);
        if let Some(state) = state {
            self.windows.insert(request.key, state);
        }
        if self.windows.len() > self.cleanup_size.max(MIN_CLEANUP_SIZE) {
            self.windows.retain(|_, state| state.ends_at > now);
            self.cleanup_size = self.windows.len().saturating_mul(2);
        }
        decision
    }
}

//! A circuit breaker for one Exa API key.
//!
//! A key that Exa turns away is left alone for a while, then tried with a single call. The outcome of
//! that probe decides whether the key serves everybody again or cools down for longer. No fault is final:
//! a key that keeps failing is still probed once an hour.

use std::time::Duration;

use tokio::time::Instant;

use super::{ExaError, ExaErrorKind};

/// Consecutive rejections after which a key cools down. Fewer may be about one operation only, which must
/// not take the key away from everybody.
const REJECTIONS_UNTIL_OPEN: u32 = 3;

/// Further rejections, each a failed probe, after which a key counts as failing.
const PATIENT_PROBES: u32 = 10;

/// Exhausted credits, in a row, after which a key counts as failing.
const PATIENT_CREDIT_PROBES: u32 = 3;

/// The longest time between two probes, whatever the fault.
const LONGEST_COOL_DOWN: Duration = Duration::from_secs(3_600);

/// The longest time for which a rate limit of Exa stops a key. A `Retry-After` beyond it is more likely a
/// mistake on the way than a wish; the probe finds out.
const LONGEST_RATE_LIMIT: Duration = Duration::from_secs(300);

/// The longest `Retry-After` that is honoured after a rejection: one that passes must not take a key away for long.
const LONGEST_REJECTION: Duration = Duration::from_secs(60);

/// How long a probe holds its slot. A rejection comes at once; a call that takes longer than this is at
/// work, and must not keep everybody else waiting.
const PROBE_TIME: Duration = Duration::from_secs(10);

/// How soon to ask again while a probe is under way.
const PROBE_HINT: Duration = Duration::from_secs(1);

/// What Exa calls a key or team whose money is used up.
const QUOTA_TAGS: [&str; 3] = [
    "NO_MORE_CREDITS",
    "API_KEY_BUDGET_EXCEEDED",
    "TEAM_BUDGET_EXCEEDED",
];

/// What is wrong with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyFault {
    /// Exa asks for fewer requests (429).
    RateLimited,
    /// The credits or the budget of the key are used up (402).
    OutOfCredits,
    /// Exa does not accept the key (401).
    Rejected,
    /// The team of the key may not do what other teams may (403).
    Forbidden,
}

impl KeyFault {
    /// Returns what an error says against the key with which it came, if anything.
    pub(super) fn of(error: &ExaError) -> Option<Self> {
        let tag = error.tag.as_deref().unwrap_or_default();
        match error.kind {
            ExaErrorKind::Api(429) => Some(Self::RateLimited),
            ExaErrorKind::Api(402) => Some(Self::OutOfCredits),
            _ if QUOTA_TAGS.contains(&tag) => Some(Self::OutOfCredits),
            ExaErrorKind::Api(401) => Some(Self::Rejected),
            _ => None,
        }
    }

    /// Returns the fault in a few words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RateLimited => "rate limited",
            Self::OutOfCredits => "out of credits",
            Self::Rejected => "refused",
            Self::Forbidden => "forbidden",
        }
    }

    /// Whether it says something about one class of operations only; otherwise it is about the key as a whole.
    pub(super) fn concerns_class(self) -> bool {
        self != Self::Rejected
    }

    /// Returns how long a key cools down after this many failures in a row.
    fn cool_down(self, failures: u32) -> Duration {
        let seconds = Duration::from_secs;
        match self {
            Self::RateLimited => doubled(seconds(1), failures, seconds(30)),
            Self::OutOfCredits => doubled(seconds(60), failures, LONGEST_COOL_DOWN),
            Self::Rejected | Self::Forbidden => {
                let probes = failures.saturating_sub(REJECTIONS_UNTIL_OPEN - 1);
                match probes.checked_sub(PATIENT_PROBES) {
                    None | Some(0) => doubled(seconds(1), probes, seconds(15)),
                    Some(more) => doubled(seconds(60), more, LONGEST_COOL_DOWN),
                }
            }
        }
    }

    /// Returns the longest `Retry-After` that is honoured.
    fn longest(self) -> Duration {
        match self {
            Self::RateLimited => LONGEST_RATE_LIMIT,
            Self::OutOfCredits => LONGEST_COOL_DOWN,
            Self::Rejected | Self::Forbidden => LONGEST_REJECTION,
        }
    }

    /// Returns how many failures in a row open the circuit.
    fn failures_until_open(self) -> u32 {
        match self {
            Self::RateLimited | Self::OutOfCredits => 1,
            Self::Rejected | Self::Forbidden => REJECTIONS_UNTIL_OPEN,
        }
    }

    /// Whether so many failures in a row are more than a passing fault.
    fn is_lasting(self, failures: u32) -> bool {
        match self {
            Self::RateLimited => false,
            Self::OutOfCredits => failures > PATIENT_CREDIT_PROBES,
            Self::Rejected | Self::Forbidden => failures >= REJECTIONS_UNTIL_OPEN + PATIENT_PROBES,
        }
    }
}

/// Returns `first` doubled with every step after the first, up to `most`.
fn doubled(first: Duration, step: u32, most: Duration) -> Duration {
    let factor = 1_u32.checked_shl(step.saturating_sub(1));
    first.saturating_mul(factor.unwrap_or(u32::MAX)).min(most)
}

/// What an outcome of a call says about its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Exa accepted it.
    Accepted,
    /// Nothing: the call did not reach Exa, or failed before the key mattered.
    Unknown,
    /// Exa turned it away, perhaps for a time that it named.
    Fault(KeyFault, Option<Duration>),
}

impl Verdict {
    pub(super) fn of(outcome: Result<(), &ExaError>) -> Self {
        let Err(error) = outcome else {
            return Self::Accepted;
        };
        match KeyFault::of(error) {
            Some(fault) => Self::Fault(fault, error.retry_after),
            // A complaint about the request comes after the key was accepted.
            None if error.status.is_some_and(|status| status < 500) => Self::Accepted,
            None => Self::Unknown,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Circuit {
    /// Everybody may use the key.
    Closed,
    /// Nobody may, until then.
    Open { until: Instant },
    /// One call tries it, since then.
    HalfOpen { since: Instant },
}

/// The state of a key, for operators, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeyCondition {
    /// It serves everybody.
    Ready,
    /// One call tries it, or the next one will.
    HalfOpen,
    /// It is left alone for a while.
    CoolingDown,
    /// It kept failing, and is tried ever more rarely, at least once an hour.
    Failing,
}

impl KeyCondition {
    pub(super) const ALL: [Self; 4] = [
        Self::Ready,
        Self::CoolingDown,
        Self::HalfOpen,
        Self::Failing,
    ];

    /// Returns the name that the admin API and the metrics use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::CoolingDown => "cooling_down",
            Self::HalfOpen => "half_open",
            Self::Failing => "failing",
        }
    }
}

/// Permission for one call with a key. The breaker listens only to tickets of its present state, so
/// that calls which began before it opened neither close it nor make it cool down for longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticket {
    generation: u64,
    pub(super) is_probe: bool,
}

/// The circuit breaker of a key.
#[derive(Debug)]
pub(super) struct CircuitBreaker {
    circuit: Circuit,
    /// Counts the changes of the circuit.
    generation: u64,
    /// Faults in a row, and the latest of them.
    failures: u32,
    fault: Option<KeyFault>,
}

impl Default for CircuitBreaker {
    fn default() -> Self {
        Self {
            circuit: Circuit::Closed,
            generation: 0,
            failures: 0,
            fault: None,
        }
    }
}

impl CircuitBreaker {
    /// Whether a call may be made now.
    pub(super) fn allows(&self, now: Instant) -> bool {
        self.wait(now).is_none()
    }

    /// Returns how long to wait until a call may be made; `None` if it may be made now.
    pub(super) fn wait(&self, now: Instant) -> Option<Duration> {
        match self.circuit {
            Circuit::Closed => None,
            Circuit::Open { until } => Some(until.saturating_duration_since(now)),
            Circuit::HalfOpen { since } => {
                let left = (since + PROBE_TIME).saturating_duration_since(now);
                Some(left.min(PROBE_HINT))
            }
        }
        .filter(|wait| !wait.is_zero())
    }

    /// Permits a call, which is a probe unless the circuit is closed. Ask [`Self::allows`] first.
    pub(super) fn admit(&mut self, now: Instant) -> Ticket {
        let is_probe = self.circuit != Circuit::Closed;
        if is_probe {
            self.change(Circuit::HalfOpen { since: now });
        }
        Ticket {
            generation: self.generation,
            is_probe,
        }
    }

    /// Learns from the outcome of a call.
    pub(super) fn report(&mut self, ticket: Ticket, verdict: Verdict, now: Instant) {
        if ticket.generation != self.generation {
            return;
        }
        match verdict {
            Verdict::Accepted => self.close(),
            Verdict::Unknown => self.release(ticket, now),
            Verdict::Fault(fault, asked) => self.fail(ticket, fault, asked, now),
        }
    }

    /// Frees the slot of a probe that ended without an outcome; the next call is a probe then.
    pub(super) fn release(&mut self, ticket: Ticket, now: Instant) {
        if ticket.is_probe && ticket.generation == self.generation {
            self.change(Circuit::Open { until: now });
        }
    }

    /// Forgets all faults.
    pub(super) fn close(&mut self) {
        self.failures = 0;
        self.fault = None;
        if self.circuit != Circuit::Closed {
            self.change(Circuit::Closed);
        }
    }

    /// Counts a fault that shows only after the call with the key has ended.
    pub(super) fn count(&mut self, fault: KeyFault, now: Instant) {
        let ticket = Ticket {
            generation: self.generation,
            is_probe: false,
        };
        self.fail(ticket, fault, None, now);
    }

    fn fail(&mut self, ticket: Ticket, fault: KeyFault, asked: Option<Duration>, now: Instant) {
        // Another fault than before begins to count anew.
        let before = self.fault.replace(fault).filter(|before| *before == fault);
        let failures = before.map_or(0, |_| self.failures);
        // One that shows on a probe leaves no doubt about the key, so it opens the circuit again.
        let least = if ticket.is_probe {
            fault.failures_until_open()
        } else {
            0
        };
        self.failures = failures.saturating_add(1).max(least);
        if self.failures >= fault.failures_until_open() {
            let own = fault.cool_down(self.failures);
            let asked = asked.filter(|asked| !asked.is_zero());
            let wait = asked.map_or(own, |asked| asked.min(fault.longest()));
            self.change(Circuit::Open { until: now + wait });
        }
    }

    fn change(&mut self, circuit: Circuit) {
        self.circuit = circuit;
        self.generation += 1;
    }

    /// The fault that keeps the key from being used.
    pub(super) fn fault(&self) -> Option<KeyFault> {
        self.fault
    }

    /// Faults in a row.
    pub(super) fn failures(&self) -> u32 {
        self.failures
    }

    pub(super) fn condition(&self, now: Instant) -> KeyCondition {
        let lasting = self
            .fault
            .is_some_and(|fault| fault.is_lasting(self.failures));
        match self.circuit {
            Circuit::Closed => KeyCondition::Ready,
            _ if lasting => KeyCondition::Failing,
            Circuit::Open { until } if until > now => KeyCondition::CoolingDown,
            Circuit::Open { .. } | Circuit::HalfOpen { .. } => KeyCondition::HalfOpen,
        }
    }
}

#[cfg(test)]
#[path = "tests/circuit_breaker.rs"]
mod tests;

//! A circuit breaker for one Exa API key.
//!
//! A key that Exa rejects cools down, and is then probed with a single call. The outcome of the probe
//! decides whether the key returns to service or cools down for longer. No fault is final: a key that
//! keeps failing is still probed once an hour.

use std::time::Duration;

use tokio::time::Instant;

use super::{ExaError, ExaErrorKind};

/// Consecutive rejections after which a key cools down. Fewer may concern a single operation, which must
/// not disable the key for all callers.
const REJECTIONS_UNTIL_OPEN: u32 = 3;

/// Failed probes after which a rejected key counts as failing.
const PROBES_UNTIL_FAILING: u32 = 10;

/// Failed probes after which a key without credits counts as failing.
const CREDIT_PROBES_UNTIL_FAILING: u32 = 3;

/// Consecutive server errors after which a key cools down, if other keys have none.
const SERVER_ERRORS_UNTIL_OPEN: u32 = 5;

/// Failed probes after which a key with server errors counts as failing.
const SERVER_ERROR_PROBES_UNTIL_FAILING: u32 = 6;

/// The maximum time between two probes.
const MAX_COOL_DOWN: Duration = Duration::from_secs(3_600);

/// The longest `Retry-After` that is honored after a rate limit. A longer one is probably a mistake of
/// an intermediary; the probe finds out.
const MAX_RATE_LIMIT: Duration = Duration::from_secs(300);

/// The longest `Retry-After` that is honored after a rejection, which may be temporary.
const MAX_REJECTION: Duration = Duration::from_secs(60);

/// How long a probe holds its slot. Exa rejects a key at once, so a call that takes longer was accepted
/// and must not keep others waiting.
const PROBE_TIME: Duration = Duration::from_secs(10);

/// The suggested wait while a probe is in flight.
const PROBE_WAIT: Duration = Duration::from_secs(1);

/// Error tags of Exa for a key or team that is out of credits.
const QUOTA_TAGS: [&str; 3] = [
    "NO_MORE_CREDITS",
    "API_KEY_BUDGET_EXCEEDED",
    "TEAM_BUDGET_EXCEEDED",
];

/// The reason why Exa rejects a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyFault {
    /// Too many requests (429).
    RateLimited,
    /// The credits or the budget of the key are used up (402).
    OutOfCredits,
    /// Exa does not accept the key (401).
    Rejected,
    /// The team of the key lacks a permission that other teams have (403).
    Forbidden,
    /// Exa fails with this key, but not with others (5xx).
    ServerErrors,
}

impl KeyFault {
    /// Returns the fault of the key that an error implies, if any.
    pub(super) fn from_error(error: &ExaError) -> Option<Self> {
        let tag = error.tag.as_deref().unwrap_or_default();
        match error.kind {
            ExaErrorKind::Api(429) => Some(Self::RateLimited),
            ExaErrorKind::Api(402) => Some(Self::OutOfCredits),
            _ if QUOTA_TAGS.contains(&tag) => Some(Self::OutOfCredits),
            ExaErrorKind::Api(401) => Some(Self::Rejected),
            _ => None,
        }
    }

    /// Returns a short description.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RateLimited => "rate limited",
            Self::OutOfCredits => "out of credits",
            Self::Rejected => "refused",
            Self::Forbidden => "forbidden",
            Self::ServerErrors => "server errors",
        }
    }

    /// Returns whether the fault concerns one class of operations rather than the whole key.
    pub(super) fn concerns_class(self) -> bool {
        self != Self::Rejected
    }

    /// Returns the cool-down after this many consecutive failures.
    fn cool_down(self, failures: u32) -> Duration {
        let seconds = Duration::from_secs;
        match self {
            Self::RateLimited => backoff(seconds(1), failures, seconds(30)),
            Self::OutOfCredits => backoff(seconds(60), failures, MAX_COOL_DOWN),
            Self::ServerErrors => backoff(seconds(5), failures, MAX_RATE_LIMIT),
            Self::Rejected | Self::Forbidden => {
                let probes = failures.saturating_sub(REJECTIONS_UNTIL_OPEN - 1);
                match probes.checked_sub(PROBES_UNTIL_FAILING) {
                    None | Some(0) => backoff(seconds(1), probes, seconds(15)),
                    Some(more) => backoff(seconds(60), more, MAX_COOL_DOWN),
                }
            }
        }
    }

    /// Returns the longest `Retry-After` that is honored.
    fn max_retry_after(self) -> Duration {
        match self {
            Self::RateLimited | Self::ServerErrors => MAX_RATE_LIMIT,
            Self::OutOfCredits => MAX_COOL_DOWN,
            Self::Rejected | Self::Forbidden => MAX_REJECTION,
        }
    }

    /// Returns how many consecutive failures open the circuit.
    fn failures_until_open(self) -> u32 {
        match self {
            // Server errors are counted separately.
            Self::RateLimited | Self::OutOfCredits | Self::ServerErrors => 1,
            Self::Rejected | Self::Forbidden => REJECTIONS_UNTIL_OPEN,
        }
    }

    /// Returns whether so many consecutive failures are unlikely to be temporary.
    fn is_persistent(self, failures: u32) -> bool {
        match self {
            Self::RateLimited => false,
            Self::OutOfCredits => failures > CREDIT_PROBES_UNTIL_FAILING,
            Self::ServerErrors => failures > SERVER_ERROR_PROBES_UNTIL_FAILING,
            Self::Rejected | Self::Forbidden => {
                failures >= REJECTIONS_UNTIL_OPEN + PROBES_UNTIL_FAILING
            }
        }
    }
}

/// Returns `first` doubled with every step after the first, up to `max`.
fn backoff(first: Duration, step: u32, max: Duration) -> Duration {
    let factor = 1_u32.checked_shl(step.saturating_sub(1));
    first.saturating_mul(factor.unwrap_or(u32::MAX)).min(max)
}

/// What the outcome of a call implies for its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Exa accepted it.
    Accepted,
    /// Nothing: the call did not reach Exa, or failed before the key was checked.
    Unknown,
    /// Exa failed (5xx), which is the fault of the key only if other keys are accepted meanwhile.
    ServerError,
    /// Exa rejected it, possibly with a `Retry-After`.
    Fault(KeyFault, Option<Duration>),
}

impl Verdict {
    pub(super) fn from_outcome(outcome: Result<(), &ExaError>) -> Self {
        let Err(error) = outcome else {
            return Self::Accepted;
        };
        match KeyFault::from_error(error) {
            Some(fault) => Self::Fault(fault, error.retry_after),
            // Exa checks the key before the request.
            None if error.status.is_some_and(|status| status < 500) => Self::Accepted,
            None if matches!(error.kind, ExaErrorKind::Api(500..)) => Self::ServerError,
            None => Self::Unknown,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Circuit {
    /// All calls may use the key.
    Closed,
    /// No call may use the key before `until`.
    Open { until: Instant },
    /// One call has been probing the key since then.
    HalfOpen { since: Instant },
}

/// The state of a key for operators, ordered from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeyCondition {
    /// It is in service.
    Ready,
    /// A call is probing it, or the next one will.
    HalfOpen,
    /// It is not used for a while.
    CoolingDown,
    /// It keeps failing and is probed ever less often, but at least once an hour.
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

/// Permission for one call with a key. The breaker ignores tickets of an earlier generation, so that calls
/// from before a state change neither close it nor extend the cool-down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticket {
    generation: u64,
    pub(super) is_probe: bool,
}

/// The circuit breaker of a key.
#[derive(Debug)]
pub(super) struct CircuitBreaker {
    circuit: Circuit,
    /// Incremented on every state change.
    generation: u64,
    /// Consecutive faults, and the latest of them.
    failures: u32,
    fault: Option<KeyFault>,
    /// Consecutive server errors, and when the first of them was received.
    server_errors: u32,
    server_errors_since: Option<Instant>,
    /// When a call was last accepted.
    accepted_at: Option<Instant>,
}

impl Default for CircuitBreaker {
    fn default() -> Self {
        Self {
            circuit: Circuit::Closed,
            generation: 0,
            failures: 0,
            fault: None,
            server_errors: 0,
            server_errors_since: None,
            accepted_at: None,
        }
    }
}

impl CircuitBreaker {
    /// Returns whether a call may be made now.
    pub(super) fn allows(&self, now: Instant) -> bool {
        self.wait(now).is_none()
    }

    /// Returns the time until a call may be made; `None` if it may be made now.
    pub(super) fn wait(&self, now: Instant) -> Option<Duration> {
        match self.circuit {
            Circuit::Closed => None,
            Circuit::Open { until } => Some(until.saturating_duration_since(now)),
            Circuit::HalfOpen { since } => {
                let remaining = (since + PROBE_TIME).saturating_duration_since(now);
                Some(remaining.min(PROBE_WAIT))
            }
        }
        .filter(|wait| !wait.is_zero())
    }

    /// Admits a call, which is a probe unless the circuit is closed. Check [`Self::allows`] first.
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

    /// Records the outcome of a call.
    pub(super) fn report(&mut self, ticket: Ticket, verdict: Verdict, now: Instant) {
        if ticket.generation != self.generation {
            return;
        }
        match verdict {
            Verdict::Accepted => {
                self.close();
                self.accepted_at = Some(now);
            }
            Verdict::Unknown | Verdict::ServerError => self.release(ticket, now),
            Verdict::Fault(fault, retry_after) => self.fail(ticket, fault, retry_after, now),
        }
    }

    /// Records a server error. `others_accepted` is when a call with another key was last accepted: if that was since
    /// the first of several errors in a row, they are the fault of this key and not an outage of Exa.
    pub(super) fn report_server_error(
        &mut self,
        ticket: Ticket,
        others_accepted: Option<Instant>,
        now: Instant,
    ) {
        if ticket.generation != self.generation {
            return;
        }
        self.server_errors = self.server_errors.saturating_add(1);
        let since = *self.server_errors_since.get_or_insert(now);
        let is_failed_probe = ticket.is_probe && self.fault == Some(KeyFault::ServerErrors);
        let is_repeated = self.server_errors >= SERVER_ERRORS_UNTIL_OPEN;
        if is_failed_probe || is_repeated && others_accepted >= Some(since) {
            self.fail(ticket, KeyFault::ServerErrors, None, now);
        } else {
            self.release(ticket, now);
        }
    }

    /// Returns when a call was last accepted.
    pub(super) fn accepted_at(&self) -> Option<Instant> {
        self.accepted_at
    }

    /// Frees the slot of a probe that ended without an outcome; the next call is a probe.
    pub(super) fn release(&mut self, ticket: Ticket, now: Instant) {
        if ticket.is_probe && ticket.generation == self.generation {
            self.change(Circuit::Open { until: now });
        }
    }

    /// Closes the circuit and clears all faults.
    pub(super) fn close(&mut self) {
        self.failures = 0;
        self.fault = None;
        self.server_errors = 0;
        self.server_errors_since = None;
        if self.circuit != Circuit::Closed {
            self.change(Circuit::Closed);
        }
    }

    /// Records a fault that is detected only after the call has ended.
    pub(super) fn record_fault(&mut self, fault: KeyFault, now: Instant) {
        let ticket = Ticket {
            generation: self.generation,
            is_probe: false,
        };
        self.fail(ticket, fault, None, now);
    }

    fn fail(
        &mut self,
        ticket: Ticket,
        fault: KeyFault,
        retry_after: Option<Duration>,
        now: Instant,
    ) {
        // A different fault restarts the count.
        let previous = self.fault.replace(fault).filter(|it| *it == fault);
        let failures = previous.map_or(0, |_| self.failures);
        // A fault of a probe is conclusive, so it reopens the circuit.
        let min_failures = if ticket.is_probe {
            fault.failures_until_open()
        } else {
            0
        };
        self.failures = failures.saturating_add(1).max(min_failures);
        if self.failures >= fault.failures_until_open() {
            let retry_after = retry_after.filter(|wait| !wait.is_zero());
            let wait = retry_after.map_or_else(
                || fault.cool_down(self.failures),
                |wait| wait.min(fault.max_retry_after()),
            );
            self.change(Circuit::Open { until: now + wait });
        }
    }

    fn change(&mut self, circuit: Circuit) {
        self.circuit = circuit;
        self.generation += 1;
    }

    /// Returns the latest fault, if the last call failed.
    pub(super) fn fault(&self) -> Option<KeyFault> {
        self.fault
    }

    /// Returns the number of consecutive faults.
    pub(super) fn failures(&self) -> u32 {
        self.failures
    }

    pub(super) fn condition(&self, now: Instant) -> KeyCondition {
        let is_persistent = self
            .fault
            .is_some_and(|fault| fault.is_persistent(self.failures));
        match self.circuit {
            Circuit::Closed => KeyCondition::Ready,
            _ if is_persistent => KeyCondition::Failing,
            Circuit::Open { until } if until > now => KeyCondition::CoolingDown,
            Circuit::Open { .. } | Circuit::HalfOpen { .. } => KeyCondition::HalfOpen,
        }
    }
}

#[cfg(test)]
#[path = "tests/circuit_breaker.rs"]
mod tests;

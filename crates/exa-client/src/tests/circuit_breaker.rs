//! The transitions of the circuit breaker.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// A breaker and the time that it is told.
struct Stage {
    breaker: CircuitBreaker,
    now: Instant,
}

impl Stage {
    fn new() -> Self {
        Self {
            breaker: CircuitBreaker::default(),
            now: Instant::now(),
        }
    }

    fn admit(&mut self) -> Ticket {
        assert!(self.breaker.allows(self.now), "{:?}", self.breaker);
        self.breaker.admit(self.now)
    }

    fn call(&mut self, verdict: Verdict) {
        let ticket = self.admit();
        self.breaker.report(ticket, verdict, self.now);
    }

    fn fail(&mut self, fault: KeyFault) -> Option<Duration> {
        self.call(Verdict::Fault(fault, None));
        self.breaker.wait(self.now)
    }

    /// Lets the key fail again as soon as it may; gives the cool-downs.
    fn keep_failing(&mut self, fault: KeyFault, times: usize) -> Vec<u64> {
        let mut waits = Vec::new();
        for _ in 0..times {
            let wait = self.fail(fault).unwrap_or_default();
            waits.push(wait.as_secs());
            self.now += wait;
        }
        waits
    }

    fn condition(&self) -> KeyCondition {
        self.breaker.condition(self.now)
    }
}

#[test]
fn rate_limits_cool_down_for_seconds() {
    let mut stage = Stage::new();
    let waits = stage.keep_failing(KeyFault::RateLimited, 8);
    assert_eq!(waits, [1, 2, 4, 8, 16, 30, 30, 30]);
    assert_eq!(stage.condition(), KeyCondition::HalfOpen);
    stage.call(Verdict::Accepted);
    assert_eq!(stage.condition(), KeyCondition::Ready);
    assert_eq!(stage.fail(KeyFault::RateLimited), Some(SECOND), "reset");
}

#[test]
fn rejections_open_after_three_and_end_in_hourly_probes() {
    let mut stage = Stage::new();
    let waits = stage.keep_failing(KeyFault::Rejected, 22);
    let expected = [
        0, 0, 1, 2, 4, 8, 15, 15, 15, 15, 15, 15, 60, 120, 240, 480, 960, 1920, 3600, 3600, 3600,
        3600,
    ];
    assert_eq!(waits, expected);
    assert_eq!(stage.condition(), KeyCondition::Failing);
    let passing: u64 = expected.iter().take(5).sum();
    assert!(passing < 60, "back within a minute after a few rejections");
    stage.call(Verdict::Accepted);
    assert_eq!(stage.condition(), KeyCondition::Ready);
    assert_eq!(stage.fail(KeyFault::Rejected), None, "begins anew");
}

#[test]
fn a_key_counts_as_failing_once_probes_grow_rare() {
    let mut stage = Stage::new();
    for _ in 0..12 {
        stage.keep_failing(KeyFault::Rejected, 1);
        assert_ne!(stage.condition(), KeyCondition::Failing);
    }
    stage.keep_failing(KeyFault::Rejected, 1);
    assert_eq!(stage.condition(), KeyCondition::Failing);
    let ticket = stage.admit();
    assert_eq!(
        stage.condition(),
        KeyCondition::Failing,
        "while it is probed"
    );
    stage.breaker.report(ticket, Verdict::Accepted, stage.now);
    assert_eq!(stage.condition(), KeyCondition::Ready);
}

#[test]
fn an_accepted_call_between_rejections_resets_the_count() {
    let mut stage = Stage::new();
    for _ in 0..5 {
        assert_eq!(stage.keep_failing(KeyFault::Rejected, 2), [0, 0]);
        stage.call(Verdict::Accepted);
    }
    assert_eq!(stage.condition(), KeyCondition::Ready);
}

#[test]
fn exhausted_credits_are_probed_from_minutes_to_hourly() {
    let mut stage = Stage::new();
    let waits = stage.keep_failing(KeyFault::OutOfCredits, 8);
    assert_eq!(waits, [60, 120, 240, 480, 960, 1920, 3600, 3600]);
    assert_eq!(stage.condition(), KeyCondition::Failing);
}

#[test]
fn growth_never_overflows() {
    let mut stage = Stage::new();
    for fault in [
        KeyFault::RateLimited,
        KeyFault::OutOfCredits,
        KeyFault::Rejected,
    ] {
        stage.keep_failing(fault, 3);
        stage.breaker.failures = u32::MAX;
        let wait = stage.fail(fault);
        assert!(wait.is_some_and(|wait| wait <= LONGEST_COOL_DOWN));
        stage.breaker.close();
    }
}

#[test]
fn retry_after_is_honoured_within_bounds() {
    let cases = [
        (KeyFault::RateLimited, 7, 7),
        (KeyFault::RateLimited, 60, 60),
        (KeyFault::RateLimited, 86_400, 300),
        (KeyFault::RateLimited, u64::MAX, 300),
        (KeyFault::RateLimited, 0, 1),
        (KeyFault::OutOfCredits, 600, 600),
        (KeyFault::OutOfCredits, 86_400, 3_600),
    ];
    for (fault, asked, expected) in cases {
        let mut stage = Stage::new();
        let asked = Some(Duration::from_secs(asked));
        stage.call(Verdict::Fault(fault, asked));
        let wait = stage.breaker.wait(stage.now);
        assert_eq!(wait, Some(Duration::from_secs(expected)), "{fault:?}");
    }
}

#[test]
fn a_half_open_circuit_lets_one_probe_through() {
    let mut stage = Stage::new();
    stage.keep_failing(KeyFault::RateLimited, 1);
    let probe = stage.admit();
    assert!(probe.is_probe);
    assert!(!stage.breaker.allows(stage.now));
    assert_eq!(stage.breaker.wait(stage.now), Some(PROBE_HINT));
    stage.breaker.report(probe, Verdict::Accepted, stage.now);
    let call = stage.admit();
    assert!(!call.is_probe && stage.breaker.allows(stage.now));
}

#[test]
fn a_probe_without_an_outcome_frees_its_slot() {
    let mut stage = Stage::new();
    stage.keep_failing(KeyFault::RateLimited, 1);
    let probe = stage.admit();
    stage.breaker.release(probe, stage.now);
    assert!(stage.admit().is_probe, "dropped");
    stage.now += PROBE_TIME;
    let next = stage.admit();
    assert!(next.is_probe, "took too long");
    stage.breaker.report(next, Verdict::Unknown, stage.now);
    assert!(stage.admit().is_probe, "did not reach Exa");
    assert_eq!(stage.breaker.failures(), 1, "none of this is a fault");
}

#[test]
fn a_probe_that_lost_its_slot_changes_nothing() {
    let mut stage = Stage::new();
    stage.keep_failing(KeyFault::RateLimited, 1);
    let slow = stage.admit();
    stage.now += PROBE_TIME;
    let next = stage.admit();
    stage.breaker.release(slow, stage.now);
    assert!(
        !stage.breaker.allows(stage.now),
        "the slot is the next one's"
    );
    let fault = Verdict::Fault(KeyFault::RateLimited, None);
    stage.breaker.report(slow, fault, stage.now);
    assert_eq!(stage.breaker.failures(), 1);
    stage.breaker.report(next, Verdict::Accepted, stage.now);
    assert_eq!(stage.condition(), KeyCondition::Ready);
}

#[test]
fn calls_that_fail_together_count_once() {
    let mut stage = Stage::new();
    let tickets: Vec<Ticket> = (0..20).map(|_| stage.admit()).collect();
    for ticket in tickets {
        let fault = Verdict::Fault(KeyFault::RateLimited, None);
        stage.breaker.report(ticket, fault, stage.now);
    }
    assert_eq!(stage.breaker.wait(stage.now), Some(SECOND));
    // Nor does an answer to a question from before say anything about now.
    let early = Ticket {
        generation: 0,
        is_probe: false,
    };
    stage.breaker.report(early, Verdict::Accepted, stage.now);
    assert_eq!(stage.condition(), KeyCondition::CoolingDown);
}

#[test]
fn another_fault_counts_anew() {
    let mut stage = Stage::new();
    stage.keep_failing(KeyFault::RateLimited, 6);
    assert_eq!(stage.fail(KeyFault::Rejected), Some(SECOND), "a probe");
    stage.now += SECOND;
    assert_eq!(stage.fail(KeyFault::RateLimited), Some(SECOND));
}

#[test]
fn only_complaints_about_the_key_are_faults() {
    let error = |status: u16, tag: Option<&str>| ExaError {
        status: Some(status),
        tag: tag.map(str::to_owned),
        ..ExaError::new(ExaErrorKind::Api(status), "no".to_owned())
    };
    let fault = |fault| Verdict::Fault(fault, None);
    for (status, tag, expected) in [
        (429, None, fault(KeyFault::RateLimited)),
        (402, None, fault(KeyFault::OutOfCredits)),
        (403, Some("NO_MORE_CREDITS"), fault(KeyFault::OutOfCredits)),
        (401, None, fault(KeyFault::Rejected)),
        (403, None, Verdict::Accepted),
        (404, None, Verdict::Accepted),
        (500, None, Verdict::Unknown),
        (503, None, Verdict::Unknown),
    ] {
        assert_eq!(Verdict::of(Err(&error(status, tag))), expected, "{status}");
    }
    let lost = ExaError::new(ExaErrorKind::Connect, "no".to_owned());
    assert_eq!(Verdict::of(Err(&lost)), Verdict::Unknown);
    assert_eq!(Verdict::of(Ok(())), Verdict::Accepted);
}

#[test]
fn a_reset_closes_at_once() {
    let mut stage = Stage::new();
    stage.keep_failing(KeyFault::Rejected, 15);
    let probe = stage.admit();
    stage.breaker.close();
    assert_eq!(stage.condition(), KeyCondition::Ready);
    // What was under way belongs to the past.
    let fault = Verdict::Fault(KeyFault::Rejected, None);
    stage.breaker.report(probe, fault, stage.now);
    assert_eq!(stage.condition(), KeyCondition::Ready);
    assert_eq!(stage.breaker.failures(), 0);
}

//! The transitions of the circuit breaker.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// A breaker with a simulated clock.
struct BreakerTest {
    breaker: CircuitBreaker,
    now: Instant,
}

impl BreakerTest {
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

    /// Fails repeatedly, each time after the cool-down; returns the cool-downs.
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
    let mut test = BreakerTest::new();
    let waits = test.keep_failing(KeyFault::RateLimited, 8);
    assert_eq!(waits, [1, 2, 4, 8, 16, 30, 30, 30]);
    assert_eq!(test.condition(), KeyCondition::HalfOpen);
    test.call(Verdict::Accepted);
    assert_eq!(test.condition(), KeyCondition::Ready);
    assert_eq!(test.fail(KeyFault::RateLimited), Some(SECOND), "reset");
}

#[test]
fn rejections_open_after_three_and_end_in_hourly_probes() {
    let mut test = BreakerTest::new();
    let waits = test.keep_failing(KeyFault::Rejected, 22);
    let expected = [
        0, 0, 1, 2, 4, 8, 15, 15, 15, 15, 15, 15, 60, 120, 240, 480, 960, 1920, 3600, 3600, 3600,
        3600,
    ];
    assert_eq!(waits, expected);
    assert_eq!(test.condition(), KeyCondition::Failing);
    let passing: u64 = expected.iter().take(5).sum();
    assert!(passing < 60, "back within a minute after a few rejections");
    test.call(Verdict::Accepted);
    assert_eq!(test.condition(), KeyCondition::Ready);
    assert_eq!(test.fail(KeyFault::Rejected), None, "count restarts");
}

#[test]
fn a_key_counts_as_failing_after_many_probes() {
    let mut test = BreakerTest::new();
    for _ in 0..12 {
        test.keep_failing(KeyFault::Rejected, 1);
        assert_ne!(test.condition(), KeyCondition::Failing);
    }
    test.keep_failing(KeyFault::Rejected, 1);
    assert_eq!(test.condition(), KeyCondition::Failing);
    let ticket = test.admit();
    assert_eq!(
        test.condition(),
        KeyCondition::Failing,
        "while it is probed"
    );
    test.breaker.report(ticket, Verdict::Accepted, test.now);
    assert_eq!(test.condition(), KeyCondition::Ready);
}

#[test]
fn an_accepted_call_between_rejections_resets_the_count() {
    let mut test = BreakerTest::new();
    for _ in 0..5 {
        assert_eq!(test.keep_failing(KeyFault::Rejected, 2), [0, 0]);
        test.call(Verdict::Accepted);
    }
    assert_eq!(test.condition(), KeyCondition::Ready);
}

#[test]
fn exhausted_credits_are_probed_from_minutes_to_hourly() {
    let mut test = BreakerTest::new();
    let waits = test.keep_failing(KeyFault::OutOfCredits, 8);
    assert_eq!(waits, [60, 120, 240, 480, 960, 1920, 3600, 3600]);
    assert_eq!(test.condition(), KeyCondition::Failing);
}

#[test]
fn cool_downs_do_not_overflow() {
    let mut test = BreakerTest::new();
    for fault in [
        KeyFault::RateLimited,
        KeyFault::OutOfCredits,
        KeyFault::Rejected,
    ] {
        test.keep_failing(fault, 3);
        test.breaker.failures = u32::MAX;
        let wait = test.fail(fault);
        assert!(wait.is_some_and(|wait| wait <= MAX_COOL_DOWN));
        test.breaker.close();
    }
}

#[test]
fn retry_after_is_honored_within_bounds() {
    let cases = [
        (KeyFault::RateLimited, 7, 7),
        (KeyFault::RateLimited, 60, 60),
        (KeyFault::RateLimited, 86_400, 300),
        (KeyFault::RateLimited, u64::MAX, 300),
        (KeyFault::RateLimited, 0, 1),
        (KeyFault::OutOfCredits, 600, 600),
        (KeyFault::OutOfCredits, 86_400, 3_600),
    ];
    for (fault, retry_after, expected) in cases {
        let mut test = BreakerTest::new();
        let retry_after = Some(Duration::from_secs(retry_after));
        test.call(Verdict::Fault(fault, retry_after));
        let wait = test.breaker.wait(test.now);
        assert_eq!(wait, Some(Duration::from_secs(expected)), "{fault:?}");
    }
}

#[test]
fn a_half_open_circuit_lets_one_probe_through() {
    let mut test = BreakerTest::new();
    test.keep_failing(KeyFault::RateLimited, 1);
    let probe = test.admit();
    assert!(probe.is_probe);
    assert!(!test.breaker.allows(test.now));
    assert_eq!(test.breaker.wait(test.now), Some(PROBE_WAIT));
    test.breaker.report(probe, Verdict::Accepted, test.now);
    let call = test.admit();
    assert!(!call.is_probe && test.breaker.allows(test.now));
}

#[test]
fn a_probe_without_an_outcome_frees_its_slot() {
    let mut test = BreakerTest::new();
    test.keep_failing(KeyFault::RateLimited, 1);
    let probe = test.admit();
    test.breaker.release(probe, test.now);
    assert!(test.admit().is_probe, "dropped");
    test.now += PROBE_TIME;
    let next = test.admit();
    assert!(next.is_probe, "took too long");
    test.breaker.report(next, Verdict::Unknown, test.now);
    assert!(test.admit().is_probe, "did not reach Exa");
    assert_eq!(test.breaker.failures(), 1, "none of this is a fault");
}

#[test]
fn a_probe_that_lost_its_slot_changes_nothing() {
    let mut test = BreakerTest::new();
    test.keep_failing(KeyFault::RateLimited, 1);
    let slow = test.admit();
    test.now += PROBE_TIME;
    let next = test.admit();
    test.breaker.release(slow, test.now);
    assert!(!test.breaker.allows(test.now), "the slot is the next one's");
    let fault = Verdict::Fault(KeyFault::RateLimited, None);
    test.breaker.report(slow, fault, test.now);
    assert_eq!(test.breaker.failures(), 1);
    test.breaker.report(next, Verdict::Accepted, test.now);
    assert_eq!(test.condition(), KeyCondition::Ready);
}

#[test]
fn calls_that_fail_together_count_once() {
    let mut test = BreakerTest::new();
    let tickets: Vec<Ticket> = (0..20).map(|_| test.admit()).collect();
    for ticket in tickets {
        let fault = Verdict::Fault(KeyFault::RateLimited, None);
        test.breaker.report(ticket, fault, test.now);
    }
    assert_eq!(test.breaker.wait(test.now), Some(SECOND));
    // Nor does an response to a question from before say anything about now.
    let early = Ticket {
        generation: 0,
        is_probe: false,
    };
    test.breaker.report(early, Verdict::Accepted, test.now);
    assert_eq!(test.condition(), KeyCondition::CoolingDown);
}

#[test]
fn a_different_fault_restarts_the_count() {
    let mut test = BreakerTest::new();
    test.keep_failing(KeyFault::RateLimited, 6);
    assert_eq!(test.fail(KeyFault::Rejected), Some(SECOND), "a probe");
    test.now += SECOND;
    assert_eq!(test.fail(KeyFault::RateLimited), Some(SECOND));
}

#[test]
fn only_key_errors_are_faults() {
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
        (500, None, Verdict::ServerError),
        (503, None, Verdict::ServerError),
    ] {
        assert_eq!(
            Verdict::from_outcome(Err(&error(status, tag))),
            expected,
            "{status}"
        );
    }
    let lost = ExaError::new(ExaErrorKind::Connect, "no".to_owned());
    assert_eq!(Verdict::from_outcome(Err(&lost)), Verdict::Unknown);
    assert_eq!(Verdict::from_outcome(Ok(())), Verdict::Accepted);
}

#[test]
fn a_reset_closes_at_once() {
    let mut test = BreakerTest::new();
    test.keep_failing(KeyFault::Rejected, 15);
    let probe = test.admit();
    test.breaker.close();
    assert_eq!(test.condition(), KeyCondition::Ready);
    // The outcome of an earlier call is ignored.
    let fault = Verdict::Fault(KeyFault::Rejected, None);
    test.breaker.report(probe, fault, test.now);
    assert_eq!(test.condition(), KeyCondition::Ready);
    assert_eq!(test.breaker.failures(), 0);
}

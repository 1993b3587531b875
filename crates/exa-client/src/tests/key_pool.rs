//! Cooling down, rate limiting and sharing of keys.

use super::*;

const CLASS: &str = "search";

fn pool(count: usize) -> KeyPool {
    KeyPool::new(
        (0..count).map(|number| ApiKey::new(format!("key-number-{number}-secret")).unwrap()),
    )
}

fn failure(status: u16) -> ExaError {
    ExaError {
        status: Some(status),
        ..ExaError::new(ExaErrorKind::Api(status), "no".to_owned())
    }
}

#[test]
fn spreads_calls_over_keys() {
    let pool = pool(3);
    let leases: Vec<KeyLease> = (0..9)
        .map(|_| pool.lease(CLASS, None, &[]).unwrap())
        .collect();
    assert!(pool.states().iter().all(|state| state.in_flight == 3));
    drop(leases);
    assert!(
        pool.states()
            .iter()
            .all(|state| state.in_flight == 0 && state.calls == 3)
    );
}

/// The error if all keys have the same fault.
fn out(fault: KeyFault, seconds: u64) -> Option<KeyPoolError> {
    Some(KeyPoolError::CoolingDown {
        wait: Duration::from_secs(seconds),
        fault: Some(fault),
    })
}

fn conditions(pool: &KeyPool) -> Vec<&'static str> {
    let states = pool.states();
    states.iter().map(|key| key.condition.as_str()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_rate_limited_key_cools_down() {
    let pool = pool(2);
    let lease = pool.lease(CLASS, None, &[]).unwrap();
    let rate_limited = ExaError {
        retry_after: Some(Duration::from_secs(10)),
        ..failure(429)
    };
    assert!(lease.report(Err(&rate_limited)));
    for _ in 0..5 {
        assert_ne!(pool.lease(CLASS, None, &[]).unwrap().index, lease.index);
    }
    let index = lease.index;
    drop(lease);
    assert_eq!(conditions(&pool), ["cooling_down", "ready"]);
    tokio::time::advance(Duration::from_secs(11)).await;
    assert_eq!(conditions(&pool), ["half_open", "ready"]);
    let probe = pool.lease(CLASS, None, &[]).unwrap();
    assert_eq!(probe.index, index, "it did the least work");
    assert!(probe.is_probe());
    probe.report(Ok(()));
    assert_eq!(conditions(&pool), ["ready", "ready"]);
}

#[tokio::test(start_paused = true)]
async fn reports_when_the_next_key_is_ready() {
    let pool = pool(2);
    for _ in 0..2 {
        pool.lease(CLASS, None, &[])
            .unwrap()
            .report(Err(&failure(402)));
    }
    let next = pool.lease(CLASS, None, &[]).err();
    assert_eq!(next, out(KeyFault::OutOfCredits, 60));
    assert!(!pool.has_ready(CLASS, &[]));
    tokio::time::advance(Duration::from_secs(60)).await;
    assert!(pool.lease(CLASS, None, &[]).is_ok());
    let none = KeyPool::new([]).lease(CLASS, None, &[]).err();
    assert_eq!(none, Some(KeyPoolError::Empty(KeyOwner::User)));
}

#[tokio::test(start_paused = true)]
async fn reports_different_faults_together() {
    let pool = pool(2);
    pool.lease(CLASS, None, &[1])
        .unwrap()
        .report(Err(&failure(429)));
    pool.lease(CLASS, None, &[0])
        .unwrap()
        .report(Err(&failure(402)));
    let none = pool.lease(CLASS, None, &[]).err().unwrap();
    let text = none.to_string();
    assert!(
        text.starts_with("all Exa API keys are cooling down"),
        "{text}"
    );
    assert_eq!(none.retry_after_seconds(), Some(1));
}

#[tokio::test(start_paused = true)]
async fn rejected_keys_recover() {
    let pool = pool(3);
    for _ in 0..9 {
        pool.lease(CLASS, None, &[])
            .unwrap()
            .report(Err(&failure(401)));
    }
    assert_eq!(
        pool.lease(CLASS, None, &[]).err(),
        out(KeyFault::Rejected, 1)
    );
    tokio::time::advance(Duration::from_secs(1)).await;
    let probes: Vec<KeyLease> = (0..3)
        .map(|_| pool.lease(CLASS, None, &[]).unwrap())
        .collect();
    assert!(probes.iter().all(KeyLease::is_probe));
    assert!(pool.lease(CLASS, None, &[]).is_err(), "one probe a key");
    for probe in &probes {
        probe.report(Ok(()));
    }
    assert_eq!(conditions(&pool), ["ready"; 3]);
}

#[tokio::test(start_paused = true)]
async fn dropping_a_probe_frees_the_key() {
    let pool = shared();
    pool.lease(CLASS, None, &[])
        .unwrap()
        .report(Err(&failure(429)));
    tokio::time::advance(Duration::from_secs(1)).await;
    let probe = pool.lease(CLASS, None, &[]).unwrap();
    assert_eq!(
        pool.lease(CLASS, None, &[]).err(),
        out(KeyFault::RateLimited, 1)
    );
    drop(probe);
    assert!(pool.lease(CLASS, None, &[]).unwrap().is_probe());
}

#[tokio::test(start_paused = true)]
async fn resets_only_the_matching_key() {
    let pool = pool(2);
    let id_of = |key: &ApiKey| key.expose().replace("-secret", "");
    let ids: Vec<String> = pool
        .states_with_ids(id_of)
        .into_iter()
        .map(|(id, _)| id)
        .collect();
    assert_eq!(ids, ["key-number-0", "key-number-1"]);
    for _ in 0..2 {
        pool.lease(CLASS, None, &[])
            .unwrap()
            .report(Err(&failure(402)));
    }
    assert!(pool.reset(|key| id_of(key) == "unknown").is_none());
    let before = pool.reset(|key| id_of(key) == ids[1]).unwrap();
    assert_eq!(before.condition, KeyCondition::CoolingDown);
    assert_eq!(conditions(&pool), ["cooling_down", "ready"]);
    assert_eq!(pool.states()[1].last_fault, None);
}

#[test]
fn prefers_the_key_that_found_a_resource() {
    let pool = pool(3);
    let lease = pool.lease(CLASS, None, &[0]).unwrap();
    pool.remember("webset_1", &lease);
    for _ in 0..5 {
        assert_eq!(
            pool.lease(CLASS, Some("webset_1"), &[]).unwrap().index,
            lease.index
        );
    }
    // If that key no longer finds it, each of the others is tried once.
    let next = pool.lease(CLASS, Some("webset_1"), &[lease.index]).unwrap();
    assert_ne!(next.index, lease.index);
    assert!(pool.lease(CLASS, None, &[0, 1, 2]).is_err());
}

#[tokio::test(start_paused = true)]
async fn limits_the_rate_per_key() {
    let key = ApiKey::new("key-number-0-secret").unwrap();
    let pool = KeyPool::with_rate_limit([key], Some(10), KeyOwner::User);
    let mut sent = Vec::new();
    let start = Instant::now();
    for (count, pause) in [(7, 0), (20, 300), (1, 2_500), (30, 900), (5, 10_000)] {
        tokio::time::advance(Duration::from_millis(pause)).await;
        let moment = start.elapsed();
        sent.extend((0..count).map(|_| moment + pool.lease(CLASS, None, &[]).unwrap().wait()));
    }
    assert!(sent.iter().take(7).all(Duration::is_zero), "{sent:?}");
    for first in &sent {
        let second = sent.iter().filter(|at| *at >= first);
        let second = second.filter(|at| **at <= *first + Duration::from_secs(1));
        assert!(second.count() <= 10, "{first:?}: {sent:?}");
    }
    let last = sent.last().copied().unwrap();
    assert_eq!(last, start.elapsed(), "an idle key is used at once");
    assert!(
        exa_mcp_model::lock(&pool.0.slots)[0].send_times.len() <= 10,
        "old times are dropped"
    );
}

#[test]
fn a_single_key_of_a_user_never_cools_down() {
    let pool = pool(1);
    for status in [429, 402, 401, 401, 401] {
        let error = failure(status);
        assert!(!pool.lease(CLASS, None, &[]).unwrap().report(Err(&error)));
        assert_eq!(pool.unavailable_after(CLASS, &error), None);
    }
    assert!(pool.has_ready(CLASS, &[]));
}

fn shared() -> KeyPool {
    let key = ApiKey::new("key-number-0-secret").unwrap();
    KeyPool::with_rate_limit([key], None, KeyOwner::Operator)
}

#[tokio::test(start_paused = true)]
async fn a_single_key_of_an_operator_honors_retry_after() {
    for (status, retry_after, fault, expected) in [
        (429, None, KeyFault::RateLimited, 1),
        (402, None, KeyFault::OutOfCredits, 60),
        (429, Some(7), KeyFault::RateLimited, 7),
        (402, Some(600), KeyFault::OutOfCredits, 600),
    ] {
        let pool = shared();
        let error = ExaError {
            retry_after: retry_after.map(Duration::from_secs),
            ..failure(status)
        };
        pool.lease(CLASS, None, &[]).unwrap().report(Err(&error));
        let out = out(fault, expected);
        assert_eq!(pool.lease(CLASS, None, &[]).err(), out);
        assert_eq!(pool.unavailable_after(CLASS, &error), out);
        assert_eq!(pool.unavailable_after(CLASS, &failure(404)), None);
        assert_eq!(conditions(&pool), ["cooling_down"]);
        tokio::time::advance(Duration::from_secs(expected)).await;
        assert!(pool.has_ready(CLASS, &[]));
    }
}

#[tokio::test(start_paused = true)]
async fn a_single_key_of_an_operator_recovers_from_rejections() {
    let pool = shared();
    for _ in 0..3 {
        assert_eq!(pool.unavailable_after(CLASS, &failure(401)), None);
        pool.lease(CLASS, None, &[])
            .unwrap()
            .report(Err(&failure(401)));
    }
    let out = out(KeyFault::Rejected, 1);
    assert_eq!(pool.lease(CLASS, None, &[]).err(), out);
    assert_eq!(pool.unavailable_after(CLASS, &failure(401)), out);
    assert_eq!(conditions(&pool), ["cooling_down"]);
    tokio::time::advance(Duration::from_secs(1)).await;
    pool.lease(CLASS, None, &[]).unwrap().report(Ok(()));
    assert_eq!(conditions(&pool), ["ready"]);
}

#[test]
fn rounds_waits_up_to_seconds() {
    let out = KeyPoolError::CoolingDown {
        wait: Duration::from_millis(1_001),
        fault: None,
    };
    assert_eq!(out.retry_after_seconds(), Some(2));
    assert!(out.to_string().ends_with("in 2 seconds"), "{out}");
}

#[test]
fn states_do_not_show_the_key() {
    let states = format!("{:?}", pool(1).states());
    assert!(
        !states.contains("secret") && states.contains("key-"),
        "{states}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_fault_of_one_class_does_not_affect_others() {
    for status in [402, 429] {
        let pool = pool(2);
        for index in [0, 1] {
            let lease = pool.lease("websets", None, &[1 - index]).unwrap();
            assert!(lease.report(Err(&failure(status))));
        }
        assert!(pool.lease("websets", None, &[]).is_err());
        assert!(pool.lease("search", None, &[]).is_ok());
        assert!(pool.unavailable_after("search", &failure(status)).is_none());
        let states = pool.states();
        assert!(
            states
                .iter()
                .all(|state| state.limited_classes == ["websets"])
        );
        assert_eq!(conditions(&pool), ["cooling_down"; 2]);
    }
    // A rejected key cannot be used for anything.
    let pool = shared();
    for _ in 0..3 {
        pool.lease("websets", None, &[])
            .unwrap()
            .report(Err(&failure(401)));
    }
    assert!(pool.lease("search", None, &[]).is_err());
}

#[tokio::test(start_paused = true)]
async fn skips_a_key_that_lacks_a_permission() {
    let pool = pool(2);
    for _ in 0..3 {
        let lease = pool.lease("agent", None, &[1]).unwrap();
        assert!(
            lease.report(Err(&failure(403))),
            "another key may do better"
        );
        lease.report_forbidden();
    }
    assert_eq!(pool.lease("agent", None, &[]).unwrap().index, 1);
    assert_eq!(pool.states()[0].limited_classes, ["agent"]);
    assert!(pool.lease("search", None, &[1]).is_ok());
    // If no key is allowed to do it, the call is the reason.
    let pool = self::pool(2);
    for index in [0, 1, 0, 1, 0, 1, 0, 1] {
        pool.lease("agent", None, &[1 - index])
            .unwrap()
            .report(Err(&failure(403)));
    }
    assert_eq!(conditions(&pool), ["ready", "ready"]);
}

#[tokio::test(start_paused = true)]
async fn server_errors_of_one_key_open_its_circuit() {
    let pool = pool(2);
    let call = |status: Option<u16>, tried: &[usize]| {
        let lease = pool.lease(CLASS, None, tried).unwrap();
        let error = status.map(failure);
        lease.report(error.as_ref().map_or(Ok(()), Err));
        lease.index()
    };
    let conditions = || {
        pool.states()
            .iter()
            .map(|it| it.condition)
            .collect::<Vec<_>>()
    };
    use KeyCondition::{CoolingDown, Failing, HalfOpen, Ready};
    // An outage affects all keys and is the fault of none, whatever was accepted before.
    call(None, &[0]);
    tokio::time::advance(Duration::from_secs(1)).await;
    for number in 0..20 {
        call(Some(503), &[number % 2]);
    }
    assert_eq!(conditions(), [Ready, Ready]);
    // Exa accepts calls with the other key meanwhile.
    call(None, &[0]);
    call(Some(500), &[1]);
    assert_eq!(conditions(), [CoolingDown, Ready]);
    assert_eq!(pool.states()[0].last_fault, Some(KeyFault::ServerErrors));
    assert_eq!(pool.states()[0].limited_classes, [CLASS]);
    for _ in 0..20 {
        assert_eq!(call(Some(500), &[]), 1, "the last key remains in use");
    }
    assert_eq!(conditions(), [CoolingDown, Ready]);
    for seconds in [5, 10, 20, 40, 80, 160] {
        tokio::time::advance(Duration::from_secs(seconds)).await;
        assert_eq!(conditions(), [HalfOpen, Ready], "{seconds}");
        call(Some(502), &[1]);
    }
    assert_eq!(conditions(), [Failing, Ready]);
    tokio::time::advance(Duration::from_secs(300)).await;
    assert_eq!(call(None, &[1]), 0);
    assert_eq!(conditions(), [Ready, Ready]);
}

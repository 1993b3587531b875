//! How keys cool down, are paced and are shared.

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
fn the_work_is_shared() {
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

/// Why no key is ready, where all have the same fault.
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
async fn a_key_that_was_turned_away_cools_down() {
    let pool = pool(2);
    let lease = pool.lease(CLASS, None, &[]).unwrap();
    let turned_away = ExaError {
        retry_after: Some(Duration::from_secs(10)),
        ..failure(429)
    };
    assert!(lease.report(Err(&turned_away)));
    for _ in 0..5 {
        assert_ne!(pool.lease(CLASS, None, &[]).unwrap().place, lease.place);
    }
    let place = lease.place;
    drop(lease);
    assert_eq!(conditions(&pool), ["cooling_down", "ready"]);
    tokio::time::advance(Duration::from_secs(11)).await;
    assert_eq!(conditions(&pool), ["half_open", "ready"]);
    let probe = pool.lease(CLASS, None, &[]).unwrap();
    assert_eq!(probe.place, place, "it did the least work");
    assert!(probe.is_probe());
    probe.report(Ok(()));
    assert_eq!(conditions(&pool), ["ready", "ready"]);
}

#[tokio::test(start_paused = true)]
async fn when_all_cool_down_the_next_is_named() {
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
async fn keys_with_different_faults_are_named_together() {
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
async fn rejected_keys_come_back_by_themselves() {
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
async fn a_probe_that_is_dropped_frees_the_key() {
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
async fn a_reset_needs_the_id_of_a_key() {
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
fn a_thing_is_looked_for_where_it_was_found() {
    let pool = pool(3);
    let lease = pool.lease(CLASS, None, &[0]).unwrap();
    pool.remember("webset_1", &lease);
    for _ in 0..5 {
        assert_eq!(
            pool.lease(CLASS, Some("webset_1"), &[]).unwrap().place,
            lease.place
        );
    }
    // Where it is no longer, the others are asked, each once.
    let next = pool.lease(CLASS, Some("webset_1"), &[lease.place]).unwrap();
    assert_ne!(next.place, lease.place);
    assert!(pool.lease(CLASS, None, &[0, 1, 2]).is_err());
}

#[tokio::test(start_paused = true)]
async fn no_second_has_more_requests_than_it_may() {
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
        exa_mcp_model::lock(&pool.0.slots)[0].turns.len() <= 10,
        "old turns are forgotten"
    );
}

#[test]
fn a_single_key_of_ones_own_is_always_tried() {
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
async fn a_single_key_that_is_shared_cools_down_as_long_as_it_is_told() {
    for (status, asked, fault, expected) in [
        (429, None, KeyFault::RateLimited, 1),
        (402, None, KeyFault::OutOfCredits, 60),
        (429, Some(7), KeyFault::RateLimited, 7),
        (402, Some(600), KeyFault::OutOfCredits, 600),
    ] {
        let pool = shared();
        let error = ExaError {
            retry_after: asked.map(Duration::from_secs),
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
async fn a_single_key_that_is_shared_survives_passing_rejections() {
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
fn waits_are_told_in_seconds_after_which_they_are_over() {
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
async fn a_fault_of_one_class_leaves_the_others_alone() {
    for status in [402, 429] {
        let pool = pool(2);
        for place in [0, 1] {
            let lease = pool.lease("websets", None, &[1 - place]).unwrap();
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
    // A key that Exa does not accept is of no use for anything.
    let pool = shared();
    for _ in 0..3 {
        pool.lease("websets", None, &[])
            .unwrap()
            .report(Err(&failure(401)));
    }
    assert!(pool.lease("search", None, &[]).is_err());
}

#[tokio::test(start_paused = true)]
async fn a_key_that_may_do_less_than_others_is_left_alone_for_that() {
    let pool = pool(2);
    for _ in 0..3 {
        let lease = pool.lease("agent", None, &[1]).unwrap();
        assert!(
            lease.report(Err(&failure(403))),
            "another key may do better"
        );
        lease.report_forbidden();
    }
    assert_eq!(pool.lease("agent", None, &[]).unwrap().place, 1);
    assert_eq!(pool.states()[0].limited_classes, ["agent"]);
    assert!(pool.lease("search", None, &[1]).is_ok());
    // Where no key may do it, the call is to blame.
    let pool = self::pool(2);
    for place in [0, 1, 0, 1, 0, 1, 0, 1] {
        pool.lease("agent", None, &[1 - place])
            .unwrap()
            .report(Err(&failure(403)));
    }
    assert_eq!(conditions(&pool), ["ready", "ready"]);
}

//! How keys rest, are paced and are shared.

use super::*;

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
    let leases: Vec<Lease> = (0..9).map(|_| pool.lease(None, &[]).unwrap()).collect();
    assert!(pool.states().iter().all(|state| state.in_flight == 3));
    drop(leases);
    assert!(
        pool.states()
            .iter()
            .all(|state| state.in_flight == 0 && state.calls == 3)
    );
}

#[tokio::test(start_paused = true)]
async fn a_key_that_was_turned_away_rests() {
    let pool = pool(2);
    let lease = pool.lease(None, &[]).unwrap();
    let turned_away = ExaError {
        retry_after: Some(Duration::from_secs(10)),
        ..failure(429)
    };
    assert!(lease.report(Err(&turned_away)));
    for _ in 0..5 {
        assert_ne!(pool.lease(None, &[]).unwrap().place, lease.place);
    }
    tokio::time::advance(Duration::from_secs(11)).await;
    assert!(pool.states().iter().all(|state| state.state == "ready"));
}

#[tokio::test(start_paused = true)]
async fn when_all_rest_the_next_is_named() {
    let pool = pool(2);
    for _ in 0..2 {
        pool.lease(None, &[]).unwrap().report(Err(&failure(402)));
    }
    assert_eq!(pool.lease(None, &[]).err(), Some(NoKey::AllRest(COOLDOWN)));
    assert!(!pool.has_ready(&[]));
    tokio::time::advance(COOLDOWN).await;
    assert!(pool.lease(None, &[]).is_ok());
}

#[test]
fn a_refused_key_is_out_after_three_times_in_a_row() {
    let pool = pool(2);
    let all = |outcome: Option<u16>| {
        for _ in 0..2 {
            let failure = outcome.map(failure);
            pool.lease(None, &[])
                .unwrap()
                .report(failure.as_ref().map_or(Ok(()), Err));
        }
    };
    all(Some(401));
    all(Some(401));
    all(None);
    all(Some(401));
    all(Some(401));
    assert!(pool.has_ready(&[]));
    all(Some(401));
    assert_eq!(pool.lease(None, &[]).err(), Some(NoKey::AllRefused));
    let none = KeyPool::new([]).lease(None, &[]).err();
    assert_eq!(none, Some(NoKey::Empty(Holder::Own)));
}

#[test]
fn a_thing_is_looked_for_where_it_was_found() {
    let pool = pool(3);
    let lease = pool.lease(None, &[0]).unwrap();
    pool.remember("webset_1", &lease);
    for _ in 0..5 {
        assert_eq!(
            pool.lease(Some("webset_1"), &[]).unwrap().place,
            lease.place
        );
    }
    // Where it is no longer, the others are asked, each once.
    let next = pool.lease(Some("webset_1"), &[lease.place]).unwrap();
    assert_ne!(next.place, lease.place);
    assert!(pool.lease(None, &[0, 1, 2]).is_err());
}

#[test]
fn what_is_remembered_is_bounded() {
    let pool = pool(2);
    let lease = pool.lease(None, &[]).unwrap();
    for number in 0..MOST_HOMES + 10 {
        pool.remember(&number.to_string(), &lease);
    }
    let homes = pool.homes();
    assert_eq!(
        (homes.places.len(), homes.order.len()),
        (MOST_HOMES, MOST_HOMES)
    );
    assert!(homes.places.contains_key("11") && !homes.places.contains_key("9"));
}

#[tokio::test(start_paused = true)]
async fn no_second_has_more_requests_than_it_may() {
    let key = ApiKey::new("key-number-0-secret").unwrap();
    let pool = KeyPool::paced([key], Some(10), Holder::Own);
    let mut sent = Vec::new();
    let start = Instant::now();
    for (count, pause) in [(7, 0), (20, 300), (1, 2_500), (30, 900), (5, 10_000)] {
        tokio::time::advance(Duration::from_millis(pause)).await;
        let moment = start.elapsed();
        sent.extend((0..count).map(|_| moment + pool.lease(None, &[]).unwrap().wait()));
    }
    assert!(sent.iter().take(7).all(Duration::is_zero), "{sent:?}");
    for first in &sent {
        let second = sent.iter().filter(|at| *at >= first);
        let second = second.filter(|at| **at <= *first + Duration::from_secs(1));
        assert!(second.count() <= 10, "{first:?}: {sent:?}");
    }
    let last = sent.last().copied().unwrap();
    assert_eq!(last, start.elapsed(), "an idle key is used at once");
    assert!(pool.slots()[0].turns.len() <= 10, "old turns are forgotten");
}

#[test]
fn a_single_key_of_ones_own_is_always_tried() {
    let pool = pool(1);
    for status in [429, 402, 401, 401, 401] {
        let error = failure(status);
        assert!(!pool.lease(None, &[]).unwrap().report(Err(&error)));
        assert_eq!(pool.out_after(&error), None);
    }
    assert!(pool.has_ready(&[]));
}

fn shared() -> KeyPool {
    let key = ApiKey::new("key-number-0-secret").unwrap();
    KeyPool::paced([key], None, Holder::Shared)
}

#[tokio::test(start_paused = true)]
async fn a_single_key_that_is_shared_rests_as_long_as_it_is_told() {
    for (status, asked, expected) in [
        (429, None, COOLDOWN),
        (402, None, COOLDOWN),
        (429, Some(7), Duration::from_secs(7)),
        (402, Some(600), Duration::from_secs(600)),
    ] {
        let pool = shared();
        let error = ExaError {
            retry_after: asked.map(Duration::from_secs),
            ..failure(status)
        };
        pool.lease(None, &[]).unwrap().report(Err(&error));
        let out = Some(NoKey::AllRest(expected));
        assert_eq!(pool.lease(None, &[]).err(), out);
        assert_eq!(pool.out_after(&error), out);
        assert_eq!(pool.out_after(&failure(404)), None);
        assert_eq!(pool.states()[0].state, "resting");
        tokio::time::advance(expected).await;
        assert!(pool.has_ready(&[]));
    }
}

#[test]
fn a_single_key_that_is_shared_is_out_after_three_refusals() {
    let pool = shared();
    for _ in 0..3 {
        assert_eq!(pool.out_after(&failure(401)), None);
        pool.lease(None, &[]).unwrap().report(Err(&failure(401)));
    }
    assert_eq!(pool.lease(None, &[]).err(), Some(NoKey::AllRefused));
    assert_eq!(pool.out_after(&failure(401)), Some(NoKey::AllRefused));
    assert_eq!(pool.states()[0].state, "refused");
}

#[test]
fn waits_are_told_in_seconds_after_which_they_are_over() {
    let out = NoKey::AllRest(Duration::from_millis(1_001));
    assert_eq!(out.seconds(), Some(2));
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

//! The contract of reservations and slots.

use super::*;

const ANN: &str = "spent:2026-11:ann";

fn reservation(id: &str, amount: u64, limit: Option<u64>) -> Reservation {
    let budget = |name: &str, limit| BudgetCounters {
        subject: ANN.to_owned(),
        spent: name.to_owned(),
        reserved: format!("reserved:{name}"),
        limit,
    };
    Reservation {
        id: id.to_owned(),
        holder: "one".to_owned(),
        amount,
        budgets: vec![budget("17", limit), budget("month", Some(1_000_000))],
        body: format!("{{\"of\":\"{id} ü\"}}"),
    }
}

fn spending(amount: u64) -> Vec<CounterUpdate> {
    ["17", "month"]
        .map(|name| update(ANN, name, CounterOp::Add(amount)))
        .to_vec()
}

async fn counter(store: &dyn Store, name: &str) -> u64 {
    let counters = store.counters(Some(ANN.to_owned())).await.unwrap();
    let found = counters.iter().find(|counter| counter.name == name);
    found.map_or(0, |counter| counter.value)
}

#[tokio::test]
async fn reservations_must_fit_every_budget() {
    on_each(|store, _| async move {
        let held = store.reserve(reservation("a", 60, Some(100))).await;
        let state = |spent, reserved| BudgetState { spent, reserved };
        assert_eq!(held, Ok(ReserveOutcome::Held(vec![state(0, 60); 2])));
        // A repeated request has the same outcome.
        let again = store.reserve(reservation("a", 60, Some(100))).await;
        assert_eq!(again, Ok(ReserveOutcome::Held(vec![state(0, 60); 2])));
        let over = store.reserve(reservation("b", 41, Some(100))).await;
        assert_eq!(over, Ok(ReserveOutcome::Exceeded(vec![state(0, 60); 2])));
        let month = store.reserve(reservation("b", 999_941, None)).await;
        assert!(matches!(month, Ok(ReserveOutcome::Exceeded(_))));
        let fits = store.reserve(reservation("b", 40, Some(100))).await;
        assert_eq!(fits, Ok(ReserveOutcome::Held(vec![state(0, 100); 2])));
        assert_eq!(
            store.reservations().await.unwrap(),
            [
                reservation("a", 60, Some(100)),
                reservation("b", 40, Some(100))
            ]
        );
        let settled = store.settle(reservation("a", 60, Some(100)), spending(25));
        assert_eq!(settled.await, Ok(true));
        // Settling again changes nothing, whatever the amount.
        for amount in [25, 60] {
            let settled = store.settle(reservation("a", 60, Some(100)), spending(amount));
            assert_eq!(settled.await, Ok(false));
        }
        assert_eq!(counter(&*store, "17").await, 25);
        assert_eq!(counter(&*store, "month").await, 25);
        assert_eq!(counter(&*store, "reserved:17").await, 40);
        let settled = store.settle(reservation("b", 40, Some(100)), Vec::new());
        assert_eq!(settled.await, Ok(true));
        assert_eq!(counter(&*store, "reserved:month").await, 0);
        assert_eq!(counter(&*store, "month").await, 25);
        assert_eq!(store.reservations().await, Ok(Vec::new()));
    })
    .await;
}

#[tokio::test]
async fn reassigns_once_and_claims_belong_to_the_first_reservation() {
    on_each(|store, _| async move {
        for id in ["a", "b"] {
            store.reserve(reservation(id, 5, None)).await.unwrap();
        }
        let run = |id: &str| Reservation {
            body: "{\"run\":\"r\"}".to_owned(),
            ..reservation(id, 5, None)
        };
        let claim = || Some("agent.runs.get r".to_owned());
        let outcome = store.reassign(reservation("a", 5, None), run("a"), claim());
        assert_eq!(outcome.await, Ok(ReassignOutcome::Done));
        let outcome = store.reassign(reservation("b", 5, None), run("b"), claim());
        assert_eq!(outcome.await, Ok(ReassignOutcome::Claimed));
        let held_by = |holder: &str| Reservation {
            holder: holder.to_owned(),
            ..run("a")
        };
        let two = store.reassign(run("a"), held_by("two"), None);
        assert_eq!(two.await, Ok(ReassignOutcome::Done));
        let three = store.reassign(run("a"), held_by("three"), None);
        assert_eq!(three.await, Ok(ReassignOutcome::Gone));
        let open = store.reservations().await.unwrap();
        assert_eq!(open, [held_by("two"), reservation("b", 5, None)]);
        store.settle(held_by("two"), spending(4)).await.unwrap();
        let late = store.reassign(held_by("two"), held_by("one"), None);
        assert_eq!(late.await, Ok(ReassignOutcome::Gone));
        // The claim outlives the reservation.
        let outcome = store.reassign(reservation("b", 5, None), run("b"), claim());
        assert_eq!(outcome.await, Ok(ReassignOutcome::Claimed));
    })
    .await;
}

fn slot(id: &str, group: &str, is_durable: bool) -> Slot {
    Slot {
        key: "calls:t".to_owned(),
        id: id.to_owned(),
        group: group.to_owned(),
        holder: "one".to_owned(),
        is_durable,
    }
}

#[tokio::test]
async fn slots_are_counted_by_group() {
    on_each(|store, _| async move {
        let limit = |max_groups, counts_durable| {
            Some(SlotLimit {
                max_groups,
                counts_durable,
            })
        };
        let key = || "calls:t".to_owned();
        assert_eq!(
            store
                .acquire_slot(slot("a", "a", false), limit(1, true))
                .await,
            Ok(true)
        );
        assert_eq!(
            store
                .acquire_slot(slot("a", "a", false), limit(1, true))
                .await,
            Ok(true)
        );
        assert_eq!(
            store
                .acquire_slot(slot("b", "b", false), limit(1, false))
                .await,
            Ok(false)
        );
        // Work that a call starts counts with the call, and continues without it.
        assert_eq!(
            store.acquire_slot(slot("r", "a", true), None).await,
            Ok(true)
        );
        assert_eq!(
            store
                .acquire_slot(slot("b", "b", false), limit(2, true))
                .await,
            Ok(true)
        );
        for id in ["a", "b", "b"] {
            store.release_slot(key(), id.to_owned()).await.unwrap();
        }
        assert_eq!(store.slots(key()).await.unwrap(), [slot("r", "a", true)]);
        assert_eq!(
            store
                .acquire_slot(slot("c", "c", false), limit(1, true))
                .await,
            Ok(false)
        );
        assert_eq!(
            store
                .acquire_slot(slot("c", "c", false), limit(1, false))
                .await,
            Ok(true)
        );
        let elsewhere = Slot {
            key: "calls:u".to_owned(),
            ..slot("a", "a", false)
        };
        assert_eq!(
            store.acquire_slot(elsewhere, limit(1, true)).await,
            Ok(true)
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_reservations_never_exceed_a_budget() {
    on_each(|store, _| async move {
        let mut all = tokio::task::JoinSet::new();
        for number in 0..60_u64 {
            let store = Arc::clone(&store);
            all.spawn(async move {
                let reservation = reservation(&number.to_string(), 7, Some(100));
                match store.reserve(reservation.clone()).await.unwrap() {
                    ReserveOutcome::Held(states) => {
                        assert!(states[0].spent + states[0].reserved <= 100, "{states:?}");
                        store
                            .settle(reservation, spending(number % 8))
                            .await
                            .unwrap();
                        number % 8
                    }
                    _ => 0,
                }
            });
        }
        let sum: u64 = all.join_all().await.into_iter().sum();
        assert_eq!(counter(&*store, "17").await, sum);
        assert_eq!(counter(&*store, "reserved:17").await, 0);
        assert!(sum <= 100);
    })
    .await;
}

#[cfg(unix)]
#[tokio::test]
async fn redis_rejects_a_reservation_settled_before_it_arrived() {
    let server = RedisServer::start();
    let store = RedisStore::new(address(&server));
    // The caller gave up waiting, and then the request arrives.
    let settled = store.settle(reservation("late", 7, None), Vec::new()).await;
    assert_eq!(settled, Ok(true));
    let late = store.reserve(reservation("late", 7, None)).await;
    assert_eq!(late, Ok(ReserveOutcome::AlreadySettled));
    assert_eq!(counter(&store, "reserved:17").await, 0);
    // Spending counts even if Redis lost the reservation.
    let lost = store
        .settle(reservation("lost", 7, None), spending(5))
        .await;
    assert_eq!(lost, Ok(true));
    let again = store
        .settle(reservation("lost", 7, None), spending(5))
        .await;
    assert_eq!(again, Ok(false));
    assert_eq!(counter(&store, "17").await, 5);
}

#[tokio::test]
async fn settling_saturates_counters() {
    on_each(|store, _| async move {
        const LARGE: u64 = 1 << 53;
        // More in total than any store can represent.
        let costs: Vec<CounterUpdate> = (0..600).flat_map(|_| spending(LARGE)).collect();
        for id in ["a", "b", "c"] {
            let mut reservation = reservation(id, 7, None);
            for budget in &mut reservation.budgets {
                budget.limit = None;
            }
            let held = store.reserve(reservation.clone()).await;
            assert!(
                matches!(held, Ok(ReserveOutcome::Held(_))),
                "{id}: {held:?}"
            );
            assert_eq!(
                store.settle(reservation, costs.clone()).await,
                Ok(true),
                "{id}"
            );
        }
        assert_eq!(store.reservations().await, Ok(Vec::new()));
        assert_eq!(counter(&*store, "reserved:month").await, 0);
        for name in ["17", "month"] {
            let value = counter(&*store, name).await;
            assert!(value >= i64::MAX as u64 - 1_024, "{name}: {value}");
        }
    })
    .await;
}

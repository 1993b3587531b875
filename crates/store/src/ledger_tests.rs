//! Reservations and slots, as every store must keep them.

use super::*;

const ANN: &str = "spent:2026-11:ann";

fn reservation(id: &str, amount: u64, most: Option<u64>) -> Reservation {
    let budget = |name: &str, most| BudgetCounters {
        subject: ANN.to_owned(),
        spent: name.to_owned(),
        reserved: format!("reserved:{name}"),
        most,
    };
    Reservation {
        id: id.to_owned(),
        holder: "one".to_owned(),
        amount,
        budgets: vec![budget("17", most), budget("month", Some(1_000_000))],
        body: format!("{{\"of\":\"{id} ü\"}}"),
    }
}

fn spending(amount: u64) -> Vec<CountChange> {
    ["17", "month"]
        .map(|name| change(ANN, name, Step::Add(amount)))
        .to_vec()
}

async fn number(store: &dyn Store, name: &str) -> u64 {
    let counts = store.counts(Some(ANN.to_owned())).await.unwrap();
    let found = counts.iter().find(|count| count.name == name);
    found.map_or(0, |count| count.value)
}

#[tokio::test]
async fn a_reservation_fits_into_each_budget_or_none() {
    on_each(|store, _| async move {
        let held = store.reserve(reservation("a", 60, Some(100))).await;
        let state = |spent, reserved| BudgetState { spent, reserved };
        assert_eq!(held, Ok(Reserved::Held(vec![state(0, 60); 2])));
        // Asked for again, it is the same.
        let again = store.reserve(reservation("a", 60, Some(100))).await;
        assert_eq!(again, Ok(Reserved::Held(vec![state(0, 60); 2])));
        let over = store.reserve(reservation("b", 41, Some(100))).await;
        assert_eq!(over, Ok(Reserved::Exceeded(vec![state(0, 60); 2])));
        let month = store.reserve(reservation("b", 999_941, None)).await;
        assert!(matches!(month, Ok(Reserved::Exceeded(_))));
        let fits = store.reserve(reservation("b", 40, Some(100))).await;
        assert_eq!(fits, Ok(Reserved::Held(vec![state(0, 100); 2])));
        assert_eq!(
            store.reservations().await.unwrap(),
            [
                reservation("a", 60, Some(100)),
                reservation("b", 40, Some(100))
            ]
        );
        let settled = store.settle(reservation("a", 60, Some(100)), spending(25));
        assert_eq!(settled.await, Ok(true));
        // However often it is said, and with whatever sum.
        for sum in [25, 60] {
            let settled = store.settle(reservation("a", 60, Some(100)), spending(sum));
            assert_eq!(settled.await, Ok(false));
        }
        assert_eq!(number(&*store, "17").await, 25);
        assert_eq!(number(&*store, "month").await, 25);
        assert_eq!(number(&*store, "reserved:17").await, 40);
        let settled = store.settle(reservation("b", 40, Some(100)), Vec::new());
        assert_eq!(settled.await, Ok(true));
        assert_eq!(number(&*store, "reserved:month").await, 0);
        assert_eq!(number(&*store, "month").await, 25);
        assert_eq!(store.reservations().await, Ok(Vec::new()));
    })
    .await;
}

#[tokio::test]
async fn a_reservation_changes_hands_once_and_a_claim_belongs_to_the_first() {
    on_each(|store, _| async move {
        for id in ["a", "b"] {
            store.reserve(reservation(id, 5, None)).await.unwrap();
        }
        let run = |id: &str| Reservation {
            body: "{\"run\":\"r\"}".to_owned(),
            ..reservation(id, 5, None)
        };
        let claim = || Some("agent.runs.get r".to_owned());
        let kept = store.reassign(reservation("a", 5, None), run("a"), claim());
        assert_eq!(kept.await, Ok(Reassigned::Done));
        let kept = store.reassign(reservation("b", 5, None), run("b"), claim());
        assert_eq!(kept.await, Ok(Reassigned::Claimed));
        let taken = |holder: &str| Reservation {
            holder: holder.to_owned(),
            ..run("a")
        };
        let two = store.reassign(run("a"), taken("two"), None);
        assert_eq!(two.await, Ok(Reassigned::Done));
        let three = store.reassign(run("a"), taken("three"), None);
        assert_eq!(three.await, Ok(Reassigned::Gone));
        let open = store.reservations().await.unwrap();
        assert_eq!(open, [taken("two"), reservation("b", 5, None)]);
        store.settle(taken("two"), spending(4)).await.unwrap();
        let late = store.reassign(taken("two"), taken("one"), None);
        assert_eq!(late.await, Ok(Reassigned::Gone));
        // The claim outlives the reservation.
        let kept = store.reassign(reservation("b", 5, None), run("b"), claim());
        assert_eq!(kept.await, Ok(Reassigned::Claimed));
    })
    .await;
}

fn slot(id: &str, group: &str, is_lasting: bool) -> Slot {
    Slot {
        key: "calls:t".to_owned(),
        id: id.to_owned(),
        group: group.to_owned(),
        holder: "one".to_owned(),
        is_lasting,
    }
}

#[tokio::test]
async fn slots_are_counted_by_their_groups() {
    on_each(|store, _| async move {
        let limit = |most, counts_lasting| {
            Some(SlotLimit {
                most,
                counts_lasting,
            })
        };
        let key = || "calls:t".to_owned();
        assert_eq!(
            store.occupy(slot("a", "a", false), limit(1, true)).await,
            Ok(true)
        );
        assert_eq!(
            store.occupy(slot("a", "a", false), limit(1, true)).await,
            Ok(true)
        );
        assert_eq!(
            store.occupy(slot("b", "b", false), limit(1, false)).await,
            Ok(false)
        );
        // What a call starts counts with it, and goes on without it.
        assert_eq!(store.occupy(slot("r", "a", true), None).await, Ok(true));
        assert_eq!(
            store.occupy(slot("b", "b", false), limit(2, true)).await,
            Ok(true)
        );
        for id in ["a", "b", "b"] {
            store.vacate(key(), id.to_owned()).await.unwrap();
        }
        assert_eq!(store.slots(key()).await.unwrap(), [slot("r", "a", true)]);
        assert_eq!(
            store.occupy(slot("c", "c", false), limit(1, true)).await,
            Ok(false)
        );
        assert_eq!(
            store.occupy(slot("c", "c", false), limit(1, false)).await,
            Ok(true)
        );
        let elsewhere = Slot {
            key: "calls:u".to_owned(),
            ..slot("a", "a", false)
        };
        assert_eq!(store.occupy(elsewhere, limit(1, true)).await, Ok(true));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_who_reserve_at_once_get_no_more_than_there_is() {
    on_each(|store, _| async move {
        let mut all = tokio::task::JoinSet::new();
        for number in 0..60_u64 {
            let store = Arc::clone(&store);
            all.spawn(async move {
                let wanted = reservation(&number.to_string(), 7, Some(100));
                match store.reserve(wanted.clone()).await.unwrap() {
                    Reserved::Held(states) => {
                        assert!(states[0].spent + states[0].reserved <= 100, "{states:?}");
                        store.settle(wanted, spending(number % 8)).await.unwrap();
                        number % 8
                    }
                    _ => 0,
                }
            });
        }
        let sum: u64 = all.join_all().await.into_iter().sum();
        assert_eq!(number(&*store, "17").await, sum);
        assert_eq!(number(&*store, "reserved:17").await, 0);
        assert!(sum <= 100);
    })
    .await;
}

#[cfg(unix)]
#[tokio::test]
async fn redis_knows_what_was_settled_before_it_arrived() {
    let server = RedisServer::start();
    let store = RedisStore::new(address(&server));
    // Given up by whoever waited for it, and then it arrives.
    let settled = store.settle(reservation("late", 7, None), Vec::new()).await;
    assert_eq!(settled, Ok(true));
    let late = store.reserve(reservation("late", 7, None)).await;
    assert_eq!(late, Ok(Reserved::Closed));
    assert_eq!(number(&store, "reserved:17").await, 0);
    // Money that was spent counts, even if Redis forgot that it was reserved.
    let lost = store
        .settle(reservation("lost", 7, None), spending(5))
        .await;
    assert_eq!(lost, Ok(true));
    let again = store
        .settle(reservation("lost", 7, None), spending(5))
        .await;
    assert_eq!(again, Ok(false));
    assert_eq!(number(&store, "17").await, 5);
}

#[tokio::test]
async fn sums_that_are_too_large_to_count_settle_all_the_same() {
    on_each(|store, _| async move {
        const LARGE: u64 = 1 << 53;
        // Together more than fits into a number of any store.
        let costs: Vec<CountChange> = (0..600).flat_map(|_| spending(LARGE)).collect();
        for id in ["a", "b", "c"] {
            let mut wanted = reservation(id, 7, None);
            for budget in &mut wanted.budgets {
                budget.most = None;
            }
            let held = store.reserve(wanted.clone()).await;
            assert!(matches!(held, Ok(Reserved::Held(_))), "{id}: {held:?}");
            assert_eq!(store.settle(wanted, costs.clone()).await, Ok(true), "{id}");
        }
        assert_eq!(store.reservations().await, Ok(Vec::new()));
        assert_eq!(number(&*store, "reserved:month").await, 0);
        for name in ["17", "month"] {
            let sum = number(&*store, name).await;
            assert!(sum >= i64::MAX as u64 - 1_024, "{name}: {sum}");
        }
    })
    .await;
}

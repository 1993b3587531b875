//! Budgets hold, whatever becomes of calls and processes.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::sync::Arc;
use std::time::Duration;

use serde_json::Map;

use super::*;
use crate::daily::{Day, Spent};
use crate::limits::TokenLimits;
use crate::now;
use exa_mcp_store::{MemoryStore, Store};

fn limits(per_day: f64) -> TokenLimits {
    TokenLimits {
        dollars_per_day: Some(per_day),
        ..TokenLimits::default()
    }
}

fn account(store: &Arc<MemoryStore>, per_day: f64) -> Account {
    let store: Arc<dyn Store> = store.clone();
    let ledger = Ledger::new(store, BudgetPolicy::default());
    Account::new(&ledger, "t", "ann", move || limits(per_day), None)
}

fn worst(microdollars: u64, starts_run: bool) -> Worst<'static> {
    Worst {
        operation: "search",
        microdollars,
        unpriced: false,
        starts_run,
    }
}

async fn spent(store: &MemoryStore) -> (u64, u64) {
    let day = Day::of(now());
    let counts = store.counts(Some(day.spending("t"))).await.unwrap();
    let spent = Spent::read(day, &counts);
    assert_eq!(spent.today, spent.this_month);
    (spent.today, spent.reserved_today)
}

fn run(id: &str) -> RunRecord {
    RunRecord {
        key: format!("agent.runs.get {id}"),
        get: "agent.runs.get".to_owned(),
        arguments: Map::new(),
    }
}

/// Lets what was dropped be settled.
async fn settled(account: &Account) {
    tokio::task::yield_now().await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    account.ledger.drain(Duration::from_secs(5)).await;
}

#[tokio::test]
async fn money_is_reserved_and_then_spent() {
    let store = Arc::new(MemoryStore::default());
    let account = account(&store, 0.02);
    let first = account.reserve(worst(15_000, false)).await.unwrap();
    assert_eq!(spent(&store).await, (0, 15_000));
    let over = account.reserve(worst(7_000, false)).await.err().unwrap();
    let money = over.budget.unwrap();
    assert_eq!(
        (money.would_cost, money.remaining, money.reserved),
        (7_000, 5_000, 15_000)
    );
    assert_eq!(over.limit, "dollarsPerDay");
    for part in ["$0.0070", "$0.0050", "$0.02 a day", "(UTC)"] {
        assert!(over.message.contains(part), "{part}: {}", over.message);
    }
    first.settle(Some(4_000)).await;
    assert_eq!(spent(&store).await, (4_000, 0));
    let second = account.reserve(worst(7_000, false)).await.unwrap();
    second.release().await;
    assert_eq!(spent(&store).await, (4_000, 0));
    // What was not heard of again is spent.
    drop(account.reserve(worst(7_000, false)).await.unwrap());
    settled(&account).await;
    assert_eq!(spent(&store).await, (11_000, 0));
    account
        .reserve(worst(7_000, false))
        .await
        .unwrap()
        .settle(None)
        .await;
    assert_eq!(spent(&store).await, (18_000, 0));
    // What is free needs no budget.
    assert!(matches!(
        account.reserve(worst(0, false)).await,
        Ok(Charge::Free)
    ));
}

#[tokio::test]
async fn a_run_is_charged_once_by_its_id() {
    let store = Arc::new(MemoryStore::default());
    let account = account(&store, 10.0);
    let charge = account.reserve(worst(5_000_000, true)).await.unwrap();
    charge.follow(run("a"), RunOutcome::Running).await;
    assert_eq!(spent(&store).await, (0, 5_000_000));
    // The same start again, with the same idempotency key: the same run.
    let again = account.reserve(worst(5_000_000, true)).await.unwrap();
    again.follow(run("a"), RunOutcome::Running).await;
    assert_eq!(spent(&store).await, (0, 5_000_000));
    // Reads of other runs are not charged.
    account
        .observe("agent.runs.get b", RunOutcome::Ended(Some(9)))
        .await;
    for _ in 0..3 {
        account
            .observe("agent.runs.get a", RunOutcome::Ended(Some(2_500_000)))
            .await;
    }
    assert_eq!(spent(&store).await, (2_500_000, 0));
    let late = account.reserve(worst(5_000_000, true)).await.unwrap();
    late.follow(run("a"), RunOutcome::Ended(Some(2_500_000)))
        .await;
    assert_eq!(spent(&store).await, (2_500_000, 0));
    let other = account.reserve(worst(5_000_000, true)).await.unwrap();
    other.follow(run("b"), RunOutcome::Ended(None)).await;
    assert_eq!(spent(&store).await, (7_500_000, 0));
}

#[tokio::test]
async fn what_has_no_price_is_refused_to_budgets_unless_allowed() {
    let store = Arc::new(MemoryStore::default());
    let unpriced = Worst {
        unpriced: true,
        ..worst(0, false)
    };
    let strict = account(&store, 1.0);
    let over = strict.reserve(unpriced).await.err().unwrap();
    assert_eq!(over.limit, "unpriced");
    assert!(over.message.contains("EXA_MCP_BUDGET_UNPRICED"));
    let policy = BudgetPolicy {
        unpriced: Unenforced::Allow,
        ..BudgetPolicy::default()
    };
    let ledger = Ledger::new(store.clone(), policy);
    let open = Account::new(&ledger, "t", "ann", || limits(1.0), None);
    open.reserve(unpriced).await.unwrap().settle(None).await;
    let counts = store.counts(Some("t".to_owned())).await.unwrap();
    let calls = counts.iter().find(|count| count.name == "unpricedCalls");
    assert_eq!(calls.map(|count| count.value), Some(1));
    assert_eq!(spent(&store).await, (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_at_once_never_exceed_a_budget() {
    const BUDGET: u64 = 1_000_000;
    let store = Arc::new(MemoryStore::default());
    let account = account(&store, 1.0);
    let mut all = tokio::task::JoinSet::new();
    for number in 0..400_u64 {
        let (account, store) = (account.clone(), store.clone());
        all.spawn(async move {
            let most = 5_000 + fastrand::u64(0..20_000);
            let Ok(charge) = account.reserve(worst(most, number % 5 == 0)).await else {
                return 0;
            };
            let (spent, reserved) = spent(&store).await;
            assert!(spent + reserved <= BUDGET, "{spent} + {reserved}");
            tokio::task::yield_now().await;
            let cost = fastrand::u64(0..=most);
            match number % 5 {
                0 => {
                    let id = number.to_string();
                    charge.follow(run(&id), RunOutcome::Running).await;
                    tokio::task::yield_now().await;
                    let key = run(&id).key;
                    for _ in 0..2 {
                        account.observe(&key, RunOutcome::Ended(Some(cost))).await;
                    }
                    cost
                }
                1 => {
                    drop(charge);
                    most
                }
                2 => {
                    charge.release().await;
                    0
                }
                3 => {
                    charge.settle(None).await;
                    most
                }
                _ => {
                    charge.settle(Some(cost)).await;
                    cost
                }
            }
        });
    }
    let sum: u64 = all.join_all().await.into_iter().sum();
    settled(&account).await;
    assert_eq!(spent(&store).await, (sum, 0));
    assert!(sum <= BUDGET);
    assert!(store.reservations().await.unwrap().is_empty());
}

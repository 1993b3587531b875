//! Budgets hold whatever happens to calls and processes.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::sync::Arc;
use std::time::Duration;

use serde_json::Map;

use super::*;
use crate::daily::{Day, Spending};
use crate::limits::TokenLimits;
use crate::now;
use exa_mcp_model::{JobCost, MicroDollars};
use exa_mcp_store::{MemoryStore, Store};

fn limits(per_day: f64) -> TokenLimits {
    TokenLimits {
        dollars_per_day: Some(per_day),
        ..TokenLimits::default()
    }
}

fn account(store: &Arc<MemoryStore>, per_day: f64) -> BudgetAccount {
    let store: Arc<dyn Store> = store.clone();
    let ledger = BudgetLedger::new(store, BudgetPolicy::default());
    BudgetAccount::new(&ledger, "t", "ann", move || limits(per_day), None)
}

fn final_cost(microdollars: u64) -> JobCost {
    JobCost::Final(Some(MicroDollars::new(microdollars)))
}

fn cost(microdollars: u64, starts_job: bool) -> WorstCaseCost<'static> {
    WorstCaseCost {
        operation: "search",
        microdollars,
        unpriced: false,
        starts_job,
    }
}

async fn spent(store: &MemoryStore) -> (u64, u64) {
    let day = Day::from_timestamp(now());
    let subject = day.spending_subject("t");
    let counters = store.counters(Some(subject)).await.unwrap();
    let spending = Spending::from_counters(day, &counters);
    assert_eq!(spending.today, spending.this_month);
    (spending.today, spending.reserved_today)
}

fn run(id: &str) -> JobRecord {
    JobRecord {
        key: format!("agent.runs.get {id}"),
        get_operation: "agent.runs.get".to_owned(),
        arguments: Map::new(),
    }
}

/// Waits until dropped charges are settled.
async fn wait_for_settlement(account: &BudgetAccount) {
    tokio::task::yield_now().await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    account.ledger.drain(Duration::from_secs(5)).await;
}

#[tokio::test]
async fn reserves_and_settles_costs() {
    let store = Arc::new(MemoryStore::default());
    let account = account(&store, 0.02);
    let first = account.reserve(cost(15_000, false)).await.unwrap();
    assert_eq!(spent(&store).await, (0, 15_000));
    let exceeded = account.reserve(cost(7_000, false)).await.err().unwrap();
    let money = exceeded.budget.unwrap();
    assert_eq!(
        (money.would_cost, money.remaining, money.reserved),
        (7_000, 5_000, 15_000)
    );
    assert_eq!(exceeded.limit, "dollarsPerDay");
    for part in ["$0.0070", "$0.0050", "$0.02 per day", "(UTC)"] {
        assert!(
            exceeded.message.contains(part),
            "{part}: {}",
            exceeded.message
        );
    }
    first.settle(Some(4_000)).await;
    assert_eq!(spent(&store).await, (4_000, 0));
    let second = account.reserve(cost(7_000, false)).await.unwrap();
    second.release().await;
    assert_eq!(spent(&store).await, (4_000, 0));
    // A dropped charge counts as spent.
    drop(account.reserve(cost(7_000, false)).await.unwrap());
    wait_for_settlement(&account).await;
    assert_eq!(spent(&store).await, (11_000, 0));
    account
        .reserve(cost(7_000, false))
        .await
        .unwrap()
        .settle(None)
        .await;
    assert_eq!(spent(&store).await, (18_000, 0));
    // A free request needs no budget.
    assert!(matches!(
        account.reserve(cost(0, false)).await,
        Ok(Charge::Free)
    ));
}

#[tokio::test]
async fn charges_a_run_once() {
    let store = Arc::new(MemoryStore::default());
    let account = account(&store, 10.0);
    let charge = account.reserve(cost(5_000_000, true)).await.unwrap();
    charge.follow(run("a"), JobCost::Pending).await;
    assert_eq!(spent(&store).await, (0, 5_000_000));
    // The same start again, with the same idempotency key: the same run.
    let again = account.reserve(cost(5_000_000, true)).await.unwrap();
    again.follow(run("a"), JobCost::Pending).await;
    assert_eq!(spent(&store).await, (0, 5_000_000));
    // Reads of other runs are not charged.
    account.observe("agent.runs.get b", final_cost(9)).await;
    for _ in 0..3 {
        account
            .observe("agent.runs.get a", final_cost(2_500_000))
            .await;
    }
    assert_eq!(spent(&store).await, (2_500_000, 0));
    let late = account.reserve(cost(5_000_000, true)).await.unwrap();
    late.follow(run("a"), final_cost(2_500_000)).await;
    assert_eq!(spent(&store).await, (2_500_000, 0));
    let other = account.reserve(cost(5_000_000, true)).await.unwrap();
    other.follow(run("b"), JobCost::Final(None)).await;
    assert_eq!(spent(&store).await, (7_500_000, 0));
}

#[tokio::test]
async fn rejects_unpriced_operations_unless_allowed() {
    let store = Arc::new(MemoryStore::default());
    let unpriced = WorstCaseCost {
        unpriced: true,
        ..cost(0, false)
    };
    let strict = account(&store, 1.0);
    let exceeded = strict.reserve(unpriced).await.err().unwrap();
    assert_eq!(exceeded.limit, "unpriced");
    assert!(exceeded.message.contains("EXA_MCP_BUDGET_UNPRICED"));
    let policy = BudgetPolicy {
        unpriced: UnenforcedAction::Allow,
        ..BudgetPolicy::default()
    };
    let ledger = BudgetLedger::new(store.clone(), policy);
    let open = BudgetAccount::new(&ledger, "t", "ann", || limits(1.0), None);
    open.reserve(unpriced).await.unwrap().settle(None).await;
    let counters = store.counters(Some("t".to_owned())).await.unwrap();
    let calls = counters
        .iter()
        .find(|counter| counter.name == "unpricedCalls");
    assert_eq!(calls.map(|counter| counter.value), Some(1));
    assert_eq!(spent(&store).await, (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_requests_never_exceed_a_budget() {
    const BUDGET: u64 = 1_000_000;
    let store = Arc::new(MemoryStore::default());
    let account = account(&store, 1.0);
    let mut all = tokio::task::JoinSet::new();
    for number in 0..400_u64 {
        let (account, store) = (account.clone(), store.clone());
        all.spawn(async move {
            let max = 5_000 + fastrand::u64(0..20_000);
            let Ok(charge) = account.reserve(cost(max, number % 5 == 0)).await else {
                return 0;
            };
            let (spent, reserved) = spent(&store).await;
            assert!(spent + reserved <= BUDGET, "{spent} + {reserved}");
            tokio::task::yield_now().await;
            let actual = fastrand::u64(0..=max);
            match number % 5 {
                0 => {
                    let id = number.to_string();
                    charge.follow(run(&id), JobCost::Pending).await;
                    tokio::task::yield_now().await;
                    let key = run(&id).key;
                    for _ in 0..2 {
                        account.observe(&key, final_cost(actual)).await;
                    }
                    actual
                }
                1 => {
                    drop(charge);
                    max
                }
                2 => {
                    charge.release().await;
                    0
                }
                3 => {
                    charge.settle(None).await;
                    max
                }
                _ => {
                    charge.settle(Some(actual)).await;
                    actual
                }
            }
        });
    }
    let sum: u64 = all.join_all().await.into_iter().sum();
    wait_for_settlement(&account).await;
    assert_eq!(spent(&store).await, (sum, 0));
    assert!(sum <= BUDGET);
    assert!(store.reservations().await.unwrap().is_empty());
}

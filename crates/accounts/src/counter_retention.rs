//! Deletes counters beyond the retention period.

use std::sync::Arc;
use std::time::Duration;

use super::daily::Day;
use super::now;
use exa_mcp_store::{Store, StoreError, WindowRequest};

/// How often a server deletes counters.
const INTERVAL: Duration = Duration::from_secs(6 * 60 * 60);

/// How long other servers skip the work after one has done it; shorter than `INTERVAL`.
const SKIP_AFTER: Duration = Duration::from_secs(5 * 60 * 60);

/// The pause between two batches, in which others can use the store.
const BATCH_PAUSE: Duration = Duration::from_millis(20);

/// Periodically deletes expired counters.
pub(super) async fn delete_expired_counters(store: Arc<dyn Store>, retention_days: u64) {
    let mut ticks = tokio::time::interval(INTERVAL);
    loop {
        ticks.tick().await;
        if let Err(error) = delete_once(&*store, retention_days, Day::from_timestamp(now())).await {
            tracing::warn!(%error, "cannot delete expired counters; trying again later");
        }
    }
}

/// Deletes the counters that are expired today, unless a server with the same retention did so recently.
async fn delete_once(store: &dyn Store, retention_days: u64, today: Day) -> Result<(), StoreError> {
    let request = WindowRequest {
        key: format!("sweep:{retention_days}"),
        limit: 1,
        amount: 1,
        length: SKIP_AFTER,
    };
    if !store.consume(request).await?.allowed {
        return Ok(());
    }
    for subjects in today.expired_subjects(retention_days) {
        while store.delete_counters(subjects.clone()).await? {
            tokio::time::sleep(BATCH_PAUSE).await;
        }
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::daily::{MICRODOLLARS, derived_updates};
    use crate::usage::REQUESTS;
    use exa_mcp_store::{CounterOp, CounterUpdate, MemoryStore};

    fn update(name: &str) -> CounterUpdate {
        CounterUpdate {
            subject: "token".to_owned(),
            name: name.to_owned(),
            op: CounterOp::Add(1),
        }
    }

    /// Counts like a token that is used every day.
    async fn use_daily(store: &dyn Store, today: Day, days: u64) {
        for ago in 0..days {
            let mut updates = vec![update(REQUESTS), update(MICRODOLLARS)];
            for name in [REQUESTS, MICRODOLLARS] {
                let day = today.before(ago);
                updates.extend(derived_updates(day, "token", "ann", &update(name)));
            }
            store.update_counters(updates).await.unwrap();
        }
    }

    async fn subjects(store: &dyn Store, like: &str) -> usize {
        let counters = store.counters(None).await.unwrap().into_iter();
        let named = counters
            .map(|counter| counter.subject)
            .filter(|subject| subject.starts_with(like));
        named.collect::<std::collections::BTreeSet<_>>().len()
    }

    #[tokio::test]
    async fn deletes_old_days_and_months_but_not_totals() {
        let store = MemoryStore::default();
        // 2026-12-31.
        let today = Day::from_timestamp(1_798_700_000_000);
        use_daily(&store, today, 500).await;
        delete_once(&store, 90, today).await.unwrap();
        assert_eq!(subjects(&store, "day:").await, 90);
        assert_eq!(
            subjects(&store, "spent:").await,
            2,
            "this month and the last"
        );
        let total = store.counters(Some("token".to_owned())).await.unwrap();
        assert!(
            total.iter().all(|counter| counter.value == 500),
            "{total:?}"
        );
        let spent = store
            .counters(Some(today.spending_subject("token")))
            .await
            .unwrap();
        assert_eq!(spent.len(), 32, "the month and each of its days");
        // Another run shortly after does nothing.
        use_daily(&store, today, 500).await;
        delete_once(&store, 90, today).await.unwrap();
        assert_eq!(subjects(&store, "day:").await, 500);
    }
}

//! Deleting numbers that are too old.

use std::sync::Arc;
use std::time::Duration;

use super::daily::Day;
use super::now;
use exa_mcp_store::{Store, StoreError, Window};

/// How often a server looks for something to delete.
const EVERY: Duration = Duration::from_secs(6 * 60 * 60);

/// How long nobody else needs to look; shorter than the time between two looks of one server.
const DONE_FOR: Duration = Duration::from_secs(5 * 60 * 60);

/// How long others may use the store between two parts.
const PAUSE: Duration = Duration::from_millis(20);

/// Deletes what is too old, for ever.
pub(super) async fn sweep(store: Arc<dyn Store>, days_kept: u64) {
    let mut looks = tokio::time::interval(EVERY);
    loop {
        looks.tick().await;
        if let Err(error) = sweep_once(&*store, days_kept, Day::of(now())).await {
            tracing::warn!(%error, "old numbers could not be deleted; it is tried again later");
        }
    }
}

/// Deletes what is too old on a day, unless a server that keeps as much has done so lately.
async fn sweep_once(store: &dyn Store, days_kept: u64, today: Day) -> Result<(), StoreError> {
    let turn = Window {
        key: format!("sweep:{days_kept}"),
        most: 1,
        amount: 1,
        length: DONE_FOR,
    };
    if !store.take(turn).await?.allowed {
        return Ok(());
    }
    for past in today.past(days_kept) {
        while store.forget(past.clone()).await? {
            tokio::time::sleep(PAUSE).await;
        }
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::daily::{MICRODOLLARS, also};
    use crate::usage::REQUESTS;
    use exa_mcp_store::{CountChange, MemoryStore, Step};

    fn change(name: &str) -> CountChange {
        CountChange {
            subject: "token".to_owned(),
            name: name.to_owned(),
            step: Step::Add(1),
        }
    }

    /// What a token that is used every day leaves behind.
    async fn used_daily(store: &dyn Store, today: Day, days: u64) {
        for ago in 0..days {
            let mut changes = vec![change(REQUESTS), change(MICRODOLLARS)];
            for name in [REQUESTS, MICRODOLLARS] {
                changes.extend(also(today.before(ago), "token", "ann", &change(name)));
            }
            store.count(changes).await.unwrap();
        }
    }

    async fn subjects(store: &dyn Store, like: &str) -> usize {
        let counts = store.counts(None).await.unwrap().into_iter();
        let named = counts
            .map(|count| count.subject)
            .filter(|subject| subject.starts_with(like));
        named.collect::<std::collections::BTreeSet<_>>().len()
    }

    #[tokio::test]
    async fn days_and_months_go_and_totals_stay() {
        let store = MemoryStore::default();
        // 2026-12-31.
        let today = Day::of(1_798_700_000_000);
        used_daily(&store, today, 500).await;
        sweep_once(&store, 90, today).await.unwrap();
        assert_eq!(subjects(&store, "day:").await, 90);
        assert_eq!(
            subjects(&store, "spent:").await,
            2,
            "this month and the last"
        );
        let total = store.counts(Some("token".to_owned())).await.unwrap();
        assert!(total.iter().all(|count| count.value == 500), "{total:?}");
        let spent = store.counts(Some(today.spending("token"))).await.unwrap();
        assert_eq!(spent.len(), 32, "the month and each of its days");
        // Whoever comes next has nothing to do for a while.
        used_daily(&store, today, 500).await;
        sweep_once(&store, 90, today).await.unwrap();
        assert_eq!(subjects(&store, "day:").await, 500);
    }
}

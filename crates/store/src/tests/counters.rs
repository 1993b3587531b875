//! The contract of counters.

use super::*;

#[tokio::test]
async fn counters_are_added_to_or_raised() {
    on_each(|store, _| async move {
        assert_eq!(counter_values(&*store, Some("ann")).await, "");
        let updates = vec![
            update("ann", "calls", CounterOp::Add(2)),
            update("ann", "calls", CounterOp::Add(3)),
            update("ann", "last", CounterOp::RaiseTo(70)),
            update("ann'; DROP TABLE counters; --", "calls", CounterOp::Add(1)),
        ];
        store.update_counters(updates).await.unwrap();
        let back = update("ann", "last", CounterOp::RaiseTo(60));
        store.update_counters(vec![back]).await.unwrap();
        assert_eq!(
            counter_values(&*store, Some("ann")).await,
            "ann.calls=5 ann.last=70"
        );
        let all = counter_values(&*store, None).await;
        assert!(
            all.contains("DROP TABLE") && all.contains("ann.calls=5"),
            "{all}"
        );
    })
    .await;
}

#[tokio::test]
async fn deletes_counters_by_subject_range() {
    on_each(|store, _| async move {
        let subjects = [
            "day:2025-12-31",
            "day:2026-01-01",
            "day:2026-01-02",
            "ann",
            "daz",
            "spent:2026-01:ann",
        ];
        let mut updates: Vec<CounterUpdate> = subjects
            .map(|subject| update(subject, "calls", CounterOp::Add(7)))
            .into();
        // More than one call deletes.
        let users = (0..1_200)
            .map(|user| update("day:2025-12-31", &format!("user:{user}"), CounterOp::Add(1)));
        updates.extend(users);
        store.update_counters(updates).await.unwrap();
        let mut rounds = 0;
        while store
            .delete_counters("day:".to_owned().."day:2026-01-02".to_owned())
            .await
            .unwrap()
        {
            rounds += 1;
            assert!(rounds < 10, "deleting must finish");
        }
        assert_eq!(
            counter_values(&*store, None).await,
            "ann.calls=7 day:2026-01-02.calls=7 daz.calls=7 spent:2026-01:ann.calls=7"
        );
        // A deleted counter restarts at zero.
        store
            .update_counters(vec![update("day:2025-12-31", "calls", CounterOp::Add(1))])
            .await
            .unwrap();
        assert_eq!(
            counter_values(&*store, Some("day:2025-12-31")).await,
            "day:2025-12-31.calls=1"
        );
        for empty in ["x".."a", "b".."c", "ann".."ann"] {
            let empty = empty.start.to_owned()..empty.end.to_owned();
            assert_eq!(store.delete_counters(empty).await, Ok(false));
        }
        assert!(
            counter_values(&*store, Some("ann"))
                .await
                .contains("ann.calls=7")
        );
    })
    .await;
}

#[tokio::test]
async fn concurrent_updates_lose_nothing() {
    on_each(|store, _| async move {
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..50 {
            let store = store.clone();
            tasks.spawn(async move {
                store
                    .update_counters(vec![update("ann", "calls", CounterOp::Add(1))])
                    .await
                    .unwrap();
            });
        }
        tasks.join_all().await;
        assert_eq!(counter_values(&*store, Some("ann")).await, "ann.calls=50");
    })
    .await;
}

#[tokio::test]
async fn migrates_files_without_counters() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let old = rusqlite::Connection::open(&path).unwrap();
    old.execute_batch(
        "CREATE TABLE documents (
            number INTEGER PRIMARY KEY AUTOINCREMENT, owner TEXT NOT NULL, collection TEXT NOT NULL,
            id TEXT NOT NULL, body TEXT NOT NULL, revision INTEGER NOT NULL, created INTEGER NOT NULL,
            modified INTEGER NOT NULL, expires INTEGER, UNIQUE (owner, collection, id)
         ) STRICT;
         INSERT INTO documents VALUES (1, 'user:ann', 'things', 'a', 'old', 1, 0, 0, NULL);
         PRAGMA application_id = 1702388077; PRAGMA user_version = 1;",
    )
    .unwrap();
    drop(old);
    let store = SqliteStore::new(path);
    let document = store.get(key("ann", "a")).await.unwrap().unwrap();
    assert_eq!(&*document.body, "old");
    store
        .update_counters(vec![update("ann", "calls", CounterOp::Add(1))])
        .await
        .unwrap();
    assert_eq!(counter_values(&store, None).await, "ann.calls=1");
}

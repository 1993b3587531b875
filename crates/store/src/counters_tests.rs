//! Counters, as every store must keep them.

use super::*;

#[tokio::test]
async fn numbers_grow_by_steps_or_to_a_mark() {
    on_each(|store, _| async move {
        assert_eq!(counted(&*store, Some("ann")).await, "");
        let changes = vec![
            change("ann", "calls", Step::Add(2)),
            change("ann", "calls", Step::Add(3)),
            change("ann", "last", Step::Reach(70)),
            change("ann'; DROP TABLE counters; --", "calls", Step::Add(1)),
        ];
        store.count(changes).await.unwrap();
        let back = change("ann", "last", Step::Reach(60));
        store.count(vec![back]).await.unwrap();
        assert_eq!(
            counted(&*store, Some("ann")).await,
            "ann.calls=5 ann.last=70"
        );
        let all = counted(&*store, None).await;
        assert!(
            all.contains("DROP TABLE") && all.contains("ann.calls=5"),
            "{all}"
        );
    })
    .await;
}

#[tokio::test]
async fn old_numbers_are_forgotten_and_no_others() {
    on_each(|store, _| async move {
        let subjects = [
            "day:2025-12-31",
            "day:2026-01-01",
            "day:2026-01-02",
            "ann",
            "daz",
            "spent:2026-01:ann",
        ];
        let mut changes: Vec<CountChange> = subjects
            .map(|subject| change(subject, "calls", Step::Add(7)))
            .into();
        // More than are forgotten at once.
        let users =
            (0..1_200).map(|user| change("day:2025-12-31", &format!("user:{user}"), Step::Add(1)));
        changes.extend(users);
        store.count(changes).await.unwrap();
        let mut rounds = 0;
        while store
            .forget("day:".to_owned().."day:2026-01-02".to_owned())
            .await
            .unwrap()
        {
            rounds += 1;
            assert!(rounds < 10, "it must come to an end");
        }
        assert_eq!(
            counted(&*store, None).await,
            "ann.calls=7 day:2026-01-02.calls=7 daz.calls=7 spent:2026-01:ann.calls=7"
        );
        // What was forgotten begins at nothing.
        store
            .count(vec![change("day:2025-12-31", "calls", Step::Add(1))])
            .await
            .unwrap();
        assert_eq!(
            counted(&*store, Some("day:2025-12-31")).await,
            "day:2025-12-31.calls=1"
        );
        for empty in ["x".."a", "b".."c", "ann".."ann"] {
            let empty = empty.start.to_owned()..empty.end.to_owned();
            assert_eq!(store.forget(empty).await, Ok(false));
        }
        assert!(counted(&*store, Some("ann")).await.contains("ann.calls=7"));
    })
    .await;
}

#[tokio::test]
async fn numbers_that_many_change_at_once_lose_nothing() {
    on_each(|store, _| async move {
        let mut changing = tokio::task::JoinSet::new();
        for _ in 0..50 {
            let store = store.clone();
            changing.spawn(async move {
                store
                    .count(vec![change("ann", "calls", Step::Add(1))])
                    .await
                    .unwrap();
            });
        }
        changing.join_all().await;
        assert_eq!(counted(&*store, Some("ann")).await, "ann.calls=50");
    })
    .await;
}

#[tokio::test]
async fn a_file_from_before_there_were_numbers_gets_them() {
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
    let kept = store.get(place("ann", "a")).await.unwrap().unwrap();
    assert_eq!(&*kept.body, "old");
    store
        .count(vec![change("ann", "calls", Step::Add(1))])
        .await
        .unwrap();
    assert_eq!(counted(&store, None).await, "ann.calls=1");
}

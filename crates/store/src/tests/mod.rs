//! The contract of every store, and the behavior of files.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod counters;
mod ledger;
// The test server listens on a Unix socket.
#[cfg(unix)]
mod redis;
#[cfg(unix)]
#[path = "../../../../tests/main/support/redis.rs"]
mod redis_server;
mod windows;

use std::sync::atomic::{AtomicU64, Ordering};

#[cfg(unix)]
use redis_server::RedisServer;

use super::*;

const START: u64 = 1_700_000_000_000;

/// A clock that only moves when a test advances it.
#[derive(Clone, Default)]
struct TestClock(Arc<AtomicU64>);

impl TestClock {
    fn clock(&self) -> Clock {
        let elapsed = self.0.clone();
        Arc::new(move || START + elapsed.load(Ordering::SeqCst))
    }

    fn advance(&self, seconds: u64) {
        self.0.fetch_add(seconds * 1000, Ordering::SeqCst);
    }
}

fn key(owner: &str, id: &str) -> DocumentKey {
    DocumentKey {
        owner: Identity::user(owner),
        collection: "things",
        id: id.to_owned(),
    }
}

fn query(owner: Option<&str>, before: Option<u64>, limit: usize) -> DocumentQuery {
    DocumentQuery {
        owner: owner.map(Identity::user),
        collection: "things",
        before,
        limit,
    }
}

async fn put(store: &dyn Store, owner: &str, id: &str) -> Result<u64, StoreError> {
    let body = format!("{owner}'s {id}");
    store
        .put(key(owner, id), body, WriteOptions::default())
        .await
}

async fn ids(store: &dyn Store, query: DocumentQuery) -> String {
    let listed = store.list(query).await.unwrap();
    let ids: Vec<String> = listed.into_iter().map(|document| document.id).collect();
    ids.join(" ")
}

fn update(subject: &str, name: &str, op: CounterOp) -> CounterUpdate {
    CounterUpdate {
        subject: subject.to_owned(),
        name: name.to_owned(),
        op,
    }
}

async fn counter_values(store: &dyn Store, subject: Option<&str>) -> String {
    let counters = store.counters(subject.map(str::to_owned)).await.unwrap();
    let values = counters.iter().map(|counter| {
        let Counter {
            subject,
            name,
            value,
        } = counter;
        format!("{subject}.{name}={value}")
    });
    values.collect::<Vec<_>>().join(" ")
}

/// Runs a test on each kind of store.
async fn on_each<F: Future<Output = ()>>(test: impl Fn(Arc<dyn Store>, TestClock) -> F) {
    let clock = TestClock::default();
    let memory = MemoryStore::with_clock(MemoryLimits::default(), clock.clock());
    test(Arc::new(memory), clock).await;
    let folder = tempfile::tempdir().unwrap();
    let clock = TestClock::default();
    let path = folder.path().join("store.db");
    let sqlite = SqliteStore::with_clock(path, clock.clock());
    test(Arc::new(sqlite), clock).await;
    #[cfg(unix)]
    {
        let (server, clock) = (RedisServer::start(), TestClock::default());
        let redis = RedisStore::with_clock(address(&server), clock.clock());
        test(Arc::new(redis), clock).await;
    }
}

#[cfg(unix)]
fn address(server: &RedisServer) -> RedisAddress {
    RedisAddress::parse(&server.url()).unwrap()
}

#[tokio::test]
async fn documents_are_visible_only_to_their_owner() {
    on_each(|store, _| async move {
        assert_eq!(store.get(key("ann", "a")).await, Ok(None));
        assert_eq!(put(&*store, "ann", "a").await, Ok(1));
        let found = store.get(key("ann", "a")).await.unwrap().unwrap();
        assert_eq!(&*found.body, "ann's a");
        assert_eq!((found.created_at, found.modified_at), (START, START));
        assert_eq!(store.get(key("bob", "a")).await, Ok(None));
        assert_eq!(store.delete(key("bob", "a")).await, Ok(false));
        let elsewhere = DocumentKey {
            collection: "other",
            ..key("ann", "a")
        };
        assert_eq!(store.get(elsewhere).await, Ok(None));
        assert_eq!(ids(&*store, query(Some("bob"), None, 9)).await, "");
        assert_eq!(store.delete(key("ann", "a")).await, Ok(true));
        assert_eq!(store.get(key("ann", "a")).await, Ok(None));
    })
    .await;
}

#[tokio::test]
async fn owner_names_are_never_interpreted() {
    on_each(|store, _| async move {
        let owners = [
            "x' OR '1'='1",
            "%",
            "'; DROP TABLE documents; --",
            "ann\0bob",
            "ann:things",
            "x\r\nFLUSHALL\r\n",
            "{ann}",
            "*",
            "🦀",
        ];
        for owner in owners {
            assert_eq!(put(&*store, owner, "' OR 1 --").await, Ok(1), "{owner}");
        }
        for owner in owners {
            let listed = store.list(query(Some(owner), None, 9)).await.unwrap();
            assert_eq!(listed.len(), 1, "{owner}");
            assert_eq!(listed[0].owner, Identity::user(owner).as_str());
        }
    })
    .await;
}

#[tokio::test]
async fn updating_a_document_keeps_its_position() {
    on_each(|store, clock| async move {
        put(&*store, "ann", "a").await.unwrap();
        put(&*store, "ann", "b").await.unwrap();
        clock.advance(5);
        assert_eq!(put(&*store, "ann", "a").await, Ok(2));
        let a = store.get(key("ann", "a")).await.unwrap().unwrap();
        assert_eq!((a.created_at, a.modified_at), (START, START + 5000));
        assert_eq!(ids(&*store, query(Some("ann"), None, 9)).await, "b a");
    })
    .await;
}

#[tokio::test]
async fn lists_are_paginated() {
    on_each(|store, _| async move {
        for id in ["a", "b", "c", "d", "e"] {
            put(&*store, "ann", id).await.unwrap();
            put(&*store, "bob", id).await.unwrap();
        }
        let first = store.list(query(Some("ann"), None, 2)).await.unwrap();
        assert_eq!(
            first.iter().map(|d| d.id.as_str()).collect::<String>(),
            "ed"
        );
        // A later document does not change the following pages.
        put(&*store, "ann", "f").await.unwrap();
        let next = query(Some("ann"), Some(first[1].sequence), 9);
        assert_eq!(ids(&*store, next).await, "c b a");
        assert_eq!(ids(&*store, query(None, None, 4)).await, "f e e d");
        assert_eq!(ids(&*store, query(Some("ann"), None, 0)).await, "");
    })
    .await;
}

#[tokio::test]
async fn documents_expire() {
    on_each(|store, clock| async move {
        let options = WriteOptions {
            time_to_live: Some(Duration::from_secs(10)),
            max_documents: Some(1),
            ..WriteOptions::default()
        };
        let put = |id: &str| store.put(key("ann", id), String::new(), options);
        put("a").await.unwrap();
        assert_eq!(put("b").await, Err(StoreError::TooMany(1)));
        clock.advance(9);
        assert!(store.get(key("ann", "a")).await.unwrap().is_some());
        clock.advance(1);
        assert_eq!(store.get(key("ann", "a")).await, Ok(None));
        assert_eq!(ids(&*store, query(None, None, 9)).await, "");
        assert_eq!(store.delete(key("ann", "a")).await, Ok(false));
        // An expired document does not count, and its successor starts at revision 1.
        assert_eq!(put("a").await, Ok(1));
    })
    .await;
}

#[tokio::test]
async fn document_limits_apply_per_owner() {
    on_each(|store, _| async move {
        let options = WriteOptions {
            max_documents: Some(2),
            ..WriteOptions::default()
        };
        let put = |owner, id| store.put(key(owner, id), "x".to_owned(), options);
        put("ann", "a").await.unwrap();
        put("ann", "b").await.unwrap();
        assert_eq!(put("ann", "c").await, Err(StoreError::TooMany(2)));
        assert_eq!(put("ann", "a").await, Ok(2), "an update does not count");
        assert_eq!(put("bob", "c").await, Ok(1));
    })
    .await;
}

#[tokio::test]
async fn rejects_writes_with_a_stale_revision() {
    on_each(|store, _| async move {
        let put = |expected| {
            let options = WriteOptions {
                expected,
                ..WriteOptions::default()
            };
            store.put(key("ann", "a"), "x".to_owned(), options)
        };
        let conflict = Err(StoreError::Conflict);
        assert_eq!(put(ExpectedRevision::Exact(1)).await, conflict);
        assert_eq!(put(ExpectedRevision::Absent).await, Ok(1));
        assert_eq!(put(ExpectedRevision::Absent).await, conflict);
        assert_eq!(put(ExpectedRevision::Exact(1)).await, Ok(2));
        assert_eq!(put(ExpectedRevision::Exact(1)).await, conflict);
    })
    .await;
}

#[tokio::test]
async fn memory_is_limited_in_documents_and_bytes() {
    let few = MemoryLimits {
        documents: 2,
        ..MemoryLimits::default()
    };
    let store = MemoryStore::new(few);
    put(&store, "ann", "a").await.unwrap();
    put(&store, "bob", "a").await.unwrap();
    assert_eq!(put(&store, "bob", "b").await, Err(StoreError::Full));
    assert_eq!(put(&store, "bob", "a").await, Ok(2));
    store.delete(key("ann", "a")).await.unwrap();
    assert_eq!(put(&store, "bob", "b").await, Ok(1));

    let small = MemoryLimits {
        bytes: 2_000,
        ..MemoryLimits::default()
    };
    let store = MemoryStore::new(small);
    let fill =
        |id: &str, bytes| store.put(key("ann", id), "x".repeat(bytes), WriteOptions::default());
    fill("a", 1_000).await.unwrap();
    assert_eq!(fill("b", 1_000).await, Err(StoreError::Full));
    // Repeated updates do not add up.
    for _ in 0..100 {
        fill("a", 1_000).await.unwrap();
    }
    fill("a", 100).await.unwrap();
    fill("b", 1_000).await.unwrap();
}

#[tokio::test]
async fn files_are_created_on_first_use_and_private() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/down/store.db");
    let store = SqliteStore::new(path.clone());
    assert!(!folder.path().join("deep").exists());
    put(&store, "ann", "a").await.unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: &std::path::Path| {
            let mode = std::fs::metadata(path).unwrap().permissions().mode();
            format!("{:o}", mode & 0o777)
        };
        for entry in std::fs::read_dir(path.parent().unwrap()).unwrap() {
            assert_eq!(mode(&entry.unwrap().path()), "600");
        }
        assert_eq!(mode(path.parent().unwrap()), "700");
        drop(store);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        let store = SqliteStore::new(path.clone());
        store.check().await.unwrap();
        assert_eq!(mode(&path), "600");
    }
}

#[tokio::test]
async fn files_persist_and_can_be_shared() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let first = SqliteStore::new(path.clone());
    put(&first, "ann", "a").await.unwrap();
    let second = SqliteStore::new(path.clone());
    put(&second, "ann", "b").await.unwrap();
    assert_eq!(ids(&first, query(None, None, 9)).await, "b a");
    drop((first, second));
    let third = SqliteStore::new(path);
    assert_eq!(ids(&third, query(None, None, 9)).await, "b a");
}

/// Writes documents up to a limit of 60 from four concurrent stores.
async fn fill_concurrently<S: Store + 'static>(open: impl Fn() -> S) {
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..4 {
        let store = open();
        writers.spawn(async move {
            for number in 0..25 {
                let options = WriteOptions {
                    max_documents: Some(60),
                    time_to_live: Some(Duration::from_secs(600)),
                    ..WriteOptions::default()
                };
                let id = format!("{writer}-{number}");
                let result = store.put(key("ann", &id), String::new(), options).await;
                assert!(
                    matches!(result, Ok(1) | Err(StoreError::TooMany(60))),
                    "{result:?}"
                );
            }
        });
    }
    writers.join_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_writers_of_a_file_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    fill_concurrently(|| SqliteStore::new(path.clone())).await;
    let store = SqliteStore::new(path);
    let listed = store.list(query(None, None, 1000)).await.unwrap();
    assert_eq!(listed.len(), 60, "the limit holds across processes");
}

#[tokio::test]
async fn rejects_files_of_other_programs() {
    let folder = tempfile::tempdir().unwrap();
    let check_error = async |name: &str| {
        let store = SqliteStore::new(folder.path().join(name));
        store.check().await.unwrap_err().to_string()
    };
    std::fs::write(
        folder.path().join("text"),
        "not a database, but rather long".repeat(99),
    )
    .unwrap();
    assert!(check_error("text").await.contains("not a database"));

    let other = rusqlite::Connection::open(folder.path().join("other")).unwrap();
    other
        .execute_batch("CREATE TABLE songs (title TEXT)")
        .unwrap();
    drop(other);
    assert!(check_error("other").await.contains("another program"));

    let newer = SqliteStore::new(folder.path().join("newer"));
    newer.check().await.unwrap();
    drop(newer);
    let newer = rusqlite::Connection::open(folder.path().join("newer")).unwrap();
    newer.pragma_update(None, "user_version", 99).unwrap();
    drop(newer);
    let newer = check_error("newer").await;
    for part in ["newer version", "version 99", env!("CARGO_PKG_VERSION")] {
        assert!(newer.contains(part), "{newer}");
    }

    assert!(check_error("text/store.db").await.contains("store.db"));
}

#[tokio::test]
async fn rejects_a_file_upgraded_by_a_newer_program() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let store = SqliteStore::new(path.clone());
    put(&store, "ann", "a").await.unwrap();
    let newer = rusqlite::Connection::open(&path).unwrap();
    newer.pragma_update(None, "user_version", 99).unwrap();
    let rejected = put(&store, "ann", "b").await;
    assert!(
        matches!(rejected, Err(StoreError::Newer(_))),
        "{rejected:?}"
    );
    assert!(matches!(store.blocking_error(), Some(StoreError::Newer(_))));
    let count = "SELECT count(*) FROM documents";
    let count: i64 = newer.query_row(count, [], |row| row.get(0)).unwrap();
    assert_eq!(count, 1);
}

//! What every store must do, and what only a file can.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

#[path = "counters_tests.rs"]
mod counters;
#[path = "ledger_tests.rs"]
mod ledger;
#[path = "windows_tests.rs"]
mod windows;
// Redis runs where there are its sockets.
#[cfg(unix)]
#[path = "../../../tests/main/support/redis.rs"]
mod redis_server;
#[cfg(unix)]
#[path = "redis/tests.rs"]
mod with_redis;

use std::sync::atomic::{AtomicU64, Ordering};

#[cfg(unix)]
use redis_server::RedisServer;

use super::*;

const START: u64 = 1_700_000_000_000;

/// A clock that stands still until it is moved.
#[derive(Clone, Default)]
struct Hands(Arc<AtomicU64>);

impl Hands {
    fn clock(&self) -> Clock {
        let hands = self.0.clone();
        Arc::new(move || START + hands.load(Ordering::SeqCst))
    }

    fn forward(&self, seconds: u64) {
        self.0.fetch_add(seconds * 1000, Ordering::SeqCst);
    }
}

fn place(owner: &str, id: &str) -> Place {
    Place {
        owner: Identity::user(owner),
        collection: "things",
        id: id.to_owned(),
    }
}

fn query(owner: Option<&str>, before: Option<u64>, limit: usize) -> Query {
    Query {
        owner: owner.map(Identity::user),
        collection: "things",
        before,
        limit,
    }
}

async fn put(store: &dyn Store, owner: &str, id: &str) -> Result<u64, StoreError> {
    let body = format!("{owner}'s {id}");
    store.put(place(owner, id), body, Rules::default()).await
}

async fn ids(store: &dyn Store, query: Query) -> String {
    let listed = store.list(query).await.unwrap();
    let ids: Vec<String> = listed.into_iter().map(|document| document.id).collect();
    ids.join(" ")
}

fn change(subject: &str, name: &str, step: Step) -> CountChange {
    CountChange {
        subject: subject.to_owned(),
        name: name.to_owned(),
        step,
    }
}

async fn counted(store: &dyn Store, subject: Option<&str>) -> String {
    let counts = store.counts(subject.map(str::to_owned)).await.unwrap();
    let counts = counts.iter();
    let counts = counts.map(|count| format!("{}.{}={}", count.subject, count.name, count.value));
    counts.collect::<Vec<_>>().join(" ")
}

/// Runs a test on each kind of store.
async fn on_each<F: Future<Output = ()>>(test: impl Fn(Arc<dyn Store>, Hands) -> F) {
    let hands = Hands::default();
    let memory = MemoryStore::with_clock(Bounds::default(), hands.clock());
    test(Arc::new(memory), hands).await;
    let folder = tempfile::tempdir().unwrap();
    let hands = Hands::default();
    let path = folder.path().join("store.db");
    let sqlite = SqliteStore::with_clock(path, hands.clock());
    test(Arc::new(sqlite), hands).await;
    #[cfg(unix)]
    {
        let (server, hands) = (RedisServer::start(), Hands::default());
        let redis = RedisStore::with_clock(address(&server), hands.clock());
        test(Arc::new(redis), hands).await;
    }
}

#[cfg(unix)]
fn address(server: &RedisServer) -> RedisAddress {
    RedisAddress::parse(&server.url()).unwrap()
}

#[tokio::test]
async fn a_document_is_found_by_its_owner_alone() {
    on_each(|store, _| async move {
        assert_eq!(store.get(place("ann", "a")).await, Ok(None));
        assert_eq!(put(&*store, "ann", "a").await, Ok(1));
        let found = store.get(place("ann", "a")).await.unwrap().unwrap();
        assert_eq!(&*found.body, "ann's a");
        assert_eq!((found.created, found.modified), (START, START));
        assert_eq!(store.get(place("bob", "a")).await, Ok(None));
        assert_eq!(store.delete(place("bob", "a")).await, Ok(false));
        let elsewhere = Place {
            collection: "other",
            ..place("ann", "a")
        };
        assert_eq!(store.get(elsewhere).await, Ok(None));
        assert_eq!(ids(&*store, query(Some("bob"), None, 9)).await, "");
        assert_eq!(store.delete(place("ann", "a")).await, Ok(true));
        assert_eq!(store.get(place("ann", "a")).await, Ok(None));
    })
    .await;
}

#[tokio::test]
async fn owners_are_data_and_never_code() {
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
async fn a_change_keeps_the_place_in_the_order() {
    on_each(|store, hands| async move {
        put(&*store, "ann", "a").await.unwrap();
        put(&*store, "ann", "b").await.unwrap();
        hands.forward(5);
        assert_eq!(put(&*store, "ann", "a").await, Ok(2));
        let a = store.get(place("ann", "a")).await.unwrap().unwrap();
        assert_eq!((a.created, a.modified), (START, START + 5000));
        assert_eq!(ids(&*store, query(Some("ann"), None, 9)).await, "b a");
    })
    .await;
}

#[tokio::test]
async fn lists_are_cut_and_continued() {
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
        // What comes later changes nothing for whoever goes on from here.
        put(&*store, "ann", "f").await.unwrap();
        let rest = query(Some("ann"), Some(first[1].number), 9);
        assert_eq!(ids(&*store, rest).await, "c b a");
        assert_eq!(ids(&*store, query(None, None, 4)).await, "f e e d");
        assert_eq!(ids(&*store, query(Some("ann"), None, 0)).await, "");
    })
    .await;
}

#[tokio::test]
async fn documents_end_when_their_time_is_over() {
    on_each(|store, hands| async move {
        let brief = Rules {
            time_to_live: Some(Duration::from_secs(10)),
            most: Some(1),
            ..Rules::default()
        };
        let put = |id: &str| store.put(place("ann", id), String::new(), brief);
        put("a").await.unwrap();
        assert_eq!(put("b").await, Err(StoreError::TooMany(1)));
        hands.forward(9);
        assert!(store.get(place("ann", "a")).await.unwrap().is_some());
        hands.forward(1);
        assert_eq!(store.get(place("ann", "a")).await, Ok(None));
        assert_eq!(ids(&*store, query(None, None, 9)).await, "");
        assert_eq!(store.delete(place("ann", "a")).await, Ok(false));
        // An expired one takes no place, and a new one of its name is new.
        assert_eq!(put("a").await, Ok(1));
    })
    .await;
}

#[tokio::test]
async fn an_owner_has_a_share_of_its_own() {
    on_each(|store, _| async move {
        let rules = Rules {
            most: Some(2),
            ..Rules::default()
        };
        let put = |owner, id| store.put(place(owner, id), "x".to_owned(), rules);
        put("ann", "a").await.unwrap();
        put("ann", "b").await.unwrap();
        assert_eq!(put("ann", "c").await, Err(StoreError::TooMany(2)));
        assert_eq!(put("ann", "a").await, Ok(2), "a change needs no room");
        assert_eq!(put("bob", "c").await, Ok(1));
    })
    .await;
}

#[tokio::test]
async fn nobody_overwrites_what_he_has_not_seen() {
    on_each(|store, _| async move {
        let put = |expected| {
            let rules = Rules {
                expected,
                ..Rules::default()
            };
            store.put(place("ann", "a"), "x".to_owned(), rules)
        };
        let conflict = Err(StoreError::Conflict);
        assert_eq!(put(Expected::Revision(1)).await, conflict);
        assert_eq!(put(Expected::Nothing).await, Ok(1));
        assert_eq!(put(Expected::Nothing).await, conflict);
        assert_eq!(put(Expected::Revision(1)).await, Ok(2));
        assert_eq!(put(Expected::Revision(1)).await, conflict);
    })
    .await;
}

#[tokio::test]
async fn memory_is_bounded_in_entries_and_bytes() {
    let few = Bounds {
        entries: 2,
        ..Bounds::default()
    };
    let store = MemoryStore::new(few);
    put(&store, "ann", "a").await.unwrap();
    put(&store, "bob", "a").await.unwrap();
    assert_eq!(put(&store, "bob", "b").await, Err(StoreError::Full));
    assert_eq!(put(&store, "bob", "a").await, Ok(2));
    store.delete(place("ann", "a")).await.unwrap();
    assert_eq!(put(&store, "bob", "b").await, Ok(1));

    let small = Bounds {
        bytes: 2_000,
        ..Bounds::default()
    };
    let store = MemoryStore::new(small);
    let fill = |id: &str, bytes| store.put(place("ann", id), "x".repeat(bytes), Rules::default());
    fill("a", 1_000).await.unwrap();
    assert_eq!(fill("b", 1_000).await, Err(StoreError::Full));
    // Changing it again and again does not use the room up.
    for _ in 0..100 {
        fill("a", 1_000).await.unwrap();
    }
    fill("a", 100).await.unwrap();
    fill("b", 1_000).await.unwrap();
}

#[tokio::test]
async fn a_file_is_made_when_it_is_needed_and_for_its_owner_alone() {
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
async fn a_file_outlives_the_store_and_is_shared() {
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

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn processes_that_share_a_file_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..4 {
        let store = SqliteStore::new(path.clone());
        writers.spawn(async move {
            for number in 0..25 {
                let rules = Rules {
                    most: Some(60),
                    ..Rules::default()
                };
                let id = format!("{writer}-{number}");
                let result = store.put(place("ann", &id), String::new(), rules).await;
                assert!(
                    matches!(result, Ok(1) | Err(StoreError::TooMany(60))),
                    "{result:?}"
                );
            }
        });
    }
    writers.join_all().await;
    let store = SqliteStore::new(path);
    let listed = store.list(query(None, None, 1000)).await.unwrap();
    assert_eq!(listed.len(), 60, "the limit holds across processes");
}

#[tokio::test]
async fn files_of_others_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let refused = async |name: &str| {
        let store = SqliteStore::new(folder.path().join(name));
        store.check().await.unwrap_err().to_string()
    };
    std::fs::write(
        folder.path().join("text"),
        "not a database, but rather long".repeat(99),
    )
    .unwrap();
    assert!(refused("text").await.contains("not a database"));

    let other = rusqlite::Connection::open(folder.path().join("other")).unwrap();
    other
        .execute_batch("CREATE TABLE songs (title TEXT)")
        .unwrap();
    drop(other);
    assert!(refused("other").await.contains("another program"));

    let newer = SqliteStore::new(folder.path().join("newer"));
    newer.check().await.unwrap();
    drop(newer);
    let newer = rusqlite::Connection::open(folder.path().join("newer")).unwrap();
    newer.pragma_update(None, "user_version", 99).unwrap();
    drop(newer);
    let newer = refused("newer").await;
    for part in ["newer version", "version 99", env!("CARGO_PKG_VERSION")] {
        assert!(newer.contains(part), "{newer}");
    }

    assert!(refused("text/store.db").await.contains("store.db"));
}

#[tokio::test]
async fn a_file_that_a_newer_program_takes_over_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let store = SqliteStore::new(path.clone());
    put(&store, "ann", "a").await.unwrap();
    let newer = rusqlite::Connection::open(&path).unwrap();
    newer.pragma_update(None, "user_version", 99).unwrap();
    let refused = put(&store, "ann", "b").await;
    assert!(matches!(refused, Err(StoreError::Newer(_))), "{refused:?}");
    assert!(matches!(store.refusal(), Some(StoreError::Newer(_))));
    let count = "SELECT count(*) FROM documents";
    let count: i64 = newer.query_row(count, [], |row| row.get(0)).unwrap();
    assert_eq!(count, 1);
}

//! The contract of rate-limit windows.

use super::*;
use crate::windows::WindowState;

fn request(key: &str, limit: u64, amount: u64) -> WindowRequest {
    WindowRequest {
        key: key.to_owned(),
        limit,
        amount,
        length: Duration::from_secs(60),
    }
}

#[tokio::test]
async fn limits_consumption_until_the_window_ends() {
    on_each(|store, clock| async move {
        let consume = |key: &'static str, amount| store.consume(request(key, 5, amount));
        assert_eq!(consume("a", 0).await.unwrap().used, 0);
        assert_eq!(consume("a", 3).await.unwrap().used, 3);
        clock.advance(20);
        let rejected = consume("a", 3).await.unwrap();
        let wait = Duration::from_secs(40);
        assert_eq!((rejected.allowed, rejected.used), (false, 3));
        assert_eq!(rejected.retry_after, wait);
        let remainder = consume("a", 2).await.unwrap();
        assert_eq!((remainder.allowed, remainder.used), (true, 5));
        assert!(consume("b; DROP TABLE windows", 5).await.unwrap().allowed);
        clock.advance(39);
        assert_eq!(
            consume("a", 1).await.unwrap().retry_after,
            Duration::from_secs(1)
        );
        clock.advance(1);
        assert_eq!(consume("a", 5).await.unwrap().used, 5);
    })
    .await;
}

/// A request may carry a time from before the window opened, if another one was faster.
#[test]
fn retry_after_is_at_most_the_window_length() {
    let request = request("minute", 5, 1);
    let length = u64::try_from(request.length.as_millis()).unwrap();
    let full = WindowState {
        used: 5,
        ends_at: START + length,
    };
    let (decision, _) = request.decide(Some(full), START - 3);
    assert_eq!(
        (decision.allowed, decision.retry_after),
        (false, request.length)
    );
}

#[tokio::test]
async fn concurrent_requests_get_exactly_the_limit() {
    on_each(|store, _| async move {
        let mut all = tokio::task::JoinSet::new();
        for _ in 0..50 {
            let store = Arc::clone(&store);
            all.spawn(async move { store.consume(request("a", 20, 1)).await.unwrap().allowed });
        }
        let allowed = all.join_all().await.into_iter().filter(|allowed| *allowed);
        assert_eq!(allowed.count(), 20);
    })
    .await;
}

#[test]
fn expired_windows_are_removed_from_memory() {
    let mut windows = MemoryWindows::default();
    for n in 0..100_000u64 {
        windows.consume(request(&n.to_string(), 1, 1), START + n * 1_000);
    }
    assert!(windows.len() < 10_000, "{}", windows.len());
}

#[tokio::test]
async fn expired_windows_are_removed_from_files() {
    let folder = tempfile::tempdir().unwrap();
    let (clock, path) = (TestClock::default(), folder.path().join("store.db"));
    let store = SqliteStore::with_clock(path.clone(), clock.clock());
    let open = async |keys: std::ops::Range<u64>| {
        for key in keys {
            store
                .consume(request(&key.to_string(), 5, 1))
                .await
                .unwrap();
        }
    };
    open(0..150).await;
    clock.advance(3_600);
    open(150..153).await;
    let file = rusqlite::Connection::open(&path).unwrap();
    let count = file.query_row("SELECT count(*) FROM windows", [], |row| row.get(0));
    assert_eq!(count, Ok(3));
}

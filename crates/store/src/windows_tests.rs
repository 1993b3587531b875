//! Windows that limit a rate, as every store must keep them.

use super::*;

fn window(key: &str, most: u64, amount: u64) -> Window {
    Window {
        key: key.to_owned(),
        most,
        amount,
        length: Duration::from_secs(60),
    }
}

#[tokio::test]
async fn a_window_gives_no_more_than_it_has_until_it_ends() {
    on_each(|store, hands| async move {
        let take = |key: &'static str, amount| store.take(window(key, 5, amount));
        assert_eq!(take("a", 0).await.unwrap().used, 0);
        assert_eq!(take("a", 3).await.unwrap().used, 3);
        hands.forward(20);
        let refused = take("a", 3).await.unwrap();
        let wait = Duration::from_secs(40);
        assert_eq!((refused.allowed, refused.used), (false, 3));
        assert_eq!(refused.retry_after, wait);
        let rest = take("a", 2).await.unwrap();
        assert_eq!((rest.allowed, rest.used), (true, 5));
        assert!(take("b; DROP TABLE windows", 5).await.unwrap().allowed);
        hands.forward(39);
        assert_eq!(
            take("a", 1).await.unwrap().retry_after,
            Duration::from_secs(1)
        );
        hands.forward(1);
        assert_eq!(take("a", 5).await.unwrap().used, 5);
    })
    .await;
}

/// The moment of a request may be from before the window began, when another one was faster.
#[test]
fn nobody_is_told_to_wait_longer_than_a_window_lasts() {
    let window = window("minute", 5, 1);
    let length = u64::try_from(window.length.as_millis()).unwrap();
    let (taken, _) = window.take(Some((5, START + length)), START - 3);
    assert_eq!((taken.allowed, taken.retry_after), (false, window.length));
}

#[tokio::test]
async fn many_who_take_at_once_get_what_there_is() {
    on_each(|store, _| async move {
        let mut all = tokio::task::JoinSet::new();
        for _ in 0..50 {
            let store = Arc::clone(&store);
            all.spawn(async move { store.take(window("a", 20, 1)).await.unwrap().allowed });
        }
        let allowed = all.join_all().await.into_iter().filter(|taken| *taken);
        assert_eq!(allowed.count(), 20);
    })
    .await;
}

#[test]
fn windows_that_have_ended_take_no_room() {
    let mut windows = Windows::default();
    for n in 0..100_000u64 {
        windows.take(window(&n.to_string(), 1, 1), START + n * 1_000);
    }
    assert!(windows.len() < 10_000, "{}", windows.len());
}

#[tokio::test]
async fn windows_that_have_ended_leave_nothing_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let (hands, path) = (Hands::default(), folder.path().join("store.db"));
    let store = SqliteStore::with_clock(path.clone(), hands.clock());
    let begin = async |keys: std::ops::Range<u64>| {
        for key in keys {
            store.take(window(&key.to_string(), 5, 1)).await.unwrap();
        }
    };
    begin(0..150).await;
    hands.forward(3_600);
    begin(150..153).await;
    let file = rusqlite::Connection::open(&path).unwrap();
    let count = file.query_row("SELECT count(*) FROM windows", [], |row| row.get(0));
    assert_eq!(count, Ok(3));
}

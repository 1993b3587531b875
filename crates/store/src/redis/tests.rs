//! What only Redis can, and what becomes of it when it goes away.

use super::*;

/// A store as production has it, with the clock of the server.
fn redis(server: &RedisServer) -> RedisStore {
    RedisStore::new(address(server))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn servers_that_share_redis_lose_nothing() {
    let server = RedisServer::start();
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..4 {
        let store = redis(&server);
        writers.spawn(async move {
            for number in 0..25 {
                let rules = Rules {
                    most: Some(60),
                    time_to_live: Some(Duration::from_secs(600)),
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
    let listed = redis(&server).list(query(None, None, 1000)).await.unwrap();
    assert_eq!(listed.len(), 60, "the limit holds across servers");
    // Whatever can end has an end that Redis knows.
    let all = server.say(&["KEYS", "*"]).unwrap();
    let keys = all.lines().filter(|line| line.contains(":doc:"));
    for key in keys {
        let left = server.say(&["PTTL", key]).unwrap();
        assert!(!left.starts_with(":-"), "{key} {left}");
    }
    assert!(
        all.lines()
            .filter(|line| !line.starts_with(['*', '$']))
            .all(|key| key.starts_with("exa-mcp:"))
    );
}

#[tokio::test]
async fn redis_that_went_away_is_said_to_be_away_and_found_again() {
    let mut server = RedisServer::start();
    let store = redis(&server);
    put(&store, "ann", "a").await.unwrap();
    server.kill();
    let away = put(&store, "ann", "b").await.unwrap_err();
    assert!(
        matches!(&away, StoreError::Unavailable(text) if text.contains("Redis at")),
        "{away}"
    );
    server.restart();
    while put(&store, "ann", "b").await.is_err() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(ids(&store, query(Some("ann"), None, 9)).await, "b a");
    // A connection that broke meanwhile is not even noticed.
    server.restart();
    assert_eq!(put(&store, "ann", "c").await, Ok(1));
}

#[tokio::test]
async fn redis_that_does_not_answer_is_not_waited_for_long() {
    let server = RedisServer::start();
    let store = redis(&server);
    put(&store, "ann", "a").await.unwrap();
    server.freeze();
    let calls = (0..50).map(|_| put(&store, "ann", "b"));
    let answers = futures_util::future::join_all(calls).await;
    assert!(answers.iter().all(Result::is_err));
    // Right after that nothing is tried at all.
    let again = put(&store, "ann", "b").await.unwrap_err().to_string();
    assert!(again.contains("does not answer"), "{again}");
    server.thaw();
    while put(&store, "ann", "c").await.is_err() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_batch_whose_answer_was_lost_counts_once() {
    let server = RedisServer::start();
    let store = redis(&server);
    let batch = |number| Batch {
        writer: "w".to_owned(),
        number,
        changes: vec![change("ann", "calls", Step::Add(3))],
    };
    for _ in 0..3 {
        store.count_once(batch(1)).await.unwrap();
    }
    store.count_once(batch(2)).await.unwrap();
    // However late it comes.
    store.count_once(batch(1)).await.unwrap();
    assert_eq!(counted(&store, None).await, "ann.calls=6");
    // Frozen before it arrives, counted when it goes on, told again because nobody heard of it.
    server.freeze();
    let lost = store.count_once(batch(3)).await;
    assert!(lost.is_err());
    server.thaw();
    while store.count_once(batch(3)).await.is_err() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(counted(&store, None).await, "ann.calls=9");
    let most = change("ann", "calls", Step::Add(u64::MAX));
    store.count(vec![most.clone(), most]).await.unwrap();
    assert_eq!(
        counted(&store, None).await,
        format!("ann.calls={}", i64::MAX)
    );
}

#[tokio::test]
async fn a_sign_of_life_ends_with_who_shows_it() {
    let server = RedisServer::start();
    let (one, other) = (redis(&server), redis(&server));
    let sign = one.announce("one".to_owned()).await.unwrap();
    other.check().await.unwrap();
    let shown = || server.say(&["EXISTS", "exa-mcp:alive:one"]).unwrap();
    assert!(shown().starts_with(":1"));
    // Longer than it would last by itself.
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(other.lives("one".to_owned()).await, Ok(true));
    assert_eq!(other.lives("nobody".to_owned()).await, Ok(false));
    drop(sign);
    while other.lives("one".to_owned()).await.unwrap() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // Whoever has just come does not know yet who could not renew a sign.
    assert_eq!(redis(&server).lives("one".to_owned()).await, Ok(true));
}

#[tokio::test]
async fn words_reach_all_who_listen_at_the_same_database() {
    let mut server = RedisServer::start();
    let other = RedisAddress::parse(&format!("{}?db=1", server.url())).unwrap();
    let (one, two, elsewhere) = (redis(&server), redis(&server), RedisStore::new(other));
    let mut ears: Vec<_> = [&one, &two, &elsewhere]
        .map(|store| store.hear().unwrap())
        .into();
    // Nobody knows when somebody begins to listen.
    let tell = async |store: &RedisStore, word: &str| store.tell(vec![word.to_owned()]).await;
    let mut far = ears.pop().unwrap();
    for ear in &mut ears {
        while ear.is_empty() {
            tell(&one, "first").await.unwrap();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    while far.is_empty() {
        tell(&elsewhere, "far").await.unwrap();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let until = async |ear: &mut tokio::sync::broadcast::Receiver<StoreMessage>,
                       wanted: StoreMessage| {
        let mut before = Vec::new();
        loop {
            match ear.recv().await.unwrap() {
                news if news == wanted => return before,
                news => before.push(news),
            }
        }
    };
    let word = |text: &str| StoreMessage::Received(Arc::from(text));
    tell(&two, "last").await.unwrap();
    for ear in &mut ears {
        let before = until(ear, word("last")).await;
        assert!(
            before.iter().all(|news| *news == word("first")),
            "{before:?}"
        );
    }
    // Longer words than anybody says are not listened to.
    tell(&two, &"x".repeat(1_000_000)).await.unwrap();
    tell(&two, "after").await.unwrap();
    for ear in &mut ears {
        assert!(until(ear, word("after")).await.is_empty());
    }
    tell(&elsewhere, "far away").await.unwrap();
    let before = until(&mut far, word("far away")).await;
    assert!(before.iter().all(|news| *news == word("far")), "{before:?}");
    // Whoever could not listen for a while knows it.
    server.restart();
    for ear in &mut ears {
        assert!(until(ear, StoreMessage::Missed).await.is_empty());
    }
    tell(&one, "again").await.unwrap();
    for ear in &mut ears {
        until(ear, word("again")).await;
    }
}

#[tokio::test]
async fn a_password_opens_redis_and_is_never_shown() {
    let server = RedisServer::with(&["--requirepass", "hunter2"]);
    let open = |password: &str| {
        let url = format!("{}?pass={password}", server.url());
        RedisStore::new(RedisAddress::parse(&url).unwrap())
    };
    let shown = open("hunter2").check().await.unwrap();
    assert!(
        shown.contains("Redis at") && !shown.contains("hunter2"),
        "{shown}"
    );
    let wrong = open("hunter3").check().await.unwrap_err();
    assert!(!format!("{wrong} {wrong:?}").contains("hunter3"), "{wrong}");
}

/// What `exa-mcp:store` holds.
fn told(server: &RedisServer, field: &str) -> String {
    let answer = server.say(&["HGET", "exa-mcp:store", field]).unwrap();
    answer.lines().last().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn servers_agree_on_the_epoch_of_the_data() {
    let server = RedisServer::start();
    let (one, two) = (redis(&server), redis(&server));
    put(&one, "ann", "a").await.unwrap();
    put(&two, "ann", "b").await.unwrap();
    assert_eq!(told(&server, "version"), "1");
    assert_eq!(told(&server, "epoch").len(), 20);
    assert_eq!(told(&server, "program"), env!("CARGO_PKG_VERSION"));
    assert_eq!((one.refusal(), two.refusal()), (None, None));
    let agreed = one.agree("secret", "x".to_owned()).await;
    assert_eq!(agreed.as_deref(), Ok("x"));
    let agreed = two.agree("secret", "y".to_owned()).await;
    assert_eq!(agreed.as_deref(), Ok("x"));
}

#[tokio::test]
async fn data_from_before_there_were_epochs_is_taken_over() {
    let server = RedisServer::start();
    put(&redis(&server), "ann", "a").await.unwrap();
    server.say(&["DEL", "exa-mcp:store"]).unwrap();
    let store = redis(&server);
    assert_eq!(ids(&store, query(Some("ann"), None, 9)).await, "a");
    assert_eq!(told(&server, "version"), "1");
}

#[tokio::test]
async fn a_server_leaves_data_of_another_epoch_alone() {
    let server = RedisServer::start();
    let store = redis(&server);
    put(&store, "ann", "a").await.unwrap();
    let epoch = told(&server, "epoch");
    // Lost, and then begun anew by another server.
    server.say(&["FLUSHALL"]).unwrap();
    for _ in 0..2 {
        assert_eq!(put(&store, "ann", "b").await, Err(StoreError::Replaced));
        let change = vec![change("ann", "calls", Step::Add(3))];
        assert_eq!(store.count(change).await, Err(StoreError::Replaced));
        assert_eq!(store.check().await, Err(StoreError::Replaced));
        assert_eq!(store.refusal(), Some(StoreError::Replaced));
        // What is known of the data from before does not hide it.
        assert!(store.lives("one".to_owned()).await.is_ok());
        assert_eq!(store.refusal(), Some(StoreError::Replaced));
        assert_eq!(ids(&redis(&server), query(None, None, 9)).await, "");
    }
    assert_ne!(told(&server, "epoch"), epoch);
    // A server that is started now accepts it; the old one goes on only with its own data.
    put(&redis(&server), "ann", "c").await.unwrap();
    assert_eq!(store.confirm().await, Err(StoreError::Replaced));
    server
        .say(&["HSET", "exa-mcp:store", "epoch", &epoch])
        .unwrap();
    assert_eq!(store.confirm().await, Ok(()));
    assert_eq!(store.refusal(), None);
}

#[tokio::test]
async fn a_store_of_a_newer_program_is_left_alone() {
    let server = RedisServer::start();
    let before = redis(&server);
    put(&before, "ann", "a").await.unwrap();
    let raise = ["HSET", "exa-mcp:store", "version", "7", "program", "9.8.7"];
    server.say(&raise).unwrap();
    let all = server.say(&["DEBUG", "DIGEST"]).unwrap();
    // One that is just started, and one that has used it before.
    for store in [redis(&server), before] {
        let refused = [
            put(&store, "ann", "b").await.map(drop),
            store.check().await.map(drop),
            store.announce("one".to_owned()).await.map(drop),
            store.confirm().await,
        ];
        for refused in refused {
            let text = refused.unwrap_err().to_string();
            for part in [
                "version 7 of the format",
                "9.8.7",
                env!("CARGO_PKG_VERSION"),
            ] {
                assert!(text.contains(part), "{text}");
            }
        }
        assert!(matches!(store.refusal(), Some(StoreError::Newer(_))));
    }
    let digest = server.say(&["DEBUG", "DIGEST"]).unwrap();
    assert_eq!(digest, all, "nothing was changed");
}

//! Features of Redis, and its failures.

use super::*;

/// Returns a store with the clock of the server, as in production.
fn redis_store(server: &RedisServer) -> RedisStore {
    RedisStore::new(address(server))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_servers_lose_nothing() {
    let server = RedisServer::start();
    fill_concurrently(|| redis_store(&server)).await;
    let listed = redis_store(&server)
        .list(query(None, None, 1000))
        .await
        .unwrap();
    assert_eq!(listed.len(), 60, "the limit holds across servers");
    // Every document that expires has an expiry in Redis.
    let all = server.command(&["KEYS", "*"]).unwrap();
    let keys = all.lines().filter(|line| line.contains(":doc:"));
    for key in keys {
        let left = server.command(&["PTTL", key]).unwrap();
        assert!(!left.starts_with(":-"), "{key} {left}");
    }
    assert!(
        all.lines()
            .filter(|line| !line.starts_with(['*', '$']))
            .all(|key| key.starts_with("exa-mcp:"))
    );
}

#[tokio::test]
async fn reports_a_lost_connection_and_reconnects() {
    let mut server = RedisServer::start();
    let store = redis_store(&server);
    put(&store, "ann", "a").await.unwrap();
    server.kill();
    let error = put(&store, "ann", "b").await.unwrap_err();
    assert!(
        matches!(&error, StoreError::Unavailable(text) if text.contains("Redis at")),
        "{error}"
    );
    server.restart();
    while put(&store, "ann", "b").await.is_err() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(ids(&store, query(Some("ann"), None, 9)).await, "b a");
    // A connection that broke between two calls goes unnoticed.
    server.restart();
    assert_eq!(put(&store, "ann", "c").await, Ok(1));
}

#[tokio::test]
async fn calls_time_out_when_redis_hangs() {
    let server = RedisServer::start();
    let store = redis_store(&server);
    put(&store, "ann", "a").await.unwrap();
    server.freeze();
    let calls = (0..50).map(|_| put(&store, "ann", "b"));
    let results = futures_util::future::join_all(calls).await;
    assert!(results.iter().all(Result::is_err));
    // The next call fails immediately.
    let again = put(&store, "ann", "b").await.unwrap_err().to_string();
    assert!(again.contains("does not respond"), "{again}");
    server.unfreeze();
    while put(&store, "ann", "c").await.is_err() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_resent_batch_counts_once() {
    let server = RedisServer::start();
    let store = redis_store(&server);
    let batch = |sequence| CounterBatch {
        writer: "w".to_owned(),
        sequence,
        updates: vec![update("ann", "calls", CounterOp::Add(3))],
    };
    for _ in 0..3 {
        store.update_counters_once(batch(1)).await.unwrap();
    }
    store.update_counters_once(batch(2)).await.unwrap();
    // An older batch is ignored however late it arrives.
    store.update_counters_once(batch(1)).await.unwrap();
    assert_eq!(counter_values(&store, None).await, "ann.calls=6");
    // Redis hangs before the batch arrives and applies it later; the writer sends it again.
    server.freeze();
    let lost = store.update_counters_once(batch(3)).await;
    assert!(lost.is_err());
    server.unfreeze();
    while store.update_counters_once(batch(3)).await.is_err() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(counter_values(&store, None).await, "ann.calls=9");
    let max = update("ann", "calls", CounterOp::Add(u64::MAX));
    store.update_counters(vec![max.clone(), max]).await.unwrap();
    assert_eq!(
        counter_values(&store, None).await,
        format!("ann.calls={}", i64::MAX)
    );
}

#[tokio::test]
async fn a_process_is_alive_until_its_guard_is_dropped() {
    let server = RedisServer::start();
    let (one, other) = (redis_store(&server), redis_store(&server));
    let guard = one.mark_alive("one".to_owned()).await.unwrap();
    other.check().await.unwrap();
    let exists = || server.command(&["EXISTS", "exa-mcp:alive:one"]).unwrap();
    assert!(exists().starts_with(":1"));
    // Longer than a lease lasts without renewal.
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(other.is_alive("one".to_owned()).await, Ok(true));
    assert_eq!(other.is_alive("nobody".to_owned()).await, Ok(false));
    drop(guard);
    while other.is_alive("one".to_owned()).await.unwrap() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // A new connection assumes that a process is alive until leases had time to be renewed.
    assert_eq!(
        redis_store(&server).is_alive("one".to_owned()).await,
        Ok(true)
    );
}

#[tokio::test]
async fn messages_reach_all_subscribers_of_a_database() {
    let mut server = RedisServer::start();
    let other = RedisAddress::parse(&format!("{}?db=1", server.url())).unwrap();
    let (one, two, elsewhere) = (
        redis_store(&server),
        redis_store(&server),
        RedisStore::new(other),
    );
    let mut subscribers: Vec<_> = [&one, &two, &elsewhere]
        .map(|store| store.subscribe().unwrap())
        .into();
    // Subscribing happens in the background, so publish until the first message arrives.
    let publish = async |store: &RedisStore, text: &str| store.publish(vec![text.to_owned()]).await;
    let mut far = subscribers.pop().unwrap();
    for subscriber in &mut subscribers {
        while subscriber.is_empty() {
            publish(&one, "first").await.unwrap();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    while far.is_empty() {
        publish(&elsewhere, "far").await.unwrap();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let receive_until = async |subscriber: &mut tokio::sync::broadcast::Receiver<StoreMessage>,
                               wanted: StoreMessage| {
        let mut before = Vec::new();
        loop {
            match subscriber.recv().await.unwrap() {
                message if message == wanted => return before,
                message => before.push(message),
            }
        }
    };
    let message = |text: &str| StoreMessage::Received(Arc::from(text));
    publish(&two, "last").await.unwrap();
    for subscriber in &mut subscribers {
        let before = receive_until(subscriber, message("last")).await;
        assert!(
            before.iter().all(|received| *received == message("first")),
            "{before:?}"
        );
    }
    // Oversized messages are ignored.
    publish(&two, &"x".repeat(1_000_000)).await.unwrap();
    publish(&two, "after").await.unwrap();
    for subscriber in &mut subscribers {
        assert!(receive_until(subscriber, message("after")).await.is_empty());
    }
    publish(&elsewhere, "far away").await.unwrap();
    let before = receive_until(&mut far, message("far away")).await;
    assert!(
        before.iter().all(|received| *received == message("far")),
        "{before:?}"
    );
    // A subscriber that was disconnected is notified.
    server.restart();
    for subscriber in &mut subscribers {
        assert!(
            receive_until(subscriber, StoreMessage::Missed)
                .await
                .is_empty()
        );
    }
    publish(&one, "again").await.unwrap();
    for subscriber in &mut subscribers {
        receive_until(subscriber, message("again")).await;
    }
}

#[tokio::test]
async fn the_password_is_used_and_never_displayed() {
    let server = RedisServer::with_options(&["--requirepass", "hunter2"]);
    let open = |password: &str| {
        let url = format!("{}?pass={password}", server.url());
        RedisStore::new(RedisAddress::parse(&url).unwrap())
    };
    let description = open("hunter2").check().await.unwrap();
    assert!(
        description.contains("Redis at") && !description.contains("hunter2"),
        "{description}"
    );
    let wrong = open("hunter3").check().await.unwrap_err();
    assert!(!format!("{wrong} {wrong:?}").contains("hunter3"), "{wrong}");
}

/// Reads a field of `exa-mcp:store`.
fn store_field(server: &RedisServer, field: &str) -> String {
    let reply = server.command(&["HGET", "exa-mcp:store", field]).unwrap();
    reply.lines().last().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn servers_share_the_epoch() {
    let server = RedisServer::start();
    let (one, two) = (redis_store(&server), redis_store(&server));
    put(&one, "ann", "a").await.unwrap();
    put(&two, "ann", "b").await.unwrap();
    assert_eq!(store_field(&server, "version"), "1");
    assert_eq!(store_field(&server, "epoch").len(), 20);
    assert_eq!(store_field(&server, "program"), env!("CARGO_PKG_VERSION"));
    assert_eq!((one.blocking_error(), two.blocking_error()), (None, None));
    let agreed = one.get_or_init("secret", "x".to_owned()).await;
    assert_eq!(agreed.as_deref(), Ok("x"));
    let agreed = two.get_or_init("secret", "y".to_owned()).await;
    assert_eq!(agreed.as_deref(), Ok("x"));
}

#[tokio::test]
async fn adopts_data_without_an_epoch() {
    let server = RedisServer::start();
    put(&redis_store(&server), "ann", "a").await.unwrap();
    server.command(&["DEL", "exa-mcp:store"]).unwrap();
    let store = redis_store(&server);
    assert_eq!(ids(&store, query(Some("ann"), None, 9)).await, "a");
    assert_eq!(store_field(&server, "version"), "1");
}

#[tokio::test]
async fn rejects_data_of_another_epoch() {
    let server = RedisServer::start();
    let store = redis_store(&server);
    put(&store, "ann", "a").await.unwrap();
    let epoch = store_field(&server, "epoch");
    // Redis loses its data, and another server creates a new epoch.
    server.command(&["FLUSHALL"]).unwrap();
    for _ in 0..2 {
        assert_eq!(put(&store, "ann", "b").await, Err(StoreError::Replaced));
        let updates = vec![update("ann", "calls", CounterOp::Add(3))];
        assert_eq!(
            store.update_counters(updates).await,
            Err(StoreError::Replaced)
        );
        assert_eq!(store.check().await, Err(StoreError::Replaced));
        assert_eq!(store.blocking_error(), Some(StoreError::Replaced));
        // A call that does not check the epoch does not clear the error.
        assert!(store.is_alive("one".to_owned()).await.is_ok());
        assert_eq!(store.blocking_error(), Some(StoreError::Replaced));
        assert_eq!(ids(&redis_store(&server), query(None, None, 9)).await, "");
    }
    assert_ne!(store_field(&server, "epoch"), epoch);
    // A new server accepts the new data; the old one only continues with its own.
    put(&redis_store(&server), "ann", "c").await.unwrap();
    assert_eq!(store.verify().await, Err(StoreError::Replaced));
    server
        .command(&["HSET", "exa-mcp:store", "epoch", &epoch])
        .unwrap();
    assert_eq!(store.verify().await, Ok(()));
    assert_eq!(store.blocking_error(), None);
}

#[tokio::test]
async fn rejects_data_of_a_newer_program() {
    let server = RedisServer::start();
    let before = redis_store(&server);
    put(&before, "ann", "a").await.unwrap();
    let raise = ["HSET", "exa-mcp:store", "version", "7", "program", "9.8.7"];
    server.command(&raise).unwrap();
    let all = server.command(&["DEBUG", "DIGEST"]).unwrap();
    // A server that has just started, and one that used the data before.
    for store in [redis_store(&server), before] {
        let results = [
            put(&store, "ann", "b").await.map(drop),
            store.check().await.map(drop),
            store.mark_alive("one".to_owned()).await.map(drop),
            store.verify().await,
        ];
        for result in results {
            let text = result.unwrap_err().to_string();
            for part in [
                "version 7 of the format",
                "9.8.7",
                env!("CARGO_PKG_VERSION"),
            ] {
                assert!(text.contains(part), "{text}");
            }
        }
        assert!(matches!(store.blocking_error(), Some(StoreError::Newer(_))));
    }
    let digest = server.command(&["DEBUG", "DIGEST"]).unwrap();
    assert_eq!(digest, all, "nothing was changed");
}

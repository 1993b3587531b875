//! Messages between servers through Redis pub/sub. Redis does not retain them: a subscriber that was disconnected
//! learns that it may have missed some once it is connected again.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use redis::{ErrorKind, RedisError, RedisResult};
use tokio::sync::broadcast;
use tokio::time::{sleep, timeout};

use super::connection::{CONNECT_TIMEOUT, RESPONSE_TIMEOUT, RedisConnection};
use crate::pubsub::StoreMessage;

/// How many messages are buffered for a slow subscriber before it misses some.
const BUFFER_SIZE: usize = 4_096;

/// The size limit of a message in bytes; larger ones are ignored.
const MAX_MESSAGE_SIZE: usize = 16 * 1024;

/// How long to wait before reconnecting.
const RECONNECT_DELAY: Duration = Duration::from_secs(1);

/// How often the connection is tested.
const PING_INTERVAL: Duration = Duration::from_secs(5);

/// Spawns a task that receives the messages of a channel, and returns their sender.
pub(super) fn spawn(
    connection: Arc<RedisConnection>,
    channel: String,
) -> broadcast::Sender<StoreMessage> {
    let (sender, _) = broadcast::channel(BUFFER_SIZE);
    let messages = sender.clone();
    tokio::spawn(async move {
        let (mut has_warned, mut missed) = (false, false);
        loop {
            let Err(error) = receive(&connection, &channel, &messages, &mut missed).await;
            missed = true;
            if !has_warned {
                tracing::warn!(%error, "cannot receive messages of other servers; trying again");
            }
            has_warned = true;
            sleep(RECONNECT_DELAY).await;
        }
    });
    sender
}

/// Receives messages until the connection breaks.
async fn receive(
    connection: &RedisConnection,
    channel: &str,
    messages: &broadcast::Sender<StoreMessage>,
    missed: &mut bool,
) -> Result<Infallible, RedisError> {
    let client = connection.client()?;
    let pubsub = with_timeout(CONNECT_TIMEOUT, client.get_async_pubsub()).await?;
    let (mut sink, mut stream) = pubsub.split();
    with_timeout(RESPONSE_TIMEOUT, sink.subscribe(channel)).await?;
    if std::mem::take(missed) {
        // There may be no subscriber.
        let _ = messages.send(StoreMessage::Missed);
    }
    loop {
        tokio::select! {
            message = stream.next() => {
                let Some(message) = message else {
                    return Err(connection_error("the connection was closed"));
                };
                if message.get_payload_bytes().len() <= MAX_MESSAGE_SIZE
                    && let Ok(text) = message.get_payload::<String>()
                {
                    let _ = messages.send(StoreMessage::Received(Arc::from(text)));
                }
            }
            () = sleep(PING_INTERVAL) => with_timeout(RESPONSE_TIMEOUT, sink.ping::<()>()).await?,
        }
    }
}

/// Fails if Redis does not respond in time.
async fn with_timeout<T>(
    limit: Duration,
    response: impl Future<Output = RedisResult<T>>,
) -> RedisResult<T> {
    let response = timeout(limit, response).await;
    response.unwrap_or_else(|_| Err(connection_error("Redis does not respond")))
}

fn connection_error(reason: &'static str) -> RedisError {
    RedisError::from((ErrorKind::Io, reason))
}

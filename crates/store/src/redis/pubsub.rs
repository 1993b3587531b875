//! Words that servers tell each other through Redis. They are not kept: who does not listen when a word is
//! told hears, once there is a connection again, that something was missed.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use redis::{ErrorKind, RedisError, RedisResult};
use tokio::sync::broadcast;
use tokio::time::{sleep, timeout};

use super::link::{ANSWERING, CONNECTING, Link};
use crate::pubsub::StoreMessage;

/// Words that may wait for a slow reader, who is then told that some were missed.
const WAITING: usize = 4_096;

/// The longest word that is listened to.
const LONGEST: usize = 16 * 1024;

/// How long to wait before Redis is tried again.
const PAUSE: Duration = Duration::from_secs(1);

/// How often it is tried whether the connection still carries anything.
const PULSE: Duration = Duration::from_secs(5);

/// Begins to listen, for ever; gives where words come out.
pub(super) fn listening(link: Arc<Link>, channel: String) -> broadcast::Sender<StoreMessage> {
    let (sender, _) = broadcast::channel(WAITING);
    let heard = sender.clone();
    tokio::spawn(async move {
        let (mut fails, mut missed) = (false, false);
        loop {
            let Err(error) = attend(&link, &channel, &heard, &mut missed).await;
            missed = true;
            if !fails {
                tracing::warn!(%error, "what other servers tell cannot be heard; it is tried again");
            }
            fails = true;
            sleep(PAUSE).await;
        }
    });
    sender
}

/// What never is.
enum Never {}

/// Listens until the connection breaks.
async fn attend(
    link: &Link,
    channel: &str,
    heard: &broadcast::Sender<StoreMessage>,
    missed: &mut bool,
) -> Result<Never, RedisError> {
    let client = link.client()?;
    let pubsub = in_time(CONNECTING, client.get_async_pubsub()).await?;
    let (mut sink, mut words) = pubsub.split();
    in_time(ANSWERING, sink.subscribe(channel)).await?;
    if std::mem::take(missed) {
        // Nobody need listen.
        let _ = heard.send(StoreMessage::Missed);
    }
    loop {
        tokio::select! {
            word = words.next() => {
                let Some(word) = word else {
                    return Err(broken("the connection has ended"));
                };
                if word.get_payload_bytes().len() <= LONGEST
                    && let Ok(text) = word.get_payload::<String>()
                {
                    let _ = heard.send(StoreMessage::Received(Arc::from(text)));
                }
            }
            () = sleep(PULSE) => in_time(ANSWERING, sink.ping::<()>()).await?,
        }
    }
}

/// What must not take long.
async fn in_time<T>(
    patience: Duration,
    answer: impl Future<Output = RedisResult<T>>,
) -> RedisResult<T> {
    let answer = timeout(patience, answer).await;
    answer.unwrap_or_else(|_| Err(broken("Redis does not answer")))
}

fn broken(why: &'static str) -> RedisError {
    RedisError::from((ErrorKind::Io, why))
}

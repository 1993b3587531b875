//! The connection to Redis: made at first use, made anew when it breaks, never waited for long.

use std::future::Future;
use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, RedisError, RedisResult};
use tokio::sync::Mutex;

use super::super::StoreError;
use super::address::RedisAddress;
use super::epoch;

/// How long a connection may take to be made.
pub(super) const CONNECTING: Duration = Duration::from_secs(2);

/// How long an answer may take.
pub(super) const ANSWERING: Duration = Duration::from_secs(3);

/// How long nothing is tried after Redis did not answer, so that not every request waits for it.
const QUIET: Duration = Duration::from_secs(1);

/// The connection that all calls share.
pub(super) struct Link {
    client: RedisResult<Client>,
    address: RedisAddress,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    connection: Option<MultiplexedConnection>,
    /// Counts connections, so that nobody takes away a newer one than the one that broke.
    made: u64,
    since: Option<Instant>,
    /// Redis did not answer when it was last asked.
    is_away: bool,
    quiet_until: Option<Instant>,
}

impl Link {
    pub(super) fn new(address: RedisAddress) -> Self {
        Self {
            client: Client::open(address.info()),
            address,
            state: Mutex::default(),
        }
    }

    pub(super) fn address(&self) -> &RedisAddress {
        &self.address
    }

    /// What makes connections.
    pub(super) fn client(&self) -> RedisResult<&Client> {
        self.client.as_ref().map_err(Clone::clone)
    }

    /// How long there has been a connection without a break.
    pub(super) async fn age(&self) -> Duration {
        let state = self.state.lock().await;
        let since = state.since.filter(|_| state.connection.is_some());
        since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Asks Redis something. It must do no harm to ask twice: where a connection breaks, nobody knows
    /// whether the question had arrived.
    pub(super) async fn ask<T, F>(
        &self,
        question: impl Fn(MultiplexedConnection) -> F,
    ) -> Result<T, StoreError>
    where
        F: Future<Output = RedisResult<T>>,
    {
        let error = match self.try_once(&question).await? {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        // Redis may be there again already; one that does not answer is not asked twice.
        let again = (error.is_connection_dropped() || error.is_io_error()) && !error.is_timeout();
        let error = match again {
            true => match self.try_once(&question).await? {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            },
            false => error,
        };
        Err(self.unavailable(&error))
    }

    async fn try_once<T, F>(
        &self,
        question: impl Fn(MultiplexedConnection) -> F,
    ) -> Result<RedisResult<T>, StoreError>
    where
        F: Future<Output = RedisResult<T>>,
    {
        let (connection, made) = self.connection().await?;
        let answer = question(connection).await;
        if let Err(error) = &answer
            && is_broken(error)
        {
            let mut state = self.state.lock().await;
            if state.made == made {
                state.connection = None;
                if error.is_timeout() {
                    state.is_away = true;
                    state.quiet_until = Some(Instant::now() + QUIET);
                }
            }
        }
        Ok(answer)
    }

    async fn connection(&self) -> Result<(MultiplexedConnection, u64), StoreError> {
        let mut state = self.state.lock().await;
        if let Some(connection) = &state.connection {
            return Ok((connection.clone(), state.made));
        }
        let now = Instant::now();
        if state.quiet_until.is_some_and(|until| now < until) {
            let text = format!("{} does not answer; it is tried again soon", self.address);
            return Err(StoreError::Unavailable(text));
        }
        if !state.is_away {
            // Whoever comes meanwhile waits for the same connection.
            let made = self.connect().await;
            return self.settle(&mut state, made);
        }
        // While Redis is away one finds out whether it is back, and nobody else waits for that.
        state.quiet_until = Some(now + CONNECTING + QUIET);
        drop(state);
        let made = self.connect().await;
        self.settle(&mut *self.state.lock().await, made)
    }

    async fn connect(&self) -> Result<MultiplexedConnection, StoreError> {
        let client = self.client.as_ref();
        let client = client.map_err(|error| self.unavailable(error))?;
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECTING))
            .set_response_timeout(Some(ANSWERING));
        let connection = client.get_multiplexed_async_connection_with_config(&config);
        connection.await.map_err(|error| self.unavailable(&error))
    }

    /// Notes what came of making a connection.
    fn settle(
        &self,
        state: &mut State,
        made: Result<MultiplexedConnection, StoreError>,
    ) -> Result<(MultiplexedConnection, u64), StoreError> {
        state.is_away = made.is_err();
        match made {
            Ok(connection) => {
                state.connection = Some(connection.clone());
                state.made += 1;
                state.since = Some(Instant::now());
                state.quiet_until = None;
                Ok((connection, state.made))
            }
            Err(error) => {
                state.quiet_until = Some(Instant::now() + QUIET);
                Err(error)
            }
        }
    }

    fn unavailable(&self, error: &RedisError) -> StoreError {
        if let Some(refusal) = epoch::refusal(error) {
            return refusal;
        }
        if error.code() == Some("OOM") {
            return StoreError::Full;
        }
        let why = match error.is_timeout() {
            true => "it does not answer".to_owned(),
            false => error.to_string(),
        };
        StoreError::Unavailable(format!("{}: {why}", self.address))
    }
}

/// Whether nothing more can come over the connection.
fn is_broken(error: &RedisError) -> bool {
    // A server that may no longer write has handed its part over to another.
    error.is_io_error() || error.is_unrecoverable_error() || error.code() == Some("READONLY")
}

//! The connection to Redis: opened at first use, reopened when it breaks, with short timeouts.

use std::future::Future;
use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, RedisError, RedisResult};
use tokio::sync::Mutex;

use super::address::RedisAddress;
use super::epoch;
use crate::StoreError;

/// How long connecting may take.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a response may take.
pub(super) const RESPONSE_TIMEOUT: Duration = Duration::from_secs(3);

/// How long calls fail immediately after Redis did not respond, so that not every request waits for it.
const BACKOFF: Duration = Duration::from_secs(1);

/// The connection that all calls share.
pub(super) struct RedisConnection {
    client: RedisResult<Client>,
    address: RedisAddress,
    state: Mutex<ConnectionState>,
}

#[derive(Default)]
struct ConnectionState {
    connection: Option<MultiplexedConnection>,
    /// Counts connections, so that a call whose connection broke does not drop a newer one.
    generation: u64,
    connected_at: Option<Instant>,
    /// Whether Redis was unreachable at the last attempt.
    is_unreachable: bool,
    retry_at: Option<Instant>,
}

impl RedisConnection {
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

    /// Returns the client that opens connections.
    pub(super) fn client(&self) -> RedisResult<&Client> {
        self.client.as_ref().map_err(Clone::clone)
    }

    /// Returns how long the current connection has been open.
    pub(super) async fn age(&self) -> Duration {
        let state = self.state.lock().await;
        let connected_at = state.connected_at.filter(|_| state.connection.is_some());
        connected_at.map_or(Duration::ZERO, |at| at.elapsed())
    }

    /// Sends an idempotent query. It is sent again if the connection breaks, when it is unknown whether it arrived.
    pub(super) async fn query<T, F>(
        &self,
        query: impl Fn(MultiplexedConnection) -> F,
    ) -> Result<T, StoreError>
    where
        F: Future<Output = RedisResult<T>>,
    {
        let error = match self.try_once(&query).await? {
            Ok(reply) => return Ok(reply),
            Err(error) => error,
        };
        // Redis may already be back. After a timeout it most likely is not.
        let retry = (error.is_connection_dropped() || error.is_io_error()) && !error.is_timeout();
        let error = if retry {
            match self.try_once(&query).await? {
                Ok(reply) => return Ok(reply),
                Err(error) => error,
            }
        } else {
            error
        };
        Err(self.unavailable(&error))
    }

    async fn try_once<T, F>(
        &self,
        query: impl Fn(MultiplexedConnection) -> F,
    ) -> Result<RedisResult<T>, StoreError>
    where
        F: Future<Output = RedisResult<T>>,
    {
        let (connection, generation) = self.connection().await?;
        let reply = query(connection).await;
        if let Err(error) = &reply
            && is_broken(error)
        {
            let mut state = self.state.lock().await;
            if state.generation == generation {
                state.connection = None;
                if error.is_timeout() {
                    state.is_unreachable = true;
                    state.retry_at = Some(Instant::now() + BACKOFF);
                }
            }
        }
        Ok(reply)
    }

    async fn connection(&self) -> Result<(MultiplexedConnection, u64), StoreError> {
        let mut state = self.state.lock().await;
        if let Some(connection) = &state.connection {
            return Ok((connection.clone(), state.generation));
        }
        let now = Instant::now();
        if state.retry_at.is_some_and(|until| now < until) {
            let text = format!(
                "{} does not respond; trying again in a moment",
                self.address
            );
            return Err(StoreError::Unavailable(text));
        }
        if !state.is_unreachable {
            // Concurrent calls wait for the same connection.
            let connection = self.connect().await;
            return self.record(&mut state, connection);
        }
        // While Redis is unreachable, one call tests whether it is back, and the others fail immediately.
        state.retry_at = Some(now + CONNECT_TIMEOUT + BACKOFF);
        drop(state);
        let connection = self.connect().await;
        self.record(&mut *self.state.lock().await, connection)
    }

    async fn connect(&self) -> Result<MultiplexedConnection, StoreError> {
        let client = self.client.as_ref();
        let client = client.map_err(|error| self.unavailable(error))?;
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_TIMEOUT))
            .set_response_timeout(Some(RESPONSE_TIMEOUT));
        let connection = client.get_multiplexed_async_connection_with_config(&config);
        connection.await.map_err(|error| self.unavailable(&error))
    }

    /// Records the result of connecting.
    fn record(
        &self,
        state: &mut ConnectionState,
        connection: Result<MultiplexedConnection, StoreError>,
    ) -> Result<(MultiplexedConnection, u64), StoreError> {
        state.is_unreachable = connection.is_err();
        match connection {
            Ok(connection) => {
                state.connection = Some(connection.clone());
                state.generation += 1;
                state.connected_at = Some(Instant::now());
                state.retry_at = None;
                Ok((connection, state.generation))
            }
            Err(error) => {
                state.retry_at = Some(Instant::now() + BACKOFF);
                Err(error)
            }
        }
    }

    fn unavailable(&self, error: &RedisError) -> StoreError {
        if let Some(error) = epoch::script_error(error) {
            return error;
        }
        if error.code() == Some("OOM") {
            return StoreError::Full;
        }
        let reason = if error.is_timeout() {
            "it does not respond".to_owned()
        } else {
            error.to_string()
        };
        StoreError::Unavailable(format!("{}: {reason}", self.address))
    }
}

/// Returns whether the connection is unusable after this error.
fn is_broken(error: &RedisError) -> bool {
    // A server that became read-only is no longer the primary.
    error.is_io_error() || error.is_unrecoverable_error() || error.code() == Some("READONLY")
}

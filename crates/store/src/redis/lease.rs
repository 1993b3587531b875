//! The liveness of a process in Redis: a key that expires unless it is renewed.

use std::sync::Arc;
use std::time::Duration;

use redis::Cmd;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::connection::RedisConnection;
use super::epoch::Epoch;
use crate::StoreError;

/// How long a lease lasts without renewal.
pub(super) const DURATION: Duration = Duration::from_secs(8);

/// How often a lease is renewed.
const RENEWAL_INTERVAL: Duration = Duration::from_secs(2);

/// A lease that is renewed until dropped.
pub(super) struct Lease {
    connection: Arc<RedisConnection>,
    key: String,
    renewal: JoinHandle<()>,
}

impl Lease {
    /// Acquires the lease of this key.
    pub(super) async fn acquire(
        connection: Arc<RedisConnection>,
        epoch: Arc<Epoch>,
        key: String,
    ) -> Result<Self, StoreError> {
        renew(&connection, &key).await?;
        let renewal = tokio::spawn(keep_renewing(Arc::clone(&connection), epoch, key.clone()));
        Ok(Self {
            connection,
            key,
            renewal,
        })
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.renewal.abort();
        let (connection, key) = (Arc::clone(&self.connection), std::mem::take(&mut self.key));
        // Without a runtime the key expires by itself.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                let mut remove = Cmd::new();
                remove.arg("DEL").arg(key);
                let query = async |mut connection| remove.query_async::<()>(&mut connection).await;
                let _ = connection.query(query).await;
            });
        }
    }
}

async fn keep_renewing(connection: Arc<RedisConnection>, epoch: Arc<Epoch>, key: String) {
    loop {
        sleep(RENEWAL_INTERVAL).await;
        // This server does no work in data of another epoch.
        if epoch.blocking_error().is_some() {
            continue;
        }
        if let Err(error) = renew(&connection, &key).await {
            tracing::warn!(%error, "cannot renew the liveness lease; trying again");
        }
    }
}

async fn renew(connection: &RedisConnection, key: &str) -> Result<(), StoreError> {
    let mut set = Cmd::new();
    let duration = DURATION.as_millis() as u64;
    set.arg("SET").arg(key).arg(1).arg("PX").arg(duration);
    let query = async |mut connection| set.query_async::<()>(&mut connection).await;
    connection.query(query).await
}

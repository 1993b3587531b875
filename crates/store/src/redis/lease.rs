//! A sign of life in Redis: a key that ends by itself unless it is renewed.

use std::sync::Arc;
use std::time::Duration;

use redis::Cmd;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::super::StoreError;
use super::epoch::Epoch;
use super::link::Link;

/// How long a sign lasts without being renewed.
pub(super) const LENGTH: Duration = Duration::from_secs(8);

/// How often it is renewed.
const RENEWAL: Duration = Duration::from_secs(2);

/// A sign that is renewed as long as this is kept.
pub(super) struct Lease {
    link: Arc<Link>,
    key: String,
    renewing: JoinHandle<()>,
}

impl Lease {
    /// Shows a sign at this key.
    pub(super) async fn take(
        link: Arc<Link>,
        epoch: Arc<Epoch>,
        key: String,
    ) -> Result<Self, StoreError> {
        renew(&link, &key).await?;
        let renewing = tokio::spawn(keep(Arc::clone(&link), epoch, key.clone()));
        Ok(Self {
            link,
            key,
            renewing,
        })
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.renewing.abort();
        let (link, key) = (Arc::clone(&self.link), std::mem::take(&mut self.key));
        // Without a runtime it ends a little later by itself.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                let mut remove = Cmd::new();
                remove.arg("DEL").arg(key);
                let ask = async |mut connection| remove.query_async::<()>(&mut connection).await;
                let _ = link.ask(ask).await;
            });
        }
    }
}

async fn keep(link: Arc<Link>, epoch: Arc<Epoch>, key: String) {
    loop {
        sleep(RENEWAL).await;
        // In other data than its own this server runs nothing.
        if epoch.problem().is_some() {
            continue;
        }
        if let Err(error) = renew(&link, &key).await {
            tracing::warn!(%error, "the sign of life could not be renewed; it is tried again");
        }
    }
}

async fn renew(link: &Link, key: &str) -> Result<(), StoreError> {
    let mut show = Cmd::new();
    let length = LENGTH.as_millis() as u64;
    show.arg("SET").arg(key).arg(1).arg("PX").arg(length);
    let ask = async |mut connection| show.query_async::<()>(&mut connection).await;
    link.ask(ask).await
}

//! Health of the store.

use std::time::{Duration, Instant};

use exa_mcp_store::Store;
use tokio::sync::Mutex;
use tokio::time::timeout;

/// How long a health check may take.
const CHECK_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a result is reused, because health checks are frequent.
const MAX_AGE: Duration = Duration::from_secs(5);

/// The result of the last health check.
#[derive(Default)]
pub(super) struct StoreHealth(Mutex<Option<(Instant, bool)>>);

impl StoreHealth {
    pub(super) async fn is_healthy(&self, store: &dyn Store) -> bool {
        let mut last = self.0.lock().await;
        if let Some((at, healthy)) = *last
            && at.elapsed() < MAX_AGE
        {
            return healthy;
        }
        let healthy = matches!(timeout(CHECK_TIMEOUT, store.check()).await, Ok(Ok(_)));
        *last = Some((Instant::now(), healthy));
        healthy
    }
}

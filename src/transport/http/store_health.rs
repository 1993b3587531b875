//! Whether the store answers.

use std::time::{Duration, Instant};

use exa_mcp_store::Store;
use tokio::sync::Mutex;
use tokio::time::timeout;

/// How long the store may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long a result counts: health checks are frequent.
const FRESH: Duration = Duration::from_secs(5);

/// The state of the store when it was last checked.
#[derive(Default)]
pub(super) struct StoreHealth(Mutex<Option<(Instant, bool)>>);

impl StoreHealth {
    pub(super) async fn is_healthy(&self, store: &dyn Store) -> bool {
        let mut known = self.0.lock().await;
        if let Some((at, well)) = *known
            && at.elapsed() < FRESH
        {
            return well;
        }
        let well = matches!(timeout(PATIENCE, store.check()).await, Ok(Ok(_)));
        *known = Some((Instant::now(), well));
        well
    }
}

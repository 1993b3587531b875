//! HTTP: a single handler for every path, because the paths come from the specs.

mod arguments;
mod closed_schema;
mod connection;
mod control;
mod faults;
mod handler;
mod incoming;
pub(crate) mod journal;
mod request_log;
mod response;
mod routes;
pub(crate) mod stream;

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use axum::Router;
use exa_mcp_model::lock;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::state::SandboxState;
use crate::{Error, OperationSpec, Options};
use connection::{CutHandle, CuttableListener};
pub(crate) use faults::FaultRules;
pub(crate) use request_log::RequestLog;
use routes::Routes;

/// Time that open requests have to finish after a shutdown.
const GRACE_PERIOD: Duration = Duration::from_secs(2);

/// Everything that request handlers share.
pub(crate) struct ServerContext {
    routes: Routes,
    require_key: bool,
    state: Mutex<SandboxState>,
    /// Stores the requests that change something, if they are to survive this process.
    journal: OnceLock<journal::Journal>,
}

impl ServerContext {
    pub(crate) fn new(operations: Vec<OperationSpec>, options: Options) -> Result<Self, Error> {
        Ok(ServerContext {
            routes: Routes::new(operations)?,
            require_key: options.require_key,
            state: Mutex::new(SandboxState::new(&options)),
            journal: OnceLock::new(),
        })
    }

    /// Locks the state.
    fn state(&self) -> MutexGuard<'_, SandboxState> {
        lock(&self.state)
    }
}

pub(crate) fn router(context: Arc<ServerContext>) -> Router {
    Router::new().fallback(handler::handle).with_state(context)
}

pub(crate) async fn serve(
    router: Router,
    listener: TcpListener,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let (stop, stopped) = watch::channel(false);
    tokio::spawn(async move {
        shutdown.await;
        // This fails only if the server has ended already.
        let _ = stop.send(true);
    });
    let service = router.into_make_service_with_connect_info::<CutHandle>();
    let server = axum::serve(CuttableListener(listener), service)
        .with_graceful_shutdown(wait_for_stop(stopped.clone(), Duration::ZERO));
    tokio::select! {
        result = server => result,
        () = wait_for_stop(stopped, GRACE_PERIOD) => Ok(()),
    }
}

/// Completes after a shutdown and a further delay.
async fn wait_for_stop(mut stopped: watch::Receiver<bool>, delay: Duration) {
    // An error means that the task that waits for `shutdown` is gone, which also ends the server.
    let _ = stopped.wait_for(|stop| *stop).await;
    tokio::time::sleep(delay).await;
}

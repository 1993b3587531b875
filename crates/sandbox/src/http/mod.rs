//! The way in and out: one handler for every path, since the paths come from the specs.

mod answer;
mod arguments;
mod control;
mod faults;
mod handle;
mod log;
mod query;
mod routes;
pub(crate) mod stream;
mod strict;
mod uploads;
mod wire;

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::Router;
use exa_mcp_model::lock;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::state::World;
use crate::{Error, OperationSpec, Options};
pub(crate) use faults::Rules;
pub(crate) use log::Log;
use routes::Routes;
use wire::{Wire, WireListener};

/// How long open requests may take once the sandbox is told to stop.
const GRACE: Duration = Duration::from_secs(2);

/// What all requests share.
pub(crate) struct Shared {
    routes: Routes,
    require_key: bool,
    world: Mutex<World>,
}

impl Shared {
    pub(crate) fn new(operations: Vec<OperationSpec>, options: Options) -> Result<Self, Error> {
        Ok(Shared {
            routes: Routes::new(operations)?,
            require_key: options.require_key,
            world: Mutex::new(World::new(&options)),
        })
    }

    /// The state.
    fn world(&self) -> MutexGuard<'_, World> {
        lock(&self.world)
    }
}

pub(crate) fn router(shared: Arc<Shared>) -> Router {
    Router::new().fallback(handle::handle).with_state(shared)
}

pub(crate) async fn serve(
    router: Router,
    listener: TcpListener,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let (stop, stopped) = watch::channel(false);
    tokio::spawn(async move {
        shutdown.await;
        // Fails only when nobody listens any more, and then there is nothing left to stop.
        let _ = stop.send(true);
    });
    let service = router.into_make_service_with_connect_info::<Wire>();
    let serving = axum::serve(WireListener(listener), service)
        .with_graceful_shutdown(until(stopped.clone(), Duration::ZERO));
    tokio::select! {
        result = serving => result,
        () = until(stopped, GRACE) => Ok(()),
    }
}

/// Completes `after` the sandbox was told to stop.
async fn until(mut stopped: watch::Receiver<bool>, after: Duration) {
    // An error means that the task which watches `shutdown` is gone, so nobody can wait any more.
    let _ = stopped.wait_for(|stop| *stop).await;
    tokio::time::sleep(after).await;
}

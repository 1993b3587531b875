//! Accepts connections within limits, times out idle ones and closes them gracefully.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use http::{Request, Response};
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::body::with_guard;
use super::config::HttpConfig;
use super::fair_slots::{Activity, ActivityKind, AddressLimitPolicy, FairSlots, Slot, SlotError};
use super::peer::Peer;
use super::unread_body::{UnreadBody, close_in_two_steps};
use exa_mcp_accounts::ClientAddress;

/// How long to wait after `accept` fails.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// The maximum size of a request head.
const MAX_HEAD_BYTES: usize = 64 * 1024;

/// The maximum number of headers.
const MAX_HEADERS: usize = 100;

/// The maximum number of connections that wait for a slot, in total and per address.
const MAX_WAITING: usize = 128;
const MAX_WAITING_PER_ADDRESS: usize = 16;

type AcceptedStream = (TcpStream, SocketAddr);

/// Accepts connections until `draining` is cancelled. Returns the open connections.
pub(super) async fn accept(
    listener: TcpListener,
    app: Router,
    config: &HttpConfig,
    draining: &CancellationToken,
) -> JoinSet<()> {
    let limits = &config.limits;
    let mut connections = Connections {
        slots: Arc::new(FairSlots::new(
            limits.connections,
            limits.connections_per_address,
            AddressLimitPolicy::Reject,
        )),
        waiting: VecDeque::new(),
        tasks: JoinSet::new(),
        app,
        config,
        draining,
    };
    let mut stop = pin!(draining.cancelled());
    loop {
        let slots = Arc::clone(&connections.slots);
        tokio::select! {
            biased;
            () = &mut stop => return connections.tasks,
            _ = connections.tasks.join_next(), if !connections.tasks.is_empty() => {}
            () = slots.wait_for_release() => connections.serve_waiting(),
            accepted = listener.accept() => match accepted {
                Ok(accepted) => connections.serve_or_queue(accepted),
                Err(error) => connections.handle_accept_error(&error).await,
            },
        }
    }
}

/// The connections of the server.
struct Connections<'a> {
    slots: Arc<FairSlots>,
    /// Connections waiting for a slot, oldest first.
    waiting: VecDeque<AcceptedStream>,
    tasks: JoinSet<()>,
    app: Router,
    config: &'a HttpConfig,
    draining: &'a CancellationToken,
}

impl Connections<'_> {
    /// Returns the address that a connection counts against. A trusted proxy serves many clients.
    fn address(&self, peer: &SocketAddr) -> Option<ClientAddress> {
        (!self.config.proxies.contains(peer.ip())).then(|| peer.ip().into())
    }

    /// Serves a new connection, or queues it until a slot is free.
    fn serve_or_queue(&mut self, accepted: AcceptedStream) {
        let Err(accepted) = self.try_serve(accepted) else {
            return;
        };
        let own = self.address(&accepted.1);
        let same_address = self.waiting.iter();
        let same_address = same_address.filter(|(_, peer)| self.address(peer) == own);
        if self.waiting.len() < MAX_WAITING && same_address.count() < MAX_WAITING_PER_ADDRESS {
            self.waiting.push_back(accepted);
        } else {
            log_rejection(accepted.1.ip());
        }
    }

    fn serve_waiting(&mut self) {
        for accepted in std::mem::take(&mut self.waiting) {
            if let Err(accepted) = self.try_serve(accepted) {
                self.waiting.push_back(accepted);
            }
        }
    }

    /// Serves a connection if a slot is free. Returns it if it should wait for one.
    fn try_serve(&mut self, (stream, peer): AcceptedStream) -> Result<(), AcceptedStream> {
        let activity = Arc::new(Activity::default());
        let slot = self
            .slots
            .acquire(self.address(&peer), Arc::clone(&activity));
        let slot = match slot {
            Ok(slot) => slot,
            Err(SlotError::AllTaken) => return Err((stream, peer)),
            Err(SlotError::AddressLimit) => {
                log_rejection(peer.ip());
                return Ok(());
            }
        };
        let connection = Connection {
            stream,
            peer,
            activity,
            slot,
        };
        let timeout = self.config.limits.client_timeout;
        let serving = connection.serve(self.app.clone(), timeout, self.draining.clone());
        self.tasks.spawn(serving);
        Ok(())
    }

    /// Handles a failed `accept`, perhaps because too many sockets are open.
    async fn handle_accept_error(&self, error: &io::Error) {
        tracing::warn!(%error, "failed to accept a connection");
        self.slots.evict_one();
        tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
    }
}

fn log_rejection(address: IpAddr) {
    tracing::info!(%address, "denied: too many connections");
}

/// A connection with its slot.
struct Connection {
    stream: TcpStream,
    peer: SocketAddr,
    activity: Arc<Activity>,
    slot: Slot,
}

impl Connection {
    async fn serve(self, app: Router, timeout: Duration, draining: CancellationToken) {
        let Self {
            stream,
            peer,
            activity,
            slot,
        } = self;
        let _ = stream.set_nodelay(true);
        let unread = UnreadBody::default();
        let left_unread = unread.clone();
        let service = service_fn(move |mut request: Request<Incoming>| {
            let (app, unread) = (app.clone(), unread.clone());
            let busy = BusyGuard::new(&activity);
            request.extensions_mut().insert(Peer(peer));
            request.extensions_mut().insert(Arc::clone(&activity));
            Box::pin(async move {
                let respond = |request| async {
                    let response = app.oneshot(request).await;
                    response.unwrap_or_else(|impossible: Infallible| match impossible {})
                };
                let response = unread.respond(request, respond).await;
                Ok::<_, Infallible>(busy.until_sent(response))
            })
        });
        let mut connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(timeout)
            .max_buf_size(MAX_HEAD_BYTES)
            .max_headers(MAX_HEADERS)
            .serve_connection(TokioIo::new(stream), service);
        let mut is_draining = false;
        let ended = loop {
            tokio::select! {
                ended = poll_fn(|context| connection.poll_without_shutdown(context)) => break ended,
                () = slot.evicted.cancelled() => {
                    tracing::info!(address = %peer.ip(), "closed a connection to free its slot for another address");
                    return;
                }
                () = draining.cancelled(), if !is_draining => {
                    is_draining = true;
                    std::pin::Pin::new(&mut connection).graceful_shutdown();
                }
            }
        };
        // Errors of disconnecting clients are not logged.
        let is_unread = left_unread.is_left() || ended.is_err_and(|error| error.is_parse());
        if is_unread {
            let stream = connection.into_parts().io.into_inner();
            tokio::select! {
                () = close_in_two_steps(stream, timeout) => {}
                () = slot.evicted.cancelled() => {}
                () = draining.cancelled() => {}
            }
        }
    }
}

/// Marks a connection as busy with a request.
struct BusyGuard(Arc<Activity>);

impl BusyGuard {
    fn new(activity: &Arc<Activity>) -> Self {
        activity.set(ActivityKind::Anonymous);
        Self(Arc::clone(activity))
    }

    /// Keeps the connection busy until a streaming response ends.
    fn until_sent(self, response: Response<Body>) -> Response<Body> {
        if response.body().size_hint().exact().is_some() {
            return response;
        }
        response.map(|body| with_guard(body, self))
    }
}

impl Drop for BusyGuard {
    fn drop(&mut self) {
        self.0.set(ActivityKind::Idle);
    }
}

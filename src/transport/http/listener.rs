//! Connections: not too many, none that only waits, and all ended well.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::config::HttpConfig;
use super::peer::Peer;

/// How long to wait when the system cannot give another connection.
const PAUSE: Duration = Duration::from_millis(100);

/// The largest head of a request.
const LARGEST_HEAD: usize = 64 * 1024;

/// The most headers of a request.
const MOST_HEADERS: usize = 100;

/// Connections of each address.
#[derive(Clone, Default)]
struct Addresses(Arc<Mutex<HashMap<IpAddr, usize>>>);

/// A place among the connections of an address.
struct Place {
    addresses: Addresses,
    address: IpAddr,
}

impl Addresses {
    fn take(&self, address: IpAddr, most: usize) -> Option<Place> {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(address).or_default();
        if *count >= most {
            return None;
        }
        *count += 1;
        let addresses = self.clone();
        Some(Place { addresses, address })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let counts = &self.addresses.0;
        let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.address);
            }
        }
    }
}

/// Accepts connections until `draining`, and gives those that are left.
pub(super) async fn accept(
    listener: TcpListener,
    app: Router,
    config: &HttpConfig,
    draining: &CancellationToken,
) -> JoinSet<()> {
    let places = Arc::new(Semaphore::new(config.limits.connections));
    let addresses = Addresses::default();
    let mut connections = JoinSet::new();
    let mut stop = pin!(draining.cancelled());
    loop {
        let next = async {
            // With all places taken the system queues, and then refuses, further connections.
            let place = Arc::clone(&places).acquire_owned().await.ok()?;
            Some((place, listener.accept().await))
        };
        let accepted = tokio::select! {
            biased;
            () = &mut stop => return connections,
            _ = connections.join_next(), if !connections.is_empty() => continue,
            accepted = next => accepted,
        };
        let Some((place, accepted)) = accepted else {
            return connections;
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        let trusted = config.proxies.has(peer.ip());
        let most = if trusted {
            usize::MAX
        } else {
            config.limits.connections_per_address
        };
        let Some(own) = addresses.take(peer.ip().to_canonical(), most) else {
            tracing::info!(address = %peer.ip(), "denied: too many connections");
            continue;
        };
        let timeout = config.limits.client_timeout;
        let held = (place, own);
        connections.spawn(serve(
            stream,
            peer,
            app.clone(),
            timeout,
            draining.clone(),
            held,
        ));
    }
}

async fn serve(
    stream: TcpStream,
    peer: SocketAddr,
    app: Router,
    timeout: Duration,
    draining: CancellationToken,
    held: (OwnedSemaphorePermit, Place),
) {
    let _held = held;
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(Peer(peer));
        let answer = app.clone().oneshot(request.map(Body::new));
        async move { answer.await.map_err(|error: Infallible| error) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(timeout)
        .max_buf_size(LARGEST_HEAD)
        .max_headers(MOST_HEADERS)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    tokio::select! {
        // Clients go away in many ways; none of them is news.
        _ = &mut connection => return,
        () = draining.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

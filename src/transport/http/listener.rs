//! Connections: not too many, none that only waits, and all ended well.

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

use super::body::holding;
use super::config::HttpConfig;
use super::fair_places::{Activity, FairPlaces, NoPlace, Place, Use, WhenAddressIsFull};
use super::peer::Peer;
use super::unread_body::{UnreadBody, close_in_two_steps};
use exa_mcp_accounts::ClientAddress;

/// How long to wait when the system cannot give another connection.
const PAUSE: Duration = Duration::from_millis(100);

/// The largest head of a request.
const LARGEST_HEAD: usize = 64 * 1024;

/// The most headers of a request.
const MOST_HEADERS: usize = 100;

/// Connections that may wait for a place, of all addresses and of one.
const MAX_WAITING: usize = 128;
const MAX_WAITING_PER_ADDRESS: usize = 16;

type Accepted = (TcpStream, SocketAddr);

/// Accepts connections until `draining`, and gives those that are left.
pub(super) async fn accept(
    listener: TcpListener,
    app: Router,
    config: &HttpConfig,
    draining: &CancellationToken,
) -> JoinSet<()> {
    let limits = &config.limits;
    let mut connections = Connections {
        places: Arc::new(FairPlaces::new(
            limits.connections,
            limits.connections_per_address,
            WhenAddressIsFull::Refuse,
        )),
        waiting: VecDeque::new(),
        served: JoinSet::new(),
        app,
        config,
        draining,
    };
    let mut stop = pin!(draining.cancelled());
    loop {
        let places = Arc::clone(&connections.places);
        tokio::select! {
            biased;
            () = &mut stop => return connections.served,
            _ = connections.served.join_next(), if !connections.served.is_empty() => {}
            () = places.freed() => connections.let_waiting_in(),
            accepted = listener.accept() => match accepted {
                Ok(accepted) => connections.receive(accepted),
                Err(error) => connections.lack(&error).await,
            },
        }
    }
}

/// The connections of a server.
struct Connections<'a> {
    places: Arc<FairPlaces>,
    /// Those for which there is no place yet, the oldest first.
    waiting: VecDeque<Accepted>,
    served: JoinSet<()>,
    app: Router,
    config: &'a HttpConfig,
    draining: &'a CancellationToken,
}

impl Connections<'_> {
    /// The address for which a connection counts; a trusted proxy speaks for many.
    fn address(&self, peer: &SocketAddr) -> Option<ClientAddress> {
        (!self.config.proxies.has(peer.ip())).then(|| peer.ip().into())
    }

    /// Serves a new connection, or has it wait for a place.
    fn receive(&mut self, accepted: Accepted) {
        let Err(accepted) = self.try_serve(accepted) else {
            return;
        };
        let own = self.address(&accepted.1);
        let of_address = self.waiting.iter();
        let of_address = of_address.filter(|(_, peer)| self.address(peer) == own);
        if self.waiting.len() < MAX_WAITING && of_address.count() < MAX_WAITING_PER_ADDRESS {
            self.waiting.push_back(accepted);
        } else {
            deny(accepted.1.ip());
        }
    }

    fn let_waiting_in(&mut self) {
        for accepted in std::mem::take(&mut self.waiting) {
            if let Err(accepted) = self.try_serve(accepted) {
                self.waiting.push_back(accepted);
            }
        }
    }

    /// Serves a connection if there is a place for it; gives it back if one may come.
    fn try_serve(&mut self, (stream, peer): Accepted) -> Result<(), Accepted> {
        let activity = Arc::new(Activity::default());
        let place = self
            .places
            .enter(self.address(&peer), Arc::clone(&activity));
        let place = match place {
            Ok(place) => place,
            Err(NoPlace::AllTaken) => return Err((stream, peer)),
            Err(NoPlace::AddressIsFull) => {
                deny(peer.ip());
                return Ok(());
            }
        };
        let connection = Connection {
            stream,
            peer,
            activity,
            place,
        };
        let timeout = self.config.limits.client_timeout;
        let serving = connection.serve(self.app.clone(), timeout, self.draining.clone());
        self.served.spawn(serving);
        Ok(())
    }

    /// The system gives no further connection, perhaps because there are too many.
    async fn lack(&self, error: &io::Error) {
        tracing::warn!(%error, "a connection could not be accepted");
        self.places.shed();
        tokio::time::sleep(PAUSE).await;
    }
}

fn deny(address: IpAddr) {
    tracing::info!(%address, "denied: too many connections");
}

/// A connection with its place among all.
struct Connection {
    stream: TcpStream,
    peer: SocketAddr,
    activity: Arc<Activity>,
    place: Place,
}

impl Connection {
    async fn serve(self, app: Router, timeout: Duration, draining: CancellationToken) {
        let Self {
            stream,
            peer,
            activity,
            place,
        } = self;
        let _ = stream.set_nodelay(true);
        let unread = UnreadBody::default();
        let left_unread = unread.clone();
        let service = service_fn(move |mut request: Request<Incoming>| {
            let (app, unread) = (app.clone(), unread.clone());
            let busy = Busy::new(&activity);
            request.extensions_mut().insert(Peer(peer));
            request.extensions_mut().insert(Arc::clone(&activity));
            Box::pin(async move {
                let respond = |request| async {
                    let answer = app.oneshot(request).await;
                    answer.unwrap_or_else(|impossible: Infallible| match impossible {})
                };
                let response = unread.respond(request, respond).await;
                Ok::<_, Infallible>(busy.until_sent(response))
            })
        });
        let mut connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(timeout)
            .max_buf_size(LARGEST_HEAD)
            .max_headers(MOST_HEADERS)
            .serve_connection(TokioIo::new(stream), service);
        let mut is_draining = false;
        let ended = loop {
            tokio::select! {
                ended = poll_fn(|context| connection.poll_without_shutdown(context)) => break ended,
                () = place.lost.cancelled() => {
                    tracing::info!(address = %peer.ip(), "a connection made way for another address");
                    return;
                }
                () = draining.cancelled(), if !is_draining => {
                    is_draining = true;
                    std::pin::Pin::new(&mut connection).graceful_shutdown();
                }
            }
        };
        // Clients go away in many ways; none of them is news.
        let is_unread = left_unread.is_left() || ended.is_err_and(|error| error.is_parse());
        if is_unread {
            let stream = connection.into_parts().io.into_inner();
            tokio::select! {
                () = close_in_two_steps(stream, timeout) => {}
                () = place.lost.cancelled() => {}
                () = draining.cancelled() => {}
            }
        }
    }
}

/// A request under way on a connection.
struct Busy(Arc<Activity>);

impl Busy {
    fn new(activity: &Arc<Activity>) -> Self {
        activity.set(Use::Guest);
        Self(Arc::clone(activity))
    }

    /// The connection is busy until a stream has ended; anything else is as good as sent.
    fn until_sent(self, response: Response<Body>) -> Response<Body> {
        if response.body().size_hint().exact().is_some() {
            return response;
        }
        response.map(|body| holding(body, self))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.set(Use::Idle);
    }
}

//! Pings clients that are idle, up to 2025-11-25, and gives up on those that do not respond.

use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use rmcp::{
    Peer, RoleServer, ServiceError,
    model::{PingRequest, ServerRequest},
    service::PeerRequestOptions,
};
use tokio::time::{Instant, sleep, timeout};

use exa_mcp_model::lock;

/// How many pings in a row may remain without a response.
const MAX_UNANSWERED: u32 = 2;

/// When clients are pinged.
#[derive(Clone, Copy, Debug)]
pub struct PingPolicy {
    /// How long a client is idle before.
    pub interval: Duration,
    /// How long it may take to respond.
    pub timeout: Duration,
}

/// The connection to a client.
pub(crate) trait ClientConnection: Send + Sync {
    /// Returns whether a message would reach the client now.
    fn is_open(&self) -> bool;

    /// Closes the connection, because its client does not respond.
    fn close(&self);
}

/// Standard input and output, which tell by themselves when the client is gone.
pub(super) struct StandardStreams;

impl ClientConnection for StandardStreams {
    fn is_open(&self) -> bool {
        true
    }

    fn close(&self) {}
}

/// When a client was last heard of.
pub(super) struct ClientActivity(Mutex<ActivityState>);

struct ActivityState {
    pending_requests: usize,
    last: Instant,
}

impl Default for ClientActivity {
    fn default() -> Self {
        Self(Mutex::new(ActivityState {
            pending_requests: 0,
            last: Instant::now(),
        }))
    }
}

/// A request of the client, which is not idle until this is dropped.
pub(super) struct PendingRequest(Arc<ClientActivity>);

impl Drop for PendingRequest {
    fn drop(&mut self) {
        let mut state = lock(&self.0.0);
        state.pending_requests = state.pending_requests.saturating_sub(1);
        state.last = Instant::now();
    }
}

impl ClientActivity {
    /// Records a message of the client.
    pub(super) fn record(&self) {
        lock(&self.0).last = Instant::now();
    }

    /// Records a request of the client.
    pub(super) fn start_request(self: &Arc<Self>) -> PendingRequest {
        let mut state = lock(&self.0);
        state.pending_requests += 1;
        state.last = Instant::now();
        drop(state);
        PendingRequest(Arc::clone(self))
    }

    fn last(&self) -> Instant {
        lock(&self.0).last
    }

    /// Returns how long the client must remain silent to be idle for an interval.
    fn time_left(&self, interval: Duration) -> Duration {
        let state = lock(&self.0);
        if state.pending_requests > 0 {
            return interval;
        }
        interval.saturating_sub(state.last.elapsed())
    }
}

/// Pings a client whenever it is idle, until its connection is gone.
pub(super) async fn ping_when_idle(
    activity: Weak<ClientActivity>,
    peer: Peer<RoleServer>,
    policy: PingPolicy,
    connection: Arc<dyn ClientConnection>,
) {
    let mut unanswered = 0;
    // When the client was last heard of before it stopped responding.
    let mut silent_since = None;
    loop {
        let Some(time_left) = activity.upgrade().map(|it| it.time_left(policy.interval)) else {
            return;
        };
        if !time_left.is_zero() {
            sleep(time_left).await;
            continue;
        }
        let last = activity.upgrade().map(|activity| activity.last());
        if !connection.is_open() || silent_since.is_some() && silent_since == last {
            sleep(policy.interval).await;
            continue;
        }
        // Boxed, because most of the time a client is not being pinged.
        match Box::pin(ping(&peer, policy.timeout)).await {
            Ok(()) => unanswered = 0,
            Err(PingError::Closed) => return,
            Err(PingError::NoResponse) => unanswered += 1,
        }
        if let Some(activity) = activity.upgrade().filter(|_| unanswered == 0) {
            activity.record();
        }
        silent_since = None;
        if unanswered >= MAX_UNANSWERED {
            tracing::warn!("the client does not respond to pings");
            unanswered = 0;
            silent_since = last;
            connection.close();
        }
    }
}

enum PingError {
    NoResponse,
    Closed,
}

/// Pings a client. An error in response shows that it is alive.
async fn ping(peer: &Peer<RoleServer>, limit: Duration) -> Result<(), PingError> {
    let request = ServerRequest::PingRequest(PingRequest::default());
    let options = PeerRequestOptions::no_options();
    let sent = peer.send_cancellable_request(request, options).await;
    let mut handle = sent.map_err(|_| PingError::Closed)?;
    match timeout(limit, &mut handle.rx).await {
        Ok(Ok(Ok(_) | Err(ServiceError::McpError(_) | ServiceError::UnexpectedResponse))) => Ok(()),
        Ok(_) => Err(PingError::Closed),
        Err(_) => {
            // A closed connection is not an error here.
            let _ = handle.cancel(Some("no response in time".to_owned())).await;
            Err(PingError::NoResponse)
        }
    }
}

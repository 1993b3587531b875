//! Sessions of protocol versions with a handshake: ownership, lifetime and limits.
//!
//! rmcp runs the sessions. It knows neither owners nor limits, and its own timeout would end a session
//! during a long call. If several servers share a store, any of them can continue a session: its
//! `initialize` parameters are stored and replayed to rmcp on the next server that the client contacts.

mod shared;
mod table;

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};

use futures_util::{Stream, StreamExt};
use http::request::Parts;
use rmcp::model::{
    ClientJsonRpcMessage, GetExtensions, JsonRpcMessage, ProtocolVersion, ServerJsonRpcMessage,
    ServerResult,
};
use rmcp::transport::streamable_http_server::SessionManager;
use rmcp::transport::streamable_http_server::session::RestoreOutcome;
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionManager, LocalSessionManagerError,
};
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionId};

use super::auth::Authentication;
use super::config::HttpLimits;
use super::fair_slots::Activity;
use super::memory;
use super::replay_buffer::ReplayBuffer;
use super::session_store::SharedSessionStore;
use super::shared_replay::SharedReplay;
use super::standalone_stream::StandaloneStream;
use crate::mcp::ClientConnection;
use crate::transport::compat;
use exa_mcp_accounts::Requester;
use exa_mcp_model::{Identity, lock};
use exa_mcp_store::Store;
pub(super) use shared::SessionDelta;
use table::{Session, SessionTable};

/// The minimum interval between sweeps for idle sessions.
const MIN_SWEEP_INTERVAL: Duration = Duration::from_millis(100);

/// The maximum interval between sweeps.
const MAX_SWEEP_INTERVAL: Duration = Duration::from_secs(2);

/// The idle limit for anonymous sessions while there are many of them.
const ANONYMOUS_IDLE: Duration = Duration::from_secs(10);

/// The fraction of all sessions that may be idle and anonymous: one eightieth.
const IDLE_ANONYMOUS_FRACTION: usize = 80;

/// After this many closed sessions between two sweeps, the next few sweeps release memory.
const MANY_CLOSED: usize = 50;
const MEMORY_ROUNDS: usize = 10;
const MEMORY_PAUSE: Duration = Duration::from_millis(1_100);

/// The sessions of a server.
pub(crate) struct Sessions {
    inner: LocalSessionManager,
    table: Mutex<SessionTable>,
    limits: HttpLimits,
    /// The number of sessions closed since the last sweep.
    closed: AtomicUsize,
    /// The session store, if it is shared with other servers.
    store: Option<SharedSessionStore>,
    /// Streams that clients can resume.
    pub(super) replay: Arc<ReplayBuffer>,
    /// Streams of other servers.
    pub(super) shared_replay: Option<SharedReplay>,
    /// Serializes restoring: rmcp must not start the same session twice.
    pub(super) restore_lock: tokio::sync::Mutex<()>,
}

/// The limit that prevents another session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SessionLimit {
    /// All sessions of the owner are active.
    Owner,
    /// All anonymous sessions of the address are active.
    Address,
    /// All sessions of the server are active.
    Total,
}

/// The reason that a request cannot use a session.
pub(super) enum SessionError {
    /// There is no such session, or it belongs to another client.
    NotFound,
    /// No further session fits on this server.
    LimitReached(SessionLimit),
    /// The shared session store failed.
    StoreUnavailable,
}

/// Keeps a session alive while a request or stream is open.
pub(super) struct SessionGuard {
    sessions: Arc<Sessions>,
    id: SessionId,
}

impl SessionGuard {
    /// Returns whether rmcp runs the session.
    pub(super) async fn is_running(&self) -> bool {
        self.sessions.has_session(&self.id).await.unwrap_or(false)
    }
}

impl Drop for SessionGuard {
    fn drop(&mut self) {
        if let Some(session) = self.sessions.table().get_mut(&self.id) {
            session.open_count = session.open_count.saturating_sub(1);
            session.last_used = Instant::now();
        }
    }
}

impl Sessions {
    /// Creates an empty set of sessions.
    pub(crate) fn new(limits: HttpLimits, store: &Arc<dyn Store>) -> Self {
        let mut inner = LocalSessionManager::default();
        // A silent call of an hour must not end the session. The sweeper handles idle sessions.
        inner.session_config.keep_alive = None;
        // The replay buffer assigns event ids and sends priming events.
        inner.session_config.sse_retry = None;
        Self {
            inner,
            table: Mutex::default(),
            limits,
            closed: AtomicUsize::new(0),
            store: SharedSessionStore::new(store, limits),
            replay: ReplayBuffer::new(),
            shared_replay: SharedReplay::new(store),
            restore_lock: tokio::sync::Mutex::default(),
        }
    }

    fn table(&self) -> MutexGuard<'_, SessionTable> {
        lock(&self.table)
    }

    /// Returns the number of sessions.
    pub(super) fn count(&self) -> usize {
        self.table().len()
    }

    /// Returns the owner of each session.
    pub(super) fn owners(&self) -> Vec<Identity> {
        let table = self.table();
        table
            .iter()
            .map(|(_, session)| session.owner.clone())
            .collect()
    }

    /// Admits a request to a session of its owner. An anonymous request takes the identity of the session.
    pub(super) async fn admit(
        self: &Arc<Self>,
        id: &str,
        auth: &mut Authentication,
    ) -> Result<(SessionGuard, SessionDelta), SessionError> {
        let mut delta = SessionDelta::default();
        if let Some(store) = &self.store {
            delta = self.refresh(store, id, &auth.requester).await?;
        }
        let guard = self.open_session(id, auth).ok_or(SessionError::NotFound)?;
        delta.needs_start = !self.runs_here(id);
        delta.needs_initialized = self.awaits_initialized(id);
        Ok((guard, delta))
    }

    fn open_session(self: &Arc<Self>, id: &str, auth: &mut Authentication) -> Option<SessionGuard> {
        let id = SessionId::from(id);
        let mut table = self.table();
        let session = table.get_mut(&id)?;
        if auth.is_anonymous && session.owner.is_anonymous() {
            auth.requester.owner = session.owner.clone();
        }
        if auth.requester.owner != session.owner {
            return None;
        }
        session.open_count += 1;
        if auth.requester.guest_address.is_none() {
            table.mark_verified(&id);
        }
        drop(table);
        let sessions = Arc::clone(self);
        Some(SessionGuard { sessions, id })
    }

    /// Returns the owner of a session.
    pub(super) fn owner(&self, id: &str) -> Option<Identity> {
        Some(self.table().get(id)?.owner.clone())
    }

    /// Returns the negotiated version of a session.
    pub(super) fn version(&self, id: &str) -> Option<ProtocolVersion> {
        Some(self.table().get(id)?.version.clone())
    }

    /// Returns whether the client of a session accepts priming events. Older clients take the empty data
    /// for invalid JSON.
    pub(super) fn reads_priming(&self, id: &str) -> bool {
        let version = self.version(id);
        version.is_some_and(|version| version.as_str() >= ProtocolVersion::V_2025_11_25.as_str())
    }

    /// Sends a request to a session. Returns the events as rmcp produces them.
    pub(super) async fn open_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<
        impl Stream<Item = ServerSseMessage> + Send + Sync + 'static,
        LocalSessionManagerError,
    > {
        self.inner.create_stream(id, message).await
    }

    /// Returns the standalone stream of a session.
    pub(super) async fn standalone(
        &self,
        id: &SessionId,
    ) -> Result<Arc<StandaloneStream>, LocalSessionManagerError> {
        let (stream, log) = self.replay.standalone(id, self.reads_priming(id));
        let start = async {
            let messages = self.inner.create_standalone_stream(id).await?;
            Ok(StandaloneStream::start(log, Box::pin(messages)))
        };
        stream.get_or_try_init(|| start).await.cloned()
    }

    /// Closes sessions until this requester may start another.
    pub(super) async fn ensure_capacity(&self, requester: &Requester) -> Result<(), SessionLimit> {
        loop {
            let next = self.table().next_eviction(requester, &self.limits)?;
            let Some(next) = next else {
                return Ok(());
            };
            let _ = self.close_session(&next).await;
        }
    }

    /// Returns the activity of a session.
    pub(super) fn activity(&self, id: &str) -> Option<Arc<Activity>> {
        Some(Arc::clone(&self.table().get(id)?.activity))
    }

    /// Closes idle sessions. Never returns.
    pub(super) async fn sweep(self: Arc<Self>) {
        let idle = self.limits.session_idle;
        let max_anonymous = self.limits.sessions / IDLE_ANONYMOUS_FRACTION;
        let (pause, renewal) = (
            (idle / 4).clamp(MIN_SWEEP_INTERVAL, MAX_SWEEP_INTERVAL),
            idle / 4,
        );
        let mut orphans = HashSet::new();
        let mut renewed = Instant::now();
        let mut memory_rounds = 0;
        loop {
            let is_releasing = memory_rounds > 0;
            tokio::time::sleep(if is_releasing {
                pause.min(MEMORY_PAUSE)
            } else {
                pause
            })
            .await;
            let expired = self.table().expired(idle, ANONYMOUS_IDLE, max_anonymous);
            for id in expired {
                tracing::info!("closed an idle session");
                let _ = self.close_session(&id).await;
            }
            // A request may have started while its session was closed.
            let live_ids: HashSet<SessionId> =
                self.table().iter().map(|(id, _)| id.clone()).collect();
            self.replay.retain(|id| live_ids.contains(id));
            orphans = self.close_orphans(orphans).await;
            if self.closed.swap(0, Ordering::Relaxed) >= MANY_CLOSED {
                memory_rounds = MEMORY_ROUNDS;
            }
            if memory_rounds > 0 {
                memory_rounds -= 1;
                memory::release_unused().await;
            }
            if renewed.elapsed() >= renewal {
                renewed = Instant::now();
                self.renew_open().await;
            }
        }
    }

    /// Closes sessions that rmcp runs although their clients disconnected before `initialize` completed.
    /// Returns sessions that may still be initializing.
    async fn close_orphans(&self, before: HashSet<SessionId>) -> HashSet<SessionId> {
        let running: Vec<SessionId> = self.inner.sessions.read().await.keys().cloned().collect();
        let unknown = |id: &SessionId| self.table().get(id).is_none();
        let orphans: HashSet<SessionId> = running.into_iter().filter(unknown).collect();
        for id in orphans.intersection(&before) {
            tracing::info!("closed a session without a client");
            self.closed.fetch_add(1, Ordering::Relaxed);
            let _ = self.inner.close_session(id).await;
        }
        orphans.difference(&before).cloned().collect()
    }

    /// Closes all sessions.
    pub(super) async fn close_all(&self) {
        let ids: Vec<SessionId> = self.inner.sessions.read().await.keys().cloned().collect();
        for id in ids {
            let _ = self.close_session(&id).await;
        }
    }

    /// Registers the owner of a new session before its client learns the session id.
    fn register(&self, id: &SessionId, requester: Requester, response: &ServerJsonRpcMessage) {
        let JsonRpcMessage::Response(response) = response else {
            return;
        };
        let ServerResult::InitializeResult(result) = &response.result else {
            return;
        };
        let version = result.protocol_version.clone();
        let session = Session::new(requester.owner, version, requester.guest_address);
        // A session from another server is already registered.
        self.table().insert(id.clone(), session);
    }
}

/// The standalone stream of a session.
pub(super) struct SessionStream {
    sessions: Weak<Sessions>,
    id: SessionId,
}

impl SessionStream {
    /// Returns the stream of a session. It may be at another server if there are several, so that nothing is known
    /// about it here.
    pub(super) fn new(sessions: &Arc<Sessions>, id: &str) -> Option<Self> {
        (!sessions.are_shared()).then(|| Self {
            sessions: Arc::downgrade(sessions),
            id: SessionId::from(id),
        })
    }

    fn stream(&self) -> Option<Arc<StandaloneStream>> {
        self.sessions.upgrade()?.replay.open_standalone(&self.id)
    }
}

impl ClientConnection for SessionStream {
    fn is_open(&self) -> bool {
        self.stream().is_some_and(|stream| stream.is_open())
    }

    fn close(&self) {
        if let Some(stream) = self.stream() {
            stream.close();
        }
    }
}

/// Removes rmcp's event ids, which are not unique within a session.
fn without_event_ids<S>(events: S) -> impl Stream<Item = ServerSseMessage> + use<S>
where
    S: Stream<Item = ServerSseMessage>,
{
    events.map(|mut event| {
        event.event_id = None;
        event
    })
}

/// Returns the sender of a request.
fn requester(message: &ClientJsonRpcMessage) -> Option<Requester> {
    let JsonRpcMessage::Request(request) = message else {
        return None;
    };
    let parts = request.request.extensions().get::<Parts>()?;
    parts.extensions.get::<Requester>().cloned()
}

/// Converts the response to `initialize` for protocol versions with a handshake.
fn compatible_initialize_response(response: ServerJsonRpcMessage) -> ServerJsonRpcMessage {
    match response {
        JsonRpcMessage::Response(mut response) => {
            if let ServerResult::InitializeResult(result) = response.result {
                response.result = compat::initialize_result(result);
            }
            JsonRpcMessage::Response(response)
        }
        other => other,
    }
}

impl SessionManager for Sessions {
    type Error = LocalSessionManagerError;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        self.inner.create_session().await
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        let requester = requester(&message);
        let response = self.inner.initialize_session(id, message).await?;
        if let Some(requester) = requester {
            self.register(id, requester, &response);
        }
        Ok(compatible_initialize_response(response))
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        self.inner.has_session(id).await
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        self.table().remove(id);
        self.replay.remove_session(id);
        self.closed.fetch_add(1, Ordering::Relaxed);
        self.inner.close_session(id).await
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        Ok(without_event_ids(self.open_stream(id, message).await?))
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<(), Self::Error> {
        self.inner.accept_message(id, message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        Ok(without_event_ids(
            self.inner.create_standalone_stream(id).await?,
        ))
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        Ok(without_event_ids(
            self.inner.resume(id, last_event_id).await?,
        ))
    }

    async fn restore_session(
        &self,
        id: SessionId,
    ) -> Result<RestoreOutcome<Self::Transport>, Self::Error> {
        self.inner.restore_session(id).await
    }
}

//! Sessions of the older eras: whose each is, how long it lives, how many there are.
//!
//! rmcp runs them. It neither knows to whom one belongs nor how many there may be, and it would end one
//! in the middle of a long call. Where servers share a store, a session goes on at any of them: its
//! introduction is kept there and played again to rmcp at the server to which the client comes next.

mod shared;
mod table;

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
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

use super::config::HttpLimits;
use super::fair_places::Activity;
use super::gate::Entry;
use super::kept_sessions::KeptSessions;
use super::memory;
use super::replay_buffer::ReplayBuffer;
use super::shared_replay::SharedReplay;
use super::standalone_stream::StandaloneStream;
use crate::transport::shims;
use exa_mcp_accounts::Requester;
use exa_mcp_model::{Identity, lock};
use exa_mcp_store::Store;
pub(super) use shared::Behind;
use table::{Session, SessionTable};

/// The least time between two looks for sessions that nobody uses.
const SHORTEST_LOOK: Duration = Duration::from_millis(100);

/// The longest time between two looks.
const LONGEST_LOOK: Duration = Duration::from_secs(2);

/// How long a guest's session may be unused while there are many of them.
const GUEST_IDLE: Duration = Duration::from_secs(10);

/// The part of all sessions that guests may leave unused.
const IDLE_GUESTS_PART: usize = 40;

/// After so many ends of sessions between two looks, memory is given back at the next few.
const MANY_ENDS: usize = 50;
const MEMORY_ROUNDS: usize = 10;
const MEMORY_PAUSE: Duration = Duration::from_millis(1_100);

/// The sessions of a server.
pub(crate) struct Sessions {
    inner: LocalSessionManager,
    known: Mutex<SessionTable>,
    limits: HttpLimits,
    /// Sessions that have ended since the last look.
    ended: AtomicUsize,
    /// Sessions that other servers know, too.
    kept: Option<KeptSessions>,
    /// Streams that clients may come back to.
    pub(super) replay: Arc<ReplayBuffer>,
    /// Streams of other servers.
    pub(super) shared_replay: Option<SharedReplay>,
    /// One after the other: rmcp must not be told twice to begin the same session.
    pub(super) restoring: tokio::sync::Mutex<()>,
}

/// There is no room for another session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoRoom {
    /// The owner has too many that are in use.
    OfOwner,
    /// The guests of the address have too many that are in use.
    OfAddress,
    /// There are too many.
    AtAll,
}

/// Why a request is not let into a session.
pub(super) enum NotAdmitted {
    /// There is none of this name, or not for this client.
    Unknown,
    /// There is no room for another one here.
    NoRoom(NoRoom),
    /// The store in which it may be does not answer.
    Unavailable,
}

/// Keeps a session alive while something of it is open.
pub(super) struct Held {
    sessions: Arc<Sessions>,
    id: SessionId,
}

impl Held {
    /// Whether rmcp runs the session.
    pub(super) async fn is_running(&self) -> bool {
        self.sessions.has_session(&self.id).await.unwrap_or(false)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(session) = self.sessions.known().get_mut(&self.id) {
            session.open = session.open.saturating_sub(1);
            session.used = Instant::now();
        }
    }
}

impl Sessions {
    /// No sessions yet.
    pub(crate) fn new(limits: HttpLimits, store: &Arc<dyn Store>) -> Self {
        let mut inner = LocalSessionManager::default();
        // A silent call of an hour is no reason to end a session; we look ourselves.
        inner.session_config.keep_alive = None;
        // The replay buffer gives events their ids, and primes clients.
        inner.session_config.sse_retry = None;
        Self {
            inner,
            known: Mutex::default(),
            limits,
            ended: AtomicUsize::new(0),
            kept: KeptSessions::new(store, limits),
            replay: ReplayBuffer::new(),
            shared_replay: SharedReplay::new(store),
            restoring: tokio::sync::Mutex::default(),
        }
    }

    fn known(&self) -> MutexGuard<'_, SessionTable> {
        lock(&self.known)
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.known().len()
    }

    /// To whom they belong, one by one.
    pub(super) fn owners(&self) -> Vec<Identity> {
        let known = self.known();
        known
            .iter()
            .map(|(_, session)| session.owner.clone())
            .collect()
    }

    /// Lets a request into a session, if it is its owner's. A guest is whoever began the session.
    pub(super) async fn admit(
        self: &Arc<Self>,
        id: &str,
        entry: &mut Entry,
    ) -> Result<(Held, Behind), NotAdmitted> {
        let mut behind = Behind::default();
        if let Some(kept) = &self.kept {
            behind = self.look(kept, id, &entry.requester).await?;
        }
        let held = self.enter(id, entry).ok_or(NotAdmitted::Unknown)?;
        behind.not_here = !self.runs_here(id);
        behind.not_ready = self.is_unready(id);
        Ok((held, behind))
    }

    fn enter(self: &Arc<Self>, id: &str, entry: &mut Entry) -> Option<Held> {
        let id = SessionId::from(id);
        let mut known = self.known();
        let session = known.get_mut(&id)?;
        if entry.guest && session.owner.is_anonymous() {
            entry.requester.owner = session.owner.clone();
        }
        if entry.requester.owner != session.owner {
            return None;
        }
        session.open += 1;
        if entry.requester.guest_address.is_none() {
            known.prove(&id);
        }
        drop(known);
        let sessions = Arc::clone(self);
        Some(Held { sessions, id })
    }

    /// To whom a session belongs.
    pub(super) fn owner(&self, id: &str) -> Option<Identity> {
        Some(self.known().get(id)?.owner.clone())
    }

    /// The version that was agreed on in a session.
    pub(super) fn version(&self, id: &str) -> Option<ProtocolVersion> {
        Some(self.known().get(id)?.version.clone())
    }

    /// Whether the client of a session reads events without a message, which tell it how to come back.
    /// Older ones take the empty data for broken JSON.
    pub(super) fn reads_priming(&self, id: &str) -> bool {
        let version = self.version(id);
        version.is_some_and(|version| version.as_str() >= ProtocolVersion::V_2025_11_25.as_str())
    }

    /// Hands a request to a session, whose events come as rmcp has them.
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

    /// What a session sends outside of any request.
    pub(super) async fn standalone(
        &self,
        id: &SessionId,
    ) -> Result<Arc<StandaloneStream>, LocalSessionManagerError> {
        let (stream, log) = self.replay.standalone(id, self.reads_priming(id));
        let begin = async {
            let messages = self.inner.create_standalone_stream(id).await?;
            Ok(StandaloneStream::start(log, Box::pin(messages)))
        };
        stream.get_or_try_init(|| begin).await.cloned()
    }

    /// Makes room for another session of this requester.
    pub(super) async fn make_room(&self, requester: &Requester) -> Result<(), NoRoom> {
        loop {
            let next = self.known().next_to_end(requester, &self.limits)?;
            let Some(next) = next else {
                return Ok(());
            };
            let _ = self.close_session(&next).await;
        }
    }

    /// What a session is used for.
    pub(super) fn activity(&self, id: &str) -> Option<Arc<Activity>> {
        Some(Arc::clone(&self.known().get(id)?.activity))
    }

    /// Ends sessions that nobody has used for long, for ever.
    pub(super) async fn sweep(self: Arc<Self>) {
        let idle = self.limits.session_idle;
        let most_guests = self.limits.sessions / IDLE_GUESTS_PART;
        let (pause, renewal) = ((idle / 4).clamp(SHORTEST_LOOK, LONGEST_LOOK), idle / 4);
        let mut strays = HashSet::new();
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
            let ended = self.known().expired(idle, GUEST_IDLE, most_guests);
            for id in ended {
                tracing::info!("a session that was not used has ended");
                let _ = self.close_session(&id).await;
            }
            // A request may have begun while its session ended.
            let living: HashSet<SessionId> =
                self.known().iter().map(|(id, _)| id.clone()).collect();
            self.replay.retain(|id| living.contains(id));
            strays = self.end_strays(strays).await;
            if self.ended.swap(0, Ordering::Relaxed) >= MANY_ENDS {
                memory_rounds = MEMORY_ROUNDS;
            }
            if memory_rounds > 0 {
                memory_rounds -= 1;
                memory::give_back().await;
            }
            if renewed.elapsed() >= renewal {
                renewed = Instant::now();
                self.renew_open().await;
            }
        }
    }

    /// Ends sessions that rmcp runs although their clients were gone before they could know of them; gives
    /// those that may be beginning.
    async fn end_strays(&self, before: HashSet<SessionId>) -> HashSet<SessionId> {
        let running: Vec<SessionId> = self.inner.sessions.read().await.keys().cloned().collect();
        let unknown = |id: &SessionId| self.known().get(id).is_none();
        let strays: HashSet<SessionId> = running.into_iter().filter(unknown).collect();
        for id in strays.intersection(&before) {
            tracing::info!("a session without a client has ended");
            self.ended.fetch_add(1, Ordering::Relaxed);
            let _ = self.inner.close_session(id).await;
        }
        strays.difference(&before).cloned().collect()
    }

    /// Ends all sessions.
    pub(super) async fn close_all(&self) {
        let ids: Vec<SessionId> = self.inner.sessions.read().await.keys().cloned().collect();
        for id in ids {
            let _ = self.close_session(&id).await;
        }
    }

    /// Notes to whom a session belongs that has just begun, before its client can know of it.
    fn note(&self, id: &SessionId, requester: Requester, answer: &ServerJsonRpcMessage) {
        let JsonRpcMessage::Response(response) = answer else {
            return;
        };
        let ServerResult::InitializeResult(result) = &response.result else {
            return;
        };
        let version = result.protocol_version.clone();
        let session = Session::new(requester.owner, version, requester.guest_address);
        // One that was begun at another server is known already.
        self.known().insert(id.clone(), session);
    }
}

/// Messages without the ids of rmcp, which are not unique in a session.
fn without_ids<S>(events: S) -> impl Stream<Item = ServerSseMessage> + use<S>
where
    S: Stream<Item = ServerSseMessage>,
{
    events.map(|mut event| {
        event.event_id = None;
        event
    })
}

/// Who makes a request.
fn requester(message: &ClientJsonRpcMessage) -> Option<Requester> {
    let JsonRpcMessage::Request(request) = message else {
        return None;
    };
    let parts = request.request.extensions().get::<Parts>()?;
    parts.extensions.get::<Requester>().cloned()
}

/// The answer to `initialize` in the words of the older eras.
fn in_their_words(answer: ServerJsonRpcMessage) -> ServerJsonRpcMessage {
    match answer {
        JsonRpcMessage::Response(mut response) => {
            if let ServerResult::InitializeResult(result) = response.result {
                response.result = shims::initialized(result);
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
        let answer = self.inner.initialize_session(id, message).await?;
        if let Some(requester) = requester {
            self.note(id, requester, &answer);
        }
        Ok(in_their_words(answer))
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        self.inner.has_session(id).await
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        self.known().remove(id);
        self.replay.forget(id);
        self.ended.fetch_add(1, Ordering::Relaxed);
        self.inner.close_session(id).await
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        Ok(without_ids(self.open_stream(id, message).await?))
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
        Ok(without_ids(self.inner.create_standalone_stream(id).await?))
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        Ok(without_ids(self.inner.resume(id, last_event_id).await?))
    }

    async fn restore_session(
        &self,
        id: SessionId,
    ) -> Result<RestoreOutcome<Self::Transport>, Self::Error> {
        self.inner.restore_session(id).await
    }
}

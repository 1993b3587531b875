//! Sessions of the older eras: whose each is, how long it lives, how many there are.
//!
//! rmcp runs them. It neither knows to whom one belongs nor how many there may be, and it would end one
//! in the middle of a long call. Where servers share a store, a session goes on at any of them: its
//! introduction is kept there and played again to rmcp at the server to which the client comes next.

mod shared;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::{Stream, StreamExt, future, stream};
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
use super::gate::Entry;
use super::kept_answers::KeptAnswers;
use super::kept_sessions::KeptSessions;
use crate::accounts::{Identity, Requester};
use crate::store::Store;
use crate::transport::shims;
pub(super) use shared::Behind;
use shared::Shared;

/// The least time between two looks for sessions that nobody uses.
const SHORTEST_LOOK: Duration = Duration::from_millis(100);

/// How long a client waits before it comes back to a stream that was cut.
const RETRY: Duration = Duration::from_secs(3);

/// The sessions of a server.
pub(crate) struct Sessions {
    inner: LocalSessionManager,
    known: Mutex<HashMap<SessionId, Session>>,
    limits: HttpLimits,
    /// Sessions that other servers know, too.
    kept: Option<KeptSessions>,
    /// Answers that clients may come back for.
    pub(super) answers: KeptAnswers,
    /// One after the other: rmcp must not be told twice to begin the same session.
    pub(super) restoring: tokio::sync::Mutex<()>,
}

struct Session {
    owner: Identity,
    version: ProtocolVersion,
    /// Requests and streams that are open.
    open: usize,
    used: Instant,
    shared: Option<Shared>,
}

/// There is no room for another session.
pub(super) struct NoRoom;

/// Why a request is not let into a session.
pub(super) enum NotAdmitted {
    /// There is none of this name, or not for this client.
    Unknown,
    /// There is no room for another one here.
    NoRoom,
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
        Self {
            inner,
            known: Mutex::default(),
            limits,
            kept: KeptSessions::new(store, limits),
            answers: KeptAnswers::default(),
            restoring: tokio::sync::Mutex::default(),
        }
    }

    fn known(&self) -> MutexGuard<'_, HashMap<SessionId, Session>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.known().len()
    }

    /// To whom they belong, one by one.
    pub(super) fn owners(&self) -> Vec<Identity> {
        let known = self.known();
        known
            .values()
            .map(|session| session.owner.clone())
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
            behind = self.look(kept, id, &entry.requester.owner).await?;
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
        if entry.guest && session.owner.is_guest() {
            entry.requester.owner = session.owner.clone();
        }
        if entry.requester.owner != session.owner {
            return None;
        }
        session.open += 1;
        drop(known);
        let sessions = Arc::clone(self);
        Some(Held { sessions, id })
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

    /// The rest of a stream that was cut, as rmcp has it.
    pub(super) async fn rest_of(
        &self,
        id: &SessionId,
        last_event: String,
    ) -> Result<
        impl Stream<Item = ServerSseMessage> + Send + Sync + 'static,
        LocalSessionManagerError,
    > {
        self.inner.resume(id, last_event).await
    }

    /// Makes room for another session of this owner; only their own make way.
    pub(super) async fn make_room(&self, owner: &Identity) -> Result<(), NoRoom> {
        let oldest = {
            let known = self.known();
            let own = known.iter().filter(|(_, session)| session.owner == *owner);
            let full = known.len() >= self.limits.sessions
                || own.clone().count() >= self.limits.sessions_per_owner;
            if !full {
                return Ok(());
            }
            let unused = own.filter(|(_, session)| session.open == 0);
            let oldest = unused.min_by_key(|(_, session)| session.used);
            oldest.map(|(id, _)| id.clone()).ok_or(NoRoom)?
        };
        let _ = self.close_session(&oldest).await;
        Ok(())
    }

    /// Ends sessions that nobody has used for long, for ever.
    pub(super) async fn sweep(self: Arc<Self>) {
        let idle = self.limits.session_idle;
        loop {
            tokio::time::sleep((idle / 4).max(SHORTEST_LOOK)).await;
            let now = Instant::now();
            let unused = |session: &Session| {
                session.open == 0 && now.saturating_duration_since(session.used) >= idle
            };
            let ended: Vec<SessionId> = {
                let known = self.known();
                let ended = known.iter().filter(|(_, session)| unused(session));
                ended.map(|(id, _)| id.clone()).collect()
            };
            for id in ended {
                tracing::info!("a session that was not used has ended");
                let _ = self.close_session(&id).await;
            }
            self.renew_open().await;
        }
    }

    /// Ends all sessions.
    pub(super) async fn close_all(&self) {
        let ids: Vec<SessionId> = self.inner.sessions.read().await.keys().cloned().collect();
        for id in ids {
            let _ = self.close_session(&id).await;
        }
    }

    /// Notes to whom a session belongs that has just begun, before its client can know of it.
    fn note(&self, id: &SessionId, owner: Identity, answer: &ServerJsonRpcMessage) {
        let JsonRpcMessage::Response(response) = answer else {
            return;
        };
        let ServerResult::InitializeResult(result) = &response.result else {
            return;
        };
        let session = Session {
            owner,
            version: result.protocol_version.clone(),
            open: 0,
            used: Instant::now(),
            shared: None,
        };
        // One that was begun at another server is known already.
        self.known().entry(id.clone()).or_insert(session);
    }
}

/// Events without those that a client cannot read.
fn readable<S>(events: S, reads_priming: bool) -> impl Stream<Item = ServerSseMessage> + use<S>
where
    S: Stream<Item = ServerSseMessage>,
{
    events.filter(move |event| future::ready(reads_priming || event.message.is_some()))
}

/// Who makes a request.
fn owner(message: &ClientJsonRpcMessage) -> Option<Identity> {
    let JsonRpcMessage::Request(request) = message else {
        return None;
    };
    let parts = request.request.extensions().get::<Parts>()?;
    let requester = parts.extensions.get::<Requester>()?;
    Some(requester.owner.clone())
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
        let owner = owner(&message);
        let answer = self.inner.initialize_session(id, message).await?;
        if let Some(owner) = owner {
            self.note(id, owner, &answer);
        }
        Ok(in_their_words(answer))
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        self.inner.has_session(id).await
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        self.known().remove(id);
        self.inner.close_session(id).await
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let events = self.open_stream(id, message).await?;
        Ok(readable(events, self.reads_priming(id)))
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
        let primes = self
            .reads_priming(id)
            .then(|| ServerSseMessage::priming("0", RETRY));
        let events = self.inner.create_standalone_stream(id).await?;
        Ok(stream::iter(primes).chain(events))
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let events = self.rest_of(id, last_event_id).await?;
        Ok(readable(events, self.reads_priming(id)))
    }

    async fn restore_session(
        &self,
        id: SessionId,
    ) -> Result<RestoreOutcome<Self::Transport>, Self::Error> {
        self.inner.restore_session(id).await
    }
}

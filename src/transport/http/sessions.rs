//! Sessions of the older eras: whose each is, how long it lives, how many there are.
//!
//! rmcp runs them. It neither knows to whom one belongs nor how many there may be, and it would end one
//! in the middle of a long call. Where servers share a store, a session goes on at any of them: its
//! introduction is kept there and played again to rmcp at the server to which the client comes next.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::Stream;
use http::request::Parts;
use rmcp::model::{
    ClientJsonRpcMessage, GetExtensions, InitializeRequestParams, JsonRpcMessage, ProtocolVersion,
    ServerJsonRpcMessage, ServerResult,
};
use rmcp::transport::streamable_http_server::SessionManager;
use rmcp::transport::streamable_http_server::session::RestoreOutcome;
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionManager, LocalSessionManagerError,
};
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionId};

use super::config::HttpLimits;
use super::gate::Entry;
use super::kept_sessions::{KeptSession, KeptSessions};
use crate::accounts::{Identity, Requester};
use crate::store::Store;
use crate::transport::shims;

/// The least time between two looks for sessions that nobody uses.
const SHORTEST_LOOK: Duration = Duration::from_millis(100);

/// How long it is believed that a session has not been ended at another server.
const BELIEVED: Duration = Duration::from_secs(1);

/// The sessions of a server.
pub(crate) struct Sessions {
    inner: LocalSessionManager,
    known: Mutex<HashMap<SessionId, Session>>,
    limits: HttpLimits,
    /// Sessions that other servers know, too.
    kept: Option<KeptSessions>,
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

/// What is known of a session in the shared store.
struct Shared {
    /// How the client introduced itself.
    introduction: InitializeRequestParams,
    /// It is in the store; it may not have been there to keep it.
    is_kept: bool,
    /// rmcp runs it here and has heard its introduction.
    runs_here: bool,
    seen: Instant,
    renewed: Instant,
    /// What the client wants to hear, as this server was told.
    level: Option<String>,
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

/// What rmcp must be told before a request of the session.
#[derive(Default)]
pub(super) struct Behind {
    /// The session is not running here.
    pub(super) not_here: bool,
    /// The level that the client chose at another server.
    pub(super) level: Option<String>,
}

/// What a server knows of a session.
enum Seen {
    Lately,
    Before { is_kept: bool, renew: bool },
    Never,
}

/// Keeps a session alive while something of it is open.
pub(super) struct Held {
    sessions: Arc<Sessions>,
    id: SessionId,
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
            restoring: tokio::sync::Mutex::default(),
        }
    }

    /// Whether other servers know the sessions.
    pub(crate) fn are_shared(&self) -> bool {
        self.kept.is_some()
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
            behind.level = self.look(kept, id, &entry.requester.owner).await?;
        }
        let held = self.enter(id, entry).ok_or(NotAdmitted::Unknown)?;
        behind.not_here = !self.runs_here(id);
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

    /// Whether rmcp runs it here and has heard its introduction.
    pub(super) fn runs_here(&self, id: &str) -> bool {
        let known = self.known();
        let shared = known.get(id).and_then(|session| session.shared.as_ref());
        shared.is_none_or(|shared| shared.runs_here)
    }

    /// Notes that it does.
    pub(super) fn has_begun(&self, id: &str) {
        let mut known = self.known();
        let session = known.get_mut(id);
        if let Some(shared) = session.and_then(|session| session.shared.as_mut()) {
            shared.runs_here = true;
        }
    }

    /// Looks for a session in the shared store; gives the level that this server does not know of.
    async fn look(
        &self,
        kept: &KeptSessions,
        id: &str,
        owner: &Identity,
    ) -> Result<Option<String>, NotAdmitted> {
        let (is_kept, renew) = match self.seen(kept, id) {
            Seen::Lately => return Ok(None),
            Seen::Never => return self.fetch(kept, id, owner).await,
            Seen::Before { is_kept, renew } => (is_kept, renew),
        };
        if !is_kept {
            self.keep(id).await;
            return Ok(None);
        }
        match kept.find(owner, id).await {
            Ok(Some(found)) => {
                if renew {
                    let _ = kept.renew(owner, id).await;
                }
                Ok(self.differs(id, found.level))
            }
            // It was ended at another server. Whoever is not its owner finds nothing either.
            Ok(None) => {
                let id = SessionId::from(id);
                let is_owner = |session: &Session| {
                    session.owner == *owner || session.owner.is_guest() && owner.is_guest()
                };
                if self.known().get(&id).is_some_and(is_owner) {
                    let _ = self.close_session(&id).await;
                }
                Err(NotAdmitted::Unknown)
            }
            // It goes on where it is known.
            Err(_) => Ok(None),
        }
    }

    /// What is known of a session; whoever asks is about to look.
    fn seen(&self, kept: &KeptSessions, id: &str) -> Seen {
        let mut known = self.known();
        let Some(session) = known.get_mut(id) else {
            return Seen::Never;
        };
        let Some(shared) = &mut session.shared else {
            return Seen::Lately;
        };
        let now = Instant::now();
        if now.saturating_duration_since(shared.seen) < BELIEVED {
            return Seen::Lately;
        }
        shared.seen = now;
        let renew = now.saturating_duration_since(shared.renewed) >= kept.renewal();
        if renew {
            shared.renewed = now;
        }
        let is_kept = shared.is_kept;
        Seen::Before { is_kept, renew }
    }

    /// The level, if it is another than this server knows of.
    fn differs(&self, id: &str, level: Option<String>) -> Option<String> {
        let mut known = self.known();
        let shared = known.get_mut(id)?.shared.as_mut()?;
        let differs = shared.level != level;
        shared.level.clone_from(&level);
        level.filter(|_| differs)
    }

    /// Takes a session over that was begun at another server.
    async fn fetch(
        &self,
        kept: &KeptSessions,
        id: &str,
        owner: &Identity,
    ) -> Result<Option<String>, NotAdmitted> {
        let found = kept.find(owner, id).await;
        let found = found.map_err(|error| {
            tracing::warn!(%error, "a session could not be looked for");
            NotAdmitted::Unavailable
        })?;
        let found = found.ok_or(NotAdmitted::Unknown)?;
        let owner = Identity::kept(&found.owner);
        let room = self.make_room(&owner).await;
        room.map_err(|NoRoom| NotAdmitted::NoRoom)?;
        let _ = kept.renew(&owner, id).await;
        let now = Instant::now();
        let session = Session {
            owner,
            version: found.version,
            open: 0,
            used: now,
            shared: Some(Shared {
                introduction: found.introduction,
                is_kept: true,
                runs_here: false,
                seen: now,
                renewed: now,
                level: found.level.clone(),
            }),
        };
        // Another request of the session may have been faster.
        self.known().entry(id.into()).or_insert(session);
        Ok(found.level)
    }

    /// Keeps a session for other servers; where that fails it is tried again when it is used.
    async fn keep(&self, id: &str) {
        let Some(kept) = &self.kept else {
            return;
        };
        let session = {
            let known = self.known();
            known.get(id).and_then(|session| {
                let shared = session.shared.as_ref()?;
                Some(KeptSession {
                    owner: session.owner.as_str().to_owned(),
                    version: session.version.clone(),
                    introduction: shared.introduction.clone(),
                    level: shared.level.clone(),
                })
            })
        };
        let Some(session) = session else {
            return;
        };
        match kept.add(id, &session).await {
            Ok(()) => {
                let mut known = self.known();
                let shared = known
                    .get_mut(id)
                    .and_then(|session| session.shared.as_mut());
                if let Some(shared) = shared {
                    shared.is_kept = true;
                    shared.renewed = Instant::now();
                }
            }
            Err(error) => tracing::warn!(%error, "a session is known to this server alone"),
        }
    }

    /// Notes how the client of a session introduced itself, and keeps that for other servers.
    pub(super) async fn share(&self, id: &str, introduction: InitializeRequestParams) {
        if let Some(session) = self.known().get_mut(id) {
            let now = Instant::now();
            session.shared = Some(Shared {
                introduction,
                is_kept: false,
                runs_here: true,
                seen: now,
                renewed: now,
                level: None,
            });
        }
        self.keep(id).await;
    }

    /// How the client of a session introduced itself at another server.
    pub(super) fn introduction(&self, id: &str) -> Option<InitializeRequestParams> {
        let known = self.known();
        let shared = known.get(id)?.shared.as_ref()?;
        Some(shared.introduction.clone())
    }

    /// Notes the level that a client chose.
    pub(super) async fn note_level(&self, id: &str, level: &str) {
        let owner = {
            let mut known = self.known();
            let Some(session) = known.get_mut(id) else {
                return;
            };
            if let Some(shared) = &mut session.shared {
                shared.level = Some(level.to_owned());
            }
            session.owner.clone()
        };
        if let Some(kept) = &self.kept {
            let change = |session: &mut KeptSession| session.level = Some(level.to_owned());
            let _ = kept.change(&owner, id, change).await;
        }
    }

    /// Ends a session at all servers.
    pub(super) async fn forget(&self, id: &str, owner: &Identity) -> Result<(), NotAdmitted> {
        let Some(kept) = &self.kept else {
            return Ok(());
        };
        let removed = kept.remove(owner, id).await;
        removed.map_err(|error| {
            tracing::warn!(%error, "a session could not be ended at other servers");
            NotAdmitted::Unavailable
        })
    }

    /// The version that was agreed on in a session.
    pub(super) fn version(&self, id: &str) -> Option<ProtocolVersion> {
        Some(self.known().get(id)?.version.clone())
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

    /// Sessions of which only a stream is open are used, too.
    async fn renew_open(&self) {
        let Some(kept) = &self.kept else {
            return;
        };
        let open: Vec<(SessionId, Identity)> = {
            let known = self.known();
            let open = known.iter().filter(|(_, session)| session.open > 0);
            open.map(|(id, session)| (id.clone(), session.owner.clone()))
                .collect()
        };
        for (id, owner) in open {
            let _ = kept.renew(&owner, &id).await;
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
        self.inner.create_stream(id, message).await
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
        self.inner.create_standalone_stream(id).await
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.inner.resume(id, last_event_id).await
    }
    async fn restore_session(
        &self,
        id: SessionId,
    ) -> Result<RestoreOutcome<Self::Transport>, Self::Error> {
        self.inner.restore_session(id).await
    }
}

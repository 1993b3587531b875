//! Sessions shared with other servers.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use rmcp::model::InitializeRequestParams;
use rmcp::transport::streamable_http_server::SessionManager;
use rmcp::transport::streamable_http_server::session::SessionId;
use tokio::time::timeout;

use super::super::session_store::{SharedSessionStore, StoredSession};
use super::{Session, SessionError, Sessions};
use exa_mcp_accounts::Requester;
use exa_mcp_model::Identity;

/// How long a session is assumed to be unchanged in the store.
const RECHECK_INTERVAL: Duration = Duration::from_secs(1);

/// How long a client waits for its subscription to be shared.
const STORE_TIMEOUT: Duration = Duration::from_secs(1);

/// The shared data of a session.
pub(super) struct SharedState {
    /// The parameters of `initialize`.
    initialize_params: InitializeRequestParams,
    /// Whether the session is in the store, which may have been unavailable.
    is_stored: bool,
    /// Whether rmcp runs the session here.
    runs_here: bool,
    checked_at: Instant,
    renewed_at: Instant,
    /// The log level, as known to this server.
    level: Option<String>,
    /// The subscriptions, as known to this server.
    subscriptions: BTreeSet<String>,
    /// Whether the client has listed resources, as known to this server.
    listed: bool,
    /// Whether rmcp has received `notifications/initialized`.
    is_ready: bool,
}

/// What rmcp lacks before the next request of a session.
#[derive(Default)]
pub(in super::super) struct SessionDelta {
    /// The session is not running here.
    pub(in super::super) needs_start: bool,
    /// The log level that the client set on another server.
    pub(in super::super) level: Option<String>,
    /// The session started here, but the client may have sent `notifications/initialized` to another
    /// server.
    pub(in super::super) needs_initialized: bool,
    /// The resources that the client subscribed to on another server.
    pub(in super::super) subscribe: Vec<String>,
    /// The resources that the client unsubscribed from on another server.
    pub(in super::super) unsubscribe: Vec<String>,
    /// The client listed resources on another server.
    pub(in super::super) list: bool,
}

impl SessionDelta {
    /// Returns whether rmcp lacks nothing.
    pub(in super::super) fn is_empty(&self) -> bool {
        let lists = self.subscribe.is_empty() && self.unsubscribe.is_empty();
        let needs = self.needs_start || self.needs_initialized || self.list;
        !needs && self.level.is_none() && lists
    }
}

/// How recently a session was checked.
enum Freshness {
    Fresh,
    Stale { is_stored: bool, renew: bool },
    Unknown,
}

impl Sessions {
    /// Returns whether the sessions are shared with other servers.
    pub(crate) fn are_shared(&self) -> bool {
        self.store.is_some()
    }

    /// Returns whether rmcp runs the session here.
    pub(in super::super) fn runs_here(&self, id: &str) -> bool {
        let table = self.table();
        let shared = table.get(id).and_then(|session| session.shared.as_ref());
        shared.is_none_or(|shared| shared.runs_here)
    }

    /// Records that rmcp runs the session here.
    pub(in super::super) fn mark_started(&self, id: &str) {
        let mut table = self.table();
        let session = table.get_mut(id);
        if let Some(shared) = session.and_then(|session| session.shared.as_mut()) {
            shared.runs_here = true;
        }
    }

    /// Returns whether rmcp runs the session here and still waits for `notifications/initialized`.
    pub(super) fn awaits_initialized(&self, id: &str) -> bool {
        let table = self.table();
        let shared = table.get(id).and_then(|session| session.shared.as_ref());
        shared.is_some_and(|shared| shared.runs_here && !shared.is_ready)
    }

    /// Records that rmcp has received `notifications/initialized`.
    pub(in super::super) fn mark_ready(&self, id: &str) {
        let mut table = self.table();
        let session = table.get_mut(id);
        if let Some(shared) = session.and_then(|session| session.shared.as_mut()) {
            shared.is_ready = true;
        }
    }

    /// Reloads a session from the shared store if necessary. Returns what rmcp lacks.
    pub(super) async fn refresh(
        &self,
        store: &SharedSessionStore,
        id: &str,
        requester: &Requester,
    ) -> Result<SessionDelta, SessionError> {
        let owner = &requester.owner;
        let (is_stored, renew) = match self.check_freshness(store, id) {
            Freshness::Fresh => return Ok(SessionDelta::default()),
            Freshness::Unknown => return self.load(store, id, requester).await,
            Freshness::Stale { is_stored, renew } => (is_stored, renew),
        };
        if !is_stored {
            self.persist(id).await;
            return Ok(SessionDelta::default());
        }
        match store.find(owner, id).await {
            Ok(Some(found)) => {
                if renew {
                    let _ = store.renew(owner, id).await;
                }
                Ok(self.diff(id, &found))
            }
            // It was ended on another server, or the requester is not its owner.
            Ok(None) => {
                let id = SessionId::from(id);
                let is_owner = |session: &Session| {
                    session.owner == *owner || session.owner.is_anonymous() && owner.is_anonymous()
                };
                if self.table().get(&id).is_some_and(is_owner) {
                    let _ = self.close_session(&id).await;
                }
                Err(SessionError::NotFound)
            }
            // The store is unavailable: continue with what is known here.
            Err(_) => Ok(SessionDelta::default()),
        }
    }

    /// Returns how recently a session was checked, and marks it as checked now.
    fn check_freshness(&self, store: &SharedSessionStore, id: &str) -> Freshness {
        let mut table = self.table();
        let Some(session) = table.get_mut(id) else {
            return Freshness::Unknown;
        };
        let Some(shared) = &mut session.shared else {
            return Freshness::Fresh;
        };
        let now = Instant::now();
        if now.saturating_duration_since(shared.checked_at) < RECHECK_INTERVAL {
            return Freshness::Fresh;
        }
        shared.checked_at = now;
        let renew = now.saturating_duration_since(shared.renewed_at) >= store.renewal();
        if renew {
            shared.renewed_at = now;
        }
        let is_stored = shared.is_stored;
        Freshness::Stale { is_stored, renew }
    }

    /// Updates the local data of a session. Returns what rmcp lacks.
    fn diff(&self, id: &str, found: &StoredSession) -> SessionDelta {
        let mut table = self.table();
        let session = table.get_mut(id);
        let Some(shared) = session.and_then(|session| session.shared.as_mut()) else {
            return SessionDelta::default();
        };
        let is_new = shared.level != found.level;
        shared.level.clone_from(&found.level);
        let before = std::mem::replace(&mut shared.subscriptions, found.subscriptions.clone());
        let list = found.listed && !shared.listed;
        shared.listed |= list;
        SessionDelta {
            level: found.level.clone().filter(|_| is_new),
            subscribe: found.subscriptions.difference(&before).cloned().collect(),
            unsubscribe: before.difference(&found.subscriptions).cloned().collect(),
            list,
            ..SessionDelta::default()
        }
    }

    /// Reloads a session after another server announced a change, if it runs here. Returns its owner and
    /// what rmcp lacks.
    pub(in super::super) async fn reload(&self, id: &str) -> Option<(Identity, SessionDelta)> {
        let owner = {
            let table = self.table();
            let session = table.get(id)?;
            let runs_here = session.shared.as_ref()?.runs_here;
            runs_here.then(|| session.owner.clone())?
        };
        let found = self.store.as_ref()?.find(&owner, id).await.ok()??;
        let delta = self.diff(id, &found);
        (!delta.is_empty()).then_some((owner, delta))
    }

    /// Returns the sessions with open requests or streams.
    pub(in super::super) fn active_ids(&self) -> Vec<SessionId> {
        let table = self.table();
        let open = table.iter().filter(|(_, session)| session.open_count > 0);
        open.map(|(id, _)| id.clone()).collect()
    }

    /// Loads a session that started on another server.
    async fn load(
        &self,
        store: &SharedSessionStore,
        id: &str,
        requester: &Requester,
    ) -> Result<SessionDelta, SessionError> {
        let found = store.find(&requester.owner, id).await;
        let found = found.map_err(|error| {
            tracing::warn!(%error, "failed to load a session from the shared store");
            SessionError::StoreUnavailable
        })?;
        let found = found.ok_or(SessionError::NotFound)?;
        let owner = Identity::from_stored(&found.owner);
        let guest_address = requester.guest_address;
        let requester = Requester {
            guest_address,
            ..Requester::new(owner.clone())
        };
        let capacity = self.ensure_capacity(&requester).await;
        capacity.map_err(SessionError::LimitReached)?;
        let _ = store.renew(&owner, id).await;
        let now = Instant::now();
        let mut session = Session::new(owner, found.version, guest_address);
        session.shared = Some(SharedState {
            initialize_params: found.initialize_params,
            is_stored: true,
            runs_here: false,
            checked_at: now,
            renewed_at: now,
            level: found.level.clone(),
            subscriptions: found.subscriptions.clone(),
            listed: found.listed,
            // rmcp replays the whole handshake.
            is_ready: true,
        });
        // A concurrent request may have inserted the session already.
        self.table().insert(id.into(), session);
        Ok(SessionDelta {
            level: found.level,
            subscribe: found.subscriptions.into_iter().collect(),
            list: found.listed,
            ..SessionDelta::default()
        })
    }

    /// Stores a session for other servers. On failure the next use tries again.
    async fn persist(&self, id: &str) {
        let Some(store) = &self.store else {
            return;
        };
        let session = {
            let table = self.table();
            table.get(id).and_then(|session| {
                let shared = session.shared.as_ref()?;
                Some(StoredSession {
                    owner: session.owner.as_str().to_owned(),
                    version: session.version.clone(),
                    initialize_params: shared.initialize_params.clone(),
                    level: shared.level.clone(),
                    subscriptions: shared.subscriptions.clone(),
                    listed: shared.listed,
                })
            })
        };
        let Some(session) = session else {
            return;
        };
        match store.add(id, &session).await {
            Ok(()) => {
                let mut table = self.table();
                let shared = table
                    .get_mut(id)
                    .and_then(|session| session.shared.as_mut());
                if let Some(shared) = shared {
                    shared.is_stored = true;
                    shared.renewed_at = Instant::now();
                }
            }
            Err(error) => tracing::warn!(%error, "failed to share a session with other servers"),
        }
    }

    /// Records the `initialize` parameters of a new session and shares them with other servers.
    pub(in super::super) async fn share(
        &self,
        id: &str,
        initialize_params: InitializeRequestParams,
    ) {
        if let Some(session) = self.table().get_mut(id) {
            let now = Instant::now();
            session.shared = Some(SharedState {
                initialize_params,
                is_stored: false,
                runs_here: true,
                checked_at: now,
                renewed_at: now,
                level: None,
                subscriptions: BTreeSet::new(),
                listed: false,
                is_ready: false,
            });
        }
        self.persist(id).await;
    }

    /// Returns the `initialize` parameters of a session from another server.
    pub(in super::super) fn initialize_params(&self, id: &str) -> Option<InitializeRequestParams> {
        let table = self.table();
        let shared = table.get(id)?.shared.as_ref()?;
        Some(shared.initialize_params.clone())
    }

    /// Records the log level that a client set.
    pub(in super::super) async fn record_level(&self, id: &str, level: &str) {
        let owner = {
            let mut table = self.table();
            let Some(session) = table.get_mut(id) else {
                return;
            };
            if let Some(shared) = &mut session.shared {
                shared.level = Some(level.to_owned());
            }
            session.owner.clone()
        };
        if let Some(store) = &self.store {
            let change = |session: &mut StoredSession| session.level = Some(level.to_owned());
            let _ = store.change(&owner, id, change).await;
            store.announce_change(id).await;
        }
    }

    /// Records a subscription and shares it with other servers, one of which may hold the stream for
    /// notifications.
    pub(in super::super) async fn record_subscription(
        &self,
        id: &str,
        uri: &str,
        subscribed: bool,
    ) {
        let local = |shared: &mut SharedState| {
            if subscribed {
                shared.subscriptions.insert(uri.to_owned());
            } else {
                shared.subscriptions.remove(uri);
            }
        };
        let stored = |session: &mut StoredSession| session.set_subscription(uri, subscribed);
        self.record_interest(id, local, stored).await;
    }

    /// Records that a client has listed resources, and shares it with other servers.
    pub(in super::super) async fn record_listing(&self, id: &str) {
        let local = |shared: &mut SharedState| shared.listed = true;
        let stored = |session: &mut StoredSession| session.listed = true;
        self.record_interest(id, local, stored).await;
    }

    /// Records here and in the store what a client wants to be notified of.
    async fn record_interest(
        &self,
        id: &str,
        local: impl Fn(&mut SharedState),
        stored: impl Fn(&mut StoredSession),
    ) {
        let owner = {
            let mut table = self.table();
            let Some(session) = table.get_mut(id) else {
                return;
            };
            session.shared.as_mut().map(local);
            session.owner.clone()
        };
        let Some(store) = &self.store else {
            return;
        };
        match timeout(STORE_TIMEOUT, store.change(&owner, id, stored)).await {
            Ok(Ok(())) => drop(timeout(STORE_TIMEOUT, store.announce_change(id)).await),
            _ => tracing::warn!("failed to share a resource subscription with other servers"),
        }
    }

    /// Removes a session from the shared store.
    pub(in super::super) async fn remove_stored(
        &self,
        id: &str,
        owner: &Identity,
    ) -> Result<(), SessionError> {
        let Some(store) = &self.store else {
            return Ok(());
        };
        let removed = store.remove(owner, id).await;
        removed.map_err(|error| {
            tracing::warn!(%error, "failed to remove a session from the shared store");
            SessionError::StoreUnavailable
        })
    }

    /// Renews sessions that only have an open stream.
    pub(super) async fn renew_open(&self) {
        let Some(store) = &self.store else {
            return;
        };
        let open: Vec<(SessionId, Identity)> = {
            let table = self.table();
            let open = table.iter().filter(|(_, session)| session.open_count > 0);
            open.map(|(id, session)| (id.clone(), session.owner.clone()))
                .collect()
        };
        for (id, owner) in open {
            let _ = store.renew(&owner, &id).await;
        }
    }
}

//! Sessions that other servers know, too.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use rmcp::model::InitializeRequestParams;
use rmcp::transport::streamable_http_server::SessionManager;
use rmcp::transport::streamable_http_server::session::SessionId;
use tokio::time::timeout;

use super::super::kept_sessions::{KeptSession, KeptSessions};
use super::{NotAdmitted, Session, Sessions};
use exa_mcp_accounts::Requester;
use exa_mcp_model::Identity;

/// How long it is believed that a session has not been ended at another server.
const BELIEVED: Duration = Duration::from_secs(1);

/// How long a client waits until other servers know what it follows.
const PATIENCE: Duration = Duration::from_secs(1);

/// What is known of a session in the shared store.
pub(super) struct Shared {
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
    /// What the client follows, as this server was told.
    followed: BTreeSet<String>,
    /// rmcp has heard that the client is ready.
    is_ready: bool,
}

/// What rmcp must be told before a request of the session.
#[derive(Default)]
pub(in super::super) struct Behind {
    /// The session is not running here.
    pub(in super::super) not_here: bool,
    /// The level that the client chose at another server.
    pub(in super::super) level: Option<String>,
    /// The session began here, but the client may have said elsewhere that it is ready.
    pub(in super::super) not_ready: bool,
    /// The resources that the client began to follow at another server.
    pub(in super::super) follow: Vec<String>,
    /// Those that it follows no longer.
    pub(in super::super) leave: Vec<String>,
}

impl Behind {
    /// Whether there is nothing to tell.
    pub(in super::super) fn is_nothing(&self) -> bool {
        let lists = self.follow.is_empty() && self.leave.is_empty();
        !self.not_here && !self.not_ready && self.level.is_none() && lists
    }
}

/// What a server knows of a session.
enum Seen {
    Lately,
    Before { is_kept: bool, renew: bool },
    Never,
}

impl Sessions {
    /// Whether other servers know the sessions.
    pub(crate) fn are_shared(&self) -> bool {
        self.kept.is_some()
    }

    /// Whether rmcp runs it here and has heard its introduction.
    pub(in super::super) fn runs_here(&self, id: &str) -> bool {
        let known = self.known();
        let shared = known.get(id).and_then(|session| session.shared.as_ref());
        shared.is_none_or(|shared| shared.runs_here)
    }

    /// Notes that it does.
    pub(in super::super) fn has_begun(&self, id: &str) {
        let mut known = self.known();
        let session = known.get_mut(id);
        if let Some(shared) = session.and_then(|session| session.shared.as_mut()) {
            shared.runs_here = true;
        }
    }

    /// Whether rmcp runs it here and has not heard that the client is ready.
    pub(super) fn is_unready(&self, id: &str) -> bool {
        let known = self.known();
        let shared = known.get(id).and_then(|session| session.shared.as_ref());
        shared.is_some_and(|shared| shared.runs_here && !shared.is_ready)
    }

    /// Notes that it has.
    pub(in super::super) fn is_ready(&self, id: &str) {
        let mut known = self.known();
        let session = known.get_mut(id);
        if let Some(shared) = session.and_then(|session| session.shared.as_mut()) {
            shared.is_ready = true;
        }
    }

    /// Looks for a session in the shared store; gives what this server does not know of.
    pub(super) async fn look(
        &self,
        kept: &KeptSessions,
        id: &str,
        requester: &Requester,
    ) -> Result<Behind, NotAdmitted> {
        let owner = &requester.owner;
        let (is_kept, renew) = match self.seen(kept, id) {
            Seen::Lately => return Ok(Behind::default()),
            Seen::Never => return self.fetch(kept, id, requester).await,
            Seen::Before { is_kept, renew } => (is_kept, renew),
        };
        if !is_kept {
            self.keep(id).await;
            return Ok(Behind::default());
        }
        match kept.find(owner, id).await {
            Ok(Some(found)) => {
                if renew {
                    let _ = kept.renew(owner, id).await;
                }
                Ok(self.differs(id, &found))
            }
            // It was ended at another server. Whoever is not its owner finds nothing either.
            Ok(None) => {
                let id = SessionId::from(id);
                let is_owner = |session: &Session| {
                    session.owner == *owner || session.owner.is_anonymous() && owner.is_anonymous()
                };
                if self.known().get(&id).is_some_and(is_owner) {
                    let _ = self.close_session(&id).await;
                }
                Err(NotAdmitted::Unknown)
            }
            // It goes on where it is known.
            Err(_) => Ok(Behind::default()),
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

    /// What of a session is another than this server knows of; from now on it does.
    fn differs(&self, id: &str, found: &KeptSession) -> Behind {
        let mut known = self.known();
        let session = known.get_mut(id);
        let Some(shared) = session.and_then(|session| session.shared.as_mut()) else {
            return Behind::default();
        };
        let is_new = shared.level != found.level;
        shared.level.clone_from(&found.level);
        let before = std::mem::replace(&mut shared.followed, found.followed.clone());
        Behind {
            level: found.level.clone().filter(|_| is_new),
            follow: found.followed.difference(&before).cloned().collect(),
            leave: before.difference(&found.followed).cloned().collect(),
            ..Behind::default()
        }
    }

    /// Looks at a session of which another server says that it has changed, if it runs here; gives whose it
    /// is and what is new.
    pub(in super::super) async fn look_again(&self, id: &str) -> Option<(Identity, Behind)> {
        let owner = {
            let known = self.known();
            let session = known.get(id)?;
            let runs_here = session.shared.as_ref()?.runs_here;
            runs_here.then(|| session.owner.clone())?
        };
        let found = self.kept.as_ref()?.find(&owner, id).await.ok()??;
        let behind = self.differs(id, &found);
        (!behind.is_nothing()).then_some((owner, behind))
    }

    /// The sessions of which something is open here.
    pub(in super::super) fn open(&self) -> Vec<SessionId> {
        let known = self.known();
        let open = known.iter().filter(|(_, session)| session.open > 0);
        open.map(|(id, _)| id.clone()).collect()
    }

    /// Takes a session over that was begun at another server.
    async fn fetch(
        &self,
        kept: &KeptSessions,
        id: &str,
        requester: &Requester,
    ) -> Result<Behind, NotAdmitted> {
        let found = kept.find(&requester.owner, id).await;
        let found = found.map_err(|error| {
            tracing::warn!(%error, "a session could not be looked for");
            NotAdmitted::Unavailable
        })?;
        let found = found.ok_or(NotAdmitted::Unknown)?;
        let owner = Identity::from_stored(&found.owner);
        let guest_address = requester.guest_address;
        let requester = Requester {
            guest_address,
            ..Requester::new(owner.clone())
        };
        let room = self.make_room(&requester).await;
        room.map_err(NotAdmitted::NoRoom)?;
        let _ = kept.renew(&owner, id).await;
        let now = Instant::now();
        let mut session = Session::new(owner, found.version, guest_address);
        session.shared = Some(Shared {
            introduction: found.introduction,
            is_kept: true,
            runs_here: false,
            seen: now,
            renewed: now,
            level: found.level.clone(),
            followed: found.followed.clone(),
            // rmcp plays the whole introduction.
            is_ready: true,
        });
        // Another request of the session may have been faster.
        self.known().insert(id.into(), session);
        Ok(Behind {
            level: found.level,
            follow: found.followed.into_iter().collect(),
            ..Behind::default()
        })
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
                    followed: shared.followed.clone(),
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
    pub(in super::super) async fn share(&self, id: &str, introduction: InitializeRequestParams) {
        if let Some(session) = self.known().get_mut(id) {
            let now = Instant::now();
            session.shared = Some(Shared {
                introduction,
                is_kept: false,
                runs_here: true,
                seen: now,
                renewed: now,
                level: None,
                followed: BTreeSet::new(),
                is_ready: false,
            });
        }
        self.keep(id).await;
    }

    /// How the client of a session introduced itself at another server.
    pub(in super::super) fn introduction(&self, id: &str) -> Option<InitializeRequestParams> {
        let known = self.known();
        let shared = known.get(id)?.shared.as_ref()?;
        Some(shared.introduction.clone())
    }

    /// Notes the level that a client chose.
    pub(in super::super) async fn note_level(&self, id: &str, level: &str) {
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
            kept.tell(id).await;
        }
    }

    /// Notes that a client follows a resource, or no longer, and lets other servers know: one of them may have
    /// the stream on which it hears of changes.
    pub(in super::super) async fn note_followed(&self, id: &str, uri: &str, follows: bool) {
        let owner = {
            let mut known = self.known();
            let Some(session) = known.get_mut(id) else {
                return;
            };
            if let Some(shared) = &mut session.shared {
                match follows {
                    true => drop(shared.followed.insert(uri.to_owned())),
                    false => drop(shared.followed.remove(uri)),
                }
            }
            session.owner.clone()
        };
        let Some(kept) = &self.kept else {
            return;
        };
        let change = |session: &mut KeptSession| session.follow(uri, follows);
        match timeout(PATIENCE, kept.change(&owner, id, change)).await {
            Ok(Ok(())) => drop(timeout(PATIENCE, kept.tell(id)).await),
            _ => tracing::warn!("that a resource is followed is known to this server alone"),
        }
    }

    /// Ends a session at all servers.
    pub(in super::super) async fn forget(
        &self,
        id: &str,
        owner: &Identity,
    ) -> Result<(), NotAdmitted> {
        let Some(kept) = &self.kept else {
            return Ok(());
        };
        let removed = kept.remove(owner, id).await;
        removed.map_err(|error| {
            tracing::warn!(%error, "a session could not be ended at other servers");
            NotAdmitted::Unavailable
        })
    }

    /// Sessions of which only a stream is open are used, too.
    pub(super) async fn renew_open(&self) {
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
}

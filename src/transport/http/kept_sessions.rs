//! Sessions that go on at another server: what is needed for that, in the store that they share.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{InitializeRequestParams, ProtocolVersion};
use serde::{Deserialize, Serialize};

use super::config::HttpLimits;
use exa_mcp_model::Identity;
use exa_mcp_store::format::{self, DocumentFormat};
use exa_mcp_store::{
    Document, DocumentKey, DocumentQuery, ExpectedRevision, Store, StoreError, WriteOptions,
};

/// Where sessions are kept.
const SESSIONS: &str = "sessions";

/// To whom sessions belong of which nobody knows the owner before they are found.
const GUESTS: &str = "guests";

/// The most bytes of a session: how a client introduces itself is short.
const LARGEST: usize = 64 * 1024;

/// The most resources whose following other servers are told of, and the bytes of their addresses.
const MOST_FOLLOWED: usize = 200;
const MOST_BYTES_FOLLOWED: usize = 32 * 1024;

/// How often it is tried to write what someone else changes at the same time.
const TRIES: usize = 5;

/// What another server needs to go on with a session.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct KeptSession {
    #[serde(rename = "owner")]
    pub(super) owner: String,
    /// What was agreed on.
    #[serde(rename = "version")]
    pub(super) version: ProtocolVersion,
    /// How the client introduced itself.
    #[serde(rename = "introduction")]
    pub(super) introduction: InitializeRequestParams,
    /// The least that the client wants to hear of its calls.
    #[serde(rename = "level", default)]
    pub(super) level: Option<String>,
    /// The addresses of resources that the client follows.
    #[serde(
        rename = "followed",
        default,
        skip_serializing_if = "BTreeSet::is_empty"
    )]
    pub(super) followed: BTreeSet<String>,
}

impl DocumentFormat for KeptSession {
    const KIND: &'static str = "session";
}

impl KeptSession {
    /// Notes that a resource is followed, or no longer. What is too much is known to one server alone.
    pub(super) fn follow(&mut self, uri: &str, follows: bool) {
        let bytes: usize = self.followed.iter().map(String::len).sum();
        let has_room =
            self.followed.len() < MOST_FOLLOWED && bytes + uri.len() <= MOST_BYTES_FOLLOWED;
        match follows {
            true if has_room => drop(self.followed.insert(uri.to_owned())),
            true => {}
            false => drop(self.followed.remove(uri)),
        }
    }
}

/// What servers tell each other of a session: that it is another one now.
#[derive(Serialize, Deserialize)]
pub(super) struct Word {
    #[serde(rename = "session")]
    pub(super) session: String,
}

/// The sessions in a store that several servers share.
pub(super) struct KeptSessions {
    store: Arc<dyn Store>,
    limits: HttpLimits,
}

impl KeptSessions {
    /// Has all servers look at a session anew.
    pub(super) async fn tell(&self, id: &str) {
        let word = serde_json::to_string(&Word {
            session: id.to_owned(),
        })
        .unwrap_or_default();
        // Who does not hear of it looks when the session is used there.
        let _ = self.store.publish(vec![word]).await;
    }

    /// The sessions in a store, if it is one that others share.
    pub(super) fn new(store: &Arc<dyn Store>, limits: HttpLimits) -> Option<Self> {
        let store = Arc::clone(store);
        store.is_remote().then_some(Self { store, limits })
    }

    /// How long a session is kept after it was last renewed: somewhat longer than it may be unused,
    /// because it is not renewed with each use.
    fn life(&self) -> Duration {
        self.limits.session_idle.saturating_mul(2)
    }

    /// How often a session that is used is renewed.
    pub(super) fn renewal(&self) -> Duration {
        self.limits.session_idle / 2
    }

    /// Keeps a new session; the oldest ones of the same owner make way.
    pub(super) async fn add(&self, id: &str, session: &KeptSession) -> Result<(), StoreError> {
        let body = format::encode(session);
        if body.len() > LARGEST {
            let why = "the client introduces itself at too great length".to_owned();
            return Err(StoreError::Unavailable(why));
        }
        let owner = Identity::from_stored(&session.owner);
        let most = match owner.is_anonymous() {
            true => self.limits.sessions,
            false => self.limits.sessions_per_owner,
        };
        let rules = WriteOptions {
            time_to_live: Some(self.life()),
            max_documents: Some(most),
            expected: ExpectedRevision::Any,
        };
        for _ in 0..TRIES {
            let put = self.store.put(place(&owner, id), body.clone(), rules).await;
            match put {
                Err(StoreError::TooMany(_)) => self.remove_oldest(&owner, most).await?,
                other => return other.map(drop),
            }
        }
        Err(StoreError::TooMany(most))
    }

    async fn remove_oldest(&self, owner: &Identity, most: usize) -> Result<(), StoreError> {
        let query = DocumentQuery {
            owner: Some(shelf(owner)),
            collection: SESSIONS,
            before: None,
            limit: most,
        };
        if let Some(oldest) = self.store.list(query).await?.last() {
            self.remove(owner, &oldest.id).await?;
        }
        Ok(())
    }

    /// A session of this owner.
    pub(super) async fn find(
        &self,
        owner: &Identity,
        id: &str,
    ) -> Result<Option<KeptSession>, StoreError> {
        let document = self.store.get(place(owner, id)).await?;
        Ok(document.as_ref().and_then(read))
    }

    /// Keeps a session for longer, unless it has ended meanwhile.
    pub(super) async fn renew(&self, owner: &Identity, id: &str) -> Result<(), StoreError> {
        self.change(owner, id, |_| {}).await
    }

    /// Changes a session, unless it has ended meanwhile.
    pub(super) async fn change(
        &self,
        owner: &Identity,
        id: &str,
        change: impl Fn(&mut KeptSession),
    ) -> Result<(), StoreError> {
        for _ in 0..TRIES {
            let document = self.store.get(place(owner, id)).await?;
            let read = document.and_then(|document| Some((document.revision, read(&document)?)));
            let Some((revision, mut session)) = read else {
                return Ok(());
            };
            change(&mut session);
            let body = format::encode(&session);
            let rules = WriteOptions {
                time_to_live: Some(self.life()),
                max_documents: None,
                expected: ExpectedRevision::Exact(revision),
            };
            match self.store.put(place(owner, id), body, rules).await {
                Err(StoreError::Conflict) => {}
                other => return other.map(drop),
            }
        }
        Err(StoreError::Conflict)
    }

    /// Ends a session for all servers.
    pub(super) async fn remove(&self, owner: &Identity, id: &str) -> Result<(), StoreError> {
        self.store.delete(place(owner, id)).await.map(drop)
    }
}

fn read(document: &Document) -> Option<KeptSession> {
    format::decode(&document.body)
}

/// Only its owner finds a session. Guests are another one with each request; the session's name, which
/// nobody can guess, says who they are.
fn place(owner: &Identity, id: &str) -> DocumentKey {
    DocumentKey {
        owner: shelf(owner),
        collection: SESSIONS,
        id: id.to_owned(),
    }
}

pub(super) fn shelf(owner: &Identity) -> Identity {
    match owner.is_anonymous() {
        true => Identity::from_stored(GUESTS),
        false => owner.clone(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The format of sessions in stores, and of what servers tell each other about them. Whoever changes it
    /// breaks the stores of others: see docs/upgrading.md.
    #[test]
    fn the_format_of_a_kept_session_does_not_change() {
        let introduction = json!({"protocolVersion": "2025-11-25", "capabilities": {"roots": {}},
            "clientInfo": {"name": "c", "version": "1"}});
        let session = KeptSession {
            owner: "user:ann".to_owned(),
            version: ProtocolVersion::V_2025_06_18,
            introduction: serde_json::from_value(introduction).unwrap(),
            level: Some("info".to_owned()),
            followed: BTreeSet::from(["exa://x".to_owned()]),
        };
        let text = concat!(
            r#"{"v":1,"owner":"user:ann","version":"2025-06-18","introduction":{"#,
            r#""protocolVersion":"2025-11-25","capabilities":{"roots":{}},"clientInfo":{"name":"c","version":"1"}},"#,
            r#""level":"info","followed":["exa://x"]}"#,
        );
        assert_eq!(format::encode(&session), text);
        let before = text.replacen(r#""v":1,"#, "", 1);
        let read: KeptSession = format::decode(&before).unwrap();
        assert_eq!(format::encode(&read), text);
        let word = Word {
            session: "s".to_owned(),
        };
        assert_eq!(serde_json::to_string(&word).unwrap(), r#"{"session":"s"}"#);
    }
}

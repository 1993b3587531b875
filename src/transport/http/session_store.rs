//! Session data in the shared store, from which another server can continue a session.

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

/// The collection of sessions.
const SESSIONS: &str = "sessions";

/// The owner of all anonymous sessions, whose real owner is known only after the lookup.
const ANONYMOUS_OWNER: &str = "guests";

/// The maximum size of a stored session.
const MAX_SESSION_BYTES: usize = 64 * 1024;

/// The maximum number and total size of shared resource subscriptions.
const MAX_SUBSCRIPTIONS: usize = 200;
const MAX_SUBSCRIPTION_BYTES: usize = 32 * 1024;

/// The maximum number of attempts after conflicting writes.
const MAX_ATTEMPTS: usize = 5;

/// The data that another server needs to continue a session.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct StoredSession {
    pub(super) owner: String,
    /// The negotiated protocol version.
    pub(super) version: ProtocolVersion,
    /// The parameters of `initialize`.
    #[serde(rename = "introduction")]
    pub(super) initialize_params: InitializeRequestParams,
    /// The minimum log level that the client set.
    #[serde(default)]
    pub(super) level: Option<String>,
    /// The URIs of the resources that the client subscribed to.
    #[serde(
        rename = "followed",
        default,
        skip_serializing_if = "BTreeSet::is_empty"
    )]
    pub(super) subscriptions: BTreeSet<String>,
    /// Whether the client has listed resources.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) listed: bool,
}

impl DocumentFormat for StoredSession {
    const KIND: &'static str = "session";
}

impl StoredSession {
    /// Adds or removes a subscription. Subscriptions over the limit are not shared.
    pub(super) fn set_subscription(&mut self, uri: &str, subscribed: bool) {
        let bytes: usize = self.subscriptions.iter().map(String::len).sum();
        let fits = self.subscriptions.len() < MAX_SUBSCRIPTIONS
            && bytes + uri.len() <= MAX_SUBSCRIPTION_BYTES;
        if !subscribed {
            self.subscriptions.remove(uri);
        } else if fits {
            self.subscriptions.insert(uri.to_owned());
        }
    }
}

/// Tells other servers that a session has changed.
#[derive(Serialize, Deserialize)]
pub(super) struct SessionChanged {
    pub(super) session: String,
}

/// The sessions in a store shared by several servers.
pub(super) struct SharedSessionStore {
    store: Arc<dyn Store>,
    limits: HttpLimits,
}

impl SharedSessionStore {
    /// Tells all servers to reload a session.
    pub(super) async fn announce_change(&self, id: &str) {
        let message = serde_json::to_string(&SessionChanged {
            session: id.to_owned(),
        })
        .unwrap_or_default();
        // A server that misses the message reloads the session on its next use.
        let _ = self.store.publish(vec![message]).await;
    }

    /// Returns the sessions of a store, if it is shared.
    pub(super) fn new(store: &Arc<dyn Store>, limits: HttpLimits) -> Option<Self> {
        let store = Arc::clone(store);
        store.is_remote().then_some(Self { store, limits })
    }

    /// How long a session is stored after its last renewal. It exceeds the idle limit, because not every
    /// use renews the session.
    fn time_to_live(&self) -> Duration {
        self.limits.session_idle.saturating_mul(2)
    }

    /// How often an active session is renewed.
    pub(super) fn renewal(&self) -> Duration {
        self.limits.session_idle / 2
    }

    /// Stores a new session. Removes the oldest ones of the owner if there are too many.
    pub(super) async fn add(&self, id: &str, session: &StoredSession) -> Result<(), StoreError> {
        let body = format::encode(session);
        if body.len() > MAX_SESSION_BYTES {
            let reason = "the initialize parameters are too large".to_owned();
            return Err(StoreError::Unavailable(reason));
        }
        let owner = Identity::from_stored(&session.owner);
        let max = if owner.is_anonymous() {
            self.limits.sessions
        } else {
            self.limits.sessions_per_owner
        };
        let rules = WriteOptions {
            time_to_live: Some(self.time_to_live()),
            max_documents: Some(max),
            expected: ExpectedRevision::Any,
        };
        for _ in 0..MAX_ATTEMPTS {
            let put = self
                .store
                .put(document_key(&owner, id), body.clone(), rules)
                .await;
            match put {
                Err(StoreError::TooMany(_)) => self.remove_oldest(&owner, max).await?,
                other => return other.map(drop),
            }
        }
        Err(StoreError::TooMany(max))
    }

    async fn remove_oldest(&self, owner: &Identity, max: usize) -> Result<(), StoreError> {
        let query = DocumentQuery {
            owner: Some(storage_owner(owner)),
            collection: SESSIONS,
            before: None,
            limit: max,
        };
        if let Some(oldest) = self.store.list(query).await?.last() {
            self.remove(owner, &oldest.id).await?;
        }
        Ok(())
    }

    /// Returns a session of this owner.
    pub(super) async fn find(
        &self,
        owner: &Identity,
        id: &str,
    ) -> Result<Option<StoredSession>, StoreError> {
        let document = self.store.get(document_key(owner, id)).await?;
        Ok(document.as_ref().and_then(decode))
    }

    /// Extends the lifetime of a session, unless it has ended.
    pub(super) async fn renew(&self, owner: &Identity, id: &str) -> Result<(), StoreError> {
        self.change(owner, id, |_| {}).await
    }

    /// Updates a session, unless it has ended.
    pub(super) async fn change(
        &self,
        owner: &Identity,
        id: &str,
        change: impl Fn(&mut StoredSession),
    ) -> Result<(), StoreError> {
        for _ in 0..MAX_ATTEMPTS {
            let document = self.store.get(document_key(owner, id)).await?;
            let read = document.and_then(|document| Some((document.revision, decode(&document)?)));
            let Some((revision, mut session)) = read else {
                return Ok(());
            };
            change(&mut session);
            let body = format::encode(&session);
            let rules = WriteOptions {
                time_to_live: Some(self.time_to_live()),
                max_documents: None,
                expected: ExpectedRevision::Exact(revision),
            };
            match self.store.put(document_key(owner, id), body, rules).await {
                Err(StoreError::Conflict) => {}
                other => return other.map(drop),
            }
        }
        Err(StoreError::Conflict)
    }

    /// Removes a session for all servers.
    pub(super) async fn remove(&self, owner: &Identity, id: &str) -> Result<(), StoreError> {
        self.store.delete(document_key(owner, id)).await.map(drop)
    }
}

fn decode(document: &Document) -> Option<StoredSession> {
    format::decode(&document.body)
}

/// Only its owner finds a session. Anonymous clients have a new identity per request; the session id, which
/// cannot be guessed, identifies them.
fn document_key(owner: &Identity, id: &str) -> DocumentKey {
    DocumentKey {
        owner: storage_owner(owner),
        collection: SESSIONS,
        id: id.to_owned(),
    }
}

pub(super) fn storage_owner(owner: &Identity) -> Identity {
    if owner.is_anonymous() {
        Identity::from_stored(ANONYMOUS_OWNER)
    } else {
        owner.clone()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The format of stored sessions and of the messages between servers. Changes break existing stores:
    /// see docs/upgrading.md.
    #[test]
    fn the_format_of_a_stored_session_does_not_change() {
        let initialize_params = json!({"protocolVersion": "2025-11-25", "capabilities": {"roots": {}},
            "clientInfo": {"name": "c", "version": "1"}});
        let session = StoredSession {
            owner: "user:ann".to_owned(),
            version: ProtocolVersion::V_2025_06_18,
            initialize_params: serde_json::from_value(initialize_params).unwrap(),
            level: Some("info".to_owned()),
            subscriptions: BTreeSet::from(["exa://x".to_owned()]),
            listed: false,
        };
        let text = concat!(
            r#"{"v":1,"owner":"user:ann","version":"2025-06-18","introduction":{"#,
            r#""protocolVersion":"2025-11-25","capabilities":{"roots":{}},"clientInfo":{"name":"c","version":"1"}},"#,
            r#""level":"info","followed":["exa://x"]}"#,
        );
        assert_eq!(format::encode(&session), text);
        let before = text.replacen(r#""v":1,"#, "", 1);
        let read: StoredSession = format::decode(&before).unwrap();
        assert_eq!(format::encode(&read), text);
        let listed = text.replace("]}", r#"],"listed":true}"#);
        let read: StoredSession = format::decode(&listed).unwrap();
        assert!(read.listed);
        assert_eq!(format::encode(&read), listed);
        let message = SessionChanged {
            session: "s".to_owned(),
        };
        assert_eq!(
            serde_json::to_string(&message).unwrap(),
            r#"{"session":"s"}"#
        );
    }
}

//! The audit log: admin actions and denied requests.
//!
//! An admin action is stored before its request is answered. Denials are stored shortly after; those of one address,
//! reason and minute become one entry with a count, so that guessing does not fill the disk. Each kind has a maximum
//! number of entries, of which the newest stay, so denials never displace admin actions.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::Notify;

use super::now;
use exa_mcp_model::{Identity, lock};
use exa_mcp_store::format::{self, DocumentFormat};
use exa_mcp_store::{DocumentKey, DocumentQuery, Store, StoreError, WindowRequest, WriteOptions};

/// The collection of the entries.
const AUDIT: &str = "audit";

/// The maximum number of entries of a kind; fewer in a memory store.
const MAX_ENTRIES: u64 = 10_000;
const MAX_ENTRIES_IN_MEMORY: u64 = 1_000;

/// How many groups of denials are tracked; further addresses share one.
const MAX_GROUPS: usize = 500;

/// The minimum time between two writes of denials.
const WRITE_INTERVAL: Duration = Duration::from_secs(1);

const MINUTE: i64 = 60_000;

/// The length of the window that numbers the entries: effectively forever.
const FOREVER: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// A recorded action.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AuditEvent {
    /// When it happened, in milliseconds since 1970.
    pub at: i64,
    /// The id of the acting token.
    pub actor: Option<String>,
    /// The user of the acting token.
    #[serde(rename = "actorUser")]
    pub actor_user: Option<String>,
    /// The action, such as `token.create` or `denied.unknown`.
    pub action: String,
    /// The id of the affected token.
    pub target: Option<String>,
    /// Further details.
    pub detail: Option<Value>,
    /// The client address.
    pub address: Option<String>,
    /// How often it happened within the minute.
    pub count: u64,
}

impl DocumentFormat for AuditEvent {
    const KIND: &'static str = "audit entry";
}

/// An event with its position in the log.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditEntry {
    /// Increases from entry to entry.
    pub sequence: u64,
    /// The event.
    pub event: AuditEvent,
}

/// The audit log. Clones share everything.
#[derive(Clone)]
pub struct AuditLog(Arc<Inner>);

struct Inner {
    store: Arc<dyn Store>,
    denials: Mutex<HashMap<DenialKey, DenialGroup>>,
    has_denials: Notify,
    /// Held while writing, so that no entry is written twice.
    write_lock: tokio::sync::Mutex<()>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct DenialKey {
    minute: i64,
    address: String,
    action: &'static str,
    target: Option<String>,
}

struct DenialGroup {
    event: AuditEvent,
    /// The id in the store, once written.
    id: Option<String>,
    is_written: bool,
}

/// The kinds of entries, each with its own maximum.
#[derive(Clone, Copy)]
enum EntryKind {
    AdminAction,
    Denial,
}

impl AuditLog {
    /// Creates a log in a store. Must be called inside a runtime.
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        let inner = Arc::new(Inner {
            store,
            denials: Mutex::default(),
            has_denials: Notify::new(),
            write_lock: tokio::sync::Mutex::default(),
        });
        let audit = Self(inner);
        let writer = Arc::downgrade(&audit.0);
        tokio::spawn(async move {
            while let Some(inner) = writer.upgrade() {
                // Wake up now and then, to end when all other clones are dropped.
                let _ =
                    tokio::time::timeout(30 * WRITE_INTERVAL, inner.has_denials.notified()).await;
                AuditLog(inner).flush().await;
                tokio::time::sleep(WRITE_INTERVAL).await;
            }
        });
        audit
    }

    /// Stores an admin action.
    ///
    /// # Errors
    /// The store fails.
    pub async fn record(&self, event: AuditEvent) -> Result<(), StoreError> {
        let event = AuditEvent {
            at: now(),
            count: 1,
            ..event
        };
        tracing::info!(
            action = event.action,
            actor = event.actor,
            target = event.target,
            "admin"
        );
        let id = self.0.next_id(EntryKind::AdminAction).await?;
        self.0.put(id, &event).await
    }

    /// Records a denied request, which is stored shortly after.
    pub fn record_denial(
        &self,
        action: &'static str,
        address: &str,
        target: Option<&str>,
        detail: Option<Value>,
    ) {
        let at = now();
        let mut key = DenialKey {
            minute: at / MINUTE,
            address: address.to_owned(),
            action,
            target: target.map(str::to_owned),
        };
        let mut denials = lock(&self.0.denials);
        if denials.len() >= MAX_GROUPS && !denials.contains_key(&key) {
            key.address = "others".to_owned();
            key.target = None;
        }
        let group = denials.entry(key.clone()).or_insert_with(|| DenialGroup {
            event: AuditEvent {
                at,
                action: action.to_owned(),
                target: key.target,
                detail,
                address: Some(key.address),
                ..AuditEvent::default()
            },
            id: None,
            is_written: false,
        });
        group.event.count += 1;
        group.is_written = false;
        drop(denials);
        self.0.has_denials.notify_one();
    }

    /// Lists entries, newest first.
    ///
    /// # Errors
    /// The store fails.
    pub async fn entries(
        &self,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<AuditEntry>, StoreError> {
        self.flush().await;
        let query = DocumentQuery {
            owner: Some(Identity::server()),
            collection: AUDIT,
            before,
            limit,
        };
        let documents = self.0.store.list(query).await?;
        let entries = documents.into_iter().map(|document| AuditEntry {
            sequence: document.sequence,
            event: format::decode(&document.body).unwrap_or_default(),
        });
        Ok(entries.collect())
    }

    /// Writes the denials that are not stored yet. Those that cannot be written are retried later.
    pub async fn flush(&self) {
        let inner = &self.0;
        let _writing = inner.write_lock.lock().await;
        let unwritten: Vec<(DenialKey, AuditEvent, Option<String>)> = {
            let denials = lock(&inner.denials);
            let unwritten = denials.iter().filter(|(_, group)| !group.is_written);
            unwritten
                .map(|(key, group)| (key.clone(), group.event.clone(), group.id.clone()))
                .collect()
        };
        for (key, event, id) in unwritten {
            let id = match id {
                Some(id) => Ok(id),
                None => inner.next_id(EntryKind::Denial).await,
            };
            let written = match id {
                Ok(id) => inner.put(id.clone(), &event).await.map(|()| id),
                Err(error) => Err(error),
            };
            match written {
                Ok(id) => {
                    if let Some(group) = lock(&inner.denials).get_mut(&key) {
                        group.is_written = group.event.count == event.count;
                        group.id = Some(id);
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot store denials in the audit log; trying again");
                    break;
                }
            }
        }
        let minute = now() / MINUTE;
        let mut denials = lock(&inner.denials);
        denials.retain(|key, group| !group.is_written || key.minute >= minute);
    }
}

impl Inner {
    /// Returns the id of a new entry, and deletes the oldest of its kind if it is full.
    async fn next_id(&self, kind: EntryKind) -> Result<String, StoreError> {
        let kind = match kind {
            EntryKind::AdminAction => "deed",
            EntryKind::Denial => "denial",
        };
        // Numbered in the store, so that no two servers use the same id.
        let number = self.store.consume(WindowRequest {
            key: format!("audit:{kind}"),
            limit: u64::MAX,
            amount: 1,
            length: FOREVER,
        });
        let max = if self.store.is_shared() {
            MAX_ENTRIES
        } else {
            MAX_ENTRIES_IN_MEMORY
        };
        let id = format!("{kind}:{}", number.await?.used % max);
        self.store.delete(document_key(&id)).await?;
        Ok(id)
    }

    async fn put(&self, id: String, event: &AuditEvent) -> Result<(), StoreError> {
        let body = format::encode(event);
        let put = self
            .store
            .put(document_key(&id), body, WriteOptions::default());
        put.await.map(drop)
    }
}

fn document_key(id: &str) -> DocumentKey {
    DocumentKey {
        owner: Identity::server(),
        collection: AUDIT,
        id: id.to_owned(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;
    use exa_mcp_store::MemoryStore;

    fn audit() -> AuditLog {
        AuditLog::new(Arc::new(MemoryStore::default()))
    }

    fn event(action: &str) -> AuditEvent {
        AuditEvent {
            action: action.to_owned(),
            ..AuditEvent::default()
        }
    }

    #[tokio::test]
    async fn groups_denials_by_minute() {
        let audit = audit();
        for _ in 0..3 {
            audit.record_denial("denied.unknown", "10.0.0.1", None, None);
        }
        // The minute may change once during the test.
        let counts =
            |entries: &[AuditEntry]| entries.iter().map(|entry| entry.event.count).sum::<u64>();
        let entries = audit.entries(None, 10).await.unwrap();
        assert!(entries.len() <= 2 && counts(&entries) == 3, "{entries:?}");
        audit.record_denial("denied.unknown", "10.0.0.1", None, None);
        audit.record_denial("denied.unknown", "10.0.0.2", None, None);
        let entries = audit.entries(None, 10).await.unwrap();
        assert!(entries.len() <= 4 && counts(&entries) == 5, "{entries:?}");
    }

    #[tokio::test]
    async fn limits_memory_and_entries_for_many_addresses() {
        let audit = audit();
        audit.record(event("token.create")).await.unwrap();
        for n in 0..20_000 {
            audit.record_denial(
                "denied.unknown",
                &format!("10.0.{}.{}", n / 256, n % 256),
                None,
                None,
            );
            if n % 400 == 0 {
                audit.flush().await;
            }
        }
        assert!(lock(&audit.0.denials).len() <= 2 * MAX_GROUPS + 2);
        let entries = audit.entries(None, 5_000).await.unwrap();
        assert!(entries.len() <= 1_001);
        assert!(
            entries
                .iter()
                .any(|entry| entry.event.action == "token.create")
        );
    }

    #[tokio::test]
    async fn evicts_the_oldest_entries() {
        let audit = audit();
        for n in 0..1_005 {
            audit.record(event(&format!("action {n}"))).await.unwrap();
        }
        let entries = audit.entries(None, 5_000).await.unwrap();
        assert_eq!(entries.len(), 1_000);
        assert_eq!(entries[0].event.action, "action 1004");
        assert_eq!(entries[999].event.action, "action 5");
        let older = audit.entries(Some(entries[0].sequence), 1).await.unwrap();
        assert_eq!(older[0].event.action, "action 1003");
    }

    /// A change of this format breaks existing stores: see docs/upgrading.md.
    #[test]
    fn the_stored_format_is_stable() {
        let event = AuditEvent {
            at: 1,
            actor: Some("a".to_owned()),
            actor_user: Some("ann".to_owned()),
            action: "token.create".to_owned(),
            target: Some("t".to_owned()),
            detail: Some(serde_json::json!({"x": 1})),
            address: Some("10.0.0.1".to_owned()),
            count: 2,
        };
        let text = concat!(
            r#"{"v":1,"at":1,"actor":"a","actorUser":"ann","action":"token.create","target":"t","#,
            r#""detail":{"x":1},"address":"10.0.0.1","count":2}"#,
        );
        assert_eq!(format::encode(&event), text);
        let before = text.replacen(r#""v":1,"#, "", 1);
        assert_eq!(format::decode(&before), Some(event));
    }
}

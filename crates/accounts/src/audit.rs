//! Who did what to the server, and who was denied.
//!
//! What an admin does is kept before it is answered. Denials are kept soon after, those of one address
//! for one reason in one minute as one entry that counts them, so that guessing fills no disk. There is
//! room for so many entries of either kind, and the newest stay; no number of denials pushes out what an
//! admin did.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::Notify;

use super::now;
use exa_mcp_model::{Identity, lock};
use exa_mcp_store::format::{self, Format};
use exa_mcp_store::{Place, Query, Rules, Store, StoreError, Window};

/// Where entries are kept.
const AUDIT: &str = "audit";

/// How many entries of a kind there are at most; fewer where memory is all there is.
const MOST: u64 = 10_000;
const MOST_IN_MEMORY: u64 = 1_000;

/// How many kinds of denials are told apart in a minute; further addresses are one.
const MOST_GROUPS: usize = 500;

/// The least time between two writings of denials.
const PAUSE: Duration = Duration::from_secs(1);

const MINUTE: i64 = 60_000;

/// For longer than anybody counts entries.
const FOR_EVER: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// Something that happened.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Event {
    /// When, in milliseconds since 1970.
    #[serde(rename = "at")]
    pub at: i64,
    /// The id of the token with which it was done.
    #[serde(rename = "actor")]
    pub actor: Option<String>,
    /// Whose token that is.
    #[serde(rename = "actorUser")]
    pub actor_user: Option<String>,
    /// What was done, such as `token.create` or `denied.unknown`.
    #[serde(rename = "action")]
    pub action: String,
    /// The id of the token to which it was done.
    #[serde(rename = "target")]
    pub target: Option<String>,
    /// More about it.
    #[serde(rename = "detail")]
    pub detail: Option<Value>,
    /// Where it came from.
    #[serde(rename = "address")]
    pub address: Option<String>,
    /// How often it happened in that minute.
    #[serde(rename = "count")]
    pub count: u64,
}

impl Format for Event {
    const KIND: &'static str = "audit entry";
}

/// An entry, with its place among all.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Grows from entry to entry.
    pub number: u64,
    /// What happened.
    pub event: Event,
}

/// The log of what happened. Clones share everything.
#[derive(Clone)]
pub struct Audit(Arc<Inner>);

struct Inner {
    store: Arc<dyn Store>,
    denials: Mutex<HashMap<Key, Group>>,
    news: Notify,
    /// One writes at a time, so that an entry is not written twice.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    minute: i64,
    address: String,
    action: &'static str,
    target: Option<String>,
}

struct Group {
    event: Event,
    /// What it is called in the store, once it is there.
    id: Option<String>,
    is_written: bool,
}

/// The kinds of entries, which do not push each other out.
#[derive(Clone, Copy)]
enum Kind {
    Deed,
    Denial,
}

impl Audit {
    /// A log in a store. Must be called inside a runtime.
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        let inner = Arc::new(Inner {
            store,
            denials: Mutex::default(),
            news: Notify::new(),
            turn: tokio::sync::Mutex::default(),
        });
        let audit = Self(inner);
        let writer = Arc::downgrade(&audit.0);
        tokio::spawn(async move {
            while let Some(inner) = writer.upgrade() {
                // Not for ever: nobody may be left who has something to write.
                let _ = tokio::time::timeout(30 * PAUSE, inner.news.notified()).await;
                Audit(inner).flush().await;
                tokio::time::sleep(PAUSE).await;
            }
        });
        audit
    }

    /// Keeps what an admin did; when this returns, it is in the store.
    pub async fn note(&self, event: Event) -> Result<(), StoreError> {
        let event = Event {
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
        let id = self.0.place(Kind::Deed).await?;
        self.0.put(id, &event).await
    }

    /// Keeps that something was denied, before long.
    pub fn deny(
        &self,
        action: &'static str,
        address: &str,
        target: Option<&str>,
        detail: Option<Value>,
    ) {
        let at = now();
        let mut key = Key {
            minute: at / MINUTE,
            address: address.to_owned(),
            action,
            target: target.map(str::to_owned),
        };
        let mut denials = lock(&self.0.denials);
        if denials.len() >= MOST_GROUPS && !denials.contains_key(&key) {
            key.address = "others".to_owned();
            key.target = None;
        }
        let group = denials.entry(key.clone()).or_insert_with(|| Group {
            event: Event {
                at,
                action: action.to_owned(),
                target: key.target,
                detail,
                address: Some(key.address),
                ..Event::default()
            },
            id: None,
            is_written: false,
        });
        group.event.count += 1;
        group.is_written = false;
        drop(denials);
        self.0.news.notify_one();
    }

    /// Entries, the newest first.
    pub async fn entries(
        &self,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Entry>, StoreError> {
        self.flush().await;
        let query = Query {
            owner: Some(Identity::server()),
            collection: AUDIT,
            before,
            limit,
        };
        let documents = self.0.store.list(query).await?;
        let entries = documents.into_iter().map(|document| Entry {
            number: document.number,
            event: format::decode(&document.body).unwrap_or_default(),
        });
        Ok(entries.collect())
    }

    /// Writes the denials that are not in the store yet. Those that cannot be written stay.
    pub async fn flush(&self) {
        let inner = &self.0;
        let _turn = inner.turn.lock().await;
        let news: Vec<(Key, Event, Option<String>)> = {
            let denials = lock(&inner.denials);
            let news = denials.iter().filter(|(_, group)| !group.is_written);
            news.map(|(key, group)| (key.clone(), group.event.clone(), group.id.clone()))
                .collect()
        };
        for (key, event, id) in news {
            let id = match id {
                Some(id) => Ok(id),
                None => inner.place(Kind::Denial).await,
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
                    tracing::warn!(%error, "denials cannot be kept now");
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
    /// A place for a new entry; the oldest of its kind makes way when there is no other.
    async fn place(&self, kind: Kind) -> Result<String, StoreError> {
        let kind = match kind {
            Kind::Deed => "deed",
            Kind::Denial => "denial",
        };
        // All servers count together, so that no two write to the same place.
        let counted = self.store.take(Window {
            key: format!("audit:{kind}"),
            most: u64::MAX,
            amount: 1,
            length: FOR_EVER,
        });
        let most = match self.store.is_shared() {
            true => MOST,
            false => MOST_IN_MEMORY,
        };
        let id = format!("{kind}:{}", counted.await?.used % most);
        self.store.delete(place(&id)).await?;
        Ok(id)
    }

    async fn put(&self, id: String, event: &Event) -> Result<(), StoreError> {
        let body = format::encode(event);
        let put = self.store.put(place(&id), body, Rules::default());
        put.await.map(drop)
    }
}

fn place(id: &str) -> Place {
    Place {
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

    fn audit() -> Audit {
        Audit::new(Arc::new(MemoryStore::default()))
    }

    fn event(action: &str) -> Event {
        Event {
            action: action.to_owned(),
            ..Event::default()
        }
    }

    #[tokio::test]
    async fn denials_of_a_minute_are_one_entry() {
        let audit = audit();
        for _ in 0..3 {
            audit.deny("denied.unknown", "10.0.0.1", None, None);
        }
        // All of one minute, however late the test runs: the minute may turn once in between.
        let counts = |entries: &[Entry]| entries.iter().map(|entry| entry.event.count).sum::<u64>();
        let entries = audit.entries(None, 10).await.unwrap();
        assert!(entries.len() <= 2 && counts(&entries) == 3, "{entries:?}");
        audit.deny("denied.unknown", "10.0.0.1", None, None);
        audit.deny("denied.unknown", "10.0.0.2", None, None);
        let entries = audit.entries(None, 10).await.unwrap();
        assert!(entries.len() <= 4 && counts(&entries) == 5, "{entries:?}");
    }

    #[tokio::test]
    async fn many_addresses_fill_neither_memory_nor_the_log() {
        let audit = audit();
        audit.note(event("token.create")).await.unwrap();
        for n in 0..20_000 {
            audit.deny(
                "denied.unknown",
                &format!("10.0.{}.{}", n / 256, n % 256),
                None,
                None,
            );
            if n % 400 == 0 {
                audit.flush().await;
            }
        }
        assert!(lock(&audit.0.denials).len() <= 2 * MOST_GROUPS + 2);
        let entries = audit.entries(None, 5_000).await.unwrap();
        assert!(entries.len() <= 1_001);
        assert!(
            entries
                .iter()
                .any(|entry| entry.event.action == "token.create")
        );
    }

    #[tokio::test]
    async fn the_oldest_entries_make_way() {
        let audit = audit();
        for n in 0..1_005 {
            audit.note(event(&format!("deed {n}"))).await.unwrap();
        }
        let entries = audit.entries(None, 5_000).await.unwrap();
        assert_eq!(entries.len(), 1_000);
        assert_eq!(entries[0].event.action, "deed 1004");
        assert_eq!(entries[999].event.action, "deed 5");
        let older = audit.entries(Some(entries[0].number), 1).await.unwrap();
        assert_eq!(older[0].event.action, "deed 1003");
    }

    /// The format of audit entries in stores. Whoever changes it breaks the stores of others: see
    /// docs/upgrading.md.
    #[test]
    fn the_format_of_a_stored_entry_does_not_change() {
        let event = Event {
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

//! Carrying changes to and from other servers that share the store.
//!
//! Everybody's changes are told to all, in few words: whose, and which resource. A server passes on what
//! it hears to those of its listeners whose it is, and to nobody else.

use std::collections::HashSet;
use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;

use super::watch::at;
use super::{Changed, Event, Shared};
use crate::tools::Address;
use exa_mcp_model::Identity;
use exa_mcp_model::ids;
use exa_mcp_store::{Store, StoreError, StoreMessage};

/// How long changes are gathered: many of them are the same.
const GATHERED: Duration = Duration::from_millis(100);

/// How long to wait before changes are told again that could not be.
const PAUSE: Duration = Duration::from_secs(1);

/// The most changes that are gathered; beyond it everything may have changed.
const MOST: usize = 10_000;

/// A change as it is told.
#[derive(Serialize, Deserialize)]
struct Word {
    /// Which server tells it.
    #[serde(rename = "from")]
    from: String,
    #[serde(rename = "resources")]
    resources: Told,
}

/// What has changed, and whose it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
enum Told {
    /// Someone's list.
    #[serde(rename = "list")]
    List {
        #[serde(rename = "owner")]
        owner: String,
    },
    /// Someone's resource.
    #[serde(rename = "resource")]
    Resource {
        #[serde(rename = "owner")]
        owner: String,
        #[serde(rename = "uri")]
        uri: String,
    },
    /// Any list may be another one.
    #[serde(rename = "anyList")]
    AnyList,
    /// Anything may be another one.
    #[serde(rename = "anything")]
    Anything,
}

/// Carries changes to and from other servers from now on, if the store is one that they share. Must be
/// called inside a runtime.
pub(super) fn start(shared: &Arc<Shared>, store: &Arc<dyn Store>) {
    let (Some(news), Ok(name)) = (store.subscribe(), ids::random_id()) else {
        return;
    };
    let outbox = Outbox {
        store: Arc::clone(store),
        name: name.clone(),
        gathered: HashSet::new(),
        tell_at: None,
        told: HashSet::new(),
        telling: None,
    };
    let changes = shared.changes.subscribe();
    tokio::spawn(outbox.run(changes, shared.results.additions()));
    let inbox = Inbox {
        shared: Arc::clone(shared),
        name,
    };
    tokio::spawn(inbox.run(news));
}

/// Passes on what other servers tell.
struct Inbox {
    shared: Arc<Shared>,
    /// The name of this server.
    name: String,
}

impl Inbox {
    async fn run(self, mut news: Receiver<StoreMessage>) {
        loop {
            match news.recv().await {
                Ok(StoreMessage::Received(word)) => self.heard(&word),
                Ok(StoreMessage::Missed) | Err(RecvError::Lagged(_)) => {
                    self.everything_may_have_changed()
                }
                Err(RecvError::Closed) => return,
            }
        }
    }

    fn heard(&self, word: &str) {
        // Other words are for others.
        let Ok(word) = serde_json::from_str::<Word>(word) else {
            return;
        };
        if word.from == self.name {
            return;
        }
        match word.resources {
            Told::List { owner } => self.heard_of(&owner, Event::Listed),
            Told::Resource { owner, uri } => {
                if let Some(address) = Address::parse(&uri) {
                    self.heard_of(&owner, Event::Changed(address));
                }
            }
            Told::AnyList => self.send_all(Event::Listed),
            Told::Anything => self.everything_may_have_changed(),
        }
    }

    /// Passes on what happened to someone's resources, if anybody here wants to know.
    fn heard_of(&self, owner: &str, event: Event) {
        let owner = Identity::from_stored(owner);
        if self.shared.results.watchers().contains(&owner) {
            self.shared.send(Changed {
                owner: Some(owner),
                event,
                is_foreign: true,
            });
        }
    }

    fn send_all(&self, event: Event) {
        self.shared.send(Changed {
            owner: None,
            event,
            is_foreign: true,
        });
    }

    fn everything_may_have_changed(&self) {
        self.send_all(Event::Listed);
        self.send_all(Event::Missed);
    }
}

/// Telling that is under way.
type Telling = Pin<Box<dyn Future<Output = Result<(), StoreError>> + Send>>;

/// Changes of this server that are to be told.
struct Outbox {
    store: Arc<dyn Store>,
    name: String,
    gathered: HashSet<Told>,
    tell_at: Option<Instant>,
    /// What is being told, and may have to be told again.
    told: HashSet<Told>,
    telling: Option<Telling>,
}

impl Outbox {
    /// Gathers and tells. Changes are gathered while others are told: those that wait for too long are lost.
    async fn run(mut self, mut changes: Receiver<Arc<Changed>>, mut results: Receiver<Identity>) {
        loop {
            tokio::select! { changed = changes.recv() => match changed { Ok(changed) => self.gather(&changed), Err(RecvError::Lagged(_)) => self.add(Told::Anything), Err(RecvError::Closed) => return, }, added = results.recv() => match added {
            // Which server asks next is not known, so the list may be another one then. That an
            // answer is gone concerns the server alone that kept it.
            Ok(owner) => self.add(list_of(&owner)), Err(RecvError::Lagged(_)) => self.add(Told::AnyList), Err(RecvError::Closed) => return, }, done = ended(&mut self.telling) => self.settle(done), () = at(self.tell_at), if self.telling.is_none() => self.tell(), }
        }
    }

    fn gather(&mut self, changed: &Changed) {
        let Some(owner) = changed.owner.as_ref().filter(|_| !changed.is_foreign) else {
            return;
        };
        self.add(match &changed.event {
            Event::Listed => list_of(owner),
            Event::Changed(address) => Told::Resource {
                owner: owner.as_str().to_owned(),
                uri: address.to_string(),
            },
            Event::Missed => Told::Anything,
        });
    }

    fn add(&mut self, change: Told) {
        if self.gathered.len() >= MOST {
            self.gathered = HashSet::from([Told::Anything]);
        }
        self.gathered.insert(change);
        self.tell_at
            .get_or_insert_with(|| Instant::now() + GATHERED);
    }

    /// Begins to tell what was gathered.
    fn tell(&mut self) {
        self.tell_at = None;
        self.told = std::mem::take(&mut self.gathered);
        let words = self.told.iter().map(|told| Word {
            from: self.name.clone(),
            resources: told.clone(),
        });
        let words = words.filter_map(|word| serde_json::to_string(&word).ok());
        let (store, words) = (Arc::clone(&self.store), words.collect());
        self.telling = Some(Box::pin(async move { store.publish(words).await }));
    }

    /// What could not be told is told later.
    fn settle(&mut self, done: Result<(), StoreError>) {
        self.telling = None;
        let told = std::mem::take(&mut self.told);
        if done.is_err() {
            told.into_iter().for_each(|told| self.add(told));
            self.tell_at = Some(Instant::now() + PAUSE);
        }
    }
}

fn list_of(owner: &Identity) -> Told {
    Told::List {
        owner: owner.as_str().to_owned(),
    }
}

/// The end of what is under way; never, if nothing is.
async fn ended(telling: &mut Option<Telling>) -> Result<(), StoreError> {
    match telling {
        Some(telling) => telling.await,
        None => pending().await,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
#[path = "replication_tests.rs"]
mod tests;

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod format_tests {
    use super::*;

    /// What servers of different versions tell each other.
    #[test]
    fn the_format_of_a_told_change_does_not_change() {
        let told = |resources| {
            let from = "f".to_owned();
            serde_json::to_string(&Word { from, resources }).unwrap()
        };
        let (owner, uri) = ("user:ann".to_owned(), "note://n".to_owned());
        let list = Told::List {
            owner: owner.clone(),
        };
        assert_eq!(
            told(list),
            r#"{"from":"f","resources":{"list":{"owner":"user:ann"}}}"#
        );
        let resource =
            r#"{"from":"f","resources":{"resource":{"owner":"user:ann","uri":"note://n"}}}"#;
        assert_eq!(told(Told::Resource { owner, uri }), resource);
        assert_eq!(told(Told::AnyList), r#"{"from":"f","resources":"anyList"}"#);
        assert_eq!(
            told(Told::Anything),
            r#"{"from":"f","resources":"anything"}"#
        );
    }
}

//! Replicates changes to and from other servers that share the store.
//!
//! Every server publishes the owner and the URI of a changed resource. The other servers notify the watchers of that
//! owner, and nobody else.

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
use super::{ResourceChange, ResourceEvent, SharedResources};
use crate::tools::ResourceUri;
use exa_mcp_model::{Identity, ids};
use exa_mcp_store::{Store, StoreError, StoreMessage};

/// How long changes are batched: many of them are equal.
const BATCH_TIME: Duration = Duration::from_millis(100);

/// How long to wait before a failed publication is retried.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// The maximum number of batched changes; beyond it, `Anything` is published.
const MAX_BATCH: usize = 10_000;

/// A published change.
#[derive(Serialize, Deserialize)]
struct ReplicationMessage {
    /// The id of the publishing server.
    from: String,
    resources: RemoteChange,
}

/// What has changed, and its owner.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
enum RemoteChange {
    /// The list of an owner.
    #[serde(rename = "list")]
    List { owner: String },
    /// A resource of an owner.
    #[serde(rename = "resource")]
    Resource { owner: String, uri: String },
    /// Any list may have changed.
    #[serde(rename = "anyList")]
    AnyList,
    /// Anything may have changed.
    #[serde(rename = "anything")]
    Anything,
}

/// Replicates changes to and from other servers from now on, if the store is shared. Must be called inside a runtime.
pub(super) fn start(shared: &Arc<SharedResources>, store: &Arc<dyn Store>) {
    let (Some(messages), Ok(server_id)) = (store.subscribe(), ids::random_id()) else {
        return;
    };
    let outbox = Outbox {
        store: Arc::clone(store),
        server_id: server_id.clone(),
        batch: HashSet::new(),
        publish_at: None,
        in_flight: HashSet::new(),
        publishing: None,
    };
    let changes = shared.changes.subscribe();
    tokio::spawn(outbox.run(changes, shared.results.additions()));
    let inbox = Inbox {
        shared: Arc::clone(shared),
        server_id,
    };
    tokio::spawn(inbox.run(messages));
}

/// Receives changes of other servers.
struct Inbox {
    shared: Arc<SharedResources>,
    /// The id of this server.
    server_id: String,
}

impl Inbox {
    async fn run(self, mut messages: Receiver<StoreMessage>) {
        loop {
            match messages.recv().await {
                Ok(StoreMessage::Received(message)) => self.handle(&message),
                Ok(StoreMessage::Missed) | Err(RecvError::Lagged(_)) => self.notify_anything(),
                Err(RecvError::Closed) => return,
            }
        }
    }

    fn handle(&self, message: &str) {
        // Other features use the same channel.
        let Ok(message) = serde_json::from_str::<ReplicationMessage>(message) else {
            return;
        };
        if message.from == self.server_id {
            return;
        }
        match message.resources {
            RemoteChange::List { owner } => self.notify_owner(&owner, ResourceEvent::ListChanged),
            RemoteChange::Resource { owner, uri } => {
                if let Some(uri) = ResourceUri::parse(&uri) {
                    self.notify_owner(&owner, ResourceEvent::Updated(uri));
                }
            }
            RemoteChange::AnyList => self.send_all(ResourceEvent::ListChanged),
            RemoteChange::Anything => self.notify_anything(),
        }
    }

    /// Forwards a change to the watchers of an owner, if there are any.
    fn notify_owner(&self, owner: &str, event: ResourceEvent) {
        let owner = Identity::from_stored(owner);
        if self.shared.results.watchers().contains(&owner) {
            self.shared.send(ResourceChange {
                owner: Some(owner),
                event,
                is_remote: true,
            });
        }
    }

    fn send_all(&self, event: ResourceEvent) {
        self.shared.send(ResourceChange {
            owner: None,
            event,
            is_remote: true,
        });
    }

    fn notify_anything(&self) {
        self.send_all(ResourceEvent::ListChanged);
        self.send_all(ResourceEvent::Lagged);
    }
}

/// A publication in progress.
type Publishing = Pin<Box<dyn Future<Output = Result<(), StoreError>> + Send>>;

/// Publishes the changes of this server.
struct Outbox {
    store: Arc<dyn Store>,
    server_id: String,
    /// Changes that are not published yet.
    batch: HashSet<RemoteChange>,
    publish_at: Option<Instant>,
    /// Changes being published, to be retried on failure.
    in_flight: HashSet<RemoteChange>,
    publishing: Option<Publishing>,
}

impl Outbox {
    /// Batches and publishes changes. Batching continues during publication, because the channel drops old changes.
    async fn run(
        mut self,
        mut changes: Receiver<Arc<ResourceChange>>,
        mut results: Receiver<Identity>,
    ) {
        loop {
            tokio::select! {
                change = changes.recv() => match change {
                    Ok(change) => self.add_local(&change),
                    Err(RecvError::Lagged(_)) => self.add(RemoteChange::Anything),
                    Err(RecvError::Closed) => return,
                },
                added = results.recv() => match added {
                    // The next request of the owner may reach any server, so all of them report the new list.
                    // An evicted result concerns only the server that had cached it.
                    Ok(owner) => self.add(list_of(&owner)),
                    Err(RecvError::Lagged(_)) => self.add(RemoteChange::AnyList),
                    Err(RecvError::Closed) => return,
                },
                result = completion(&mut self.publishing) => self.finish(result),
                () = at(self.publish_at), if self.publishing.is_none() => self.publish(),
            }
        }
    }

    fn add_local(&mut self, change: &ResourceChange) {
        let Some(owner) = change.owner.as_ref().filter(|_| !change.is_remote) else {
            return;
        };
        self.add(match &change.event {
            ResourceEvent::ListChanged => list_of(owner),
            ResourceEvent::Updated(uri) => RemoteChange::Resource {
                owner: owner.as_str().to_owned(),
                uri: uri.to_string(),
            },
            ResourceEvent::Lagged => RemoteChange::Anything,
        });
    }

    fn add(&mut self, change: RemoteChange) {
        if self.batch.len() >= MAX_BATCH {
            self.batch = HashSet::from([RemoteChange::Anything]);
        }
        self.batch.insert(change);
        self.publish_at
            .get_or_insert_with(|| Instant::now() + BATCH_TIME);
    }

    /// Starts to publish the batch.
    fn publish(&mut self) {
        self.publish_at = None;
        self.in_flight = std::mem::take(&mut self.batch);
        let messages = self.in_flight.iter().map(|change| ReplicationMessage {
            from: self.server_id.clone(),
            resources: change.clone(),
        });
        let messages = messages.filter_map(|message| serde_json::to_string(&message).ok());
        let (store, messages) = (Arc::clone(&self.store), messages.collect());
        self.publishing = Some(Box::pin(async move { store.publish(messages).await }));
    }

    /// Retries a failed publication later.
    fn finish(&mut self, result: Result<(), StoreError>) {
        self.publishing = None;
        let changes = std::mem::take(&mut self.in_flight);
        if result.is_err() {
            changes.into_iter().for_each(|change| self.add(change));
            self.publish_at = Some(Instant::now() + RETRY_DELAY);
        }
    }
}

fn list_of(owner: &Identity) -> RemoteChange {
    RemoteChange::List {
        owner: owner.as_str().to_owned(),
    }
}

/// Waits for the publication in progress; forever if there is none.
async fn completion(publishing: &mut Option<Publishing>) -> Result<(), StoreError> {
    match publishing {
        Some(publishing) => publishing.await,
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

    /// Servers of different versions exchange this format.
    #[test]
    fn the_message_format_does_not_change() {
        let encode = |resources| {
            let from = "f".to_owned();
            serde_json::to_string(&ReplicationMessage { from, resources }).unwrap()
        };
        let (owner, uri) = ("user:ann".to_owned(), "note://n".to_owned());
        let list = RemoteChange::List {
            owner: owner.clone(),
        };
        assert_eq!(
            encode(list),
            r#"{"from":"f","resources":{"list":{"owner":"user:ann"}}}"#
        );
        let resource =
            r#"{"from":"f","resources":{"resource":{"owner":"user:ann","uri":"note://n"}}}"#;
        assert_eq!(encode(RemoteChange::Resource { owner, uri }), resource);
        assert_eq!(
            encode(RemoteChange::AnyList),
            r#"{"from":"f","resources":"anyList"}"#
        );
        assert_eq!(
            encode(RemoteChange::Anything),
            r#"{"from":"f","resources":"anything"}"#
        );
    }
}

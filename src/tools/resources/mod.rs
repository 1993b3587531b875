//! Resources: cached results, descriptions of operations, current websets, and notes.
//!
//! Websets and notes are resources only if an enabled tool can access them.

mod completion;
mod listing;
mod polling;
mod reader;
mod replication;
mod watch;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::broadcast;

pub(crate) use completion::CompletionCandidate;
use completion::{Completer, RecentWebsets};
pub(crate) use listing::{ResourceEntry, ResourcePage, ResourceTemplate};
use polling::Polls;
pub(crate) use polling::{PollGuard, Subscriber};
use reader::Reader;
pub(crate) use reader::{ReadError, ResourceContent};
pub(crate) use watch::{PendingWatch, ResourceWatch};

use super::notes::{Note, NoteDraft, NoteError, Notes};
pub(crate) use super::watchers::ResourceEvent;
use super::{ResourceUri, ResultCache};
use crate::operations::{self, CompletedCall, OperationExecutor};
use exa_mcp_generated::tools::RESOURCES;
use exa_mcp_model::{Identity, Operation};
use exa_mcp_store::Store;

/// How many changes may be pending for replication to other servers.
const MAX_PENDING_CHANGES: usize = 256;

/// The MIME type of Markdown.
pub(crate) const MARKDOWN: &str = "text/markdown";
/// The MIME type of JSON.
pub(crate) const JSON: &str = "application/json";
/// The MIME type of plain text.
pub(crate) const PLAIN: &str = "text/plain";

/// The resources of the server. Clones share their state.
#[derive(Clone)]
pub struct Resources {
    shared: Arc<SharedResources>,
    executor: OperationExecutor,
    /// The notes, if enabled.
    notes: Option<Notes>,
    /// Whether websets are enabled.
    websets: bool,
    /// How often subscribed websets are polled, if they are.
    poll_interval: Option<Duration>,
}

struct SharedResources {
    results: ResultCache,
    /// Changes for replication to other servers. In an `Arc`, because the channel allocates its whole capacity.
    changes: broadcast::Sender<Arc<ResourceChange>>,
    recent_websets: RecentWebsets,
    polls: Polls,
}

impl SharedResources {
    fn send(&self, change: ResourceChange) {
        let watchers = self.results.watchers();
        match &change.owner {
            Some(owner) => watchers.notify(owner, &change.event),
            None => watchers.notify_all(&change.event),
        };
        // Without other servers there is no receiver.
        let _ = self.changes.send(Arc::new(change));
    }
}

/// A change to the resources of an owner.
#[derive(Clone, Debug)]
struct ResourceChange {
    /// The owner; `None` for all owners.
    owner: Option<Identity>,
    event: ResourceEvent,
    /// It happened on another server.
    is_remote: bool,
}

impl Resources {
    /// Creates the resources; notes and websets are optional.
    pub(super) fn new(
        executor: OperationExecutor,
        results: ResultCache,
        notes: Option<Notes>,
        websets: bool,
    ) -> Self {
        Self {
            shared: Arc::new(SharedResources {
                results,
                changes: broadcast::channel(MAX_PENDING_CHANGES).0,
                recent_websets: RecentWebsets::default(),
                polls: Polls::default(),
            }),
            executor,
            notes,
            websets,
            poll_interval: None,
        }
    }

    /// Returns the resources that poll subscribed websets at this interval.
    pub(super) fn with_poll_interval(self, poll_interval: Option<Duration>) -> Self {
        Self {
            poll_interval,
            ..self
        }
    }

    /// Returns the resources with another executor.
    pub(super) fn with_executor(&self, executor: OperationExecutor) -> Self {
        Self {
            executor,
            ..self.clone()
        }
    }

    /// Returns the resources for a narrowed set of tools.
    pub(super) fn narrow(&self, notes: bool, websets: bool) -> Self {
        Self {
            notes: self.notes.clone().filter(|_| notes),
            websets: self.websets && websets,
            ..self.clone()
        }
    }

    /// Returns the notes, if enabled.
    pub fn notes(&self) -> Option<&Notes> {
        self.notes.as_ref()
    }

    /// Creates a note and notifies subscribers.
    pub(super) async fn add_note(
        &self,
        owner: &Identity,
        notes: &Notes,
        draft: NoteDraft,
    ) -> Result<Note, NoteError> {
        let note = notes.create(owner, draft).await?;
        self.notify(owner, ResourceEvent::ListChanged);
        Ok(note)
    }

    /// Notifies subscribers if a call may have changed a webset.
    pub(super) fn notify_webset_change(
        &self,
        owner: &Identity,
        operation: &Operation,
        called: &CompletedCall,
    ) {
        let Some(websets) = &RESOURCES.websets else {
            return;
        };
        let get = operations::find(&websets.get);
        let Some(get) = get.filter(|get| get.api.name == operation.api.name) else {
            return;
        };
        if operation.method == "GET" {
            return;
        }
        // A webset has an id and possibly an external id.
        let sent = called.arguments.get(&websets.argument);
        let Some(sent) = sent.and_then(Value::as_str) else {
            return;
        };
        let mut names = vec![sent];
        if operation.domain == get.domain {
            let field = |name| called.response.value.get(name).and_then(Value::as_str);
            names.extend(field("id").into_iter().chain(field("externalId")));
        }
        names.sort_unstable();
        names.dedup();
        for name in names {
            self.notify(
                owner,
                ResourceEvent::Updated(ResourceUri::Webset(name.to_owned())),
            );
        }
    }

    /// Reads a resource.
    pub async fn read(
        &self,
        owner: &Identity,
        uri: &ResourceUri,
    ) -> Result<ResourceContent, ReadError> {
        self.reader(owner).read(uri).await
    }

    /// Checks that a resource exists, without calling Exa.
    pub async fn check_exists(&self, owner: &Identity, uri: &ResourceUri) -> Result<(), ReadError> {
        self.reader(owner).check_exists(uri).await
    }

    fn reader<'a>(&'a self, owner: &'a Identity) -> Reader<'a> {
        Reader {
            resources: self,
            owner,
        }
    }

    /// Returns the URI templates of enabled resources.
    pub fn templates(&self) -> Vec<&'static ResourceTemplate> {
        listing::templates(self)
    }

    /// Returns a page of resources.
    pub async fn page(
        &self,
        owner: &Identity,
        cursor: Option<&str>,
        size: usize,
    ) -> Result<Option<ResourcePage>, ReadError> {
        listing::page(self, owner, cursor, size).await
    }

    /// Returns candidates for an argument of a URI; `earlier` are the arguments already filled in.
    pub async fn complete(
        &self,
        owner: &Identity,
        argument: &str,
        earlier: &HashMap<String, String>,
    ) -> Vec<CompletionCandidate> {
        self.completer(owner).argument(argument, earlier).await
    }

    /// Returns the notes as candidates, by id and title.
    pub async fn complete_note(&self, owner: &Identity) -> Vec<CompletionCandidate> {
        self.completer(owner).notes().await
    }

    fn completer<'a>(&'a self, owner: &'a Identity) -> Completer<'a> {
        Completer {
            resources: self,
            owner,
        }
    }

    /// Watches the resources of an owner from now on.
    pub fn watch(&self, owner: &Identity) -> ResourceWatch {
        self.prepare_watch().into_watch(owner)
    }

    /// Starts a watch for an owner who is not known yet.
    pub fn prepare_watch(&self) -> PendingWatch {
        PendingWatch::new(&self.shared.results)
    }

    /// Replicates changes to and from other servers from now on, if the store is shared. Must be called inside a
    /// runtime.
    pub fn replicate(&self, store: &Arc<dyn Store>) {
        replication::start(&self.shared, store);
    }

    fn notify(&self, owner: &Identity, event: ResourceEvent) {
        self.shared.send(ResourceChange {
            owner: Some(owner.clone()),
            event,
            is_remote: false,
        });
    }
}

#[cfg(test)]
mod tests;

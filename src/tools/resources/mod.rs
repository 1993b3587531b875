//! Resources: what can be read beside calling tools.
//!
//! They are kept answers, descriptions of operations, websets as they are now, and notes. What no
//! offered tool could reach is no resource either.

mod completion;
mod entries;
mod read;
mod replication;
mod watch;

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::broadcast;

pub(crate) use completion::Candidate;
use completion::{Completer, RecentWebsets};
pub(crate) use entries::{Entry, ResourcePage, Template};
use read::Reader;
pub(crate) use read::{Content, ReadError};
pub(crate) use watch::{ExpectedWatch, Watch};

use super::notes::{Draft, Note, NoteError, Notes};
pub(crate) use super::watchers::Event;
use super::{Address, ResultCache};
use crate::operations::{self, CompletedCall, OperationExecutor};
use exa_mcp_generated::tools::RESOURCES;
use exa_mcp_model::Identity;
use exa_mcp_model::Operation;
use exa_mcp_store::Store;

/// How many changes may wait until they are told to other servers.
const WAITING: usize = 256;

/// Markdown, as most of what is kept.
pub(crate) const MARKDOWN: &str = "text/markdown";
/// JSON, for what programs read.
pub(crate) const JSON: &str = "application/json";
/// Plain text.
pub(crate) const PLAIN: &str = "text/plain";

/// What can be read. Clones share everything.
#[derive(Clone)]
pub struct Resources {
    shared: Arc<Shared>,
    caller: OperationExecutor,
    /// The notes, where they are offered.
    notes: Option<Notes>,
    /// Websets may be read.
    websets: bool,
}

struct Shared {
    results: ResultCache,
    /// What is told to other servers. Shared, because the channel sets all its places aside at once.
    changes: broadcast::Sender<Arc<Changed>>,
    recent_websets: RecentWebsets,
}

impl Shared {
    fn send(&self, changed: Changed) {
        let watchers = self.results.watchers();
        match &changed.owner {
            Some(owner) => watchers.tell(owner, &changed.event),
            None => watchers.tell_all(&changed.event),
        };
        // Without other servers nobody reads it.
        let _ = self.changes.send(Arc::new(changed));
    }
}

/// Something that its owner may want to know.
#[derive(Clone, Debug)]
struct Changed {
    /// Whose it is; everybody's without it.
    owner: Option<Identity>,
    event: Event,
    /// It happened at another server.
    is_foreign: bool,
}

impl Resources {
    /// Creates the resources; without notes, or without websets, where no tool has to do with them.
    pub(super) fn new(
        caller: OperationExecutor,
        results: ResultCache,
        notes: Option<Notes>,
        websets: bool,
    ) -> Self {
        Self {
            shared: Arc::new(Shared {
                results,
                changes: broadcast::channel(WAITING).0,
                recent_websets: RecentWebsets::default(),
            }),
            caller,
            notes,
            websets,
        }
    }

    /// The same resources for someone who calls Exa in another way.
    pub(super) fn with_caller(&self, caller: OperationExecutor) -> Self {
        Self {
            caller,
            ..self.clone()
        }
    }

    /// The same resources for someone with fewer tools.
    pub(super) fn narrowed(&self, notes: bool, websets: bool) -> Self {
        Self {
            notes: self.notes.clone().filter(|_| notes),
            websets: self.websets && websets,
            ..self.clone()
        }
    }

    /// The notes, where they are offered.
    pub fn notes(&self) -> Option<&Notes> {
        self.notes.as_ref()
    }

    /// Keeps a note and tells of it.
    pub(super) async fn add_note(
        &self,
        owner: &Identity,
        notes: &Notes,
        draft: Draft,
    ) -> Result<Note, NoteError> {
        let note = notes.create(owner, draft).await?;
        self.tell(owner, Event::Listed);
        Ok(note)
    }

    /// Takes note of a call that was answered: it may have changed a webset.
    pub(super) fn heed(&self, owner: &Identity, operation: &Operation, called: &CompletedCall) {
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
        // A webset may be called by its id or by the id that its maker gave it.
        let sent = called.arguments.get(&websets.argument);
        let Some(sent) = sent.and_then(Value::as_str) else {
            return;
        };
        let mut names = vec![sent];
        if operation.domain == get.domain {
            let answer = |field| called.response.value.get(field).and_then(Value::as_str);
            names.extend(answer("id").into_iter().chain(answer("externalId")));
        }
        names.sort_unstable();
        names.dedup();
        for name in names {
            self.tell(owner, Event::Changed(Address::Webset(name.to_owned())));
        }
    }

    /// Reads what stands at an address.
    pub async fn read(&self, owner: &Identity, address: &Address) -> Result<Content, ReadError> {
        self.reader(owner).read(address).await
    }

    /// Says whether there is something to follow, without asking Exa.
    pub async fn knows(&self, owner: &Identity, address: &Address) -> Result<(), ReadError> {
        self.reader(owner).knows(address).await
    }

    fn reader<'a>(&'a self, owner: &'a Identity) -> Reader<'a> {
        Reader {
            resources: self,
            owner,
        }
    }

    /// Returns the patterns of what is offered.
    pub fn templates(&self) -> Vec<&'static Template> {
        entries::templates(self)
    }

    /// Returns one page of the entries.
    pub async fn page(
        &self,
        owner: &Identity,
        cursor: Option<&str>,
        size: usize,
    ) -> Result<Option<ResourcePage>, ReadError> {
        entries::page(self, owner, cursor, size).await
    }

    /// Returns what could stand for an argument of an address; `earlier` are those that are filled in.
    pub async fn complete(
        &self,
        owner: &Identity,
        argument: &str,
        earlier: &HashMap<String, String>,
    ) -> Vec<Candidate> {
        self.completer(owner).argument(argument, earlier).await
    }

    /// Returns the notes, by id and by title.
    pub async fn complete_note(&self, owner: &Identity) -> Vec<Candidate> {
        self.completer(owner).notes().await
    }

    fn completer<'a>(&'a self, owner: &'a Identity) -> Completer<'a> {
        Completer {
            resources: self,
            owner,
        }
    }

    /// Listens from now on to what happens to the resources of this owner.
    pub fn watch(&self, owner: &Identity) -> Watch {
        self.expect_watch().of(owner)
    }

    /// Listens from now on for an owner who is not known yet.
    pub fn expect_watch(&self) -> ExpectedWatch {
        ExpectedWatch::new(&self.shared.results)
    }

    /// Carries changes to and from other servers from now on, if the store is one that they share. Must be
    /// called inside a runtime.
    pub fn replicate(&self, store: &Arc<dyn Store>) {
        replication::start(&self.shared, store);
    }

    fn tell(&self, owner: &Identity, event: Event) {
        self.shared.send(Changed {
            owner: Some(owner.clone()),
            event,
            is_foreign: false,
        });
    }
}

#[cfg(test)]
mod tests;

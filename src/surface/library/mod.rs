//! The library: what can be read beside calling tools.
//!
//! It holds kept answers, descriptions of operations, websets as they are now, and notes. What no
//! offered tool could reach is not in the library either.

mod carry;
mod entries;
mod offers;
mod read;
mod watch;

use std::sync::Arc;

use serde_json::Value;
use tokio::sync::broadcast;

pub use entries::{Entry, Leaf, TEMPLATES, Template};
use offers::Memory;
pub use offers::Offer;
pub use read::{Content, ReadError};
pub use watch::{ExpectedWatch, Watch};

use super::notes::{Draft, Note, NoteError, Notes};
pub use super::watchers::Event;
use super::{Address, ResultCache};
use crate::accounts::Identity;
use crate::operations::{Called, Caller, Operation};

/// How many changes may wait until they are told to other servers.
const WAITING: usize = 256;

/// Markdown, as most of what is kept.
pub const MARKDOWN: &str = "text/markdown";
/// JSON, for what programs read.
pub const JSON: &str = "application/json";
/// Plain text.
pub const PLAIN: &str = "text/plain";

/// What can be read. Clones share everything.
#[derive(Clone)]
pub struct Library {
    shelves: Arc<Shelves>,
    caller: Caller,
    /// The notes, where they are offered.
    notes: Option<Notes>,
    /// Websets may be read.
    websets: bool,
}

struct Shelves {
    results: ResultCache,
    /// What is told to other servers. Shared, because the channel sets all its places aside at once.
    changes: broadcast::Sender<Arc<Changed>>,
    memory: Memory,
}

impl Shelves {
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

impl Library {
    /// A library; without notes, or without websets, where no tool has to do with them.
    pub(super) fn new(
        caller: Caller,
        results: ResultCache,
        notes: Option<Notes>,
        websets: bool,
    ) -> Self {
        Self {
            shelves: Arc::new(Shelves {
                results,
                changes: broadcast::channel(WAITING).0,
                memory: Memory::default(),
            }),
            caller,
            notes,
            websets,
        }
    }

    /// The same shelves for someone who calls Exa in another way.
    pub(super) fn with_caller(&self, caller: Caller) -> Self {
        Self {
            caller,
            ..self.clone()
        }
    }

    /// The same shelves for someone with fewer tools.
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
    pub(super) fn heed(&self, owner: &Identity, operation: &Operation, called: &Called) {
        if operation.method == "GET" || operation.api.name != "websets" {
            return;
        }
        // A webset may be called by its id or by the id that its maker gave it.
        let sent = called.arguments.get("websetId");
        let Some(sent) = sent.and_then(Value::as_str) else {
            return;
        };
        let mut names = vec![sent];
        if operation.domain == "websets" {
            let answer = |field| called.answer.value.get(field).and_then(Value::as_str);
            names.extend(answer("id").into_iter().chain(answer("externalId")));
        }
        names.sort_unstable();
        names.dedup();
        for name in names {
            self.tell(owner, Event::Changed(Address::Webset(name.to_owned())));
        }
    }

    fn tell(&self, owner: &Identity, event: Event) {
        self.shelves.send(Changed {
            owner: Some(owner.clone()),
            event,
            is_foreign: false,
        });
    }
}

#[cfg(test)]
mod tests;

//! What could stand in an address, for completion.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use super::Library;
use crate::accounts::Identity;
use crate::generated::tools::RESOURCES;
use crate::operations::{all, find};

/// How long Exa may take to list websets; whoever types does not wait longer.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long a list of websets is good enough: someone is typing, letter by letter.
const FRESH: Duration = Duration::from_secs(10);

/// How many websets and notes are looked at.
const MOST: usize = 100;
const MOST_NOTES: usize = 1_000;

/// How many people's websets are remembered.
const MOST_OWNERS: usize = 1_000;

/// Something that could be meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// What would be filled in.
    pub value: String,
    /// Other words by which it may be found.
    pub words: String,
}

/// Websets that were listed a moment ago.
#[derive(Default)]
pub(super) struct Memory(Mutex<HashMap<Identity, (Instant, Vec<Offer>)>>);

impl Memory {
    fn recall(&self, owner: &Identity) -> Option<Vec<Offer>> {
        let memory = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, offers) = memory.get(owner)?;
        (at.elapsed() < FRESH).then(|| offers.clone())
    }

    fn remember(&self, owner: &Identity, offers: &[Offer]) {
        let mut memory = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        memory.retain(|_, (at, _)| at.elapsed() < FRESH);
        if memory.len() < MOST_OWNERS {
            memory.insert(owner.clone(), (Instant::now(), offers.to_vec()));
        }
    }
}

impl Library {
    /// What could stand for an argument of an address; nothing where that cannot be known.
    ///
    /// `earlier` are the arguments that are already filled in.
    pub async fn offers(
        &self,
        owner: &Identity,
        argument: &str,
        earlier: &HashMap<String, String>,
    ) -> Vec<Offer> {
        match argument {
            "name" => operations(),
            "cacheId" => self.results_on_offer(owner),
            "index" => self.indexes(owner, earlier.get("cacheId")),
            "websetId" => self.websets_on_offer(owner).await,
            "id" => self.notes_on_offer(owner).await,
            _ => Vec::new(),
        }
    }

    fn results_on_offer(&self, owner: &Identity) -> Vec<Offer> {
        let kept = self.shelves.results.list(owner).into_iter();
        kept.map(|kept| Offer {
            value: kept.id,
            words: format!("{} {}", kept.operation, kept.title),
        })
        .collect()
    }

    fn indexes(&self, owner: &Identity, id: Option<&String>) -> Vec<Offer> {
        let kept = id.and_then(|id| self.shelves.results.get(owner, id));
        let count = kept.map_or(0, |kept| kept.results);
        let offer = |index: usize| Offer {
            value: index.to_string(),
            words: String::new(),
        };
        (0..count).map(offer).collect()
    }

    /// The notes, by id and by title.
    pub async fn notes_on_offer(&self, owner: &Identity) -> Vec<Offer> {
        let Some(notes) = &self.notes else {
            return Vec::new();
        };
        let listed = notes.list(owner, None, MOST_NOTES).await;
        let offer = |note: super::Note| Offer {
            value: note.id,
            words: note.draft.title,
        };
        listed.unwrap_or_default().into_iter().map(offer).collect()
    }

    async fn websets_on_offer(&self, owner: &Identity) -> Vec<Offer> {
        if !self.websets {
            return Vec::new();
        }
        if let Some(offers) = self.shelves.memory.recall(owner) {
            return offers;
        }
        // Typing goes on without suggestions when Exa does not answer in time.
        let offers = timeout(PATIENCE, self.list_websets()).await;
        let offers = offers.ok().flatten().unwrap_or_default();
        self.shelves.memory.remember(owner, &offers);
        offers
    }

    async fn list_websets(&self) -> Option<Vec<Offer>> {
        let list = RESOURCES.websets.as_ref()?.list.as_ref()?;
        let operation = find(list)?;
        let called = self.caller.call(operation, json!({"limit": MOST}));
        let answer = called.await.ok()?.answer.value;
        let websets = answer.get("data")?.as_array()?;
        Some(websets.iter().filter_map(webset).collect())
    }
}

fn webset(webset: &Value) -> Option<Offer> {
    let text = |field: &str| webset.get(field).and_then(Value::as_str);
    Some(Offer {
        value: text("id")?.to_owned(),
        words: [text("title"), text("externalId")]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join(" "),
    })
}

fn operations() -> Vec<Offer> {
    let offer = |operation: &crate::operations::Operation| Offer {
        value: operation.name.to_owned(),
        words: operation.summary.to_owned(),
    };
    all().iter().map(offer).collect()
}

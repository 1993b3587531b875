//! What could stand in an address, for completion.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use super::Resources;
use crate::operations::{all, find};
use crate::tools::CachedResult;
use exa_mcp_generated::tools::RESOURCES;
use exa_mcp_model::{Identity, lock};

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
pub struct Candidate {
    /// What would be filled in.
    pub value: String,
    /// Other words by which it may be found.
    pub words: String,
}

/// Websets that were listed a moment ago.
#[derive(Default)]
pub(super) struct RecentWebsets(Mutex<HashMap<Identity, (Instant, Vec<Candidate>)>>);

impl RecentWebsets {
    fn get(&self, owner: &Identity) -> Option<Vec<Candidate>> {
        let memory = lock(&self.0);
        let (at, candidates) = memory.get(owner)?;
        (at.elapsed() < FRESH).then(|| candidates.clone())
    }

    fn insert(&self, owner: &Identity, candidates: &[Candidate]) {
        let mut memory = lock(&self.0);
        memory.retain(|_, (at, _)| at.elapsed() < FRESH);
        if memory.len() < MOST_OWNERS {
            memory.insert(owner.clone(), (Instant::now(), candidates.to_vec()));
        }
    }
}

/// Completes the arguments of addresses for one owner.
pub(super) struct Completer<'a> {
    pub(super) resources: &'a Resources,
    pub(super) owner: &'a Identity,
}

impl Completer<'_> {
    /// Returns what could stand for an argument of an address; nothing where that cannot be known.
    ///
    /// `earlier` are the arguments that are already filled in.
    pub(super) async fn argument(
        &self,
        argument: &str,
        earlier: &HashMap<String, String>,
    ) -> Vec<Candidate> {
        match argument {
            "name" => operations(),
            "cacheId" => self.results(),
            "index" => self.indexes(earlier.get("cacheId")),
            "websetId" => self.websets().await,
            "id" => self.notes().await,
            _ => Vec::new(),
        }
    }

    fn results(&self) -> Vec<Candidate> {
        let cached = self.resources.shared.results.list(self.owner).into_iter();
        let candidate = |cached: CachedResult| Candidate {
            value: cached.id,
            words: format!("{} {}", cached.operation, cached.title),
        };
        cached.map(candidate).collect()
    }

    fn indexes(&self, id: Option<&String>) -> Vec<Candidate> {
        let results = &self.resources.shared.results;
        let cached = id.and_then(|id| results.get(self.owner, id));
        let count = cached.map_or(0, |cached| cached.results);
        let candidate = |index: usize| Candidate {
            value: index.to_string(),
            words: String::new(),
        };
        (0..count).map(candidate).collect()
    }

    /// Returns the notes, by id and by title.
    pub(super) async fn notes(&self) -> Vec<Candidate> {
        let Some(notes) = &self.resources.notes else {
            return Vec::new();
        };
        let listed = notes.list(self.owner, None, MOST_NOTES).await;
        let candidate = |note: super::Note| Candidate {
            value: note.id,
            words: note.draft.title,
        };
        let listed = listed.unwrap_or_default().into_iter();
        listed.map(candidate).collect()
    }

    async fn websets(&self) -> Vec<Candidate> {
        if !self.resources.websets {
            return Vec::new();
        }
        let recent = &self.resources.shared.recent_websets;
        if let Some(candidates) = recent.get(self.owner) {
            return candidates;
        }
        // Typing goes on without suggestions when Exa does not answer in time.
        let candidates = timeout(PATIENCE, self.list_websets()).await;
        let candidates = candidates.ok().flatten().unwrap_or_default();
        recent.insert(self.owner, &candidates);
        candidates
    }

    async fn list_websets(&self) -> Option<Vec<Candidate>> {
        let list = RESOURCES.websets.as_ref()?.list.as_ref()?;
        let operation = find(list)?;
        let caller = &self.resources.caller;
        let called = caller.call(operation, json!({"limit": MOST}));
        let answer = called.await.ok()?.response.value;
        let websets = answer.get("data")?.as_array()?;
        Some(websets.iter().filter_map(webset).collect())
    }
}

fn webset(webset: &Value) -> Option<Candidate> {
    let text = |field: &str| webset.get(field).and_then(Value::as_str);
    Some(Candidate {
        value: text("id")?.to_owned(),
        words: [text("title"), text("externalId")]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join(" "),
    })
}

fn operations() -> Vec<Candidate> {
    let candidate = |operation: &exa_mcp_model::Operation| Candidate {
        value: operation.name.to_owned(),
        words: operation.summary.to_owned(),
    };
    all().iter().map(candidate).collect()
}

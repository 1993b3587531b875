//! Completion of the arguments of resource URIs.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use super::Resources;
use crate::operations::{all, find};
use crate::tools::CachedResult;
use exa_mcp_generated::response_fields::{ENTRIES, ID};
use exa_mcp_generated::tools::RESOURCES;
use exa_mcp_model::{Identity, lock};

/// How long Exa may take to list websets: completion runs while the user types.
const LIST_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a list of websets is reused between keystrokes.
const LIST_TTL: Duration = Duration::from_secs(10);

/// How many websets and notes are considered.
const MAX_WEBSETS: usize = 100;
const MAX_NOTES: usize = 1_000;

/// The maximum number of owners whose websets are cached.
const MAX_OWNERS: usize = 1_000;

/// A possible completion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompletionCandidate {
    /// The value to fill in.
    pub value: String,
    /// Other words to match, such as a title.
    pub words: String,
}

/// Recently listed websets, by owner.
#[derive(Default)]
pub(super) struct RecentWebsets(Mutex<HashMap<Identity, (Instant, Vec<CompletionCandidate>)>>);

impl RecentWebsets {
    fn get(&self, owner: &Identity) -> Option<Vec<CompletionCandidate>> {
        let recent = lock(&self.0);
        let (at, candidates) = recent.get(owner)?;
        (at.elapsed() < LIST_TTL).then(|| candidates.clone())
    }

    fn insert(&self, owner: &Identity, candidates: &[CompletionCandidate]) {
        let mut recent = lock(&self.0);
        recent.retain(|_, (at, _)| at.elapsed() < LIST_TTL);
        if recent.len() < MAX_OWNERS {
            recent.insert(owner.clone(), (Instant::now(), candidates.to_vec()));
        }
    }
}

/// Completes the arguments of URIs for one owner.
pub(super) struct Completer<'a> {
    pub(super) resources: &'a Resources,
    pub(super) owner: &'a Identity,
}

impl Completer<'_> {
    /// Returns candidates for an argument of a URI; empty if there are none.
    ///
    /// `earlier` are the arguments that are already filled in.
    pub(super) async fn argument(
        &self,
        argument: &str,
        earlier: &HashMap<String, String>,
    ) -> Vec<CompletionCandidate> {
        match argument {
            "name" => operations(),
            "cacheId" => self.results(),
            "index" => self.indexes(earlier.get("cacheId")),
            "websetId" => self.websets().await,
            "id" => self.notes().await,
            _ => Vec::new(),
        }
    }

    fn results(&self) -> Vec<CompletionCandidate> {
        let cached = self.resources.shared.results.list(self.owner).into_iter();
        let candidate = |cached: CachedResult| CompletionCandidate {
            value: cached.id,
            words: format!("{} {}", cached.operation, cached.title),
        };
        cached.map(candidate).collect()
    }

    fn indexes(&self, id: Option<&String>) -> Vec<CompletionCandidate> {
        let results = &self.resources.shared.results;
        let cached = id.and_then(|id| results.get(self.owner, id));
        let count = cached.map_or(0, |cached| cached.results);
        let candidate = |index: usize| CompletionCandidate {
            value: index.to_string(),
            words: String::new(),
        };
        (1..=count).map(candidate).collect()
    }

    /// Returns the notes, by id and by title.
    pub(super) async fn notes(&self) -> Vec<CompletionCandidate> {
        let Some(notes) = &self.resources.notes else {
            return Vec::new();
        };
        let listed = notes.list(self.owner, None, MAX_NOTES).await;
        let candidate = |note: super::Note| CompletionCandidate {
            value: note.id,
            words: note.draft.title,
        };
        let listed = listed.unwrap_or_default().into_iter();
        listed.map(candidate).collect()
    }

    async fn websets(&self) -> Vec<CompletionCandidate> {
        if !self.resources.websets {
            return Vec::new();
        }
        let recent = &self.resources.shared.recent_websets;
        if let Some(candidates) = recent.get(self.owner) {
            return candidates;
        }
        // Without a timely response, there are no candidates.
        let candidates = timeout(LIST_TIMEOUT, self.list_websets()).await;
        let candidates = candidates.ok().flatten().unwrap_or_default();
        recent.insert(self.owner, &candidates);
        candidates
    }

    async fn list_websets(&self) -> Option<Vec<CompletionCandidate>> {
        let list = RESOURCES.websets.as_ref()?.list.as_ref()?;
        let operation = find(list)?;
        let executor = &self.resources.executor;
        let called = executor.call(operation, json!({"limit": MAX_WEBSETS}));
        let response = called.await.ok()?.response.value;
        let websets = ENTRIES.list(&response)?;
        Some(websets.iter().filter_map(webset).collect())
    }
}

fn webset(webset: &Value) -> Option<CompletionCandidate> {
    let text = |field: &str| webset.get(field).and_then(Value::as_str);
    Some(CompletionCandidate {
        value: ID.text(webset)?.to_owned(),
        words: [text("title"), text("externalId")]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join(" "),
    })
}

fn operations() -> Vec<CompletionCandidate> {
    let candidate = |operation: &exa_mcp_model::Operation| CompletionCandidate {
        value: operation.name.to_owned(),
        words: operation.summary.to_owned(),
    };
    let operations = all().iter();
    let operations = operations.filter(|operation| !operation.api.admin_only);
    operations.map(candidate).collect()
}

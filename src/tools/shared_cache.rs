//! CachedResult answers that all servers on one store find, whichever of them asked Exa.
//!
//! Each server keeps its own answers in memory as well. What is too large, or too much, is known to the
//! server alone that asked for it.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use tokio::time::timeout;

use super::cache::{CachedResult, Limits};
use crate::render::Level;
use exa_mcp_model::time::milliseconds;
use exa_mcp_model::{Identity, to_hex};
use exa_mcp_store::format::{self, DocumentFormat};
use exa_mcp_store::{DocumentKey, Store, WriteOptions};

/// Where answers are kept, and which of them answers which question.
const RESULTS: &str = "results";
const QUESTIONS: &str = "questions";

/// The most bytes of an answer that is shared.
const LARGEST: usize = 256 * 1024;

/// The most answers of one owner.
const MOST: usize = 200;

/// How long a call waits for the store; it can do without.
const PATIENCE: Duration = Duration::from_secs(1);

/// CachedResult answers in a store that several servers share.
pub(super) struct SharedCache<'a> {
    store: &'a dyn Store,
    ttl: Duration,
}

/// An answer as it is written down.
#[derive(Serialize, Deserialize)]
struct Written {
    #[serde(rename = "title")]
    title: String,
    #[serde(rename = "operation")]
    operation: String,
    #[serde(rename = "results")]
    results: usize,
    /// Milliseconds since 1970.
    #[serde(rename = "kept_at")]
    kept_at: u64,
    #[serde(rename = "answer")]
    answer: String,
    #[serde(rename = "asked")]
    asked: Option<String>,
    #[serde(rename = "extract")]
    extract: Option<usize>,
}

impl DocumentFormat for Written {
    const KIND: &'static str = "kept answer";
}

impl<'a> SharedCache<'a> {
    /// The answers in a store, if it is one that others share and answers are kept at all.
    pub(super) fn of(store: &'a dyn Store, limits: Limits) -> Option<Self> {
        let wanted = store.is_remote() && !limits.keeps_nothing();
        let ttl = limits.ttl;
        wanted.then_some(Self { store, ttl })
    }

    /// One answer of this owner.
    pub(super) async fn get(&self, owner: &Identity, id: &str) -> Option<CachedResult> {
        let found = self.store.get(place(owner, RESULTS, id));
        let document = timeout(PATIENCE, found).await.ok()?.ok()??;
        read(id, &document.body)
    }

    /// The answer to the same question.
    pub(super) async fn same(
        &self,
        owner: &Identity,
        operation: &str,
        arguments: &Map<String, Value>,
    ) -> Option<CachedResult> {
        let question = question(operation, arguments);
        let found = self.store.get(place(owner, QUESTIONS, &question));
        let document = timeout(PATIENCE, found).await.ok()?.ok()??;
        self.get(owner, &document.body).await
    }

    /// Lets other servers find an answer.
    pub(super) async fn keep(
        &self,
        owner: &Identity,
        arguments: &Map<String, Value>,
        kept: &CachedResult,
    ) {
        if kept.bytes > LARGEST {
            return;
        }
        let written = Written {
            title: kept.title.clone(),
            operation: kept.operation.clone(),
            results: kept.results,
            kept_at: milliseconds(kept.kept_at),
            answer: kept.answer.to_string(),
            asked: kept.asked.map(|level| level.name().to_owned()),
            extract: kept.extract,
        };
        let body = format::encode(&written);
        if body.is_empty() || body.len() > LARGEST {
            return;
        }
        let rules = WriteOptions {
            time_to_live: Some(self.ttl),
            max_documents: Some(MOST),
            ..WriteOptions::default()
        };
        let question = place(owner, QUESTIONS, &question(&kept.operation, arguments));
        let keep = async {
            let answer = place(owner, RESULTS, &kept.id);
            self.store.put(answer, body, rules).await?;
            self.store.put(question, kept.id.clone(), rules).await
        };
        // Without it the others ask Exa themselves, or say that they do not know the answer.
        let _ = timeout(PATIENCE, keep).await;
    }
}

fn place(owner: &Identity, collection: &'static str, id: &str) -> DocumentKey {
    DocumentKey {
        owner: owner.clone(),
        collection,
        id: id.to_owned(),
    }
}

fn read(id: &str, body: &str) -> Option<CachedResult> {
    let written: Written = format::decode(body)?;
    let kept_at = UNIX_EPOCH.checked_add(Duration::from_millis(written.kept_at));
    Some(CachedResult {
        id: id.to_owned(),
        title: written.title,
        operation: written.operation,
        bytes: written.answer.len(),
        results: written.results,
        kept_at: kept_at.unwrap_or_else(SystemTime::now),
        answer: Arc::from(written.answer),
        asked: written.asked.and_then(|name| Level::named(&name)),
        extract: written.extract,
    })
}

/// A question in brief; whose it is says the place.
fn question(operation: &str, arguments: &Map<String, Value>) -> String {
    let mut sorted: Vec<(&String, &Value)> = arguments.iter().collect();
    sorted.sort_by_key(|(name, _)| *name);
    let text = serde_json::to_string(&(operation, sorted)).unwrap_or_default();
    to_hex(&Sha256::digest(text.as_bytes()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// The format of kept answers in stores. Whoever changes it breaks the stores of others: see
    /// docs/upgrading.md.
    #[test]
    fn the_format_of_a_kept_answer_does_not_change() {
        let written = Written {
            title: "t".to_owned(),
            operation: "search".to_owned(),
            results: 1,
            kept_at: 2,
            answer: "{}".to_owned(),
            asked: Some("full".to_owned()),
            extract: Some(3),
        };
        let text = concat!(
            r#"{"v":1,"title":"t","operation":"search","results":1,"kept_at":2,"answer":"{}","#,
            r#""asked":"full","extract":3}"#,
        );
        assert_eq!(format::encode(&written), text);
        let before = text.replacen(r#""v":1,"#, "", 1);
        assert_eq!(read("r", &before).unwrap().title, "t");
    }
}

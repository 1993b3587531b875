//! Cached results that servers share through a store.
//!
//! Each server also has its own results in memory. Results beyond the limits are known only to the server that
//! requested them.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use tokio::time::timeout;

use super::cache::{CacheLimits, CachedResult};
use super::expansion::Expansion;
use crate::render::ContentLevel;
use exa_mcp_model::time::milliseconds;
use exa_mcp_model::{Identity, to_hex};
use exa_mcp_store::format::{self, DocumentFormat};
use exa_mcp_store::{DocumentKey, Store, WriteOptions};

/// The collections of results, and of their ids by request.
const RESULTS: &str = "results";
const REQUESTS: &str = "questions";

/// The maximum size of a shared result, in bytes.
const MAX_BYTES: usize = 256 * 1024;

/// The maximum number of shared results of one owner.
const MAX_PER_OWNER: usize = 200;

/// How long a call waits for the store, which is optional here.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Cached results in a store that several servers share.
pub(super) struct SharedCache<'a> {
    store: &'a dyn Store,
    ttl: Duration,
}

/// A cached result in the store.
#[derive(Serialize, Deserialize)]
struct StoredResult {
    title: String,
    operation: String,
    results: usize,
    /// Milliseconds since 1970.
    #[serde(rename = "kept_at")]
    stored_at: u64,
    #[serde(rename = "answer")]
    response: String,
    #[serde(rename = "asked")]
    requested_level: Option<String>,
    extract: Option<usize>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    extra: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expansion: Option<Expansion>,
}

impl DocumentFormat for StoredResult {
    const KIND: &'static str = "cached result";
}

impl<'a> SharedCache<'a> {
    /// Returns the cache in a store, if the store is shared and the cache is enabled.
    pub(super) fn open(store: &'a dyn Store, limits: CacheLimits) -> Option<Self> {
        let wanted = store.is_remote() && !limits.is_disabled();
        let ttl = limits.ttl;
        wanted.then_some(Self { store, ttl })
    }

    /// Returns a cached result of an owner.
    pub(super) async fn get(&self, owner: &Identity, id: &str) -> Option<CachedResult> {
        let found = self.store.get(document_key(owner, RESULTS, id));
        let document = timeout(TIMEOUT, found).await.ok()?.ok()??;
        decode(id, &document.body)
    }

    /// Returns the cached result of the same request.
    pub(super) async fn find_by_request(
        &self,
        owner: &Identity,
        operation: &str,
        arguments: &Map<String, Value>,
    ) -> Option<CachedResult> {
        let request = request_hash(operation, arguments);
        let found = self.store.get(document_key(owner, REQUESTS, &request));
        let document = timeout(TIMEOUT, found).await.ok()?.ok()??;
        self.get(owner, &document.body).await
    }

    /// Stores a result for other servers.
    pub(super) async fn insert(
        &self,
        owner: &Identity,
        arguments: &Map<String, Value>,
        result: &CachedResult,
    ) {
        if result.bytes > MAX_BYTES {
            return;
        }
        let stored = StoredResult {
            title: result.title.clone(),
            operation: result.operation.clone(),
            results: result.results,
            stored_at: milliseconds(result.stored_at),
            response: result.response.to_string(),
            requested_level: result.requested_level.map(|level| level.name().to_owned()),
            extract: result.extract,
            extra: result.extra.clone(),
            expansion: result.expansion.as_deref().cloned(),
        };
        let body = format::encode(&stored);
        if body.is_empty() || body.len() > MAX_BYTES {
            return;
        }
        let options = WriteOptions {
            time_to_live: Some(self.ttl),
            max_documents: Some(MAX_PER_OWNER),
            ..WriteOptions::default()
        };
        let request = document_key(owner, REQUESTS, &request_hash(&result.operation, arguments));
        let store = async {
            let key = document_key(owner, RESULTS, &result.id);
            self.store.put(key, body, options).await?;
            self.store.put(request, result.id.clone(), options).await
        };
        // On failure, other servers call Exa themselves or report an unknown id.
        let _ = timeout(TIMEOUT, store).await;
    }
}

fn document_key(owner: &Identity, collection: &'static str, id: &str) -> DocumentKey {
    DocumentKey {
        owner: owner.clone(),
        collection,
        id: id.to_owned(),
    }
}

fn decode(id: &str, body: &str) -> Option<CachedResult> {
    let stored: StoredResult = format::decode(body)?;
    let stored_at = UNIX_EPOCH.checked_add(Duration::from_millis(stored.stored_at));
    Some(CachedResult {
        id: id.to_owned(),
        title: stored.title,
        operation: stored.operation,
        bytes: stored.response.len(),
        results: stored.results,
        stored_at: stored_at.unwrap_or_else(SystemTime::now),
        response: Arc::from(stored.response),
        requested_level: stored
            .requested_level
            .and_then(|name| ContentLevel::from_name(&name)),
        extract: stored.extract,
        extra: stored.extra,
        expansion: stored.expansion.map(Arc::new),
    })
}

/// Hashes a request; the owner is part of the document key.
fn request_hash(operation: &str, arguments: &Map<String, Value>) -> String {
    let mut sorted: Vec<(&String, &Value)> = arguments.iter().collect();
    sorted.sort_by_key(|(name, _)| *name);
    let text = serde_json::to_string(&(operation, sorted)).unwrap_or_default();
    to_hex(&Sha256::digest(text.as_bytes()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Existing stores depend on this format: see docs/upgrading.md.
    #[test]
    fn the_stored_format_does_not_change() {
        let stored = StoredResult {
            title: "t".to_owned(),
            operation: "search".to_owned(),
            results: 1,
            stored_at: 2,
            response: "{}".to_owned(),
            requested_level: Some("full".to_owned()),
            extract: Some(3),
            extra: Vec::new(),
            expansion: None,
        };
        let text = concat!(
            r#"{"v":1,"title":"t","operation":"search","results":1,"kept_at":2,"answer":"{}","#,
            r#""asked":"full","extract":3}"#,
        );
        assert_eq!(format::encode(&stored), text);
        let before = text.replacen(r#""v":1,"#, "", 1);
        assert_eq!(decode("r", &before).unwrap().title, "t");
    }
}

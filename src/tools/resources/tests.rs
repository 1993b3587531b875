//! Resources without Exa.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::time::Duration;

use serde_json::json;

use super::*;
use crate::operations::{all, find};
use crate::tools::watchers::MAX_PENDING;
use exa_mcp_exa_client::{ExaConfig, ExaHttp, ExaResponse};
use exa_mcp_store::MemoryStore;

fn ann() -> Identity {
    Identity::user("ann")
}

fn bob() -> Identity {
    Identity::user("bob")
}

fn resources() -> (Resources, ResultCache) {
    let executor = OperationExecutor::new(
        ExaHttp::new(ExaConfig::default()).unwrap(),
        None,
        std::sync::Arc::new(crate::operations::spend::Unlimited),
    );
    let results = ResultCache::default();
    let notes = Notes::new(Arc::new(MemoryStore::default()));
    let resources = Resources::new(executor, results.clone(), Some(notes), true);
    (resources, results)
}

/// Caches a response with two results and returns its id.
fn cache_result(results: &ResultCache, owner: &Identity, title: &str) -> String {
    let response = json!({"results": [{"title": "One", "url": "https://one.example"},
                                    {"title": "Two", "url": "https://two.example"}]});
    results.add(owner, title, "search", &response).id
}

async fn note(resources: &Resources, owner: &Identity, title: &str) -> String {
    let draft = NoteDraft {
        title: title.to_owned(),
        content: "Text.".to_owned(),
        source_urls: Vec::new(),
    };
    let notes = resources.notes().unwrap();
    resources.add_note(owner, notes, draft).await.unwrap().id
}

async fn read(
    resources: &Resources,
    owner: &Identity,
    uri: &str,
) -> Result<ResourceContent, ReadError> {
    let uri = ResourceUri::parse(uri).unwrap();
    resources.read(owner, &uri).await
}

/// Lists all URIs, page by page.
async fn listed(resources: &Resources, owner: &Identity, size: usize) -> Vec<String> {
    let mut seen = Vec::new();
    let mut cursor = None;
    loop {
        let page = resources.page(owner, cursor.as_deref(), size).await;
        let page = page.unwrap().unwrap();
        assert!(page.entries.len() <= size);
        seen.extend(page.entries.iter().map(|entry| entry.uri.to_string()));
        cursor = page.next;
        if cursor.is_none() {
            return seen;
        }
    }
}

/// Returns the operations that are resources: all but those for admins.
fn described() -> impl Iterator<Item = &'static exa_mcp_model::Operation> {
    all().iter().filter(|operation| !operation.api.admin_only)
}

#[tokio::test]
async fn the_page_size_does_not_change_the_list() {
    let (resources, results) = resources();
    let mut ids = ["a", "b", "c"].map(|title| cache_result(&results, &ann(), title));
    cache_result(&results, &bob(), "z");
    let first = note(&resources, &ann(), "first").await;
    let second = note(&resources, &ann(), "second").await;
    note(&resources, &bob(), "other").await;
    let whole = listed(&resources, &ann(), 1000).await;
    let mut results: Vec<String> = whole[..3].to_vec();
    results.sort();
    ids.sort();
    assert_eq!(results, ids.map(|id| format!("exa://results/{id}")));
    let expected = [
        format!("note:///{second}"),
        format!("note:///{first}"),
        "exa://operations/agent.monitors.backtests.create".to_owned(),
    ];
    assert_eq!(whole[3..6], expected);
    assert_eq!(whole.len(), 5 + described().count());
    for size in [1, 2, 3, 5, 7, 73, 74, 75] {
        assert_eq!(listed(&resources, &ann(), size).await, whole, "{size}");
    }
}

#[tokio::test]
async fn pages_continue_correctly_while_entries_change() {
    let (resources, results) = resources();
    for title in ["a", "b", "c", "d"] {
        cache_result(&results, &ann(), title);
        // Results of the same millisecond have no defined order.
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let names = |page: &ResourcePage| -> String {
        let names: Vec<&str> = page.entries.iter().map(|e| e.name.as_str()).collect();
        names.join(" ")
    };
    let page = resources.page(&ann(), None, 2).await.unwrap().unwrap();
    assert_eq!(names(&page), "d c");
    results.remove_oldest();
    cache_result(&results, &ann(), "e");
    let next = resources.page(&ann(), page.next.as_deref(), 1).await;
    let next = next.unwrap().unwrap();
    assert_eq!(names(&next), "b");
    let next = resources.page(&ann(), next.next.as_deref(), 1).await;
    assert_eq!(names(&next.unwrap().unwrap()), all()[0].name);
}

#[tokio::test]
async fn rejects_invalid_cursors() {
    let (resources, _) = resources();
    for cursor in [
        "",
        "1",
        "results",
        "results-",
        "results-1",
        "results-1-",
        "results-01-a",
        "notes-",
        "notes-x",
        "notes--1",
        "operations-x",
        "operations-9999",
        "operations-+1",
        "other-1",
    ] {
        let page = resources.page(&ann(), Some(cursor), 9).await;
        assert_eq!(page.unwrap(), None, "{cursor}");
    }
}

#[tokio::test]
async fn describes_entries() {
    let (resources, results) = resources();
    cache_result(&results, &ann(), "heat\n pumps");
    let id = note(&resources, &ann(), "Heat pumps").await;
    let page = resources.page(&ann(), None, 3).await.unwrap().unwrap();
    let [result, note, operation] = page.entries.as_slice() else {
        unreachable!()
    };
    assert_eq!(result.name, "heat pumps");
    assert_eq!(result.description, "Result of search: 2 results");
    let modified = result.modified.as_deref().unwrap();
    assert!(
        modified.len() == 20 && modified.ends_with('Z'),
        "{modified}"
    );
    assert_eq!((note.name.as_str(), note.mime), ("Heat pumps", PLAIN));
    let text = read(&resources, &ann(), &format!("note:///{id}"))
        .await
        .unwrap()
        .text;
    assert_eq!(note.size, Some(text.len()));
    assert_eq!(operation.mime, JSON);
    let text = read(&resources, &ann(), &operation.uri.to_string()).await;
    assert_eq!(operation.size, Some(text.unwrap().text.len()));
}

#[tokio::test]
async fn only_the_owner_reads_results_and_notes() {
    let (resources, results) = resources();
    let cache_id = cache_result(&results, &ann(), "t");
    let id = note(&resources, &ann(), "Mine").await;
    let (whole, second) = (
        format!("exa://results/{cache_id}"),
        format!("exa://results/{cache_id}/2"),
    );
    for uri in [&whole, &second, &format!("note:///{id}")] {
        assert!(read(&resources, &ann(), uri).await.is_ok(), "{uri}");
        let error = read(&resources, &bob(), uri).await.unwrap_err();
        assert!(matches!(error, ReadError::NotFound(_)), "{uri}: {error:?}");
    }
    let text = read(&resources, &ann(), &whole).await.unwrap().text;
    assert!(text.contains("One") && text.contains("Two"), "{text}");
    let text = read(&resources, &ann(), &second).await.unwrap().text;
    assert!(text.contains("Two") && !text.contains("One"), "{text}");
    let third = format!("exa://results/{cache_id}/3");
    let error = read(&resources, &ann(), &third).await.unwrap_err();
    assert!(error.to_string().contains("2 results"), "{error}");
}

#[tokio::test]
async fn describes_every_operation() {
    let (resources, _) = resources();
    for operation in described() {
        let uri = ResourceUri::Operation(operation.name.to_owned()).to_string();
        let content = read(&resources, &ann(), &uri).await.unwrap();
        let described: Value = serde_json::from_str(&content.text).unwrap();
        assert_eq!(described["name"], operation.name);
        assert!(described["inputSchema"].is_object() && described["outputSchema"].is_object());
        assert_eq!(described["example"]["operation"], operation.name);
    }
    let error = read(&resources, &ann(), "exa://operations/item.lists").await;
    assert!(error.unwrap_err().to_string().contains("`items.list`"));
}

#[tokio::test]
async fn disabled_resources_are_neither_listed_nor_read() {
    let executor = OperationExecutor::new(
        ExaHttp::new(ExaConfig::default()).unwrap(),
        None,
        std::sync::Arc::new(crate::operations::spend::Unlimited),
    );
    let resources = Resources::new(executor, ResultCache::default(), None, false);
    let patterns: Vec<&str> = resources.templates().iter().map(|t| t.pattern).collect();
    assert_eq!(
        patterns,
        [
            "exa://results/{cacheId}",
            "exa://results/{cacheId}/{index}",
            "exa://operations/{name}"
        ]
    );
    for uri in ["exa://websets/a", "exa://websets/a/items", "note:///a"] {
        let error = read(&resources, &ann(), uri).await.unwrap_err();
        assert!(matches!(error, ReadError::NotFound(_)), "{uri}: {error:?}");
    }
    assert_eq!(resources.complete(&ann(), "websetId", &[].into()).await, []);
    assert_eq!(
        listed(&resources, &ann(), 100).await.len(),
        described().count()
    );
}

/// Returns a successful call.
fn called(arguments: Value, response: Value) -> CompletedCall {
    CompletedCall {
        response: ExaResponse {
            value: response,
            status: 200,
            request_id: None,
        },
        arguments: arguments.as_object().unwrap().clone(),
        reported_progress: 0.0,
    }
}

#[tokio::test]
async fn notifies_only_the_owner_of_changes() {
    let (resources, results) = resources();
    let (mut ann_watch, mut bob_watch) = (resources.watch(&ann()), resources.watch(&bob()));
    note(&resources, &ann(), "Mine").await;
    assert_eq!(ann_watch.next().await, ResourceEvent::ListChanged);
    let id = cache_result(&results, &ann(), "t");
    assert_eq!(ann_watch.next().await, ResourceEvent::ListChanged);
    results.remove_oldest();
    let removed = ResourceEvent::Updated(ResourceUri::Result(id));
    assert_eq!(ann_watch.next().await, removed);
    assert_eq!(ann_watch.next().await, ResourceEvent::ListChanged);
    cache_result(&results, &bob(), "t");
    assert_eq!(bob_watch.next().await, ResourceEvent::ListChanged);
    let quiet = tokio::time::timeout(Duration::from_millis(5), bob_watch.next());
    assert!(quiet.await.is_err());
}

/// The cache evicts expired results only when it is used, so the watch has to check it.
#[tokio::test]
async fn reports_expired_results_without_a_request() {
    let results = ResultCache::new(crate::tools::CacheLimits {
        ttl: Duration::from_millis(150),
        ..Default::default()
    });
    let executor = OperationExecutor::new(
        ExaHttp::new(ExaConfig::default()).unwrap(),
        None,
        std::sync::Arc::new(crate::operations::spend::Unlimited),
    );
    let resources = Resources::new(executor, results.clone(), None, false);
    let before = cache_result(&results, &ann(), "before");
    let mut watch = resources.watch(&ann());
    let after = cache_result(&results, &ann(), "after");
    assert_eq!(watch.next().await, ResourceEvent::ListChanged);
    for id in [before, after] {
        let removed = ResourceEvent::Updated(ResourceUri::Result(id));
        assert_eq!(watch.next().await, removed);
        assert_eq!(watch.next().await, ResourceEvent::ListChanged);
    }
}

#[tokio::test]
async fn reports_calls_that_change_a_webset() {
    let (resources, _) = resources();
    let mut watch = resources.watch(&ann());
    let webset = |name: &str| ResourceEvent::Updated(ResourceUri::Webset(name.to_owned()));
    let call = |name: &str, arguments: Value, response: Value| {
        let operation = find(name).unwrap();
        resources.notify_webset_change(&ann(), operation, &called(arguments, response));
    };
    call("websets.get", json!({"websetId": "a"}), json!({"id": "a"}));
    call("websets.create", json!({}), json!({"id": "b"}));
    call(
        "searches.create",
        json!({"websetId": "c"}),
        json!({"id": "s"}),
    );
    assert_eq!(watch.next().await, webset("c"));
    // A webset is watched by its id or its external id.
    call(
        "websets.update",
        json!({"websetId": "mine"}),
        json!({"id": "d", "externalId": "mine"}),
    );
    assert_eq!(watch.next().await, webset("d"));
    assert_eq!(watch.next().await, webset("mine"));
    for name in [
        "websets.cancel",
        "websets.delete",
        "items.delete",
        "enrichments.create",
    ] {
        call(name, json!({"websetId": "e"}), json!({}));
        assert_eq!(watch.next().await, webset("e"), "{name}");
    }
}

#[tokio::test]
async fn a_slow_watch_reports_lagging() {
    let (resources, _) = resources();
    let mut watch = resources.watch(&ann());
    for number in 0..=MAX_PENDING {
        resources.notify(&bob(), ResourceEvent::ListChanged);
        let webset = ResourceUri::Webset(number.to_string());
        resources.notify(&ann(), ResourceEvent::Updated(webset));
    }
    assert_eq!(watch.next().await, ResourceEvent::ListChanged);
    assert_eq!(watch.next().await, ResourceEvent::Lagged);
}

#[tokio::test]
async fn completes_only_resources_of_the_owner() {
    let (resources, results) = resources();
    let cache_id = cache_result(&results, &ann(), "t");
    let foreign = cache_result(&results, &bob(), "t");
    let id = note(&resources, &ann(), "Heat pumps").await;
    let none = [].into();
    let values = async |argument| {
        let candidates = resources.complete(&ann(), argument, &none).await;
        candidates
            .into_iter()
            .map(|candidate| candidate.value)
            .collect::<Vec<_>>()
    };
    assert_eq!(values("cacheId").await, [cache_id.as_str()]);
    assert_eq!(values("id").await, [id]);
    assert_eq!(values("name").await.len(), described().count());
    assert_eq!(values("index").await, Vec::<String>::new());
    assert_eq!(values("other").await, Vec::<String>::new());
    let of = |id: &str| [("cacheId".to_owned(), id.to_owned())].into();
    assert_eq!(
        resources
            .complete(&ann(), "index", &of(&cache_id))
            .await
            .len(),
        2
    );
    assert_eq!(
        resources
            .complete(&ann(), "index", &of(&foreign))
            .await
            .len(),
        0
    );
    // Without a key nothing can be listed, which is not an error.
    assert_eq!(values("websetId").await, Vec::<String>::new());
}

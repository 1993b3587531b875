//! The resources without Exa.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::time::Duration;

use serde_json::json;

use super::*;
use crate::operations::{all, find};
use crate::tools::watchers::MAX_WAITING;
use exa_mcp_exa_client::{ExaConfig, ExaHttp, ExaResponse};
use exa_mcp_store::MemoryStore;

fn ann() -> Identity {
    Identity::user("ann")
}

fn bob() -> Identity {
    Identity::user("bob")
}

fn resources() -> (Resources, ResultCache) {
    let caller = OperationExecutor::new(
        ExaHttp::new(ExaConfig::default()).unwrap(),
        None,
        std::sync::Arc::new(crate::operations::spend::Unlimited),
    );
    let results = ResultCache::default();
    let notes = Notes::new(Arc::new(MemoryStore::default()));
    let resources = Resources::new(caller, results.clone(), Some(notes), true);
    (resources, results)
}

/// Keeps an answer with two results and gives its id.
fn keep(results: &ResultCache, owner: &Identity, title: &str) -> String {
    let answer = json!({"results": [{"title": "One", "url": "https://one.example"},
                                    {"title": "Two", "url": "https://two.example"}]});
    results.add(owner, title, "search", &answer).id
}

async fn note(resources: &Resources, owner: &Identity, title: &str) -> String {
    let draft = Draft {
        title: title.to_owned(),
        content: "Text.".to_owned(),
        source_urls: Vec::new(),
    };
    let notes = resources.notes().unwrap();
    resources.add_note(owner, notes, draft).await.unwrap().id
}

async fn read(resources: &Resources, owner: &Identity, uri: &str) -> Result<Content, ReadError> {
    let address = Address::parse(uri).unwrap();
    resources.read(owner, &address).await
}

/// All addresses, page by page.
async fn listed(resources: &Resources, owner: &Identity, size: usize) -> Vec<String> {
    let mut seen = Vec::new();
    let mut cursor = None;
    loop {
        let leaf = resources.page(owner, cursor.as_deref(), size).await;
        let leaf = leaf.unwrap().unwrap();
        assert!(leaf.entries.len() <= size);
        seen.extend(leaf.entries.iter().map(|entry| entry.address.to_string()));
        cursor = leaf.next;
        if cursor.is_none() {
            return seen;
        }
    }
}

#[tokio::test]
async fn the_list_is_the_same_whatever_the_size_of_its_pages() {
    let (resources, results) = resources();
    let mut kept = ["a", "b", "c"].map(|title| keep(&results, &ann(), title));
    keep(&results, &bob(), "z");
    let first = note(&resources, &ann(), "first").await;
    let second = note(&resources, &ann(), "second").await;
    note(&resources, &bob(), "other").await;
    let whole = listed(&resources, &ann(), 1000).await;
    let mut results: Vec<String> = whole[..3].to_vec();
    results.sort();
    kept.sort();
    assert_eq!(results, kept.map(|id| format!("exa://results/{id}")));
    let expected = [
        format!("note:///{second}"),
        format!("note:///{first}"),
        "exa://operations/agent.monitors.backtests.create".to_owned(),
    ];
    assert_eq!(whole[3..6], expected);
    assert_eq!(whole.len(), 5 + all().len());
    for size in [1, 2, 3, 5, 7, 73, 74, 75] {
        assert_eq!(listed(&resources, &ann(), size).await, whole, "{size}");
    }
}

#[tokio::test]
async fn a_page_goes_on_where_the_last_one_ended_though_entries_come_and_go() {
    let (resources, results) = resources();
    for title in ["a", "b", "c", "d"] {
        keep(&results, &ann(), title);
        // Answers of one moment have no order of their own.
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let names = |leaf: &ResourcePage| -> String {
        let names: Vec<&str> = leaf.entries.iter().map(|e| e.name.as_str()).collect();
        names.join(" ")
    };
    let leaf = resources.page(&ann(), None, 2).await.unwrap().unwrap();
    assert_eq!(names(&leaf), "d c");
    results.forget_oldest();
    keep(&results, &ann(), "e");
    let next = resources.page(&ann(), leaf.next.as_deref(), 1).await;
    let next = next.unwrap().unwrap();
    assert_eq!(names(&next), "b");
    let next = resources.page(&ann(), next.next.as_deref(), 1).await;
    assert_eq!(names(&next.unwrap().unwrap()), all()[0].name);
}

#[tokio::test]
async fn cursors_of_others_are_refused() {
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
        "operations-69",
        "operations-+1",
        "other-1",
    ] {
        let leaf = resources.page(&ann(), Some(cursor), 9).await;
        assert_eq!(leaf.unwrap(), None, "{cursor}");
    }
}

#[tokio::test]
async fn entries_tell_what_they_are() {
    let (resources, results) = resources();
    keep(&results, &ann(), "heat\n pumps");
    let id = note(&resources, &ann(), "Heat pumps").await;
    let leaf = resources.page(&ann(), None, 3).await.unwrap().unwrap();
    let [result, note, operation] = leaf.entries.as_slice() else {
        unreachable!()
    };
    assert_eq!(result.name, "heat pumps");
    assert_eq!(result.description, "Answer of search: 2 results");
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
    let text = read(&resources, &ann(), &operation.address.to_string()).await;
    assert_eq!(operation.size, Some(text.unwrap().text.len()));
}

#[tokio::test]
async fn only_the_owner_reads_results_and_notes() {
    let (resources, results) = resources();
    let kept = keep(&results, &ann(), "t");
    let id = note(&resources, &ann(), "Mine").await;
    let (whole, second) = (
        format!("exa://results/{kept}"),
        format!("exa://results/{kept}/1"),
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
    let third = format!("exa://results/{kept}/2");
    let error = read(&resources, &ann(), &third).await.unwrap_err();
    assert!(error.to_string().contains("2 results"), "{error}");
}

#[tokio::test]
async fn an_operation_is_described_whole() {
    let (resources, _) = resources();
    for operation in all() {
        let uri = Address::Operation(operation.name.to_owned()).to_string();
        let content = read(&resources, &ann(), &uri).await.unwrap();
        let told: Value = serde_json::from_str(&content.text).unwrap();
        assert_eq!(told["name"], operation.name);
        assert!(told["inputSchema"].is_object() && told["outputSchema"].is_object());
        assert_eq!(told["example"]["operation"], operation.name);
    }
    let error = read(&resources, &ann(), "exa://operations/item.lists").await;
    assert!(error.unwrap_err().to_string().contains("`items.list`"));
}

#[tokio::test]
async fn what_is_not_offered_is_neither_shown_nor_read() {
    let caller = OperationExecutor::new(
        ExaHttp::new(ExaConfig::default()).unwrap(),
        None,
        std::sync::Arc::new(crate::operations::spend::Unlimited),
    );
    let resources = Resources::new(caller, ResultCache::default(), None, false);
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
    assert_eq!(listed(&resources, &ann(), 100).await.len(), all().len());
}

/// A call that was answered.
fn called(arguments: Value, answer: Value) -> CompletedCall {
    CompletedCall {
        response: ExaResponse {
            value: answer,
            status: 200,
            request_id: None,
        },
        arguments: arguments.as_object().unwrap().clone(),
        reported_progress: 0.0,
    }
}

#[tokio::test]
async fn only_the_owner_hears_of_changes() {
    let (resources, results) = resources();
    let (mut ann_hears, mut bob_hears) = (resources.watch(&ann()), resources.watch(&bob()));
    note(&resources, &ann(), "Mine").await;
    assert_eq!(ann_hears.next().await, Event::Listed);
    let kept = keep(&results, &ann(), "t");
    assert_eq!(ann_hears.next().await, Event::Listed);
    results.forget_oldest();
    let gone = Event::Changed(Address::Result(kept));
    assert_eq!(ann_hears.next().await, gone);
    assert_eq!(ann_hears.next().await, Event::Listed);
    keep(&results, &bob(), "t");
    assert_eq!(bob_hears.next().await, Event::Listed);
    let quiet = tokio::time::timeout(Duration::from_millis(5), bob_hears.next());
    assert!(quiet.await.is_err());
}

/// The cache drops what is too old only when it is used; whoever watches need not use it.
#[tokio::test]
async fn the_end_of_an_answer_is_heard_though_nobody_asks_for_it() {
    let results = ResultCache::new(crate::tools::Limits {
        ttl: Duration::from_millis(150),
        ..Default::default()
    });
    let caller = OperationExecutor::new(
        ExaHttp::new(ExaConfig::default()).unwrap(),
        None,
        std::sync::Arc::new(crate::operations::spend::Unlimited),
    );
    let resources = Resources::new(caller, results.clone(), None, false);
    let before = keep(&results, &ann(), "before");
    let mut hears = resources.watch(&ann());
    let after = keep(&results, &ann(), "after");
    assert_eq!(hears.next().await, Event::Listed);
    for id in [before, after] {
        let gone = Event::Changed(Address::Result(id));
        assert_eq!(hears.next().await, gone);
        assert_eq!(hears.next().await, Event::Listed);
    }
}

#[tokio::test]
async fn calls_that_change_a_webset_are_told() {
    let (resources, _) = resources();
    let mut hears = resources.watch(&ann());
    let webset = |name: &str| Event::Changed(Address::Webset(name.to_owned()));
    let heed = |name: &str, arguments: Value, answer: Value| {
        let operation = find(name).unwrap();
        resources.heed(&ann(), operation, &called(arguments, answer));
    };
    heed("websets.get", json!({"websetId": "a"}), json!({"id": "a"}));
    heed("websets.create", json!({}), json!({"id": "b"}));
    heed(
        "searches.create",
        json!({"websetId": "c"}),
        json!({"id": "s"}),
    );
    assert_eq!(hears.next().await, webset("c"));
    // By whatever name someone follows it.
    heed(
        "websets.update",
        json!({"websetId": "mine"}),
        json!({"id": "d", "externalId": "mine"}),
    );
    assert_eq!(hears.next().await, webset("d"));
    assert_eq!(hears.next().await, webset("mine"));
    for name in [
        "websets.cancel",
        "websets.delete",
        "items.delete",
        "enrichments.create",
    ] {
        heed(name, json!({"websetId": "e"}), json!({}));
        assert_eq!(hears.next().await, webset("e"), "{name}");
    }
}

#[tokio::test]
async fn whoever_is_too_slow_hears_that_anything_may_have_changed() {
    let (resources, _) = resources();
    let mut hears = resources.watch(&ann());
    for number in 0..=MAX_WAITING {
        resources.tell(&bob(), Event::Listed);
        let webset = Address::Webset(number.to_string());
        resources.tell(&ann(), Event::Changed(webset));
    }
    assert_eq!(hears.next().await, Event::Listed);
    assert_eq!(hears.next().await, Event::Missed);
}

#[tokio::test]
async fn offers_are_those_of_the_owner() {
    let (resources, results) = resources();
    let kept = keep(&results, &ann(), "t");
    let foreign = keep(&results, &bob(), "t");
    let id = note(&resources, &ann(), "Heat pumps").await;
    let none = [].into();
    let values = async |argument| {
        let offers = resources.complete(&ann(), argument, &none).await;
        offers
            .into_iter()
            .map(|offer| offer.value)
            .collect::<Vec<_>>()
    };
    assert_eq!(values("cacheId").await, [kept.as_str()]);
    assert_eq!(values("id").await, [id]);
    assert_eq!(values("name").await.len(), all().len());
    assert_eq!(values("index").await, Vec::<String>::new());
    assert_eq!(values("other").await, Vec::<String>::new());
    let of = |id: &str| [("cacheId".to_owned(), id.to_owned())].into();
    assert_eq!(
        resources.complete(&ann(), "index", &of(&kept)).await.len(),
        2
    );
    assert_eq!(
        resources
            .complete(&ann(), "index", &of(&foreign))
            .await
            .len(),
        0
    );
    // Without a key nothing can be listed, which is no failure.
    assert_eq!(values("websetId").await, Vec::<String>::new());
}

//! Ownership, limits and expiry of cached results.

use serde_json::json;

use super::*;

fn new_result(arguments: &Map<String, Value>, bytes: usize) -> NewResult<'_> {
    NewResult {
        title: "t".to_owned(),
        operation: "search",
        arguments,
        results: 1,
        response: "x".repeat(bytes),
        requested_level: None,
        extract: None,
        extra: Vec::new(),
        expansion: None,
    }
}

fn arguments(query: &str) -> Map<String, Value> {
    json!({"query": query, "numResults": 1})
        .as_object()
        .unwrap()
        .clone()
}

#[test]
fn only_the_owner_finds_a_result() {
    let cache = ResultCache::default();
    let (ann, bob) = (Identity::user("ann"), Identity::user("bob"));
    let result = cache.insert(&ann, new_result(&arguments("q"), 10)).unwrap();
    assert!(cache.get(&ann, &result.id).is_some());
    assert!(cache.get(&bob, &result.id).is_none());
    assert!(
        cache
            .find_by_request(&ann, "search", &arguments("q"))
            .is_some()
    );
    assert!(
        cache
            .find_by_request(&bob, "search", &arguments("q"))
            .is_none()
    );
    assert!(cache.list(&bob).is_empty());
}

#[test]
fn the_order_of_arguments_does_not_matter() {
    let cache = ResultCache::default();
    let me = Identity::local();
    cache.insert(&me, new_result(&arguments("q"), 10)).unwrap();
    let other = json!({"numResults": 1, "query": "q"});
    assert!(
        cache
            .find_by_request(&me, "search", other.as_object().unwrap())
            .is_some()
    );
    assert!(
        cache
            .find_by_request(&me, "response", &arguments("q"))
            .is_none()
    );
    assert!(
        cache
            .find_by_request(&me, "search", &arguments("p"))
            .is_none()
    );
}

#[test]
fn evicts_old_results_beyond_the_size_limit() {
    let limits = CacheLimits {
        bytes: 100_000,
        ttl: DEFAULT_TTL,
    };
    let cache = ResultCache::new(limits);
    let me = Identity::local();
    let first = cache
        .insert(&me, new_result(&arguments("0"), 1_000))
        .unwrap();
    for number in 1..500 {
        cache
            .insert(&me, new_result(&arguments(&number.to_string()), 1_000))
            .unwrap();
    }
    let inner = cache.lock_and_evict();
    assert!(inner.bytes <= 100_000 && inner.entries.len() > 40);
    assert_eq!(inner.entries.len(), inner.order.len());
    assert_eq!(inner.entries.len(), inner.by_request.len());
    drop(inner);
    assert!(cache.get(&me, &first.id).is_none());
    assert!(
        cache
            .insert(&me, new_result(&arguments("big"), 60_000))
            .is_none()
    );
}

#[test]
fn stores_the_last_rendering() {
    let limits = CacheLimits {
        bytes: 10_000,
        ttl: DEFAULT_TTL,
    };
    let cache = ResultCache::new(limits);
    let (ann, bob) = (Identity::user("ann"), Identity::user("bob"));
    let result = cache
        .insert(&ann, new_result(&arguments("q"), 1_000))
        .unwrap();
    let before = cache.lock_and_evict().bytes;
    let requested = |offset| RequestedView {
        view: View {
            offset,
            ..View::default()
        },
        level: None,
        corrections: Vec::new(),
        sent_filters: Vec::new(),
    };
    let shown = |length| {
        Arc::new(Rendered {
            text: "x".repeat(length),
            structured: Map::new(),
            links: Vec::new(),
            format: crate::render::OutputFormat::Markdown,
            stats: None,
            job_end: None,
        })
    };
    cache.store_view(&bob, &result.id, requested(0), shown(10));
    assert!(cache.cached_view(&ann, &result.id, &requested(0)).is_none());
    cache.store_view(&ann, &result.id, requested(0), shown(10));
    cache.store_view(&ann, &result.id, requested(1), shown(20));
    assert!(cache.cached_view(&ann, &result.id, &requested(0)).is_none());
    assert!(cache.cached_view(&bob, &result.id, &requested(1)).is_none());
    let cached_view = cache.cached_view(&ann, &result.id, &requested(1)).unwrap();
    assert_eq!(cached_view.text.len(), 20);
    assert_eq!(
        cache.lock_and_evict().bytes,
        before + 20 * 4 + ENTRY_OVERHEAD
    );
    // A rendering that is too large is not stored and evicts nothing.
    cache.store_view(&ann, &result.id, requested(2), shown(5_000));
    assert!(cache.cached_view(&ann, &result.id, &requested(2)).is_none());
    assert_eq!(cache.lock_and_evict().bytes, before);
    cache.store_view(&ann, &result.id, requested(3), shown(20));
    cache.remove_oldest();
    assert_eq!(cache.lock_and_evict().bytes, 0);
}

#[test]
fn results_expire() {
    let limits = CacheLimits {
        bytes: 100_000,
        ttl: Duration::from_millis(20),
    };
    let cache = ResultCache::new(limits);
    let me = Identity::local();
    let result = cache.insert(&me, new_result(&arguments("q"), 10)).unwrap();
    std::thread::sleep(Duration::from_millis(30));
    assert!(cache.get(&me, &result.id).is_none());
    let nothing = CacheLimits {
        bytes: 100_000,
        ttl: Duration::ZERO,
    };
    assert!(
        ResultCache::new(nothing)
            .insert(&me, new_result(&arguments("q"), 10))
            .is_none()
    );
}

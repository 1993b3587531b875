//! How long results are kept, and for whom.

use serde_json::json;

use super::*;

fn fresh(arguments: &Map<String, Value>, bytes: usize) -> Fresh<'_> {
    Fresh {
        title: "t".to_owned(),
        operation: "search",
        arguments,
        results: 1,
        answer: "x".repeat(bytes),
        asked: None,
        extract: None,
    }
}

fn arguments(query: &str) -> Map<String, Value> {
    json!({"query": query, "numResults": 1})
        .as_object()
        .unwrap()
        .clone()
}

#[test]
fn only_the_owner_finds_an_answer() {
    let cache = ResultCache::default();
    let (ann, bob) = (Identity::user("ann"), Identity::user("bob"));
    let kept = cache.keep(&ann, fresh(&arguments("q"), 10)).unwrap();
    assert!(cache.get(&ann, &kept.id).is_some());
    assert!(cache.get(&bob, &kept.id).is_none());
    assert!(cache.same(&ann, "search", &arguments("q")).is_some());
    assert!(cache.same(&bob, "search", &arguments("q")).is_none());
    assert!(cache.list(&bob).is_empty());
}

#[test]
fn the_same_question_in_another_order_is_the_same() {
    let cache = ResultCache::default();
    let me = Identity::local();
    cache.keep(&me, fresh(&arguments("q"), 10)).unwrap();
    let other = json!({"numResults": 1, "query": "q"});
    assert!(
        cache
            .same(&me, "search", other.as_object().unwrap())
            .is_some()
    );
    assert!(cache.same(&me, "answer", &arguments("q")).is_none());
    assert!(cache.same(&me, "search", &arguments("p")).is_none());
}

#[test]
fn the_bytes_are_bounded() {
    let limits = Limits {
        bytes: 100_000,
        ttl: DEFAULT_TTL,
    };
    let cache = ResultCache::new(limits);
    let me = Identity::local();
    let first = cache.keep(&me, fresh(&arguments("0"), 1_000)).unwrap();
    for number in 1..500 {
        cache
            .keep(&me, fresh(&arguments(&number.to_string()), 1_000))
            .unwrap();
    }
    let inner = cache.open();
    assert!(inner.bytes <= 100_000 && inner.entries.len() > 40);
    assert_eq!(inner.entries.len(), inner.order.len());
    assert_eq!(inner.entries.len(), inner.questions.len());
    drop(inner);
    assert!(cache.get(&me, &first.id).is_none());
    assert!(cache.keep(&me, fresh(&arguments("big"), 60_000)).is_none());
}

#[test]
fn an_answer_is_remembered_as_it_was_shown() {
    let limits = Limits {
        bytes: 10_000,
        ttl: DEFAULT_TTL,
    };
    let cache = ResultCache::new(limits);
    let (ann, bob) = (Identity::user("ann"), Identity::user("bob"));
    let kept = cache.keep(&ann, fresh(&arguments("q"), 1_000)).unwrap();
    let before = cache.open().bytes;
    let wish = |offset| Wish {
        view: View {
            offset,
            ..View::default()
        },
        level: None,
        mended: Vec::new(),
        sent_filters: Vec::new(),
    };
    let shown = |length| {
        Arc::new(Rendered {
            text: "x".repeat(length),
            structured: Map::new(),
            links: Vec::new(),
            format: crate::render::Format::Markdown,
            stats: None,
        })
    };
    cache.show(&bob, &kept.id, wish(0), shown(10));
    assert!(cache.seen(&ann, &kept.id, &wish(0)).is_none());
    cache.show(&ann, &kept.id, wish(0), shown(10));
    cache.show(&ann, &kept.id, wish(1), shown(20));
    assert!(cache.seen(&ann, &kept.id, &wish(0)).is_none());
    assert!(cache.seen(&bob, &kept.id, &wish(1)).is_none());
    let seen = cache.seen(&ann, &kept.id, &wish(1)).unwrap();
    assert_eq!(seen.text.len(), 20);
    assert_eq!(cache.open().bytes, before + 20 * 4 + OVERHEAD);
    // What is too large is not remembered, and nothing else goes for it.
    cache.show(&ann, &kept.id, wish(2), shown(5_000));
    assert!(cache.seen(&ann, &kept.id, &wish(2)).is_none());
    assert_eq!(cache.open().bytes, before);
    cache.show(&ann, &kept.id, wish(3), shown(20));
    cache.forget_oldest();
    assert_eq!(cache.open().bytes, 0);
}

#[test]
fn an_answer_grows_old() {
    let limits = Limits {
        bytes: 100_000,
        ttl: Duration::from_millis(20),
    };
    let cache = ResultCache::new(limits);
    let me = Identity::local();
    let kept = cache.keep(&me, fresh(&arguments("q"), 10)).unwrap();
    std::thread::sleep(Duration::from_millis(30));
    assert!(cache.get(&me, &kept.id).is_none());
    let nothing = Limits {
        bytes: 100_000,
        ttl: Duration::ZERO,
    };
    assert!(
        ResultCache::new(nothing)
            .keep(&me, fresh(&arguments("q"), 10))
            .is_none()
    );
}

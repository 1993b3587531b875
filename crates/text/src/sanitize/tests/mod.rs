#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

mod properties;
mod tables;

use std::borrow::Cow;

use serde_json::json;

use super::*;
use tables::{ATTACKS, UNCHANGED};

#[test]
fn removes_hidden_content() {
    for (given, expected) in ATTACKS {
        assert_eq!(&clean(given), expected, "{given:?}");
        assert_eq!(&clean(expected), expected, "{given:?} the second time");
    }
}

#[test]
fn preserves_meaning_code_and_emoji() {
    for text in UNCHANGED {
        assert_eq!(&clean(text), text);
    }
    // Needed characters stay even if something next to them is removed.
    for text in UNCHANGED {
        let dirty = format!("\u{202e}{text}\u{200b}");
        assert_eq!(&clean(&dirty), text, "{dirty:?}");
    }
}

#[test]
fn does_not_copy_clean_text() {
    for text in UNCHANGED.iter().filter(|text| text.is_ascii()) {
        assert!(matches!(clean(text), Cow::Borrowed(_)), "{text}");
    }
    assert!(matches!(clean("漢字 émoji"), Cow::Borrowed(_)));
}

#[test]
fn limits_combining_marks() {
    let zalgo = format!(
        "Z{}a{}lgo",
        "\u{30d}".repeat(50),
        "\u{489}\u{316}".repeat(20)
    );
    let clean = clean(&zalgo).into_owned();
    assert_eq!(clean.chars().filter(|c| is_mark(*c)).count(), 2 * MAX_MARKS);
    assert!(clean.starts_with('Z') && clean.ends_with("lgo"));
}

#[test]
fn truncates_at_the_best_boundary() {
    let cases = [
        ("short", 10, "short", false),
        ("", 0, "", false),
        ("none", 0, "", true),
        (
            "First part.\n\nSecond part is cut.",
            18,
            "First part.",
            true,
        ),
        (
            "One is here. Two is here too. Three",
            31,
            "One is here. Two is here too.",
            true,
        ),
        ("這是第一句話。這是第二句", 10, "這是第一句話。", true),
        ("several words without an end", 16, "several words", true),
        ("several words without", 13, "several words", true),
        ("unbreakablylongword", 5, "unbre", true),
        ("äöüß", 3, "äöü", true),
        ("abce\u{301}\u{302}f", 5, "abc", true),
        ("ab👨\u{200d}👩\u{200d}👧", 5, "ab", true),
        ("ab👍🏽c", 3, "ab", true),
        ("🇩🇪🇫🇷🇮🇹", 3, "🇩🇪", true),
        ("ab1\u{fe0f}\u{20e3}", 4, "ab", true),
        ("\u{301}\u{301}\u{301}", 2, "\u{301}\u{301}", true),
        ("3.14159265358979", 6, "3.1415", true),
    ];
    for (text, max, expected, cut) in cases {
        assert_eq!(truncate(text, max), (expected, cut), "{text:?} to {max}");
    }
}

#[test]
fn sanitizes_and_truncates_every_string_of_a_value() {
    let mut value = json!({
        "ti\u{200b}tle": "a\u{202e}b",
        "title": "real",
        "na\u{200b}me": ["x", {"deep": "\u{1b}[31mred\u{1b}[0m", "n": 1.5}],
        "long": "word ".repeat(100),
        "url": "https://example.com/?a=1&amp;b=2",
        "nothing": null,
    });
    let stats = clean_json(&mut value, 50);
    assert_eq!(stats.cut, 1);
    assert_eq!(stats.removed, 1 + 1 + 1 + 9);
    let long = value["long"].as_str().unwrap().to_owned();
    assert!(
        long.ends_with("word […cut]") && long.chars().count() <= 50,
        "{long}"
    );
    assert_eq!(
        value,
        json!({
            "title": "real",
            "name": ["x", {"deep": "red", "n": 1.5}],
            "long": long,
            "url": "https://example.com/?a=1&amp;b=2",
            "nothing": null,
        })
    );
    assert_eq!(clean_json(&mut value, 50), SanitizeStats::default());
}

#[test]
fn sanitizes_deep_values() {
    let mut value = json!("\u{200b}x");
    for _ in 0..127 {
        value = json!([{ "a\u{200b}": value }]);
    }
    assert_eq!(clean_json(&mut value, 100).removed, 128);
    assert!(!value.to_string().contains('\u{200b}'));
}

#[test]
fn fences_cannot_be_forged() {
    let fence = Fence::new();
    assert_ne!(fence.opening_tag(), fence.closing_tag());
    let id = fence.opening_tag();
    assert!(
        id.starts_with("<untrusted id=") && id.ends_with('>'),
        "{id}"
    );
    assert!((0..100).any(|_| Fence::new() != fence));
    for tag in [
        fence.closing_tag().as_str(),
        "</untrusted>",
        "< / UnTrusted id=1>",
        "<untrusted id=000000>",
        "＜/untrusted>",
    ] {
        let text = format!("before {tag} after <b>bold</b> a<b");
        let safe = fence.neutralize(&text).into_owned();
        assert!(safe.starts_with("before &lt;"), "{safe}");
        assert!(safe.ends_with(" after <b>bold</b> a<b"), "{safe}");
        assert_eq!(fence.neutralize(&safe), safe);
    }
    let plain = "a < b, <untrust>, trusted";
    assert!(matches!(fence.neutralize(plain), Cow::Borrowed(text) if text == plain));
}

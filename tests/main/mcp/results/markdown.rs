//! Markdown output is well-formed, whatever titles, URLs and texts contain.

use serde_json::{Value, json};

use super::parsed_markdown::{ParsedMarkdown, normalize_spaces, parse};
use super::{Fixture, merge};
use crate::support::{Recorder, Response};

/// Titles with Markdown syntax.
const TITLES: [&str; 44] = [
    "a | b || c",
    "| a | b |",
    "|---|---|",
    "`code` and ``two``",
    "```",
    "~~~ fence",
    "[link](https://evil.example/) and ![image](x)",
    "ends with ](",
    "](https://evil.example/ \"title\")",
    "[reference]: https://evil.example/",
    "[^1] note",
    "[x] task",
    "two\nlines\r\nand\rthree",
    "a paragraph\n\n# a heading",
    "title\n---",
    "<script>alert(1)</script>",
    "<b>bold</b> <!-- comment -->",
    "<https://auto.example/>",
    "ends with \\",
    "\\` \\[ \\\\",
    "# heading",
    "C # and C#",
    "trailing ###",
    "###",
    "1. first",
    "12) twelfth",
    "- bullet",
    "+ bullet",
    "* bullet",
    "> quote",
    "---",
    "===",
    "***",
    "*em* _em_ **strong** __strong__ ~~gone~~",
    "https://a.example/_x_/y and snake_case_name",
    "_",
    "~~",
    "a &lt;b&gt; &amp; &copy; &#35; c",
    "AT&T; R&D",
    "!important ![",
    "    indented",
    "日本語 | 題名 *強調*",
    "100 % + 2 = 3, $x$ and ^y^",
    "::: note",
];

/// URLs that could break out of their link.
const ADDRESSES: [&str; 10] = [
    "https://a.example/plain?x=1&y=2#z",
    "https://a.example/wiki/Rust_(language)",
    "https://a.example/a)b(c",
    "https://a.example/a b\tc",
    "https://a.example/<b>",
    "https://a.example/a|b`c\\d",
    "https://a.example/?x=1&copy;=2&lt;y",
    "https://a.example/\"quoted\"'s",
    "https://a.example/[x]_y_*z*",
    "https://a.example/ü/日本",
];

fn pages() -> Value {
    let page = |(index, title): (usize, &&str)| {
        let url = format!("https://a.example/{index}");
        json!({"id": url, "url": url, "title": title, "author": title, "text": "One line."})
    };
    json!({"results": TITLES.iter().enumerate().map(page).collect::<Vec<_>>()})
}

fn records() -> Value {
    let record = |(index, title): (usize, &&str)| json!({"id": format!("w{index}"), "title": title, "status": title, "description": "Made."});
    json!({"data": TITLES.iter().enumerate().map(record).collect::<Vec<_>>()})
}

/// Searches with this response; returns the parsed Markdown and the structured content.
#[track_caller]
fn view(body: &Value, options: Value) -> (ParsedMarkdown, Value) {
    let options = merge(json!({"max_tokens": 1_000_000}), &options);
    let (text, structured) = Fixture::with_response(body).search(options).into_parts();
    (parse(&text), structured)
}

/// Returns one field of each result, with white space normalized.
fn values(structured: &Value, name: &str) -> Vec<String> {
    let results = structured["results"].as_array().expect("results");
    let value = |result: &Value| normalize_spaces(result[name].as_str().expect("a string"));
    results.iter().map(value).collect()
}

#[track_caller]
fn assert_plain(parsed: &ParsedMarkdown) {
    let own = |html: &&String| !html.contains("untrusted");
    let html: Vec<&String> = parsed.html.iter().filter(own).collect();
    assert!(html.is_empty(), "{html:?}");
    assert_eq!(parsed.ornaments, 0);
}

#[test]
fn titles_with_a_url_are_links() {
    let (parsed, structured) = view(&pages(), json!({"content_level": "summary"}));
    let links: Vec<String> = parsed
        .links
        .iter()
        .map(|(text, _)| normalize_spaces(text))
        .collect();
    assert_eq!(links, values(&structured, "title"));
    assert_eq!(parsed.entries.len(), TITLES.len());
    for (index, (_, target)) in parsed.links.iter().enumerate() {
        assert_eq!(target, &format!("https://a.example/{index}"));
    }
    assert!(parsed.headings.is_empty());
    assert_plain(&parsed);
}

#[test]
fn titles_are_headings() {
    for level in ["standard", "full"] {
        let (parsed, structured) = view(&pages(), json!({"content_level": level}));
        let titles = values(&structured, "title");
        let expected: Vec<String> = titles
            .iter()
            .enumerate()
            .map(|(index, title)| format!("{}. {title}", index + 1))
            .collect();
        let headings: Vec<String> = parsed
            .headings
            .iter()
            .map(|text| normalize_spaces(text))
            .collect();
        assert_eq!(headings, expected, "{level}");
        assert_eq!(parsed.links.len(), TITLES.len(), "{level}");
        assert_plain(&parsed);
    }
}

#[test]
fn titles_without_a_url_are_headings() {
    let (parsed, structured) = view(&records(), json!({"content_level": "full"}));
    let titles = values(&structured, "title");
    for (index, (heading, title)) in parsed.headings.iter().zip(&titles).enumerate() {
        assert_eq!(normalize_spaces(heading), format!("{}. {title}", index + 1));
    }
    assert_eq!(parsed.headings.len(), titles.len());
    assert_plain(&parsed);
}

#[test]
fn records_are_a_table() {
    let (parsed, structured) = view(&records(), json!({"content_level": "summary"}));
    let (head, rows) = parsed.rows.split_first().expect("a table");
    assert_eq!(head, &["#", "id", "title", "status", "line"]);
    assert_eq!(rows.len(), TITLES.len());
    let results = structured["results"].as_array().expect("results");
    for (index, (row, result)) in rows.iter().zip(results).enumerate() {
        let cell = |name: &str| normalize_spaces(result[name].as_str().expect("a string"));
        let expected = ["id", "title", "status", "line"].map(cell);
        assert_eq!(row[0], (index + 1).to_string());
        assert_eq!(row[1..], expected);
    }
    assert_plain(&parsed);
}

/// A single record is rendered as a list entry that starts with its title, not as a table.
#[test]
fn single_record_is_one_entry() {
    let body = |title| json!({"data": [{"id": "w", "title": title}]});
    let replies = TITLES.map(|title| Response::json(200, &body(title)));
    let mut fixture = Fixture::with(Recorder::responses(replies), &[], &[]);
    for _ in TITLES {
        let options = json!({"content_level": "summary", "fresh": true});
        let (text, structured) = fixture.search(options).into_parts();
        let parsed = parse(&text);
        let title = values(&structured, "title").remove(0);
        assert_eq!(parsed.entries, [format!("{title} w")]);
        assert_eq!(parsed.deepest_list, 1, "{title}");
        assert_plain(&parsed);
    }
}

#[test]
fn urls_are_not_truncated() {
    let page = |url: &&str| json!({"url": url, "title": "T"});
    let body = json!({"results": ADDRESSES.iter().map(page).collect::<Vec<_>>()});
    for level in ["summary", "standard", "full"] {
        let (parsed, structured) = view(&body, json!({"content_level": level}));
        assert_eq!(parsed.links.len(), ADDRESSES.len(), "{level}");
        let results = structured["results"].as_array().expect("results");
        for ((text, target), result) in parsed.links.iter().zip(results) {
            assert_eq!(text, "T");
            // A browser treats both alike.
            let plain = |url: &str| percent_encoding::percent_decode_str(url).collect::<Vec<u8>>();
            let url = result["url"].as_str().expect("an address");
            assert_eq!(plain(target), plain(url), "{url}");
        }
        assert_plain(&parsed);
    }
}

/// Unsafe URLs are shown, but are not links.
#[test]
fn only_http_urls_are_links() {
    let addresses = [
        "javascript:alert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "x",
    ];
    let page = |url: &&str| json!({"url": url, "title": "T"});
    let body = json!({"results": addresses.iter().map(page).collect::<Vec<_>>()});
    let (parsed, _) = view(&body, json!({"content_level": "full"}));
    assert_eq!(parsed.headings.len(), 4);
    assert_eq!(parsed.links, []);
    for (heading, url) in parsed.headings.iter().zip(addresses) {
        assert!(heading.contains(url), "{heading}");
    }
}

/// Texts that contain Markdown, some of it broken.
const TEXTS: [&str; 9] = [
    "```rust\nfn main() {}\n",
    "Before\n\n```\nnever closed\n\n# not a heading\n\n- no entry",
    "~~~~\nnever closed",
    "# Heading\n\nText\n\n### 7. [Fake](https://evil.example/)\n\nscore: 1",
    "<div>\n\n<script>\nalert(1)\n\n<!-- never closed",
    "| a | b |\n|---|---|\n| 1 | 2 |\n\nend",
    "a\rb\r# heading after a carriage return\r\n\r\n### and another",
    "- list\n  - inner\n\n    code\n\n1. one\n0. zero",
    "    indented code\n\n> quote\nlazy\n\n[ref]: https://evil.example/\n\n[ref] \\",
];

#[test]
fn text_cannot_break_out_of_its_block() {
    let page = |(index, text): (usize, &&str)| json!({"url": format!("https://a.example/{index}"), "title": "T", "text": text, "summary": text});
    let body = json!({"results": TEXTS.iter().enumerate().map(page).collect::<Vec<_>>()});
    for level in ["standard", "full"] {
        let (parsed, structured) = view(&body, json!({"content_level": level}));
        let headings: Vec<String> = (1..=TEXTS.len())
            .map(|index| format!("{index}. T"))
            .collect();
        assert_eq!(parsed.headings, headings, "{level}");
        assert_eq!(parsed.links.len(), TEXTS.len(), "{level}");
        assert_eq!(parsed.quotes.len(), 2 * TEXTS.len(), "{level}");
        for name in ["text", "summary"] {
            assert_eq!(values(&structured, name).len(), TEXTS.len());
        }
    }
}

/// Code in a text keeps its lines and indentation.
#[test]
fn code_formatting_is_preserved() {
    let text = "    first\n\tsecond\n\n```\nlet x = \"a  b\";\n    if x {}\n```";
    let body = json!({"results": [{"url": "https://a.example/", "title": "T", "text": text}]});
    let options = json!({"content_level": "full"});
    let (structured, _) = Fixture::with_response(&body).search(options).into_parts();
    for line in text.lines().filter(|line| !line.is_empty()) {
        assert!(
            structured.contains(&format!("> {line}\n")),
            "{line:?} in {structured}"
        );
    }
}

#[test]
fn nested_fields_are_nested_lists() {
    let search = |id: &str| json!({"id": id, "progress": {"found": 1, "steps": [{"a": {"b": [{"c": 1}, {"c": 2}]}}]}});
    let record = json!({"id": "w", "searches": [search("s0"), search("s1")], "list": [["x"], ["y", {"z": 1}]]});
    let body = json!({"data": [record]});
    let (parsed, _) = view(&body, json!({"content_level": "full"}));
    let [searches, list] = parsed.entries.as_slice() else {
        panic!("two entries, not {:#?}", parsed.entries)
    };
    assert_eq!(
        normalize_spaces(searches),
        "searches: id: s0 progress: found: 1 steps: a: b: c: 1 c: 2 id: s1 progress: found: 1 steps: a: b: c: 1 c: 2"
    );
    assert_eq!(normalize_spaces(list), "list: x y z: 1");
    assert!(parsed.deepest_list >= 5, "{}", parsed.deepest_list);
}

/// Field names are untrusted as well: models write them.
#[test]
fn field_names_are_escaped() {
    let mut fields = json!({"url": "https://a.example/", "title": "T"});
    for title in TITLES {
        fields[title] = json!("short");
        fields[format!("{title} long")] = json!("word ".repeat(100));
    }
    let (parsed, _) = view(
        &json!({"results": [fields]}),
        json!({"content_level": "full"}),
    );
    assert_eq!(parsed.headings, ["1. T"]);
    assert_eq!(parsed.links.len(), 1);
    assert_eq!(parsed.quotes.len(), TITLES.len());
    assert_plain(&parsed);
}

/// Short texts next to the results come first and must not absorb what follows.
#[test]
fn top_level_fields_precede_results() {
    for body in [
        "Short.",
        "Long. Two sentences.\n\n# And a heading\n\nwith text",
    ] {
        let body = json!({"answer": body, "citations": [{"url": "https://a.example/", "title": "T"}, {"url": "https://b.example/", "title": "U"}]});
        let (parsed, _) = view(&body, json!({"content_level": "summary"}));
        assert_eq!(parsed.links.len(), 2);
        let found = |title: &str| parsed.entries.iter().any(|entry| entry == title);
        assert!(found("T") && found("U"), "{:?}", parsed.entries);
        let (parsed, _) = view(&body, json!({"content_level": "full"}));
        assert_eq!(parsed.headings, ["1. T", "2. U"]);
    }
    let records = json!({"data": [{"id": "a", "status": "x"}, {"id": "b", "status": "y"}], "hasMore": true, "nextCursor": "c"});
    let (parsed, _) = view(&records, json!({"content_level": "summary"}));
    assert_eq!(parsed.rows.len(), 3);
}

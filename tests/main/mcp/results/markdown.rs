//! Markdown is what it looks like, whatever stands in titles, addresses and texts.

use serde_json::{Value, json};

use super::reading::{Reading, read, spaced};
use super::{Desk, joined};
use crate::support::{Recorder, Reply};

/// Titles that Markdown could misunderstand.
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

/// Addresses that could break out of their link.
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

/// Shows an answer and gives what a renderer reads, with the data.
#[track_caller]
fn look(answer: &Value, options: Value) -> (Reading, Value) {
    let options = joined(json!({"max_tokens": 1_000_000}), &options);
    let (text, structured) = Desk::answering(answer).search(options).shown();
    (read(&text), structured)
}

/// A value of each result, with white space as Markdown shows it.
fn values(structured: &Value, name: &str) -> Vec<String> {
    let results = structured["results"].as_array().expect("results");
    let value = |result: &Value| spaced(result[name].as_str().expect("a text"));
    results.iter().map(value).collect()
}

#[track_caller]
fn assert_plain(reading: &Reading) {
    let own = |html: &&String| !html.contains("untrusted");
    let html: Vec<&String> = reading.html.iter().filter(own).collect();
    assert!(html.is_empty(), "{html:?}");
    assert_eq!(reading.ornaments, 0);
}

#[test]
fn titles_with_a_url_are_links() {
    let (reading, structured) = look(&pages(), json!({"content_level": "summary"}));
    let links: Vec<String> = reading.links.iter().map(|(text, _)| spaced(text)).collect();
    assert_eq!(links, values(&structured, "title"));
    assert_eq!(reading.entries.len(), TITLES.len());
    for (index, (_, target)) in reading.links.iter().enumerate() {
        assert_eq!(target, &format!("https://a.example/{index}"));
    }
    assert!(reading.headings.is_empty());
    assert_plain(&reading);
}

#[test]
fn titles_are_headings() {
    for level in ["standard", "full"] {
        let (reading, structured) = look(&pages(), json!({"content_level": level}));
        let titles = values(&structured, "title");
        let expected: Vec<String> = titles
            .iter()
            .enumerate()
            .map(|(index, title)| format!("{index}. {title}"))
            .collect();
        let headings: Vec<String> = reading.headings.iter().map(|text| spaced(text)).collect();
        assert_eq!(headings, expected, "{level}");
        assert_eq!(reading.links.len(), TITLES.len(), "{level}");
        assert_plain(&reading);
    }
}

#[test]
fn titles_without_a_url_are_headings() {
    let (reading, structured) = look(&records(), json!({"content_level": "full"}));
    let titles = values(&structured, "title");
    for (index, (heading, title)) in reading.headings.iter().zip(&titles).enumerate() {
        assert_eq!(spaced(heading), format!("{index}. {title}"));
    }
    assert_eq!(reading.headings.len(), titles.len());
    assert_plain(&reading);
}

#[test]
fn records_are_a_table() {
    let (reading, structured) = look(&records(), json!({"content_level": "summary"}));
    let (head, rows) = reading.rows.split_first().expect("a table");
    assert_eq!(head, &["#", "id", "title", "status", "line"]);
    assert_eq!(rows.len(), TITLES.len());
    let results = structured["results"].as_array().expect("results");
    for (index, (row, result)) in rows.iter().zip(results).enumerate() {
        let cell = |name: &str| spaced(result[name].as_str().expect("a text"));
        let expected = ["id", "title", "status", "line"].map(cell);
        assert_eq!(row[0], index.to_string());
        assert_eq!(row[1..], expected);
    }
    assert_plain(&reading);
}

/// A single record is no table; its title begins the entry of a list.
#[test]
fn single_record_is_one_entry() {
    let answer = |title| json!({"data": [{"id": "w", "title": title}]});
    let replies = TITLES.map(|title| Reply::json(200, &answer(title)));
    let mut desk = Desk::with(Recorder::replies(replies), &[], &[]);
    for _ in TITLES {
        let options = json!({"content_level": "summary", "fresh": true});
        let (text, structured) = desk.search(options).shown();
        let reading = read(&text);
        let title = values(&structured, "title").remove(0);
        assert_eq!(reading.entries, [format!("{title} w")]);
        assert_eq!(reading.deepest_list, 1, "{title}");
        assert_plain(&reading);
    }
}

#[test]
fn urls_are_not_truncated() {
    let page = |url: &&str| json!({"url": url, "title": "T"});
    let answer = json!({"results": ADDRESSES.iter().map(page).collect::<Vec<_>>()});
    for level in ["summary", "standard", "full"] {
        let (reading, structured) = look(&answer, json!({"content_level": level}));
        assert_eq!(reading.links.len(), ADDRESSES.len(), "{level}");
        let results = structured["results"].as_array().expect("results");
        for ((text, target), result) in reading.links.iter().zip(results) {
            assert_eq!(text, "T");
            // A browser reads both in the same way.
            let plain = |url: &str| percent_encoding::percent_decode_str(url).collect::<Vec<u8>>();
            let url = result["url"].as_str().expect("an address");
            assert_eq!(plain(target), plain(url), "{url}");
        }
        assert_plain(&reading);
    }
}

/// What no browser should follow is shown, but is no link.
#[test]
fn only_http_urls_are_links() {
    let addresses = [
        "javascript:alert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "x",
    ];
    let page = |url: &&str| json!({"url": url, "title": "T"});
    let answer = json!({"results": addresses.iter().map(page).collect::<Vec<_>>()});
    let (reading, _) = look(&answer, json!({"content_level": "full"}));
    assert_eq!(reading.headings.len(), 4);
    assert_eq!(reading.links, []);
    for (heading, url) in reading.headings.iter().zip(addresses) {
        assert!(heading.contains(url), "{heading}");
    }
}

/// Texts that are Markdown themselves, also broken Markdown.
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
    let answer = json!({"results": TEXTS.iter().enumerate().map(page).collect::<Vec<_>>()});
    for level in ["standard", "full"] {
        let (reading, structured) = look(&answer, json!({"content_level": level}));
        let headings: Vec<String> = (0..TEXTS.len())
            .map(|index| format!("{index}. T"))
            .collect();
        assert_eq!(reading.headings, headings, "{level}");
        assert_eq!(reading.links.len(), TEXTS.len(), "{level}");
        assert_eq!(reading.quotes.len(), 2 * TEXTS.len(), "{level}");
        for name in ["text", "summary"] {
            assert_eq!(values(&structured, name).len(), TEXTS.len());
        }
    }
}

/// Code in a text keeps its lines and their indentation.
#[test]
fn code_formatting_is_preserved() {
    let text = "    first\n\tsecond\n\n```\nlet x = \"a  b\";\n    if x {}\n```";
    let answer = json!({"results": [{"url": "https://a.example/", "title": "T", "text": text}]});
    let options = json!({"content_level": "full"});
    let (shown, _) = Desk::answering(&answer).search(options).shown();
    for line in text.lines().filter(|line| !line.is_empty()) {
        assert!(
            shown.contains(&format!("> {line}\n")),
            "{line:?} in {shown}"
        );
    }
}

#[test]
fn nested_fields_are_nested_lists() {
    let search = |id: &str| json!({"id": id, "progress": {"found": 1, "steps": [{"a": {"b": [{"c": 1}, {"c": 2}]}}]}});
    let record = json!({"id": "w", "searches": [search("s0"), search("s1")], "list": [["x"], ["y", {"z": 1}]]});
    let answer = json!({"data": [record]});
    let (reading, _) = look(&answer, json!({"content_level": "full"}));
    let [searches, list] = reading.entries.as_slice() else {
        panic!("two entries, not {:#?}", reading.entries)
    };
    assert_eq!(
        spaced(searches),
        "searches: id: s0 progress: found: 1 steps: a: b: c: 1 c: 2 id: s1 progress: found: 1 steps: a: b: c: 1 c: 2"
    );
    assert_eq!(spaced(list), "list: x y z: 1");
    assert!(reading.deepest_list >= 5, "{}", reading.deepest_list);
}

/// Names of fields come from the web as well: models write them.
#[test]
fn field_names_are_escaped() {
    let mut fields = json!({"url": "https://a.example/", "title": "T"});
    for title in TITLES {
        fields[title] = json!("short");
        fields[format!("{title} long")] = json!("word ".repeat(100));
    }
    let (reading, _) = look(
        &json!({"results": [fields]}),
        json!({"content_level": "full"}),
    );
    assert_eq!(reading.headings, ["0. T"]);
    assert_eq!(reading.links.len(), 1);
    assert_eq!(reading.quotes.len(), TITLES.len());
    assert_plain(&reading);
}

/// Short texts beside the results come first and must not swallow what follows.
#[test]
fn top_level_fields_precede_results() {
    for answer in [
        "Short.",
        "Long. Two sentences.\n\n# And a heading\n\nwith text",
    ] {
        let answer = json!({"answer": answer, "citations": [{"url": "https://a.example/", "title": "T"}, {"url": "https://b.example/", "title": "U"}]});
        let (reading, _) = look(&answer, json!({"content_level": "summary"}));
        assert_eq!(reading.links.len(), 2);
        let found = |title: &str| reading.entries.iter().any(|entry| entry == title);
        assert!(found("T") && found("U"), "{:?}", reading.entries);
        let (reading, _) = look(&answer, json!({"content_level": "full"}));
        assert_eq!(reading.headings, ["0. T", "1. U"]);
    }
    let records = json!({"data": [{"id": "a", "status": "x"}, {"id": "b", "status": "y"}], "hasMore": true, "nextCursor": "c"});
    let (reading, _) = look(&records, json!({"content_level": "summary"}));
    assert_eq!(reading.rows.len(), 3);
}

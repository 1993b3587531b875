//! Filters: sent to Exa where it has the same, applied here where it has not, and told about.

use serde_json::{Value, json};

use super::{Desk, joined, specimens};

/// What a search with filters sends, and what it shows.
#[track_caller]
fn filtered(args: Value, filters: Value) -> (Value, String, Value) {
    let mut desk = Desk::answering(&specimens::pages());
    let (text, shown) = desk
        .operate("search", args, json!({"filters": filters}))
        .shown();
    (desk.recorder.only().json().expect("a body"), text, shown)
}

fn titles(shown: &Value) -> Vec<&str> {
    let results = shown["results"].as_array().expect("results");
    let title = |result: &'_ Value| result["title"].as_str().map(str::len);
    assert!(results.iter().all(|result| title(result).is_some()));
    results
        .iter()
        .filter_map(|result| result["title"].as_str())
        .collect()
}

const HEAT: &str = "All about heat pumps";
const STATE: &str = "All about solid state batteries";
const FUSION: &str = "All about fusion energy";

#[test]
fn supported_filters_are_sent_to_exa() {
    for (filters, sent) in [
        (
            json!({"afterDate": "2023-01-01"}),
            json!({"startPublishedDate": "2023-01-01T00:00:00.000Z"}),
        ),
        (
            json!({"beforeDate": "2023-01-15"}),
            json!({"endPublishedDate": "2023-01-15T23:59:59.999Z"}),
        ),
        (
            json!({"afterDate": "2023-01-15T10:30:00+02:00"}),
            json!({"startPublishedDate": "2023-01-15T08:30:00.000Z"}),
        ),
        (
            json!({"afterDate": "2023-01-15 08:30"}),
            json!({"startPublishedDate": "2023-01-15T08:30:00.000Z"}),
        ),
        (
            json!({"afterDate": "2023", "beforeDate": "2023-02"}),
            json!({"startPublishedDate": "2023-01-01T00:00:00.000Z", "endPublishedDate": "2023-02-28T23:59:59.999Z"}),
        ),
        (
            json!({"includeDomains": ["beta.example"]}),
            json!({"includeDomains": ["beta.example"]}),
        ),
        (
            json!({"excludeDomains": ["beta.example"]}),
            json!({"excludeDomains": ["beta.example"]}),
        ),
        (json!({"maxResults": 2}), json!({"numResults": 2})),
    ] {
        let (body, text, shown) = filtered(json!({"query": "q"}), filters.clone());
        assert_eq!(body, joined(json!({"query": "q"}), &sent), "{filters}");
        let names: Vec<&String> = filters.as_object().expect("filters").keys().collect();
        assert_eq!(shown["metadata"]["filters"]["sentToExa"], json!(names));
        let names: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
        assert!(
            text.contains(&format!("Filters: Exa applied {}", names.join(", "))),
            "{text}"
        );
        assert_eq!(shown["metadata"]["corrections"], json!([]), "{filters}");
    }
}

#[test]
fn unsupported_filters_are_applied_locally() {
    for (filters, left, fallen) in [
        (
            json!({"minScore": 0.7}),
            vec![HEAT, STATE],
            json!([{"filter": "minScore", "dropped": 1}]),
        ),
        (
            json!({"minScore": 0.71}),
            vec![HEAT, STATE],
            json!([{"filter": "minScore", "dropped": 1}]),
        ),
        (
            json!({"minScore": 2}),
            vec![],
            json!([{"filter": "minScore", "dropped": 3}]),
        ),
        (
            json!({"titleContains": "HEAT"}),
            vec![HEAT],
            json!([{"filter": "titleContains", "dropped": 2}]),
        ),
        (
            json!({"titleContains": "all about"}),
            vec![HEAT, STATE, FUSION],
            json!([{"filter": "titleContains", "dropped": 0}]),
        ),
        (
            json!({"minScore": 0.5, "titleContains": "solid"}),
            vec![STATE],
            json!([{"filter": "minScore", "dropped": 1}, {"filter": "titleContains", "dropped": 1}]),
        ),
        // Fewer results from Exa would leave too few here, so the number is applied last.
        (
            json!({"minScore": 0.5, "maxResults": 1}),
            vec![HEAT],
            json!([{"filter": "minScore", "dropped": 1}, {"filter": "maxResults", "dropped": 1}]),
        ),
    ] {
        let (body, text, shown) = filtered(json!({"query": "q"}), filters.clone());
        assert_eq!(body, json!({"query": "q"}), "{filters}");
        assert_eq!(titles(&shown), left, "{filters}");
        assert_eq!(
            shown["metadata"]["filters"],
            json!({"appliedHere": fallen}),
            "{filters}"
        );
        assert_eq!(shown["metadata"]["totalResults"], 3);
        for entry in fallen.as_array().expect("entries") {
            let filter = entry["filter"].as_str().expect("a name");
            let told = format!("{filter} removed {}", entry["dropped"]);
            assert!(text.contains(&told), "no {told} in {text}");
        }
    }
}

/// Exa may send what it should not; it is taken away, and told.
#[test]
fn local_filters_remove_what_exa_lets_through() {
    let filters = json!({"includeDomains": ["beta.example"], "afterDate": "2023-01-01"});
    let (_, _, shown) = filtered(json!({"query": "q"}), filters);
    assert_eq!(titles(&shown), [STATE]);
    assert_eq!(
        shown["metadata"]["filters"],
        json!({
            "sentToExa": ["afterDate", "includeDomains"],
            "appliedHere": [{"filter": "afterDate", "dropped": 1}, {"filter": "includeDomains", "dropped": 1}],
        })
    );
}

/// A result that does not say its score cannot have passed; how many did not is told.
#[test]
fn results_without_the_filtered_value_are_removed() {
    let answer = json!({"results": [
        {"url": "https://a.example/", "title": "A", "score": 0.9, "publishedDate": "2024-01-01"},
        {"url": "https://b.example/", "title": "B", "publishedDate": null},
        {"url": "no address", "title": null, "score": 0.1},
    ]});
    for (filters, left, fallen, words) in [
        (
            json!({"minScore": 0.5}),
            1,
            json!({"filter": "minScore", "dropped": 2, "withoutValue": 1}),
            "removed 2, 1 without a value",
        ),
        (
            json!({"afterDate": "2020"}),
            1,
            json!({"filter": "afterDate", "dropped": 2, "withoutValue": 2}),
            "removed 2, 2 without",
        ),
        (
            json!({"includeDomains": ["b.example"]}),
            1,
            json!({"filter": "includeDomains", "dropped": 2, "withoutValue": 1}),
            "removed 2",
        ),
        (
            json!({"titleContains": "b"}),
            1,
            json!({"filter": "titleContains", "dropped": 2, "withoutValue": 1}),
            "removed 2",
        ),
    ] {
        let mut desk = Desk::answering(&answer);
        let (text, shown) = desk.search(json!({"filters": filters})).shown();
        assert_eq!(shown["metadata"]["returned"], left, "{filters}");
        assert_eq!(
            shown["metadata"]["filters"]["appliedHere"][0], fallen,
            "{filters}"
        );
        assert!(text.contains(words), "{text}");
    }
    // What has no address lies in no domain that could be excluded.
    let mut desk = Desk::answering(&answer);
    let (_, shown) = desk
        .search(json!({"filters": {"excludeDomains": ["a.example"]}}))
        .shown();
    assert_eq!(shown["metadata"]["returned"], 2);
}

/// What the caller says to Exa is not changed; the filter then works here.
#[test]
fn caller_arguments_are_preserved() {
    let args = json!({"query": "q", "numResults": 50, "includeDomains": ["gamma.example"],
        "startPublishedDate": "2020-01-01T00:00:00.000Z"});
    let filters =
        json!({"maxResults": 1, "includeDomains": ["alpha.example"], "afterDate": "2024-01-01"});
    let (body, _, shown) = filtered(args.clone(), filters);
    assert_eq!(body, args);
    assert_eq!(titles(&shown), [HEAT]);
    assert_eq!(shown["metadata"]["filters"].get("sentToExa"), None);
    // Another spelling is the caller's word as well.
    let args = json!({"query": "q", "num_results": 50});
    let (body, _, _) = filtered(args, json!({"maxResults": 1}));
    assert_eq!(body, json!({"query": "q", "numResults": 50}));
}

/// Most lists have no such arguments but their limit.
#[test]
fn lists_are_filtered_locally() {
    let mut desk = Desk::answering(&specimens::items());
    let args = json!({"websetId": "w"});
    let filters = json!({"afterDate": "2024-05-12", "includeDomains": ["borealis.example"], "titleContains": "bore"});
    let (_, shown) = desk
        .operate("items.list", args.clone(), json!({"filters": filters}))
        .shown();
    assert_eq!(desk.recorder.only().target, "/websets/v0/websets/w/items");
    assert_eq!(titles(&shown), ["Borealis"]);
    assert_eq!(
        shown["metadata"]["filters"]["appliedHere"],
        json!([{"filter": "afterDate", "dropped": 1}, {"filter": "includeDomains", "dropped": 0}, {"filter": "titleContains", "dropped": 0}])
    );
    let filters = json!({"maxResults": 1});
    let (_, shown) = desk
        .operate("items.list", args.clone(), json!({"filters": filters}))
        .shown();
    assert_eq!(
        desk.recorder.only().target,
        "/websets/v0/websets/w/items?limit=1"
    );
    assert_eq!(titles(&shown), ["Acme"]);
    // More than a page may have is no reason to fail.
    let (_, shown) = desk
        .operate(
            "items.list",
            args,
            json!({"filters": {"maxResults": 5_000}}),
        )
        .shown();
    assert_eq!(desk.recorder.only().target, "/websets/v0/websets/w/items");
    assert_eq!(titles(&shown).len(), 2);
}

#[test]
fn filters_with_an_index_warn() {
    let mut desk = Desk::answering(&specimens::pages());
    let options = json!({"index": 1, "filters": {"titleContains": "nothing", "afterDate": "1999"}});
    let (text, shown) = desk.search(options).shown();
    let warnings = shown["metadata"]["warnings"].as_array().expect("warnings");
    let warning = warnings[0].as_str().expect("a warning");
    assert!(
        warning.contains("the filter titleContains is not applied"),
        "{warning}"
    );
    assert!(text.contains("titleContains is not applied"), "{text}");
    let id = super::cache_id(&shown);
    let options = json!({"cache_id": id, "index": 1, "filters": {"minScore": 2, "maxResults": 1}});
    let (_, shown) = desk.search(options).shown();
    let told = shown["metadata"]["warnings"].to_string();
    assert!(
        told.contains("the filters minScore, maxResults are"),
        "{told}"
    );
    let (_, shown) = desk.search(json!({"cache_id": id, "index": 1})).shown();
    assert_eq!(shown["metadata"]["warnings"], json!([]));
}

/// Dates that are numbers are dates.
#[test]
fn numeric_dates_are_accepted() {
    let answer = json!({"data": [
        {"researchId": "a", "status": "completed", "createdAt": 1_717_144_200_000_i64, "instructions": "A"},
        {"researchId": "b", "status": "completed", "createdAt": 1_600_000_000_000_i64, "instructions": "B"},
    ]});
    let mut desk = Desk::answering(&answer);
    let (_, shown) = desk
        .operate(
            "research.list",
            json!({}),
            json!({"filters": {"afterDate": "2024"}}),
        )
        .shown();
    assert_eq!(shown["metadata"]["returned"], 1);
    assert_eq!(shown["results"][0]["instructions"], "A");
}

#[test]
fn domains_are_normalised() {
    for (domain, left) in [
        ("alpha.example", 1),
        ("ALPHA.example", 1),
        ("https://alpha.example/", 1),
        ("*.beta.example", 1),
        ("beta.example", 1),
        ("alpha.example/articles", 1),
        ("alpha.example/other", 0),
        ("pha.example", 0),
        ("example", 3),
    ] {
        let mut desk = Desk::answering(&specimens::pages());
        let (_, shown) = desk.search(json!({})).shown();
        let filters = json!({"includeDomains": [domain]});
        let look = json!({"cache_id": super::cache_id(&shown), "filters": filters});
        let (_, shown) = desk.search(look).shown();
        assert_eq!(shown["metadata"]["returned"], left, "{domain}");
    }
}

#[test]
fn every_tool_set_has_filters() {
    let filters = json!({"minScore": 0.5, "includeDomains": ["beta.example"]});
    for (set, tool, call) in [
        ("default", "web_search_exa", json!({"query": "q"})),
        (
            "toolhost",
            "exa-sync",
            json!({"operation": "search", "params": {"query": "q"}}),
        ),
        ("granular", "search", json!({"query": "q"})),
    ] {
        let mut desk = Desk::offering(set, &specimens::pages());
        let call = joined(call, &json!({"filters": filters}));
        let (_, shown) = desk.server.call_plainly(tool, call).shown();
        assert_eq!(titles(&shown), [STATE], "{tool}");
        let body = desk.recorder.only().json().expect("a body");
        assert_eq!(body["includeDomains"], json!(["beta.example"]), "{tool}");
    }
}

#[test]
fn fields_option_selects_fields() {
    let mut desk = Desk::answering(&specimens::items());
    let args = json!({"websetId": "w"});
    let mut pick = |fields: Value, more: Value| {
        let options = joined(json!({"fields": fields}), &more);
        desk.operate("items.list", args.clone(), options).shown()
    };
    let as_json = json!({"output_format": "json"});
    let (_, shown) = pick(
        json!(["id", "properties.company.name", "evaluations.satisfied"]),
        as_json.clone(),
    );
    assert_eq!(
        shown["results"][0],
        json!({"id": "item_1", "properties": {"company": {"name": "Acme"}}, "evaluations": [{"satisfied": "yes"}]})
    );
    let (_, shown) = pick(json!(["properties.*.name"]), as_json.clone());
    assert_eq!(
        shown["results"][1],
        json!({"properties": {"company": {"name": "Borealis"}}})
    );
    // A single name works like a list of one, and the level does not hide what was picked.
    for level in ["summary", "standard", "full"] {
        let (text, shown) = pick(json!("sourceId"), json!({"content_level": level}));
        assert_eq!(
            shown["results"][0],
            json!({"sourceId": "search_1"}),
            "{level}"
        );
        assert!(text.contains("sourceId: search"), "{text}");
    }
    let (text, shown) = pick(json!(["id", "nmae"]), as_json);
    let warning = shown["metadata"]["warnings"][0]
        .as_str()
        .expect("a warning");
    assert!(
        warning.contains("nmae") && warning.contains("properties"),
        "{warning}"
    );
    assert_eq!(shown["results"][0], json!({"id": "item_1"}));
    drop(text);
}

/// What stands beside the results can be meant as well.
#[test]
fn fields_option_knows_top_level_fields() {
    let mut desk = Desk::answering(&specimens::answer());
    let options = json!({"fields": ["answer", "title"], "output_format": "json"});
    let (_, shown) = desk
        .operate("answer", json!({"query": "q"}), options)
        .shown();
    assert_eq!(shown["metadata"]["warnings"], json!([]));
    assert_eq!(shown["answer"], specimens::answer()["answer"]);
    assert_eq!(shown["results"][0], json!({"title": HEAT}));
}

/// All options at once, on a kept answer and on a new one.
#[test]
fn options_combine() {
    let options = json!({"content_level": "full", "output_format": "json", "filters": {"minScore": 0.3, "titleContains": "all"},
        "offset": 1, "limit": 1, "fields": ["title", "score"], "max_tokens": 400});
    let mut desk = Desk::answering(&specimens::pages());
    let shown = desk.search(options.clone()).envelope();
    assert_eq!(shown["results"], json!([{"title": STATE, "score": 0.71}]));
    assert_eq!(shown["metadata"]["indexes"], json!([1]));
    let again = joined(options, &json!({"cache_id": super::cache_id(&shown)}));
    assert_eq!(desk.search(again).envelope()["results"], shown["results"]);
    assert_eq!(desk.asked(), 1);
}

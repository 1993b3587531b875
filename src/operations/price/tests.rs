use serde_json::{Map, Value, json};

use super::{CostSource, Estimate, MicroDollars, actual, estimate, price};
use crate::operations::{all, find};

fn estimated(name: &str, arguments: Value) -> Estimate {
    let operation = find(name).unwrap_or_else(|| panic!("no operation {name}"));
    let Value::Object(arguments) = arguments else {
        panic!("no arguments: {arguments}");
    };
    estimate(operation, &arguments)
}

fn worst(name: &str, arguments: Value) -> u64 {
    estimated(name, arguments).worst.micro()
}

#[test]
fn every_operation_has_a_price() {
    for operation in all() {
        assert!(price(operation).is_some(), "{}", operation.name);
    }
}

#[test]
fn read_only_operations_are_free() {
    for operation in all().iter().filter(|operation| operation.method != "POST") {
        let found = estimate(operation, &Map::new());
        assert_eq!(found.worst, MicroDollars::ZERO, "{}", operation.name);
        if operation.method != "PATCH" {
            assert_eq!(found.charged, CostSource::Nothing, "{}", operation.name);
            assert!(!found.unpriced, "{}", operation.name);
        }
    }
}

#[test]
fn search_price_depends_on_its_type() {
    for (kind, micro) in [
        (json!("lite"), 4_000),
        (json!("instant"), 4_000),
        (json!("fast"), 7_000),
        (json!("auto"), 7_000),
        (json!(null), 7_000),
        (json!("deep"), 12_000),
        (json!("deep-lite"), 12_000),
        (json!("deep-reasoning"), 15_000),
        (json!("tomorrow's"), 15_000),
        (json!(7), 15_000),
        (json!(""), 15_000),
    ] {
        let arguments = json!({"query": "q", "type": kind});
        assert_eq!(worst("search", arguments), micro, "{kind}");
    }
    let found = estimated("search", json!({"query": "q"}));
    assert_eq!(found.worst.micro(), 7_000);
    assert_eq!(found.charged, CostSource::InResponse);
    assert!(!found.unpriced);
}

#[test]
fn more_than_ten_results_cost_extra() {
    for (count, micro) in [
        (json!(1), 7_000),
        (json!(10), 7_000),
        (json!(11), 8_000),
        (json!(10.2), 8_000),
        (json!(100), 97_000),
        (json!("25"), 22_000),
        (json!(" 25 "), 22_000),
        (json!(null), 7_000),
        // An invalid number of results counts as the maximum.
        (json!(0), 97_000),
        (json!(-5), 97_000),
        (json!("many"), 97_000),
        (json!(true), 97_000),
        (json!([3]), 97_000),
        (json!("NaN"), 97_000),
        (json!(1_000), 997_000),
    ] {
        let arguments = json!({"query": "q", "numResults": count});
        assert_eq!(worst("search", arguments), micro, "{count}");
    }
    for huge in [json!(1e300), json!(u64::MAX), json!("1e999"), json!("inf")] {
        let arguments = json!({"query": "q", "numResults": huge,
            "contents": {"summary": true, "subpages": huge}});
        assert_eq!(
            estimated("search", arguments).worst,
            MicroDollars::MAX,
            "{huge}"
        );
    }
}

#[test]
fn search_contents_are_priced_by_page_and_kind() {
    for (count, contents, micro) in [
        (10, json!({"text": true, "highlights": true}), 7_000),
        (10, json!({"summary": true}), 17_000),
        (10, json!({"summary": {"query": "x"}}), 17_000),
        (10, json!({"summary": {}}), 17_000),
        (10, json!({"summary": "true"}), 17_000),
        (10, json!({"summary": false}), 7_000),
        (10, json!({"summary": null}), 7_000),
        (3, json!({"summary": true}), 10_000),
        // Ten more results, their text, and twenty summaries.
        (
            20,
            json!({"text": true, "summary": true}),
            7_000 + 10_000 + 10_000 + 20_000,
        ),
        // Two subpages of five results, one kind.
        (5, json!({"subpages": 2}), 17_000),
        (5, json!({"subpages": "2", "text": true}), 17_000),
        (
            5,
            json!({"subpages": 2, "text": true, "highlights": true}),
            27_000,
        ),
        (1, json!({"subpages": -1, "text": true}), 107_000),
    ] {
        for (name, query) in [("search", "query"), ("find_similar", "url")] {
            let arguments = json!({query: "q", "numResults": count, "contents": contents});
            assert_eq!(worst(name, arguments), micro, "{name} {count} {contents}");
        }
    }
    assert!(
        estimated(
            "search",
            json!({"contents": {"snapshotAsOf": "2024-01-01"}})
        )
        .unpriced
    );
    assert_eq!(
        worst("search", json!({"query": "q", "contents": "all"})),
        7_000
    );
}

#[test]
fn page_contents_are_priced_by_kind() {
    let urls = |count: usize| vec!["https://example.com"; count];
    for (arguments, micro) in [
        (json!({"urls": urls(3)}), 3_000),
        (json!({"urls": urls(3), "text": true}), 3_000),
        (json!({"urls": urls(3), "text": false}), 3_000),
        (
            json!({"urls": urls(3), "text": {"maxCharacters": 9}, "summary": true}),
            6_000,
        ),
        (
            json!({"urls": urls(2), "ids": urls(2), "highlights": true}),
            4_000,
        ),
        (
            json!({"urls": urls(2), "text": true, "summary": {}, "subpages": 4}),
            20_000,
        ),
        (json!({"urls": urls(2), "subpages": 4}), 10_000),
        (
            json!({"urls": "https://a.example, https://b.example"}),
            3_000,
        ),
        (json!({"urls": []}), 0),
        (json!({}), 0),
    ] {
        assert_eq!(
            worst("get_contents", arguments.clone()),
            micro,
            "{arguments}"
        );
    }
    assert!(
        estimated(
            "get_contents",
            json!({"urls": urls(1), "snapshotAsOf": "x"})
        )
        .unpriced
    );
}

#[test]
fn answer_price_depends_on_the_model() {
    for (model, unpriced) in [
        (json!(null), false),
        (json!("exa"), false),
        (json!("exa-pro"), true),
        (json!("exa-fast"), true),
        (json!("unknown"), true),
    ] {
        let found = estimated("answer", json!({"query": "q", "model": model}));
        assert_eq!(found.worst.micro(), 5_000, "{model}");
        assert_eq!(found.unpriced, unpriced, "{model}");
    }
}

#[test]
fn run_price_depends_on_effort_and_cap() {
    for (effort, micro) in [
        (json!("minimal"), 12_000),
        (json!("low"), 25_000),
        (json!("medium"), 100_000),
        (json!("high"), 500_000),
        (json!("xhigh"), 1_000_000),
        (json!("auto"), 5_000_000),
        (json!(null), 5_000_000),
        (json!("ultra"), 20_000_000),
        (json!("max"), 20_000_000),
        (json!("more than that"), 20_000_000),
    ] {
        let found = estimated("agent.runs.create", json!({"query": "q", "effort": effort}));
        assert_eq!(found.worst.micro(), micro, "{effort}");
        assert_eq!(found.charged, CostSource::AtEndOfJob);
        assert!(!found.unpriced);
    }
    for (cap, micro) in [
        (json!(1), 1_000_000),
        (json!(2.5), 2_500_000),
        (json!("7"), 7_000_000),
        (json!(0.01), 1_000_000),
        (json!(-3), 1_000_000),
        (json!(100), 100_000_000),
        (json!(250), 250_000_000),
        (json!("lots"), 100_000_000),
        (json!(null), 5_000_000),
        (json!(1e300), u64::MAX),
    ] {
        let arguments = json!({"query": "q", "budget": {"maxCostDollars": cap}});
        assert_eq!(worst("agent.runs.create", arguments), micro, "{cap}");
    }
    // An unknown effort may be metered or not: the higher price counts.
    let arguments = json!({"effort": "new", "budget": {"maxCostDollars": 50}});
    assert_eq!(worst("agent.runs.create", arguments), 50_000_000);
    let with =
        |sources: Value| estimated("agent.runs.create", json!({"dataSources": sources})).unpriced;
    assert!(with(json!([{"provider": "fiber"}])));
    assert!(!with(json!([])) && !with(json!(null)));
}

#[test]
fn creating_a_monitor_is_free_and_its_runs_cost() {
    let search = json!({"query": "q", "numResults": 15, "contents": {"summary": true}});
    let arguments = json!({"search": search, "trigger": {"type": "interval", "period": "6h"}});
    let found = estimated("search_monitors.create", arguments);
    assert_eq!(
        (found.worst, found.charged),
        (MicroDollars::ZERO, CostSource::Nothing)
    );
    let recurring = found.recurring.unwrap();
    assert_eq!(recurring.per_run.micro(), 2_000 + 5_000 + 15_000);
    assert_eq!(recurring.period, "6h");
    assert_eq!(recurring.runs_per_day, 4);
    assert_eq!(recurring.per_day.micro(), 88_000);
    assert_eq!(recurring.per_month.micro(), 88_000 * 31);
    assert!(!recurring.unpriced);
    let without = estimated("search_monitors.create", json!({"search": {"query": "q"}}));
    assert_eq!(without.recurring, None);
    let unread = json!({"search": {}, "trigger": {"period": "now and then"}});
    let unread = estimated("search_monitors.create", unread)
        .recurring
        .unwrap();
    assert_eq!(unread.runs_per_day, 1_440);
}

#[test]
fn updating_or_triggering_a_monitor_counts_as_the_highest_price() {
    let most = 2_000 + 90_000 + 100_000;
    let arguments = json!({"monitorId": "m", "trigger": {"period": "1d"}});
    let recurring = estimated("search_monitors.update", arguments)
        .recurring
        .unwrap();
    assert_eq!(recurring.per_run.micro(), most);
    assert_eq!(
        estimated("search_monitors.update", json!({"trigger": null})).recurring,
        None
    );
    let trigger = estimated("search_monitors.trigger", json!({"monitorId": "m"}));
    assert_eq!(trigger.worst.micro(), most);
    assert_eq!(trigger.charged, CostSource::InResponse);
}

#[test]
fn websets_are_unpriced() {
    for name in [
        "websets.create",
        "searches.create",
        "enrichments.create",
        "imports.create",
    ] {
        let found = estimated(name, json!({}));
        assert!(found.unpriced && found.worst.is_zero(), "{name}");
    }
    let cadence = json!({"cadence": {"cron": "0 9 * * 1"}});
    let recurring = estimated("monitors.create", cadence).recurring.unwrap();
    assert!(recurring.unpriced);
    assert_eq!((recurring.runs_per_day, recurring.runs_per_month), (1, 5));
    let agent = estimated("agent.monitors.create", json!({"cadence": "12h"}));
    assert_eq!(agent.recurring.unwrap().runs_per_day, 2);
    let research = estimated("research.create", json!({}));
    assert!(research.unpriced);
    assert_eq!(research.charged, CostSource::AtEndOfJob);
}

#[test]
fn runs_charged_at_their_end_can_be_polled() {
    for operation in all() {
        if estimate(operation, &Map::new()).charged == CostSource::AtEndOfJob {
            let long_running = operation.behavior.long_running.as_ref().unwrap();
            let get = find(&long_running.get).unwrap();
            assert!(get.output_schema.contains("costDollars"), "{}", get.name);
            assert_eq!(estimate(get, &Map::new()), Estimate::FREE);
        }
    }
}

#[test]
fn reads_the_actual_cost_from_a_response() {
    for (response, expected) in [
        (json!({"costDollars": {"total": 0.007}}), Some(7_000)),
        (json!({"costDollars": {"total": 0}}), Some(0)),
        (json!({"costDollars": 0.0125}), Some(12_500)),
        (json!({"costDollars": {"total": null}}), None),
        (json!({"costDollars": {"total": "0.1"}}), None),
        (json!({"costDollars": {"total": -4}}), None),
        (
            json!({"costDollars": {"total": 9e12}}),
            Some(1_000_000_000_000),
        ),
        (json!({"costDollars": 1e300}), Some(1_000_000_000_000)),
        (json!({"costDollars": f64::INFINITY}), None),
        (json!({"costDollars": f64::NAN}), None),
        (json!({"costDollars": null}), None),
        (json!({}), None),
        (json!([]), None),
        (json!(3), None),
    ] {
        let found = actual(&response).map(MicroDollars::micro);
        assert_eq!(found, expected, "{response}");
    }
}

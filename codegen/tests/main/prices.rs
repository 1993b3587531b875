//! Prices are checked against the existing operations.

use codegen::GeneratedOutput;
use serde_json::{Value, json};

use crate::support::{DesignCopy, snapshot};

fn generate_after(change: impl FnOnce(&DesignCopy)) -> (GeneratedOutput, String) {
    let copy = DesignCopy::new();
    change(&copy);
    let output = copy.generate().unwrap();
    let notices: Vec<String> = output.notices.iter().map(ToString::to_string).collect();
    (output, notices.join("\n"))
}

fn error_after(change: impl FnOnce(&mut Value)) -> String {
    let copy = DesignCopy::new();
    copy.edit("prices.yaml", change);
    copy.generate().unwrap_err().to_string()
}

fn remove(value: &mut Value, key: &str) {
    let removed = value.as_object_mut().unwrap().shift_remove(key);
    assert!(removed.is_some(), "{key}");
}

#[test]
fn reports_an_operation_without_a_price_as_unpriced() {
    let (output, notices) = generate_after(|copy| {
        copy.edit("prices.yaml", |prices| {
            remove(&mut prices["priced"], "answer")
        });
    });
    let notice = "prices.yaml answer: the operation has no price; treated as unpriced";
    assert!(notices.contains(notice), "{notices}");
    assert!(output.files["codegen-snapshots/SURFACE.md"].contains(notice));
    let price = &snapshot(&output, "answer")["price"];
    assert_eq!(price["unpriced"]["why"], "not in prices.yaml");
    let table = &output.files["generated/prices.json"];
    assert_eq!(table.matches("not in prices.yaml").count(), 1);
}

#[test]
fn reports_and_ignores_the_price_of_a_removed_operation() {
    let (output, notices) = generate_after(|copy| {
        copy.edit("exa-search-spec.yaml", |spec| {
            remove(&mut spec["paths"], "/answer")
        });
    });
    let notice = "prices.yaml answer: the operation no longer exists; price ignored";
    assert!(notices.contains(notice), "{notices}");
    assert!(!output.files["generated/prices.json"].contains("\"answer\""));
}

#[test]
fn a_rule_with_a_missing_argument_makes_the_operation_unpriced() {
    for (path, change) in [
        (
            "kind",
            json!({"by": "kind", "default": "auto", "prices": {"auto": 1}}),
        ),
        (
            "contents.nothing",
            json!({"by": "contents.nothing", "default": "auto", "prices": {"auto": 1}}),
        ),
    ] {
        let (output, notices) = generate_after(|copy| {
            copy.edit("prices.yaml", |prices| {
                prices["priced"]["search"]["base"] = change
            });
        });
        let notice = format!(
            "prices.yaml search: the operation has no argument `{path}`; treated as unpriced"
        );
        assert!(notices.contains(&notice), "{notices}");
        assert!(snapshot(&output, "search")["price"]["unpriced"].is_object());
    }
}

#[test]
fn a_run_without_a_cost_field_is_unpriced() {
    let (output, notices) = generate_after(|copy| {
        copy.edit("prices.yaml", |prices| prices["cost"] = json!("bill.total"));
    });
    let notice =
        "prices.yaml agent.runs.create: the response of `agent.runs.get` has no field `bill`";
    assert!(notices.contains(notice), "{notices}");
    assert!(snapshot(&output, "agent.runs.create")["price"]["unpriced"].is_object());
}

#[test]
fn rejects_implausible_prices() {
    for (price, expected) in [(json!(-0.001), "got -0.001"), (json!(1e300), "got 1000")] {
        let error = error_after(|prices| prices["priced"]["find_similar"]["base"] = price);
        assert!(
            error.contains("prices.yaml#/priced/find_similar/base"),
            "{error}"
        );
        assert!(error.contains(expected), "{error}");
    }
    for text in ["nothing", "null"] {
        let error = error_after(|prices| prices["priced"]["find_similar"]["base"] = json!([text]));
        assert!(error.contains("prices.yaml#"), "{error}");
    }
    let error = error_after(|prices| {
        prices["priced"]["agent.runs.create"]["base"]["prices"]["auto"]["default"] = json!(-5);
    });
    let location = "prices.yaml#/priced/agent.runs.create/base/prices/auto";
    assert!(error.contains(location), "{error}");
    let copy = DesignCopy::new();
    let text = "checked: x\ncurrency: USD\ncost: a\nunpriced: {}\nfree: []\n\
                priced: {answer: {source: [], base: .inf}}";
    copy.write("prices.yaml", text);
    let error = copy.generate().unwrap_err().to_string();
    assert!(error.contains("prices.yaml"), "{error}");
}

#[test]
fn rejects_contradictory_rules() {
    for (pointer, change) in [
        (
            "/free/",
            Box::new(|prices: &mut Value| {
                prices["free"].as_array_mut().unwrap().push(json!("search"));
            }) as Box<dyn FnOnce(&mut Value)>,
        ),
        (
            "/priced/search/base/default",
            Box::new(|prices| prices["priced"]["search"]["base"]["default"] = json!("none")),
        ),
        (
            "/priced/search/source",
            Box::new(|prices| prices["priced"]["search"]["source"] = json!(["hearsay"])),
        ),
        (
            "/priced/search/pages",
            Box::new(|prices| prices["priced"]["search"]["pages"]["lists"] = json!(["query"])),
        ),
        (
            "/priced/search/pages",
            Box::new(|prices| {
                prices["priced"]["search"]["pages"]["count"]["default"] = json!(1_000);
            }),
        ),
        (
            "/currency",
            Box::new(|prices| prices["currency"] = json!("EUR")),
        ),
    ] {
        let error = error_after(change);
        assert!(error.contains(&format!("prices.yaml#{pointer}")), "{error}");
    }
    let error = error_after(|prices| prices["priced"]["search"]["pagse"] = json!({}));
    assert!(error.contains("pagse"), "{error}");
}

#[test]
fn a_changed_price_changes_only_its_own_files() {
    let before = DesignCopy::new().generate().unwrap();
    let (output, notices) = generate_after(|copy| {
        copy.edit("prices.yaml", |prices| {
            prices["priced"]["search"]["base"]["prices"]["deep"] = json!(0.013);
        });
    });
    assert_eq!(notices, "");
    let changed: Vec<&String> = output
        .files
        .iter()
        .filter(|(name, text)| before.files.get(*name) != Some(*text))
        .map(|(name, _)| name)
        .collect();
    assert_eq!(
        changed,
        [
            "codegen-snapshots/operations/search.json",
            "generated/FINGERPRINT",
            "generated/prices.json"
        ]
    );
    let prices = |output: &GeneratedOutput| -> Value {
        serde_json::from_str(&output.files["generated/prices.json"]).unwrap()
    };
    let mut expected = prices(&before);
    expected["operations"]["search"]["base"]["prices"]["deep"] = json!(0.013);
    assert_eq!(prices(&output), expected);
}

//! Commands of `surface.yaml` that need something that does not exist are reported, and the rest is generated.

use codegen::GeneratedOutput;
use serde_json::{Value, json};

use crate::support::DesignCopy;

fn plan<'a>(surface: &'a mut Value, name: &str) -> &'a mut Value {
    let plans = surface["commands"]["plans"].as_array_mut().unwrap();
    plans.iter_mut().find(|plan| plan["name"] == name).unwrap()
}

#[test]
fn commands_without_their_operation_are_left_out() {
    let copy = DesignCopy::new();
    copy.edit("surface.yaml", |surface| {
        plan(surface, "answer")["operation"] = json!("no.such");
        plan(surface, "search")["flags"][0]["to"] = json!("noSuchArgument");
        plan(surface, "search")["columns"][0]["paths"] = json!(["noSuchField"]);
        plan(surface, "fetch")["defaults"][0]["value"] = json!({"maxCharacters": "many"});
        plan(surface, "websets show")["arguments"] = json!([]);
        plan(surface, "search")["flags"][1]["short"] = json!("t");
        plan(surface, "search")["flags"][2]["short"] = json!("t");
        plan(surface, "search")["flags"][4]["name"] = json!("query");
        surface["commands"]["account"] = json!("no.account");
        surface["commands"]["batch"]["remote"]["results"] = json!("noSuchResults");
        surface["commands"]["groups"]["empty"] = json!("Nothing");
    });
    let output = copy.generate().unwrap();
    let notices: Vec<String> = output.notices.iter().map(ToString::to_string).collect();
    let notices = notices.join("\n");
    for expected in [
        "command answer: `no.such` no longer exists; command omitted",
        "command search: `search` has no argument `noSuchArgument`",
        "command search: no response has the column `Title`",
        "default omitted",
        "command search: `category` is not the first with the short form `t`",
        "command search: a second argument is called `query`",
        "command websets show: `websets.get` requires `websetId`, which the command never sends",
        "`no.account` no longer exists; `account` omitted",
        "no response has `noSuchResults`; remote batches omitted",
        "no command is in the group `empty`",
    ] {
        assert!(notices.contains(expected), "{expected}: {notices}");
    }
    let commands: Value = serde_json::from_str(&output.files["generated/commands.json"]).unwrap();
    let names = commands["plans"]
        .as_array()
        .unwrap()
        .iter()
        .map(|plan| &plan["name"]);
    let names: Vec<&str> = names.filter_map(Value::as_str).collect();
    assert!(
        names.contains(&"search") && !names.contains(&"answer") && !names.contains(&"websets show")
    );
    assert_eq!(commands["account"], Value::Null);
    assert_eq!(commands["batch"]["remote"], Value::Null);
}

/// An operation that Exa retires takes its command along, and nothing else.
#[test]
fn removed_operation_drops_only_its_command() {
    let names = |output: &GeneratedOutput| -> Vec<String> {
        let text = &output.files["generated/commands.json"];
        let commands: Value = serde_json::from_str(text).unwrap();
        let plans = commands["plans"].as_array().unwrap().iter();
        let names = plans.filter_map(|plan| plan["name"].as_str());
        names.map(str::to_owned).collect()
    };
    let copy = DesignCopy::new();
    let before = names(&copy.generate().unwrap());
    for (file, path, command) in [
        ("exa-search-spec.yaml", "/answer", "answer"),
        (
            "exa-websets-spec.yaml",
            "/v0/websets/{id}/cancel",
            "websets cancel",
        ),
    ] {
        let copy = DesignCopy::new();
        copy.edit(file, |spec| {
            let paths = spec["paths"].as_object_mut().unwrap();
            let found = paths.keys().find(|known| known.ends_with(path)).cloned();
            paths.remove(&found.unwrap()).unwrap();
        });
        let after = names(&copy.generate().unwrap());
        let expected: Vec<&String> = before.iter().filter(|name| *name != command).collect();
        assert_eq!(after.iter().collect::<Vec<_>>(), expected, "without {path}");
    }
}

#[test]
fn commands_know_the_values_of_their_arguments() {
    let output = DesignCopy::new().generate().unwrap();
    let commands: Value = serde_json::from_str(&output.files["generated/commands.json"]).unwrap();
    let flags = commands["plans"][0]["flags"].as_array().unwrap();
    let kind = flags.iter().find(|flag| flag["name"] == "type").unwrap();
    assert!(kind["values"].as_array().unwrap().contains(&json!("deep")));
    let notices = output.notices.iter().map(ToString::to_string);
    let notices: Vec<String> = notices
        .filter(|notice| notice.contains("command"))
        .collect();
    assert!(notices.is_empty(), "{notices:?}");
}

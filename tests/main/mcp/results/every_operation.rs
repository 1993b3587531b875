//! Every operation at every level and in both forms.

use serde_json::{Value, json};

use super::super::operations::dispatcher;
use super::super::walk::walk;
use super::same::{misshapen, unsaid};
use super::{cache_id, joined};
use crate::support::{McpServer, Sandbox, assert_none};

#[test]
fn has_an_envelope_at_every_level_in_both_forms() {
    let sandbox = Sandbox::start();
    let mut server = McpServer::upstream(&sandbox.url(), &[]);
    let mut problems = Vec::new();
    // The walk itself holds what is put together again against the schema of the operation.
    walk(&sandbox, |operation, args| {
        let name = operation.name;
        let tool = dispatcher(operation);
        let outcome = server.call(tool, json!({"operation": name, "args": args}));
        let envelope = outcome.clone().envelope();
        let told = |problem: String| format!("{name}: {problem}");
        problems.extend(misshapen(&envelope).into_iter().map(told));
        for look in looks(&envelope) {
            let call = joined(json!({"operation": name}), &look);
            let outcome = server.call_plainly(tool, call);
            problems.extend(
                unfit(outcome.text, outcome.structured, &look)
                    .into_iter()
                    .map(told),
            );
        }
        outcome.success()
    });
    assert_none(&problems);
    assert_eq!(server.end().stderr, "");
}

/// All levels and forms of a kept answer; looking at it changes nothing upstream.
fn looks(envelope: &Value) -> Vec<Value> {
    let id = cache_id(envelope);
    let levels = ["summary", "standard", "full"];
    let both = |level| ["json", "markdown"].map(|format| (level, format));
    let look = |(level, format)| json!({"cache_id": id, "content_level": level, "output_format": format, "max_tokens": 1_000_000});
    levels.into_iter().flat_map(both).map(look).collect()
}

fn unfit(text: String, structured: Option<Value>, look: &Value) -> Vec<String> {
    let Some(envelope) = structured.filter(|data| data.get("error").is_none()) else {
        return vec![format!("{look} failed: {text}")];
    };
    let mut problems = misshapen(&envelope);
    if look["output_format"] == "markdown" {
        problems.extend(unsaid(&text, &envelope));
    } else if serde_json::from_str(&text).ok().as_ref() != Some(&envelope) {
        problems.push("text and data differ".to_owned());
    }
    if envelope["metadata"]["contentLevel"] != look["content_level"] {
        problems.push("another level".to_owned());
    }
    let told = |problem| format!("{look}: {problem}");
    problems.into_iter().map(told).collect()
}

//! Every operation at every level and in both formats.

use serde_json::{Value, json};

use super::super::operations::dispatcher;
use super::super::walk::walk;
use super::consistency::{envelope_problems, missing_from_text};
use super::{cache_id, merge};
use crate::support::{McpServer, Sandbox, assert_no_problems};

#[test]
fn has_an_envelope_at_every_level_in_both_forms() {
    let sandbox = Sandbox::start();
    let mut server = McpServer::with_upstream(&sandbox.url(), &[]);
    let mut problems = Vec::new();
    // The walk itself validates the rebuilt response against the schema of the operation.
    walk(&sandbox, |operation, args| {
        let name = operation.name;
        let tool = dispatcher(operation);
        let outcome = server.call(tool, json!({"operation": name, "args": args}));
        let envelope = outcome.clone().envelope();
        let with_name = |problem: String| format!("{name}: {problem}");
        problems.extend(envelope_problems(&envelope).into_iter().map(with_name));
        for view in views(&envelope) {
            let call = merge(json!({"operation": name}), &view);
            let outcome = server.call_raw(tool, call);
            problems.extend(
                view_problems(outcome.text, outcome.structured, &view)
                    .into_iter()
                    .map(with_name),
            );
        }
        outcome.success()
    });
    assert_no_problems(&problems);
    assert_eq!(server.shut_down().stderr, "");
}

/// Returns all views of a cached result; reading them sends no request.
fn views(envelope: &Value) -> Vec<Value> {
    let id = cache_id(envelope);
    let levels = ["summary", "standard", "full"];
    let both = |level| ["json", "markdown"].map(|format| (level, format));
    let view = |(level, format)| json!({"cache_id": id, "content_level": level, "output_format": format, "max_tokens": 1_000_000});
    levels.into_iter().flat_map(both).map(view).collect()
}

fn view_problems(text: String, structured: Option<Value>, view: &Value) -> Vec<String> {
    let Some(envelope) = structured.filter(|data| data.get("error").is_none()) else {
        return vec![format!("{view} failed: {text}")];
    };
    let mut problems = envelope_problems(&envelope);
    if view["output_format"] == "markdown" {
        problems.extend(missing_from_text(&text, &envelope));
    } else if serde_json::from_str(&text).ok().as_ref() != Some(&envelope) {
        problems.push("text and data differ".to_owned());
    }
    if envelope["metadata"]["contentLevel"] != view["content_level"] {
        problems.push("another level".to_owned());
    }
    let with_name = |problem| format!("{view}: {problem}");
    problems.into_iter().map(with_name).collect()
}

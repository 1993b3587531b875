//! Tools whose calls become tasks.

use std::time::Duration;

use rmcp::model::JsonObject;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::super::tools::{PlainCall, Prepared};
use super::table::{failed, failure, said};
use crate::operations::client::{ClientHandle, Form};
use crate::tools::{ToolContext, ToolOutcome};

/// Their names.
pub(super) const JOBS: [&str; 6] = [
    "slow_compute",
    "failing_job",
    "protocol_error_job",
    "test_tool_with_task",
    "confirm_delete",
    "multi_input",
];

/// Asks for what a job needs before it becomes a task.
pub(super) async fn prepare(mut call: PlainCall, context: ToolContext) -> Prepared<PlainCall> {
    let mut client = Ok(ClientHandle::mute());
    if call.name == "test_tool_with_task" {
        let asked = form("What is your name?", "name", "string");
        match context.client.fill(asked).await {
            Ok(filled) => call.arguments.extend(filled),
            Err(why) => client = Err(failure(&why.to_string())),
        }
    }
    Prepared { call, client }
}

fn form(message: &str, field: &str, kind: &str) -> Form {
    let properties = json!({field: {"type": kind}});
    let schema = json!({"type": "object", "properties": properties, "required": [field]});
    Form {
        message: message.to_owned(),
        schema: schema.as_object().cloned().unwrap_or_default(),
    }
}

/// Does the job.
pub(super) async fn run(name: &str, arguments: &JsonObject, call: &ToolContext) -> ToolOutcome {
    match name {
        "slow_compute" => {
            let seconds = arguments.get("seconds").and_then(Value::as_u64);
            sleep(Duration::from_secs(seconds.unwrap_or_default())).await;
            said("Computed slowly.")
        }
        "failing_job" => {
            sleep(Duration::from_secs(1)).await;
            failed("This job intentionally fails")
        }
        "protocol_error_job" => crash(),
        "confirm_delete" => {
            let asked = form("Delete the file?", "confirm", "boolean");
            match call.client.fill(asked).await {
                Ok(_) => said("Deleted."),
                Err(why) => failed(&why.to_string()),
            }
        }
        "multi_input" => {
            let ask = |message: &str| call.client.fill(form(message, "name", "string"));
            match tokio::try_join!(ask("The first name?"), ask("The second name?")) {
                Ok(_) => said("Both are known."),
                Err(why) => failed(&why.to_string()),
            }
        }
        _ => {
            let name = arguments.get("name").and_then(Value::as_str);
            said(&format!("Hello, {}!", name.unwrap_or("stranger")))
        }
    }
}

/// What must not happen, and must not leave a task that works for ever.
#[expect(clippy::panic)]
fn crash() -> ToolOutcome {
    panic!("this job intentionally crashes")
}

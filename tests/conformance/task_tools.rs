//! Tools whose calls become tasks.

use std::time::Duration;

use exa_mcp_server::mcp::PreparedCall;
use exa_mcp_server::operations::interaction::{ClientHandle, FormRequest};
use exa_mcp_server::tools::{ToolContext, ToolOutcome};
use rmcp::model::JsonObject;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::tools::{ConformanceCall, error, failure, success};

/// The names of these tools.
pub(super) const TASK_TOOLS: [&str; 6] = [
    "slow_compute",
    "failing_job",
    "protocol_error_job",
    "test_tool_with_task",
    "confirm_delete",
    "multi_input",
];

/// Asks for what a call needs before it becomes a task.
pub(super) async fn prepare(
    mut call: ConformanceCall,
    context: ToolContext,
) -> PreparedCall<ConformanceCall> {
    let mut client = Ok(ClientHandle::non_interactive());
    if call.name == "test_tool_with_task" {
        let form = form("What is your name?", "name", "string");
        match context.client.fill_form(form).await {
            Ok(filled) => call.arguments.extend(filled),
            Err(reason) => client = Err(error(&reason.to_string())),
        }
    }
    PreparedCall { call, client }
}

fn form(message: &str, field: &str, kind: &str) -> FormRequest {
    let properties = json!({field: {"type": kind}});
    let schema = json!({"type": "object", "properties": properties, "required": [field]});
    FormRequest {
        message: message.to_owned(),
        schema: schema.as_object().cloned().unwrap_or_default(),
    }
}

/// Runs a call.
pub(super) async fn run(name: &str, arguments: &JsonObject, call: &ToolContext) -> ToolOutcome {
    match name {
        "slow_compute" => {
            let seconds = arguments.get("seconds").and_then(Value::as_u64);
            sleep(Duration::from_secs(seconds.unwrap_or_default())).await;
            success("Computed slowly.")
        }
        "failing_job" => {
            sleep(Duration::from_secs(1)).await;
            failure("This job intentionally fails")
        }
        "protocol_error_job" => crash(),
        "confirm_delete" => {
            let form = form("Delete the file?", "confirm", "boolean");
            match call.client.fill_form(form).await {
                Ok(_) => success("Deleted."),
                Err(reason) => failure(&reason.to_string()),
            }
        }
        "multi_input" => {
            let ask = |message: &str| call.client.fill_form(form(message, "name", "string"));
            match tokio::try_join!(ask("The first name?"), ask("The second name?")) {
                Ok(_) => success("Both names are known."),
                Err(reason) => failure(&reason.to_string()),
            }
        }
        _ => {
            let name = arguments.get("name").and_then(Value::as_str);
            success(&format!("Hello, {}!", name.unwrap_or("stranger")))
        }
    }
}

/// Panics: its task must end as failed.
#[expect(clippy::panic)]
fn crash() -> ToolOutcome {
    panic!("this job intentionally crashes")
}

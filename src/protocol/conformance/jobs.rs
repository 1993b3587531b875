//! Tools whose calls become tasks.

use std::time::Duration;

use rmcp::model::JsonObject;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::table::said;
use crate::operations::client::{ClientHandle, Form};
use crate::surface::{Call, Outcome, Prepared};

/// Their names.
pub(super) const JOBS: [&str; 4] = [
    "slow_compute",
    "failing_job",
    "protocol_error_job",
    "test_tool_with_task",
];

/// Asks for what a job needs before it becomes a task.
pub(super) async fn prepare(
    name: String,
    mut arguments: JsonObject,
    call: Call,
) -> Result<Prepared, Box<Outcome>> {
    if name == "test_tool_with_task" {
        let name = json!({"type": "string"});
        let schema = json!({"type": "object", "properties": {"name": name}, "required": ["name"]});
        let form = Form {
            message: "What is your name?".to_owned(),
            schema: schema.as_object().cloned().unwrap_or_default(),
        };
        let filled = call.client.fill(form).await;
        let filled = filled.map_err(|why| {
            Box::new(Outcome {
                is_error: true,
                ..said(&why.to_string())
            })
        })?;
        arguments.extend(filled);
    }
    let client = ClientHandle::mute();
    Ok(Prepared { arguments, client })
}

/// Does the job.
pub(super) async fn run(name: &str, arguments: &JsonObject) -> Outcome {
    match name {
        "slow_compute" => {
            let seconds = arguments.get("seconds").and_then(Value::as_u64);
            sleep(Duration::from_secs(seconds.unwrap_or_default())).await;
            said("Computed slowly.")
        }
        "failing_job" => {
            sleep(Duration::from_secs(1)).await;
            Outcome {
                is_error: true,
                ..said("This job intentionally fails")
            }
        }
        "protocol_error_job" => crash(),
        _ => {
            let name = arguments.get("name").and_then(Value::as_str);
            said(&format!("Hello, {}!", name.unwrap_or("stranger")))
        }
    }
}

/// What must not happen, and must not leave a task that works for ever.
#[expect(clippy::panic)]
fn crash() -> Outcome {
    panic!("this job intentionally crashes")
}

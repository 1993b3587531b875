//! The tools that the suite calls by name.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::JsonObject;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::super::tools::{PlainCall, Prepared, Tools};
use super::jobs::{self, JOBS};
use crate::operations::{Progress, Step};
use crate::render::{Format, Rendered};
use crate::tools::{Hints, ToolContext, ToolDefinition, ToolError, ToolOutcome};
use exa_mcp_store::{MemoryStore, Store};

/// The tools.
#[derive(Clone)]
pub(super) struct Table {
    /// Where tasks are kept.
    pub(super) store: Arc<MemoryStore>,
}

/// Tools without arguments of interest.
const PLAIN: [&str; 29] = [
    "test_simple_text",
    "test_error_handling",
    "test_tool_with_progress",
    "test_image_content",
    "test_audio_content",
    "test_embedded_resource",
    "test_multiple_content_types",
    "test_tool_with_logging",
    "test_logging_tool",
    "test_reconnection",
    "test_sampling",
    "test_elicitation",
    "test_elicitation_sep1034_defaults",
    "test_elicitation_sep1330_enums",
    "test_missing_capability",
    "test_streaming_elicitation",
    "test_trigger_tool_change",
    "test_trigger_prompt_change",
    "test_input_required_result_elicitation",
    "test_input_required_result_sampling",
    "test_input_required_result_list_roots",
    "test_input_required_result_request_state",
    "test_input_required_result_multiple_inputs",
    "test_input_required_result_multi_round",
    "test_input_required_result_tampered_state",
    "test_input_required_result_capabilities",
    "test_mrtr_unrelated",
    "test_tool_with_structured_content",
    "greet",
];

fn definition(name: &str, schema: Value) -> ToolDefinition {
    let schema = schema.as_object().cloned().unwrap_or_default();
    ToolDefinition {
        name: name.to_owned(),
        title: name.replace('_', " "),
        description: format!("Plays the part of {name} in the conformance suite."),
        input_schema: schema.into(),
        hints: Hints {
            read_only: true,
            destructive: false,
            idempotent: true,
            open_world: false,
        },
        starts_work: false,
    }
}

/// A schema that uses what JSON Schema 2020-12 has.
fn modern_schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }},
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false,
    })
}

impl Tools for Table {
    type Call = PlainCall;

    fn instructions(&self) -> String {
        "Plays its part in the conformance suite.".to_owned()
    }

    fn definitions(&self) -> Vec<ToolDefinition> {
        let plain = PLAIN.map(|name| definition(name, json!({"type": "object"})));
        let region = json!({"type": "string", "x-mcp-header": "Region"});
        let headers = json!({"type": "object", "properties": {"region": region, "query": {"type": "string"}}});
        let mut definitions = plain.to_vec();
        definitions.extend(JOBS.map(|name| ToolDefinition {
            starts_work: true,
            ..definition(name, json!({"type": "object"}))
        }));
        definitions.push(definition("json_schema_2020_12_tool", modern_schema()));
        definitions.push(definition("test_custom_headers", headers));
        definitions
    }

    fn has(&self, name: &str) -> bool {
        self.definitions().iter().any(|tool| tool.name == name)
    }

    fn store(&self) -> Option<Arc<dyn Store>> {
        Some(self.store.clone())
    }

    fn needs_tasks(&self, name: &str) -> bool {
        name == "failing_job"
    }

    fn parse(&self, name: &str, arguments: JsonObject) -> PlainCall {
        PlainCall {
            name: name.to_owned(),
            arguments,
            starts_work: JOBS.contains(&name),
        }
    }

    fn prepare(
        &self,
        call: PlainCall,
        context: ToolContext,
    ) -> impl Future<Output = Prepared<PlainCall>> + Send + 'static {
        jobs::prepare(call, context)
    }

    fn run(
        &self,
        call: PlainCall,
        context: ToolContext,
    ) -> impl Future<Output = ToolOutcome> + Send + 'static {
        let PlainCall {
            name, arguments, ..
        } = call;
        async move {
            match name.as_str() {
                "test_error_handling" => {
                    failed("This tool intentionally returns an error for testing")
                }
                "test_tool_with_progress" => {
                    count(&context.progress).await;
                    said("Counted to a hundred.")
                }
                "greet" => {
                    let name = arguments.get("name").and_then(Value::as_str);
                    said(&format!("Hello, {}!", name.unwrap_or("stranger")))
                }
                job if JOBS.contains(&job) => jobs::run(job, &arguments, &context).await,
                _ => said("This is a simple text response for testing."),
            }
        }
    }
}

pub(super) fn said(text: &str) -> ToolOutcome {
    ToolOutcome::Success(Rendered {
        text: text.to_owned(),
        structured: JsonObject::new(),
        links: Vec::new(),
        format: Format::Markdown,
        stats: None,
    })
}

pub(super) fn failed(text: &str) -> ToolOutcome {
    ToolOutcome::Failure(failure(text))
}

pub(super) fn failure(text: &str) -> Box<ToolError> {
    Box::new(ToolError::Custom {
        text: text.to_owned(),
        structured: JsonObject::new(),
    })
}

/// Tells of three steps to a hundred.
async fn count(progress: &Progress) {
    for done in [0.0, 50.0, 100.0] {
        progress.tell(Step {
            done,
            total: Some(100.0),
            message: format!("{done} of 100"),
            is_quoted: false,
        });
        sleep(Duration::from_millis(50)).await;
    }
}

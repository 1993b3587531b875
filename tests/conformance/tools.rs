//! The tools that the suite calls by name.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use exa_mcp_server::mcp::{ParsedCall, PreparedCall, Tools};
use exa_mcp_server::operations::{ProgressReporter, ProgressUpdate};
use exa_mcp_server::render::{OutputFormat, Rendered};
use exa_mcp_server::tools::{ToolContext, ToolDefinition, ToolError, ToolHints, ToolOutcome};
use exa_mcp_store::Store;
use rmcp::model::JsonObject;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::task_tools::{self, TASK_TOOLS};

/// The tools of the suite.
#[derive(Clone)]
pub(super) struct ConformanceTools {
    /// Holds the tasks.
    store: Arc<dyn Store>,
}

impl ConformanceTools {
    /// Creates the tools, whose tasks are in `store`.
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }
}

/// A call of one of these tools.
pub(super) struct ConformanceCall {
    pub(super) name: String,
    pub(super) arguments: JsonObject,
}

impl ParsedCall for ConformanceCall {
    fn name(&self) -> &str {
        &self.name
    }

    fn arguments(&self) -> &JsonObject {
        &self.arguments
    }

    fn start_cost(&self) -> Option<u64> {
        TASK_TOOLS.contains(&self.name.as_str()).then_some(0)
    }
}

/// Tools whose arguments do not matter.
const SIMPLE_TOOLS: [&str; 29] = [
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
        description: format!("The tool {name} of the conformance suite."),
        input_schema: schema.into(),
        hints: ToolHints {
            read_only: true,
            destructive: false,
            idempotent: true,
            open_world: false,
        },
        starts_job: false,
    }
}

/// Returns a schema that uses keywords of JSON Schema 2020-12.
fn json_schema_2020_12() -> Value {
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

impl Tools for ConformanceTools {
    type Call = ConformanceCall;

    fn instructions(&self) -> String {
        "The fixtures of the conformance suite.".to_owned()
    }

    fn definitions(&self) -> Vec<ToolDefinition> {
        let simple = SIMPLE_TOOLS.map(|name| definition(name, json!({"type": "object"})));
        let region = json!({"type": "string", "x-mcp-header": "Region"});
        let headers = json!({"type": "object", "properties": {"region": region, "query": {"type": "string"}}});
        let mut definitions = simple.to_vec();
        definitions.extend(TASK_TOOLS.map(|name| ToolDefinition {
            starts_job: true,
            ..definition(name, json!({"type": "object"}))
        }));
        definitions.push(definition(
            "json_schema_2020_12_tool",
            json_schema_2020_12(),
        ));
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

    fn parse(&self, name: &str, arguments: JsonObject) -> ConformanceCall {
        ConformanceCall {
            name: name.to_owned(),
            arguments,
        }
    }

    fn prepare(
        &self,
        call: ConformanceCall,
        context: ToolContext,
    ) -> impl Future<Output = PreparedCall<ConformanceCall>> + Send + 'static {
        task_tools::prepare(call, context)
    }

    fn run(
        &self,
        call: ConformanceCall,
        context: ToolContext,
    ) -> impl Future<Output = ToolOutcome> + Send + 'static {
        let ConformanceCall { name, arguments } = call;
        async move {
            match name.as_str() {
                "test_error_handling" => {
                    failure("This tool intentionally returns an error for testing")
                }
                "test_tool_with_progress" => {
                    report_progress(&context.progress).await;
                    success("Counted to a hundred.")
                }
                "greet" => {
                    let name = arguments.get("name").and_then(Value::as_str);
                    success(&format!("Hello, {}!", name.unwrap_or("stranger")))
                }
                task if TASK_TOOLS.contains(&task) => {
                    task_tools::run(task, &arguments, &context).await
                }
                _ => success("This is a simple text response for testing."),
            }
        }
    }
}

/// Returns a successful outcome with this text.
pub(super) fn success(text: &str) -> ToolOutcome {
    ToolOutcome::Success(Rendered {
        text: text.to_owned(),
        structured: JsonObject::new(),
        links: Vec::new(),
        format: OutputFormat::Markdown,
        stats: None,
        job_end: None,
    })
}

/// Returns a failed outcome with this text.
pub(super) fn failure(text: &str) -> ToolOutcome {
    ToolOutcome::Failure(error(text).into())
}

/// Returns an error with this text.
pub(super) fn error(text: &str) -> Box<ToolError> {
    Box::new(ToolError::Internal(text.to_owned()))
}

/// Reports three steps to a hundred.
async fn report_progress(progress: &ProgressReporter) {
    for done in [0.0, 50.0, 100.0] {
        progress.report(ProgressUpdate {
            done,
            total: Some(100.0),
            message: format!("{done} of 100"),
            is_quoted: false,
        });
        sleep(Duration::from_millis(50)).await;
    }
}

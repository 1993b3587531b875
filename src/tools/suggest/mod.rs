//! The tool that suggests enrichments, which are the columns of a webset. It asks the model of the client, and falls
//! back to built-in suggestions by type of entity.

mod builtin;
mod model;
mod subject;
mod suggestion;

use serde_json::{Map, Value, json};

use super::context::ToolContext;
use super::create_note::stats;
use super::error::ToolError;
use super::executor::ToolExecutor;
use super::follow_up;
use super::options::{self, Options};
use super::outcome::{ToolResult, as_object, put};
use super::registry::{Tool, ToolRegistry};
use crate::operations::validation;
use crate::render::{ContentLevel, OutputFormat, Rendered};
use subject::Subject;
use suggestion::Suggestion;

/// The default number of suggestions.
const DEFAULT_COUNT: usize = 5;

/// Suggestions and their source.
struct SuggestionList {
    suggestions: Vec<Suggestion>,
    source: Source,
    /// The name of the model, as reported by the client.
    model: Option<String>,
    /// Why a better source was not used.
    warnings: Vec<String>,
}

/// The source of suggestions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    ModelWithTool,
    Model,
    BuiltIn,
}

impl Source {
    fn name(self) -> &'static str {
        match self {
            Self::ModelWithTool => "client_model_with_tool",
            Self::Model => "client_model",
            Self::BuiltIn => "built_in",
        }
    }
}

/// A valid call of the tool.
pub(super) struct SuggestCall {
    tool: String,
    arguments: Map<String, Value>,
    options: Options,
    corrections: Vec<String>,
    /// The operation that reads a webset.
    read: Option<String>,
    /// The operation that adds an enrichment.
    add: Option<String>,
}

/// Suggests enrichments for a webset or a description.
pub(super) async fn run(
    tools: &ToolExecutor,
    context: &ToolContext,
    call: SuggestCall,
) -> ToolResult {
    let subject = subject::find(tools, context, call.read.as_deref(), &call.arguments).await?;
    let count = call.arguments.get("count").and_then(Value::as_u64);
    let count = count.and_then(|count| usize::try_from(count).ok());
    let suggested = model::suggest(&context.client, &subject, count.unwrap_or(DEFAULT_COUNT)).await;
    Ok(render_suggestions(
        &subject,
        suggested,
        call,
        tools.registry(),
    ))
}

/// Renders the suggestions as text and structured content.
fn render_suggestions(
    subject: &Subject,
    suggested: SuggestionList,
    call: SuggestCall,
    tools: &ToolRegistry,
) -> Rendered {
    let operation = &call.tool;
    let number = suggested.suggestions.len();
    let mut metadata = json!({
        "operation": operation,
        "totalResults": number,
        "returned": number,
        "tokenEstimate": 0,
        "contentLevel": ContentLevel::Full.name(),
    });
    let model = suggested.model.as_ref();
    let model = model.map_or(String::new(), |model| format!(", model: {model}"));
    let mut text = format!(
        "{operation}: {number} suggestions for the entity type {} (source: {}{model})",
        subject.entity.name(),
        suggested.source.name()
    );
    for (name, heading, notes) in [
        ("warnings", "Warning", &suggested.warnings),
        ("corrections", "Corrected", &call.corrections),
    ] {
        if !notes.is_empty() {
            put(&mut metadata, name, json!(notes));
        }
        for note in notes {
            text.push_str(&format!("\n{heading}: {note}"));
        }
    }
    for (index, suggestion) in suggested.suggestions.iter().enumerate() {
        text.push_str(&format!("\n{}. {}", index + 1, suggestion.line()));
    }
    let fields = tool_fields(subject, &suggested, call.add.as_deref(), tools);
    if let Some(next) = fields.get("addWith") {
        text.push_str(&format!("\nAdd the first with: {next}"));
    }
    let stats = stats(operation, &text);
    put(&mut metadata, "tokenEstimate", json!(stats.tokens));
    let results = suggested.suggestions.iter().map(Suggestion::to_json);
    let mut structured = as_object(json!({"metadata": metadata}));
    structured.extend(fields);
    structured.insert("results".to_owned(), results.collect());
    let mut format = OutputFormat::Markdown;
    if call.options.wants_json() {
        format = OutputFormat::Json;
        text = serde_json::to_string(&structured).unwrap_or_default();
    }
    Rendered {
        text,
        structured,
        links: Vec::new(),
        format,
        stats: Some(stats),
        job_end: None,
    }
}

/// Validates the options and the arguments of the tool.
pub(super) fn parse(
    tool: &Tool,
    operations: (&Option<String>, &Option<String>),
    arguments: Map<String, Value>,
) -> ToolResult<SuggestCall> {
    let call = validate(tool, operations, arguments);
    call.map_err(|error| ToolError::invalid(tool.name(), *error))
}

fn validate(
    tool: &Tool,
    (read, add): (&Option<String>, &Option<String>),
    mut arguments: Map<String, Value>,
) -> Result<SuggestCall, Box<validation::ValidationError>> {
    let known = |name: &str| {
        let properties = tool.schema().get("properties");
        let is_own = properties.is_some_and(|it| it.get(name).is_some());
        is_own && !options::is_option(name)
    };
    let mut corrections = Vec::new();
    let options = Options::take(&mut arguments, known, &mut corrections);
    let options = options.check(&mut corrections)?;
    let subject = validation::ArgumentSpec::new(tool.schema()).with_aliases(&[
        ("webset", "websetId"),
        ("id", "websetId"),
        ("query", "description"),
    ]);
    let checked = validation::validate(&subject, arguments.into())?;
    corrections.extend(checked.corrections);
    let given = |name| checked.arguments.contains_key(name);
    if !given("websetId") && !given("description") {
        return Err(Box::new(missing_subject()));
    }
    Ok(SuggestCall {
        tool: tool.name().to_owned(),
        arguments: checked.arguments,
        options,
        corrections,
        read: read.clone(),
        add: add.clone(),
    })
}

/// Creates the error of a call without webset and description. The user can supply the latter.
fn missing_subject() -> validation::ValidationError {
    validation::ValidationError {
        problems: vec![validation::ArgumentProblem {
            path: "description".to_owned(),
            message: "`websetId` or `description` is required: the webset, or what it collects"
                .to_owned(),
        }],
        example: Box::new(json!({"description": "AI startups in Berlin with under 50 employees"})),
        hints: Vec::new(),
        missing: vec!["description".to_owned()],
    }
}

/// Returns the fields beside the suggestions: their source, and how to use them.
fn tool_fields(
    subject: &Subject,
    suggested: &SuggestionList,
    add: Option<&str>,
    tools: &ToolRegistry,
) -> Map<String, Value> {
    let mut fields = json!({
        "source": suggested.source.name(),
        "entityType": subject.entity.name(),
    });
    if let Some(model) = &suggested.model {
        put(&mut fields, "model", json!(model));
    }
    let first = suggested.suggestions.first();
    if let (Some(webset), Some(first), Some(add)) = (&subject.webset, first, add) {
        let mut args = first.to_json();
        if let Value::Object(args) = &mut args {
            args.shift_remove("why");
            args.insert("websetId".to_owned(), json!(webset));
        }
        let next = as_object(args.clone());
        let next = follow_up::call_with_any(tools, add, &next);
        let next = next.unwrap_or_else(|| json!({"operation": add, "args": args}));
        put(&mut fields, "addWith", next);
    }
    as_object(fields)
}

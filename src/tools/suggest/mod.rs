//! The tool that suggests enrichments: columns that would be useful in a webset. The client's model knows
//! best what its user is after; without it there are suggestions for each kind of entity.

mod builtin;
mod model;
mod read;
mod subject;

use serde_json::{Map, Value, json};

use super::context::ToolContext;
use super::create_note::stats;
use super::error::ToolError;
use super::executor::ToolExecutor;
use super::options::Options;
use super::outcome::{ToolResult, as_object, put};
use super::registry::Tool;
use crate::operations::validation;
use crate::render::{Format, Level, Rendered};
use read::Suggestion;
use subject::Subject;

/// How many suggestions there are unless another number is asked for.
const USUAL: usize = 5;

/// Suggestions and where they come from.
struct Suggested {
    suggestions: Vec<Suggestion>,
    source: Source,
    /// The model, in the client's words.
    model: Option<String>,
    /// Why a better source was not used.
    warnings: Vec<String>,
}

/// Where suggestions come from.
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
    let suggested = model::suggest(&context.client, &subject, count.unwrap_or(USUAL)).await;
    Ok(shown(&subject, suggested, call))
}

/// What the caller sees; the same in words and as data.
fn shown(subject: &Subject, suggested: Suggested, call: SuggestCall) -> Rendered {
    let operation = &call.tool;
    let number = suggested.suggestions.len();
    let mut metadata = json!({
        "operation": operation,
        "totalResults": number,
        "returned": number,
        "tokenEstimate": 0,
        "contentLevel": Level::Full.name(),
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
        ("mended", "Mended", &call.corrections),
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
    let told = told(subject, &suggested, call.add.as_deref());
    if let Some(next) = told.get("addWith") {
        text.push_str(&format!("\nAdd the first with: {next}"));
    }
    let stats = stats(operation, &text);
    put(&mut metadata, "tokenEstimate", json!(stats.tokens));
    let results = suggested.suggestions.iter().map(Suggestion::json);
    let mut structured = as_object(json!({"metadata": metadata}));
    structured.extend(told);
    structured.insert("results".to_owned(), results.collect());
    let mut format = Format::Markdown;
    if call.options.wants_json() {
        format = Format::Json;
        text = serde_json::to_string(&structured).unwrap_or_default();
    }
    Rendered {
        text,
        structured,
        links: Vec::new(),
        format,
        stats: Some(stats),
    }
}

/// Validates the options and the arguments of the tool.
pub(super) fn parse(
    tool: &Tool,
    operations: (&Option<String>, &Option<String>),
    arguments: Map<String, Value>,
) -> ToolResult<SuggestCall> {
    let call = validate(tool, operations, arguments);
    call.map_err(|refused| ToolError::invalid(tool.name(), *refused))
}

fn validate(
    tool: &Tool,
    (read, add): (&Option<String>, &Option<String>),
    mut arguments: Map<String, Value>,
) -> Result<SuggestCall, Box<validation::ValidationError>> {
    let known = |name: &str| {
        let properties = tool.schema().get("properties");
        properties.is_some_and(|it| it.get(name).is_some())
    };
    let mut mended = Vec::new();
    let options = Options::take(&mut arguments, known, &mut mended);
    let options = options.check(&mut mended)?;
    let subject = validation::ArgumentSpec::new(tool.schema()).with_aliases(&[
        ("webset", "websetId"),
        ("id", "websetId"),
        ("query", "description"),
    ]);
    let checked = validation::validate(&subject, arguments.into())?;
    mended.extend(checked.corrections);
    let given = |name| checked.arguments.contains_key(name);
    if !given("websetId") && !given("description") {
        return Err(Box::new(nothing_given()));
    }
    Ok(SuggestCall {
        tool: tool.name().to_owned(),
        arguments: checked.arguments,
        options,
        corrections: mended,
        read: read.clone(),
        add: add.clone(),
    })
}

/// A call that says neither which webset nor what it collects. A person can say the latter.
fn nothing_given() -> validation::ValidationError {
    validation::ValidationError {
        problems: vec![validation::ArgumentProblem {
            path: "description".to_owned(),
            message:
                "`websetId` or `description` is required: the webset, or what it is to collect"
                    .to_owned(),
        }],
        example: Box::new(json!({"description": "AI startups in Berlin with under 50 employees"})),
        hints: Vec::new(),
        missing: vec!["description".to_owned()],
    }
}

/// What is said beside the suggestions: where they come from, and how to use them.
fn told(subject: &Subject, suggested: &Suggested, add: Option<&str>) -> Map<String, Value> {
    let mut told = json!({
        "source": suggested.source.name(),
        "entityType": subject.entity.name(),
    });
    if let Some(model) = &suggested.model {
        put(&mut told, "model", json!(model));
    }
    let first = suggested.suggestions.first();
    if let (Some(webset), Some(first), Some(add)) = (&subject.webset, first, add) {
        let mut args = first.json();
        if let Value::Object(args) = &mut args {
            args.shift_remove("why");
            args.insert("websetId".to_owned(), json!(webset));
        }
        let next = json!({"operation": add, "args": args});
        put(&mut told, "addWith", next);
    }
    as_object(told)
}

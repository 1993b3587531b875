//! The tool that suggests enrichments: columns that would be useful in a webset. The client's model knows
//! best what its user is after; without it there are suggestions for each kind of entity.

mod builtin;
mod model;
mod read;
mod subject;

use serde_json::{Map, Value, json};

use super::outcome::{as_object, put};
use super::{Call, Catalogue, Options, Outcome, Tool};
use crate::operations::validation;
use crate::render::Level;
use exa_mcp_text::tokens;
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

impl Catalogue {
    /// Suggests enrichments for a webset or a description. The operations are those that read the
    /// webset and that add an enrichment.
    pub(super) async fn suggest_enrichments(
        &self,
        call: &Call,
        tool: &Tool,
        (read, add): (Option<&str>, Option<&str>),
        arguments: Map<String, Value>,
    ) -> Outcome {
        let (options, given, mended) = match taken(tool, arguments) {
            Ok(taken) => taken,
            Err(refused) => return Outcome::refused(&tool.definition.name, &refused),
        };
        let subject = match self.subject(call, read, &given).await {
            Ok(subject) => subject,
            Err(outcome) => return *outcome,
        };
        let count = given.get("count").and_then(Value::as_u64);
        let count = count.and_then(|count| usize::try_from(count).ok());
        let suggested = model::suggest(&call.client, &subject, count.unwrap_or(USUAL)).await;
        let name = &tool.definition.name;
        shown(name, &subject, add, suggested, mended, options.wants_json())
    }
}

/// What the caller sees; the same in words and as data.
fn shown(
    operation: &str,
    subject: &Subject,
    add: Option<&str>,
    suggested: Suggested,
    mended: Vec<String>,
    as_json: bool,
) -> Outcome {
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
        ("mended", "Mended", &mended),
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
    let told = told(subject, &suggested, add);
    if let Some(next) = told.get("addWith") {
        text.push_str(&format!("\nAdd the first with: {next}"));
    }
    put(
        &mut metadata,
        "tokenEstimate",
        json!(tokens::estimate(&text)),
    );
    let results = suggested.suggestions.iter().map(Suggestion::json);
    let mut structured = as_object(json!({"metadata": metadata}));
    structured.extend(told);
    structured.insert("results".to_owned(), results.collect());
    if as_json {
        text = serde_json::to_string(&structured).unwrap_or_default();
    }
    Outcome {
        text,
        structured,
        links: Vec::new(),
        is_error: false,
    }
}

/// The options and the arguments that are left, both put right.
#[allow(clippy::type_complexity)]
fn taken(
    tool: &Tool,
    mut arguments: Map<String, Value>,
) -> Result<(Options, Map<String, Value>, Vec<String>), validation::ValidationError> {
    let known = |name: &str| {
        let properties = tool.schema().get("properties");
        properties.is_some_and(|it| it.get(name).is_some())
    };
    let mut mended = Vec::new();
    let options = Options::take(&mut arguments, known, &mut mended);
    let options = options.check(&mut mended).map_err(|refused| *refused)?;
    let subject = validation::Subject::new(tool.schema()).with_aliases(&[
        ("webset", "websetId"),
        ("id", "websetId"),
        ("query", "description"),
    ]);
    let checked = validation::check(&subject, arguments.into())?;
    mended.extend(checked.corrections);
    let given = |name| checked.arguments.contains_key(name);
    if !given("websetId") && !given("description") {
        return Err(nothing_given());
    }
    Ok((options, checked.arguments, mended))
}

/// A call that says neither which webset nor what it collects. A person can say the latter.
fn nothing_given() -> validation::ValidationError {
    validation::ValidationError {
        problems: vec![validation::Problem {
            place: "description".to_owned(),
            text: "`websetId` or `description` is required: the webset, or what it is to collect"
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

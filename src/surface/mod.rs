//! The tools: what they are, and what a call of one does.
//!
//! Every tool is a view of operations; none has a way of its own to the network.

mod discovery;
mod host;
mod named;
mod outcome;
mod path;
mod plan;
mod select;

use std::sync::Arc;

pub use outcome::Outcome;
pub use plan::Hints;
use plan::{Plan, ToolFile};
pub use select::select;
use serde_json::{Map, Value, json};

use crate::generated::tools::TOOLS;
use crate::operations::{self, Called, Caller, Operation, Refusal, check};

/// Why a list of tools cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SelectError {
    /// Names that are neither sets nor tools.
    #[error(
        "unknown tool or set {}; known sets: {}; known tools: {}",
        names.join(", "), sets.join(", "), tools.join(", ")
    )]
    Unknown {
        /// The names.
        names: Vec<String>,
        /// All sets.
        sets: Vec<String>,
        /// All tools.
        tools: Vec<String>,
    },
    /// The list has no name in it.
    #[error("the list of tools is empty; leave it out for the default set")]
    Nothing,
    /// The generated table is broken.
    #[error("the generated definition of `{0}` cannot be read: {1}")]
    Broken(&'static str, String),
}

/// What `tools/list` shows of a tool.
#[derive(Debug, Clone)]
pub struct ToolDefinition {
    /// Name.
    pub name: String,
    /// Title for people.
    pub title: String,
    /// What a language model reads.
    pub description: String,
    /// JSON Schema of the arguments.
    pub input_schema: Arc<Map<String, Value>>,
    /// What it does to the world.
    pub hints: Hints,
}

struct Tool {
    definition: ToolDefinition,
    /// The schema once more, in the form that checking needs.
    schema: Value,
    plan: Plan,
    tokens: usize,
}

/// The tools that are offered.
#[derive(Clone)]
pub struct Catalogue {
    tools: Arc<[Tool]>,
    caller: Caller,
}

impl Catalogue {
    /// The tools of a list of sets and tools, calling Exa through `caller`.
    pub fn new(list: &str, caller: Caller) -> Result<Self, SelectError> {
        let tools = select(list)?
            .into_iter()
            .map(load)
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            tools: tools.into(),
            caller,
        })
    }

    /// What a client tells its model about this server.
    pub fn instructions(&self) -> String {
        let discovers = self
            .tools
            .iter()
            .any(|tool| !matches!(tool.plan, Plan::Operation { .. } | Plan::Named(_)));
        let mut text = "Exa: web search, page contents, answers, research and Websets (collections of entities \
                        found, verified and enriched on the web)."
            .to_owned();
        if discovers {
            text.push_str(
                " Tools with `operation` take `list_operations` to show what they can do.",
            );
        }
        text
    }

    /// The tools in the order in which they were asked for.
    pub fn tools(&self) -> Vec<ToolDefinition> {
        self.tools
            .iter()
            .map(|tool| tool.definition.clone())
            .collect()
    }

    /// Tokens of all definitions together.
    pub fn tokens(&self) -> usize {
        self.tools.iter().map(|tool| tool.tokens).sum()
    }

    /// Whether a tool is offered.
    pub fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// Calls a tool; one that is not offered fails.
    pub async fn call(&self, name: &str, arguments: Map<String, Value>) -> Outcome {
        let Some(tool) = self.find(name) else {
            return Outcome::impossible(&format!("There is no tool `{name}`."), json!({}));
        };
        match &tool.plan {
            Plan::Operation { operation } => self.run(operation, arguments.into()).await,
            Plan::Named(plan) => self.named(tool, plan, arguments).await,
            Plan::Dispatcher { operations } => self.dispatch(operations, arguments).await,
            Plan::Host { entries } => self.host(entries, arguments).await,
        }
    }

    fn find(&self, name: &str) -> Option<&Tool> {
        self.tools.iter().find(|tool| tool.definition.name == name)
    }

    /// Calls an operation and tells its answer as it is.
    async fn run(&self, name: &str, arguments: Value) -> Outcome {
        self.run_mended(name, arguments, Vec::new()).await
    }

    /// The same for a call in which something was put right already.
    async fn run_mended(&self, name: &str, arguments: Value, mut mended: Vec<String>) -> Outcome {
        match self.operation(name, arguments).await {
            Ok(called) => {
                mended.extend(called.mended);
                Outcome::success(outcome::as_object(called.answer.value), mended)
            }
            Err(outcome) => *outcome,
        }
    }

    /// Calls an operation; a failure is already an outcome.
    async fn operation(&self, name: &str, arguments: Value) -> Result<Called, Box<Outcome>> {
        let Some(operation) = operations::find(name) else {
            return Err(Box::new(discovery::unknown(
                name,
                operations::all().iter().map(|o| o.name),
            )));
        };
        let called = self.caller.call(operation, arguments).await;
        called.map_err(|refusal| Box::new(failed(operation, &refusal)))
    }

    async fn named(
        &self,
        tool: &Tool,
        plan: &plan::Named,
        arguments: Map<String, Value>,
    ) -> Outcome {
        let subject = check::Subject {
            operation: &tool.definition.name,
            input_schema: &tool.schema,
            aliases: &[],
        };
        let checked = match check::check(&subject, arguments.into()) {
            Ok(checked) => checked,
            Err(refused) => return Outcome::refused(&tool.definition.name, &refused),
        };
        let (operation, mut arguments) = named::arguments(plan, checked.arguments);
        named::rewrite_query(
            plan,
            &mut arguments,
            &discovery::values_of(operation, "category"),
        );
        self.run_mended(operation, arguments.into(), checked.mended)
            .await
    }

    async fn dispatch(&self, names: &[String], arguments: Map<String, Value>) -> Outcome {
        let mut mended = Vec::new();
        let (name, args) =
            match discovery::request(arguments, &["args", "params", "arguments"], &mut mended) {
                Ok(request) => request,
                Err(problem) => {
                    return discovery::no_operation(&problem, names.iter().map(String::as_str));
                }
            };
        let known = || names.iter().map(String::as_str);
        match name.as_str() {
            "list_operations" => Outcome::success(discovery::list(known()), mended),
            "describe" => discovery::describe(&args, known(), mended),
            _ => {
                let Some(operation) = discovery::meant("operation", &name, known(), &mut mended)
                else {
                    return discovery::unknown(&name, known());
                };
                self.run_mended(&operation, args, mended).await
            }
        }
    }

    async fn host(&self, entries: &[plan::Entry], arguments: Map<String, Value>) -> Outcome {
        let mut mended = Vec::new();
        let known = || entries.iter().map(|entry| entry.name.as_str());
        let (name, params) =
            match discovery::request(arguments, &["params", "args", "arguments"], &mut mended) {
                Ok(request) => request,
                Err(problem) => return discovery::no_operation(&problem, known()),
            };
        if name == "list_operations" {
            return discovery::list_entries(entries, &params, mended);
        }
        let Some(meant) = discovery::meant("operation", &name, known(), &mut mended) else {
            return discovery::unknown(&name, known());
        };
        let Some(entry) = entries.iter().find(|entry| entry.name == meant) else {
            return discovery::unknown(&name, known());
        };
        let Some(operation) = &entry.operation else {
            let why = entry
                .unsupported
                .as_deref()
                .unwrap_or("Exa cannot do this.");
            return Outcome::impossible(why, json!({"operation": entry.name, "supported": false}));
        };
        let Value::Object(params) = params else {
            return Outcome::impossible(
                "`params` must be an object.",
                json!({"operation": entry.name}),
            );
        };
        let sent = host::arguments(entry, params, &mut mended);
        match self.operation(operation, sent.into()).await {
            Ok(called) => {
                mended.extend(called.mended);
                let told = host::tell(entry, &called.arguments, called.answer.value);
                Outcome::success(told, mended)
            }
            Err(outcome) => *outcome,
        }
    }
}

fn failed(operation: &Operation, refusal: &Refusal) -> Outcome {
    match refusal {
        Refusal::NoKey => Outcome::no_key(),
        Refusal::Arguments(refused) => Outcome::refused(operation.name, refused),
        Refusal::Exa(error) => Outcome::exa(operation.name, error, check::hints(operation.name)),
    }
}

fn load(name: &'static str) -> Result<Tool, SelectError> {
    let index = TOOLS.binary_search_by(|(known, _)| (*known).cmp(name));
    let text = index
        .ok()
        .and_then(|index| TOOLS.get(index))
        .map_or("", |(_, text)| *text);
    let file: ToolFile =
        serde_json::from_str(text).map_err(|error| SelectError::Broken(name, error.to_string()))?;
    let definition = file.definition;
    Ok(Tool {
        schema: Value::Object(definition.input_schema.clone()),
        definition: ToolDefinition {
            name: definition.name,
            title: definition.title,
            description: definition.description,
            input_schema: Arc::new(definition.input_schema),
            hints: definition.annotations,
        },
        plan: file.plan,
        tokens: file.tokens,
    })
}

//! The tools: what they are, and what a call of one does.
//!
//! Every tool is a view of operations; none has a way of its own to the network.

mod address;
mod answer;
mod asking;
mod cache;
mod create_note;
mod discovery;
mod dispatchers;
mod host;
pub mod library;
mod long;
mod named;
mod next;
pub mod notes;
mod options;
mod outcome;
mod path;
mod plan;
mod schema;
mod select;
mod shared_cache;
mod suggest;
mod upstream;
pub(crate) mod watchers;
mod ways;
mod work;

use std::sync::{Arc, OnceLock};

pub use address::Address;
use answer::Asked;
use asking::Again;
pub use asking::{Manners, Prepared};
pub use cache::{Change, Kept, Limits, ResultCache};
pub use dispatchers::dispatcher_of;
use library::Library;
use notes::Notes;
use options::Options;
pub use outcome::Outcome;
pub use plan::Hints;
use plan::{Plan, ToolFile};
pub use schema::Schema;
pub use select::select;
use serde_json::{Map, Value, json};
pub use work::{Attempt, Keeper, Soon, TaskCall, TaskLimits, Work};

use crate::accounts::{KeyDesk, KeyPool, Owner};
use crate::exa::ApiKey;
use crate::generated::tools::{RESOURCES, TOOLS};
use crate::operations::client::ClientHandle;
use crate::operations::spend::SpendGuard;
use crate::operations::validation::InputSchema;
use crate::operations::{self, Caller, Folders, Operation, Progress, Refusal, validation};
use crate::render::Level;
use exa_mcp_store::{MemoryStore, Store};

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
    /// None of the names is offered here.
    #[error("none of these tools is offered here; offered are {}", .0.join(", "))]
    NotOffered(Vec<String>),
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
    pub input_schema: Schema,
    /// What it does to the world.
    pub hints: Hints,
    /// It can start work that takes long.
    pub starts_work: bool,
}

struct Tool {
    definition: ToolDefinition,
    /// The schema in the form that checking needs; made by the first call.
    schema: OnceLock<InputSchema>,
    plan: Plan,
    tokens: usize,
}

impl Tool {
    /// What the arguments are checked against.
    fn schema(&self) -> &InputSchema {
        let read = || InputSchema::new(Value::Object(self.definition.input_schema.owned()));
        self.schema.get_or_init(read)
    }
}

/// The tools that are offered.
#[derive(Clone)]
pub struct Catalogue {
    tools: Arc<[Arc<Tool>]>,
    caller: Caller,
    cache: ResultCache,
    library: Library,
    store: Arc<dyn Store>,
    task_limits: TaskLimits,
    manners: Manners,
    /// Where a missing key is asked for, if anywhere.
    desk: Option<KeyDesk>,
    /// Nothing may be changed.
    read_only: bool,
}

/// Who calls a tool, and who wants to know how far the call is.
#[derive(Clone)]
pub struct Call {
    /// To whom the answer belongs, and where they are.
    pub owner: Owner,
    /// Told how far the call is.
    pub progress: Progress,
    /// The task that the call is made for.
    pub task: Option<TaskCall>,
    /// Folders of the client out of which files may be read, beside those of the operator.
    pub folders: Option<Folders>,
    /// Who may be asked.
    pub client: ClientHandle,
}

impl Call {
    /// A call that is answered when it is done.
    pub fn new(owner: Owner, progress: Progress) -> Self {
        let folders = match owner {
            Owner::Local(_) => None,
            Owner::Remote(_) => Some(Folders::of_remote_client()),
        };
        Self {
            owner,
            progress,
            task: None,
            folders,
            client: ClientHandle::mute(),
        }
    }

    /// The same call of a client that may be asked. The folders that it has open may be read if its user
    /// is the local one.
    #[must_use]
    pub fn of_client(self, client: ClientHandle) -> Self {
        let folders = match &self.owner {
            Owner::Local(user) if client.powers().roots => {
                Some(Folders::of_client(user, client.clone()))
            }
            _ => self.folders,
        };
        Self {
            folders,
            client,
            ..self
        }
    }
}

impl Catalogue {
    /// The tools of a list of sets and tools, calling Exa through `caller`.
    pub fn new(list: &str, caller: Caller, cache: ResultCache) -> Result<Self, SelectError> {
        Self::keeping(list, caller, cache, Arc::new(MemoryStore::default()))
    }

    /// The same with notes and tasks in this store.
    pub fn keeping(
        list: &str,
        caller: Caller,
        cache: ResultCache,
        store: Arc<dyn Store>,
    ) -> Result<Self, SelectError> {
        let tools = select(list)?
            .into_iter()
            .map(|name| load(name).map(Arc::new))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            library: library(&tools, &caller, &cache, store.clone()),
            tools: tools.into(),
            caller,
            cache,
            store,
            task_limits: TaskLimits::default(),
            manners: Manners::default(),
            desk: None,
            read_only: false,
        })
    }

    /// The same tools with other limits for tasks.
    #[must_use]
    pub fn with_task_limits(self, task_limits: TaskLimits) -> Self {
        Self {
            task_limits,
            ..self
        }
    }

    /// How long tasks live, and how many there may be.
    pub fn task_limits(&self) -> TaskLimits {
        self.task_limits
    }

    /// Where notes and tasks are kept.
    pub fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store)
    }

    /// The same tools with notes and tasks in this store.
    #[must_use]
    pub fn with_store(self, store: Arc<dyn Store>) -> Self {
        Self {
            library: library(&self.tools, &self.caller, &self.cache, store.clone()),
            store,
            ..self
        }
    }

    /// What can be read beside calling tools.
    pub fn library(&self) -> &Library {
        &self.library
    }

    /// What a client tells its model about this server.
    pub fn instructions(&self) -> String {
        let discovers =
            |tool: &Arc<Tool>| matches!(tool.plan, Plan::Dispatcher { .. } | Plan::Host { .. });
        let discovers = self.tools.iter().any(discovers);
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
    pub async fn call(&self, name: &str, arguments: Map<String, Value>, call: &Call) -> Outcome {
        let Some(tool) = self.find(name) else {
            return Outcome::impossible(&format!("There is no tool `{name}`."), json!({}));
        };
        let again = Again::of(tool, &arguments);
        let outcome = self.call_once(tool, arguments, call).await;
        self.complete(again, call, outcome).await
    }

    async fn call_once(&self, tool: &Tool, arguments: Map<String, Value>, call: &Call) -> Outcome {
        match &tool.plan {
            Plan::Note => self.create_note(call, tool, arguments).await,
            Plan::Suggest { read, add } => {
                let operations = (read.as_deref(), add.as_deref());
                self.suggest_enrichments(call, tool, operations, arguments)
                    .await
            }
            _ => match request(tool, arguments) {
                Ok(asked) if self.forbids(tool, asked.operation) => {
                    Outcome::read_only(asked.operation.name)
                }
                Ok(asked) => {
                    let tool = &tool.definition.name;
                    self.answer(call, Asked { tool, ..asked }).await
                }
                Err(outcome) => *outcome,
            },
        }
    }

    /// The same tools for someone who brings a key.
    #[must_use]
    pub fn with_key(&self, key: ApiKey) -> Self {
        let caller = self.caller.with_key(key);
        Self {
            library: self.library.with_caller(caller.clone()),
            caller,
            ..self.clone()
        }
    }

    /// The same tools for someone else who pays.
    #[must_use]
    pub fn with_guard(&self, guard: Arc<dyn SpendGuard>) -> Self {
        let caller = self.caller.with_guard(guard);
        Self {
            library: self.library.with_caller(caller.clone()),
            caller,
            ..self.clone()
        }
    }

    /// The way to Exa.
    pub(crate) fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Whether there is a key to call Exa with.
    pub fn has_key(&self) -> bool {
        self.caller.has_key()
    }

    /// Whether Exa answered when it was last called, if it was.
    pub fn is_exa_well(&self) -> Option<bool> {
        self.caller.is_exa_well()
    }

    /// Those of the tools that a list of sets and tools names; it adds none.
    pub fn narrowed(&self, list: &str) -> Result<Self, SelectError> {
        let wanted = select(list)?;
        let kept = |tool: &&Arc<Tool>| wanted.contains(&tool.definition.name.as_str());
        let tools: Arc<[Arc<Tool>]> = self.tools.iter().filter(kept).cloned().collect();
        if tools.is_empty() {
            let offered = self.tools.iter().map(|tool| tool.definition.name.clone());
            return Err(SelectError::NotOffered(offered.collect()));
        }
        let (notes, websets) = reads(&tools);
        Ok(Self {
            library: self.library.narrowed(notes, websets),
            tools,
            ..self.clone()
        })
    }

    /// Those of the tools that a list names, and none if it names none of them.
    #[must_use]
    pub fn only(&self, list: &str) -> Self {
        self.narrowed(list).unwrap_or_else(|_| Self {
            library: self.library.narrowed(false, false),
            tools: Arc::default(),
            ..self.clone()
        })
    }

    /// The same tools without those that change something; of those that take any operation, what
    /// changes nothing.
    #[must_use]
    pub fn reading(&self) -> Self {
        let reads = |tool: &&Arc<Tool>| tool.definition.hints.read_only || tool.plan.is_open();
        Self {
            tools: self.tools.iter().filter(reads).cloned().collect(),
            read_only: true,
            ..self.clone()
        }
    }

    /// The keys with which Exa is called.
    pub fn keys(&self) -> &KeyPool {
        self.caller.keys()
    }

    fn forbids(&self, tool: &Tool, operation: &Operation) -> bool {
        self.read_only && tool.plan.is_open() && !operation.read_only
    }

    fn find(&self, name: &str) -> Option<&Tool> {
        let mut tools = self.tools.iter().map(AsRef::as_ref);
        tools.find(|tool| tool.definition.name == name)
    }
}

/// What a call asks for, or the outcome of a call that asks nothing of Exa.
type Request<'a> = Result<Asked<'a>, Box<Outcome>>;

/// What a call of a tool asks for.
fn request(tool: &Tool, arguments: Map<String, Value>) -> Request<'_> {
    match &tool.plan {
        Plan::Operation { operation } => single(operation, arguments),
        Plan::Named(plan) => named_call(tool, plan, arguments),
        Plan::Dispatcher { operations } => dispatch(operations, arguments),
        Plan::Host { entries } => host_call(entries, arguments),
        Plan::Note | Plan::Suggest { .. } => Err(Box::new(Outcome::internal(
            "This tool is no operation of Exa.",
        ))),
    }
}

/// An operation that is known to exist in the generated table.
fn operation(name: &str) -> Result<&'static Operation, Box<Outcome>> {
    let all = || operations::all().iter().map(|operation| operation.name);
    operations::find(name).ok_or_else(|| Box::new(discovery::unknown(name, all())))
}

/// A tool that is one operation.
fn single<'a>(name: &str, mut arguments: Map<String, Value>) -> Request<'a> {
    let operation = operation(name)?;
    let mut mended = Vec::new();
    let own = |name: &str| options::is_argument(operation, name);
    let options = Options::take(&mut arguments, own, &mut mended);
    Ok(Asked::plainly(operation, arguments.into(), options, mended))
}

/// A tool with presets. A look at a kept answer needs none of its arguments.
fn named_call<'a>(
    tool: &Tool,
    plan: &plan::Named,
    mut arguments: Map<String, Value>,
) -> Request<'a> {
    let main = operation(&plan.operation)?;
    let mut mended = Vec::new();
    let own = |name: &str| {
        plan.moves.iter().any(|step| step.from == name) || options::is_argument(main, name)
    };
    let options = Options::take(&mut arguments, own, &mut mended);
    let usual = plan.content_level.as_deref().and_then(Level::named);
    let usual = usual.unwrap_or(Level::Standard);
    let level = options.level().unwrap_or(usual);
    let mut asked = Asked {
        usual,
        asked_for: Some(level).filter(|_| !plan.levels.is_empty()),
        ..Asked::plainly(main, Value::Null, options, mended)
    };
    if asked.options.looks_back() {
        return Ok(asked);
    }
    let names: Vec<&str> = main.arguments.iter().map(|it| it.name).collect();
    // What the tool does not know may still be known to the operation.
    let subject = validation::Subject::new(tool.schema())
        .with_beyond(&names)
        .with_example(&plan.example);
    let checked = validation::check(&subject, arguments.into()).map_err(|refused| {
        let refused = asked.options.refusing(refused);
        Box::new(Outcome::refused(&tool.definition.name, &refused))
    })?;
    asked.mended.extend(checked.corrections);
    if asked.options.has_filters() {
        asked.filled = named::filled(plan, &checked.arguments);
    }
    let (name, mut arguments) = named::arguments(plan, checked.arguments, level);
    named::rewrite_query(
        plan,
        &mut arguments,
        &discovery::values_of(name, "category"),
    );
    asked.operation = operation(name)?;
    asked.arguments = arguments.into();
    Ok(asked)
}

/// A tool that takes any operation of an API.
fn dispatch<'a>(names: &[String], mut arguments: Map<String, Value>) -> Request<'a> {
    let known = || names.iter().map(String::as_str);
    let mut mended = Vec::new();
    let beside = arguments
        .get("operation")
        .and_then(Value::as_str)
        .and_then(operations::find);
    let own = |name: &str| {
        ["operation", "args", "params", "arguments"].contains(&name)
            || beside.is_some_and(|operation| options::is_argument(operation, name))
    };
    let mut options = Options::take(&mut arguments, own, &mut mended);
    let holders = ["args", "params", "arguments"];
    let (name, mut args) = discovery::request(arguments, &holders, &mut mended)
        .map_err(|problem| Box::new(discovery::no_operation(&problem, known())))?;
    match name.as_str() {
        "list_operations" => {
            return Err(Box::new(discovery::list(known(), mended)));
        }
        "describe" => return Err(Box::new(discovery::describe(&args, known(), mended))),
        _ => {}
    }
    let Some(name) = discovery::meant("operation", &name, known(), &mut mended) else {
        return Err(Box::new(discovery::unknown(&name, known())));
    };
    let operation = operation(&name)?;
    if let Value::Object(args) = &mut args {
        let own = |name: &str| options::is_argument(operation, name);
        options.take_more(args, own, &mut mended);
    }
    Ok(Asked::plainly(operation, args, options, mended))
}

/// A tool that takes operations under names of their own.
fn host_call<'a>(entries: &'a [plan::Entry], mut arguments: Map<String, Value>) -> Request<'a> {
    let known = || entries.iter().map(|entry| entry.name.as_str());
    let mut mended = Vec::new();
    let holders = ["params", "args", "arguments"];
    let own = |name: &str| name == "operation" || holders.contains(&name);
    let options = Options::take(&mut arguments, own, &mut mended);
    let (name, params) = discovery::request(arguments, &holders, &mut mended)
        .map_err(|problem| Box::new(discovery::no_operation(&problem, known())))?;
    if name == "list_operations" {
        return Err(Box::new(discovery::list_entries(entries, &params, mended)));
    }
    let entry = discovery::meant("operation", &name, known(), &mut mended)
        .and_then(|meant| entries.iter().find(|entry| entry.name == meant))
        .ok_or_else(|| Box::new(discovery::unknown(&name, known())))?;
    let Some(behind) = &entry.operation else {
        let why = entry
            .unsupported
            .as_deref()
            .unwrap_or("Exa cannot do this.");
        let more = json!({"operation": entry.name, "supported": false});
        return Err(Box::new(Outcome::impossible(why, more)));
    };
    let Value::Object(params) = params else {
        let more = json!({"operation": entry.name});
        return Err(Box::new(Outcome::impossible(
            "`params` must be an object.",
            more,
        )));
    };
    let arguments = host::arguments(entry, params, &mut mended);
    Ok(Asked {
        entry: Some(entry),
        ..Asked::plainly(operation(behind)?, arguments.into(), options, mended)
    })
}

/// Whether these tools have to do with notes, and with websets.
fn reads(tools: &[Arc<Tool>]) -> (bool, bool) {
    let reaches = |operation: &str| ways::way_to(tools, operation).is_some();
    let notes = tools.iter().any(|tool| matches!(tool.plan, Plan::Note));
    let websets = RESOURCES.websets.as_ref();
    let websets = websets.is_some_and(|it| reaches(&it.get) && reaches(&it.items));
    (notes, websets)
}

/// The library that goes with these tools.
fn library(
    tools: &[Arc<Tool>],
    caller: &Caller,
    results: &ResultCache,
    store: Arc<dyn Store>,
) -> Library {
    let (notes, websets) = reads(tools);
    let notes = notes.then(|| Notes::new(store));
    Library::new(caller.clone(), results.clone(), notes, websets)
}

fn failed(operation: &Operation, refusal: &Refusal) -> Outcome {
    match refusal {
        Refusal::NoKey(holder) => Outcome::no_key(*holder),
        Refusal::KeysOut(out) => Outcome::keys_out(out),
        Refusal::Limit(over) => Outcome::over_limit(over),
        Refusal::Arguments(refused) => Outcome::refused(operation.name, refused),
        Refusal::Exa(error) => Outcome::exa(operation.name, error, &operation.behavior.hints),
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
        schema: OnceLock::new(),
        definition: ToolDefinition {
            name: definition.name,
            title: definition.title,
            description: definition.description,
            input_schema: Schema::in_file(text),
            hints: definition.annotations,
            starts_work: work::can_start(&file.plan),
        },
        plan: file.plan,
        tokens: file.tokens,
    })
}

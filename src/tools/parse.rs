//! From the arguments of a tool to a call of an operation: parsed once, validated once.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::call::{self, Action, OperationCall, Source, ToolCall};
use super::error::ToolError;
use super::options::{self, Options};
use super::outcome::ToolResult;
use super::plan::{self, Plan};
use super::registry::{Tool, ToolRegistry};
use super::{create_note, discovery, host, name_limits, named, suggest, upstream, work};
use crate::operations::validation::{self, ValidatedArguments, ValidationError};
use crate::operations::{self, OperationError, OperationExecutor, price};
use crate::render::{Level, Rendered};
use exa_mcp_model::Operation;

/// Parses and validates a call of a tool.
pub(super) fn parse(
    registry: &ToolRegistry,
    name: &str,
    arguments: Map<String, Value>,
) -> ToolCall {
    let tool = registry.find(name).cloned();
    let parsed = match (&tool, name_limits::check(name, &arguments)) {
        (Some(tool), Ok(())) => parse_call(registry, tool, arguments.clone()),
        (Some(_), Err(error)) => Parsed::from(Err(error)),
        (None, _) => Parsed::from(Err(ToolError::impossible(
            format!("There is no tool `{name}`."),
            json!({}),
        ))),
    };
    ToolCall {
        name: name.to_owned(),
        arguments,
        tool,
        start_cost: parsed.start_cost,
        waits: parsed.waits,
        action: parsed.action,
    }
}

/// What a call does, and what is known of it even if it cannot be done.
struct Parsed {
    start_cost: Option<u64>,
    waits: bool,
    action: ToolResult<Action>,
}

impl From<ToolResult<Action>> for Parsed {
    fn from(action: ToolResult<Action>) -> Self {
        Self {
            start_cost: None,
            waits: false,
            action,
        }
    }
}

fn parse_call(registry: &ToolRegistry, tool: &Arc<Tool>, arguments: Map<String, Value>) -> Parsed {
    let request = match &tool.plan {
        Plan::Note => {
            let note = create_note::parse(tool, arguments);
            return note.map(Action::CreateNote).into();
        }
        Plan::Suggest { read, add } => {
            let call = suggest::parse(tool, (read, add), arguments);
            return call.map(Action::Suggest).into();
        }
        Plan::Operation { operation } => single(operation, arguments),
        Plan::Named(plan) => named_call(tool, plan, arguments),
        Plan::Dispatcher { operations } => dispatch(operations, arguments),
        Plan::Host { entries } => host_call(entries, arguments),
    };
    let request = match request {
        Ok(Request::Operation(request)) => request,
        Ok(Request::Discovery(rendered)) => return Ok(Action::Show(rendered)).into(),
        Err(error) => return Err(error).into(),
    };
    let (operation, waits) = (request.operation, request.options.waits());
    let action = if registry.forbids(tool, request.operation) {
        Err(ToolError::ReadOnly(request.operation.name).into())
    } else {
        let call = validate(*request, tool);
        call.map(|(call, source)| Action::Operation(Box::new(call), source))
    };
    let start_cost = work::starts(operation).then(|| match &action {
        Ok(Action::Operation(_, Source::Exa { arguments, .. })) => {
            let estimate = price::estimate(operation, arguments);
            estimate.worst.micro()
        }
        // A call that is not made costs nothing.
        _ => 0,
    });
    Parsed {
        start_cost,
        waits,
        action,
    }
}

/// What a tool that calls operations is asked for.
enum Request {
    /// What can be called.
    Discovery(Rendered),
    /// A call of an operation.
    Operation(Box<OperationRequest>),
}

/// A call of an operation as it was given.
struct OperationRequest {
    operation: &'static Operation,
    arguments: Value,
    options: Options,
    /// The level for callers that name none.
    usual_level: Level,
    /// The level by which the tool chose what to ask Exa for.
    requested_level: Option<Level>,
    /// Which entry of a host stands for the operation.
    entry: Option<usize>,
    /// Arguments that the tool filled in because the caller did not give them.
    filled: Vec<String>,
    /// What was put right so far.
    corrections: Vec<String>,
}

impl OperationRequest {
    /// What a tool asks that sends exactly what it is given.
    fn new(
        operation: &'static Operation,
        arguments: Value,
        options: Options,
        corrections: Vec<String>,
    ) -> Self {
        Self {
            operation,
            arguments,
            options,
            usual_level: Level::Standard,
            requested_level: None,
            entry: None,
            filled: Vec::new(),
            corrections,
        }
    }
}

impl From<OperationRequest> for Request {
    fn from(request: OperationRequest) -> Self {
        Self::Operation(Box::new(request))
    }
}

/// Validates the options and the arguments of a call.
fn validate(request: OperationRequest, tool: &Arc<Tool>) -> ToolResult<(OperationCall, Source)> {
    let OperationRequest {
        operation,
        mut arguments,
        options,
        mut corrections,
        ..
    } = request;
    // Whoever reads a cached result asks nothing, so there are no arguments to speak of.
    let asks = !options.looks_back();
    let options = options.check(&mut corrections);
    let view = options.and_then(|options| Ok((options.view(request.usual_level)?, options)));
    let (mut view, options) = match view {
        Ok(view) => view,
        Err(refused) => {
            let arguments = Some(arguments).filter(|_| asks);
            return Err(unfit_options(*refused, operation, arguments));
        }
    };
    let source = if let Some(id) = options.cache_id() {
        if options.fresh() {
            let note = "`fresh` was left out: cache_id asks for the kept answer";
            corrections.push(note.to_owned());
        }
        Source::Cache(id.to_owned())
    } else {
        let sent_filters = send_filters(operation, &options, &mut arguments, &request.filled);
        let checked = OperationExecutor::validate(operation, arguments).map_err(|refusal| {
            let refusal = in_own_words(call::entry(tool, request.entry), refusal);
            ToolError::refused(operation, refusal)
        })?;
        let ValidatedArguments {
            arguments,
            corrections: found,
            ..
        } = checked;
        // A tool with presets may have said the same of its own arguments.
        let known = corrections.len();
        for note in found {
            if !corrections.iter().take(known).any(|known| *known == note) {
                corrections.push(note);
            }
        }
        view.extract = extract(&arguments);
        Source::Exa {
            arguments,
            sent_filters,
        }
    };
    let call = OperationCall {
        tool: Arc::clone(tool),
        operation,
        options,
        view,
        requested_level: request.requested_level,
        entry: request.entry,
        corrections,
    };
    Ok((call, source))
}

/// A refusal with the names that the caller of a host's entry knows.
fn in_own_words(entry: Option<&plan::Entry>, refusal: OperationError) -> OperationError {
    match (entry, refusal) {
        (Some(entry), OperationError::Arguments(refused)) => {
            OperationError::Arguments(Box::new(host::in_own_words(entry, *refused)))
        }
        (_, refusal) => refusal,
    }
}

/// Options that do not fit, told together with what is wrong with the arguments, and with a call that is
/// right as a whole.
fn unfit_options(
    mut refused: ValidationError,
    operation: &'static Operation,
    arguments: Option<Value>,
) -> Box<ToolError> {
    let Some(arguments) = arguments else {
        return ToolError::invalid(operation.name, refused);
    };
    if let Err(OperationError::Arguments(more)) = OperationExecutor::validate(operation, arguments)
    {
        refused.problems.extend(more.problems);
        refused.hints = more.hints;
    }
    let call = operations::example(operation);
    if let (Value::Object(example), Value::Object(mut call)) = (&mut *refused.example, call) {
        call.append(example);
        *example = call;
    }
    ToolError::invalid(operation.name, refused)
}

fn send_filters(
    operation: &'static Operation,
    options: &Options,
    arguments: &mut Value,
    filled: &[String],
) -> Vec<String> {
    match (options.filters(), arguments) {
        (Some(filters), Value::Object(arguments)) => {
            upstream::send(operation, filters, arguments, filled)
        }
        _ => Vec::new(),
    }
}

/// Characters of text that a request asks for.
fn extract(arguments: &Map<String, Value>) -> Option<usize> {
    let text = arguments
        .get("contents")
        .and_then(|contents| contents.get("text"));
    let text = text.or_else(|| arguments.get("text"));
    let characters = text?.get("maxCharacters")?.as_u64()?;
    usize::try_from(characters).ok()
}

/// An operation that is known to exist in the generated table.
fn operation(name: &str) -> ToolResult<&'static Operation> {
    let all = || operations::all().iter().map(|operation| operation.name);
    operations::find(name).ok_or_else(|| discovery::unknown(name, all()))
}

/// A tool that is one operation.
fn single(name: &str, mut arguments: Map<String, Value>) -> ToolResult<Request> {
    let operation = operation(name)?;
    let mut corrections = Vec::new();
    let own = |name: &str| options::is_argument(operation, name);
    let options = Options::take(&mut arguments, own, &mut corrections);
    Ok(OperationRequest::new(operation, arguments.into(), options, corrections).into())
}

/// A tool with presets. Reading a cached result needs none of its arguments.
fn named_call(
    tool: &Tool,
    plan: &plan::Named,
    mut arguments: Map<String, Value>,
) -> ToolResult<Request> {
    let main = operation(&plan.operation)?;
    let mut corrections = Vec::new();
    let own = |name: &str| {
        plan.moves.iter().any(|step| step.from == name) || options::is_argument(main, name)
    };
    let options = Options::take(&mut arguments, own, &mut corrections);
    let usual = plan.content_level.as_deref().and_then(Level::named);
    let usual = usual.unwrap_or(Level::Standard);
    let level = options.level().unwrap_or(usual);
    let mut request = OperationRequest {
        usual_level: usual,
        requested_level: Some(level).filter(|_| !plan.levels.is_empty()),
        ..OperationRequest::new(main, Value::Null, options, corrections)
    };
    if request.options.looks_back() {
        return Ok(request.into());
    }
    let names: Vec<&str> = main.arguments.iter().map(|it| it.name).collect();
    // What the tool does not know may still be known to the operation.
    let subject = validation::ArgumentSpec::new(tool.schema())
        .with_extra_names(&names)
        .with_example(&plan.example);
    let checked = validation::validate(&subject, arguments.into()).map_err(|refused| {
        let refused = request.options.refusing(refused);
        ToolError::invalid(tool.name(), refused)
    })?;
    request.corrections.extend(checked.corrections);
    if request.options.has_filters() {
        request.filled = named::filled(plan, &checked.arguments);
    }
    let (name, mut arguments) = named::arguments(plan, checked.arguments, level);
    named::rewrite_query(
        plan,
        &mut arguments,
        &discovery::values_of(name, "category"),
    );
    request.operation = operation(name)?;
    request.arguments = arguments.into();
    Ok(request.into())
}

/// A tool that takes any operation of an API.
fn dispatch(names: &[String], mut arguments: Map<String, Value>) -> ToolResult<Request> {
    let known = || names.iter().map(String::as_str);
    let mut corrections = Vec::new();
    let beside = arguments
        .get("operation")
        .and_then(Value::as_str)
        .and_then(operations::find);
    let own = |name: &str| {
        ["operation", "args", "params", "arguments"].contains(&name)
            || beside.is_some_and(|operation| options::is_argument(operation, name))
    };
    let mut options = Options::take(&mut arguments, own, &mut corrections);
    let holders = ["args", "params", "arguments"];
    let (name, mut args) = discovery::request(arguments, &holders, &mut corrections)
        .map_err(|problem| discovery::no_operation(&problem, known()))?;
    match name.as_str() {
        "list_operations" => {
            let listed = discovery::list(known(), corrections);
            return Ok(Request::Discovery(listed));
        }
        "describe" => {
            let described = discovery::describe(&args, known(), corrections);
            return described.map(Request::Discovery);
        }
        _ => {}
    }
    let Some(name) = discovery::meant("operation", &name, known(), &mut corrections) else {
        return Err(discovery::unknown(&name, known()));
    };
    let operation = operation(&name)?;
    if let Value::Object(args) = &mut args {
        let own = |name: &str| options::is_argument(operation, name);
        options.take_more(args, own, &mut corrections);
    }
    Ok(OperationRequest::new(operation, args, options, corrections).into())
}

/// A tool that takes operations under names of their own.
fn host_call(entries: &[plan::Entry], mut arguments: Map<String, Value>) -> ToolResult<Request> {
    let known = || entries.iter().map(|entry| entry.name.as_str());
    let mut corrections = Vec::new();
    let holders = ["params", "args", "arguments"];
    let own = |name: &str| name == "operation" || holders.contains(&name);
    let options = Options::take(&mut arguments, own, &mut corrections);
    let (name, params) = discovery::request(arguments, &holders, &mut corrections)
        .map_err(|problem| discovery::no_operation(&problem, known()))?;
    if name == "list_operations" {
        let listed = discovery::list_entries(entries, &params, corrections);
        return listed.map(Request::Discovery);
    }
    let meant = discovery::meant("operation", &name, known(), &mut corrections);
    let index = meant.and_then(|meant| entries.iter().position(|entry| entry.name == meant));
    let found = index.and_then(|index| Some((index, entries.get(index)?)));
    let (index, entry) = found.ok_or_else(|| discovery::unknown(&name, known()))?;
    let Some(behind) = &entry.operation else {
        let why = entry
            .unsupported
            .as_deref()
            .unwrap_or("Exa cannot do this.");
        let details = json!({"operation": entry.name, "supported": false});
        return Err(ToolError::impossible(why, details));
    };
    let Value::Object(params) = params else {
        let details = json!({"operation": entry.name});
        return Err(ToolError::impossible(
            "`params` must be an object.",
            details,
        ));
    };
    let arguments = host::arguments(entry, params, &mut corrections);
    let request = OperationRequest {
        entry: Some(index),
        ..OperationRequest::new(operation(behind)?, arguments.into(), options, corrections)
    };
    Ok(request.into())
}

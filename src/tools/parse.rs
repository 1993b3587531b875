//! Parses and validates tool calls.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::call::{self, Action, OperationCall, Source, ToolCall};
use super::error::ToolError;
use super::expansion::Expansion;
use super::extra_contents::HigherLevels;
use super::failure::ErrorForm;
use super::options::{self, Options};
use super::outcome::ToolResult;
use super::registry::{Tool, ToolRegistry};
use super::{
    adjustments, create_note, describe, discovery, extra_contents, name_limits, named, suggest,
    task_call, toolhost, upstream_filters,
};
use crate::operations::validation::{self, ValidatedArguments, ValidationError};
use crate::operations::{self, OperationError, OperationExecutor, price};
use crate::render::{ContentLevel, OutputFormat, Rendered};
use exa_mcp_model::{NamedToolPlan, Operation, ToolPlan, ToolhostEntry};

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
        (None, _) => Parsed::from(Err(ToolError::invalid_request(
            format!("There is no tool `{name}`."),
            json!({}),
        ))),
    };
    ToolCall {
        error_form: ErrorForm::new(tool.as_deref(), &arguments),
        name: name.to_owned(),
        arguments,
        tool,
        start_cost: parsed.start_cost,
        waits: parsed.waits,
        action: parsed.action,
    }
}

/// The action of a call, and what is known of the call even if it is invalid.
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
        ToolPlan::Note => {
            let note = create_note::parse(tool, arguments);
            return note.map(Action::CreateNote).into();
        }
        ToolPlan::Suggest { read, add } => {
            let call = suggest::parse(tool, (read, add), arguments);
            return call.map(Action::Suggest).into();
        }
        ToolPlan::Operation { operation } => single(operation, arguments),
        ToolPlan::Named(plan) => named_call(tool, plan, arguments),
        ToolPlan::Dispatcher { operations } => dispatch(operations, arguments),
        ToolPlan::Toolhost { entries } => toolhost_call(entries, arguments),
    };
    let request = match request {
        Ok(Request::Operation(request)) => request,
        Ok(Request::Discovery(rendered)) => return Ok(Action::Show(rendered)).into(),
        Ok(Request::Local(action)) => return Ok(action).into(),
        Err(error) => return Err(error).into(),
    };
    let (operation, waits) = (request.operation, request.options.waits());
    let action = if registry.forbids(tool, request.operation) {
        Err(ToolError::ReadOnly(request.operation.name).into())
    } else {
        let call = validate(*request, tool);
        call.map(|(call, source)| Action::Operation(Box::new(call), source))
    };
    let start_cost = task_call::starts(operation).then(|| match &action {
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

/// A request to a tool that calls operations.
enum Request {
    /// A description of what can be called.
    Discovery(Rendered),
    /// A call of an operation.
    Operation(Box<OperationRequest>),
    /// A call of a tool that the server runs itself.
    Local(Action),
}

/// A call of an operation before validation.
struct OperationRequest {
    operation: &'static Operation,
    arguments: Value,
    options: Options,
    /// The level if the caller names none.
    default_level: ContentLevel,
    /// The level for which the tool chose the arguments, if it did.
    requested_level: Option<ContentLevel>,
    /// The contents of the levels above the requested one, if the caller names none.
    levels: HigherLevels,
    /// The index of the toolhost entry that was called, if any.
    entry: Option<usize>,
    /// Arguments set by defaults of the tool, not by the caller.
    defaulted: Vec<String>,
    /// Corrections so far.
    corrections: Vec<String>,
}

impl OperationRequest {
    /// Creates the request of a tool without presets.
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
            default_level: ContentLevel::Standard,
            requested_level: None,
            levels: HigherLevels::default(),
            entry: None,
            defaulted: Vec::new(),
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
        mut options,
        mut corrections,
        requested_level,
        ..
    } = request;
    // Reading a cached result sends no request, so its arguments do not matter.
    let calls_exa = !options.reads_cache();
    if calls_exa {
        adjustments::spread_limit(operation, &mut arguments, &mut options, &mut corrections);
    }
    let options = options.check(&mut corrections);
    let entry = call::entry(tool, request.entry);
    let format = if entry.is_some() {
        OutputFormat::Json
    } else {
        OutputFormat::Markdown
    };
    let default = (request.default_level, format);
    let view = options.and_then(|options| Ok((options.view(default)?, options)));
    let (mut view, options) = match view {
        Ok(view) => view,
        Err(error) => {
            let arguments = Some(arguments).filter(|_| calls_exa);
            return Err(invalid_options(*error, operation, arguments));
        }
    };
    view.toolhost_operation = entry.map(|entry| entry.name.clone());
    if let ToolPlan::Named(plan) = &tool.plan {
        view.is_plain = !plan.levels.is_empty();
        view.is_brief = plan.brief;
    }
    let mut expansion = None;
    let source = if let Some(id) = options.cache_id() {
        if options.fresh() {
            let correction = "`fresh` was ignored: cache_id reads a cached result";
            corrections.push(correction.to_owned());
        }
        Source::Cache(id.to_owned())
    } else {
        let sent_filters = send_filters(operation, &options, &mut arguments, &request.defaulted);
        let level = options.level().unwrap_or(request.default_level);
        adjustments::add_contents(operation, &mut arguments, level);
        let extra = extra_contents::add(operation, &mut arguments, &request.levels);
        let checked = OperationExecutor::validate(operation, arguments).map_err(|error| {
            let error = with_entry_names(entry, error);
            ToolError::from_call_error(operation, error)
        })?;
        let ValidatedArguments {
            arguments,
            corrections: found,
            ..
        } = checked;
        // In the toolhost, `id` is the documented name of a single identifier.
        let is_silent = |correction: &str| entry.is_some() && correction.starts_with("`id`: ");
        // A named tool may have reported the same correction of its own arguments.
        let known = corrections.len();
        for correction in found {
            let mut known = corrections.iter().take(known);
            if !is_silent(&correction) && !known.any(|known| *known == correction) {
                corrections.push(correction);
            }
        }
        view.extract = adjustments::requested_characters(operation, &arguments);
        expansion = Expansion::new(&arguments, request.levels, &extra).map(Arc::new);
        view.extra = extra_contents::shown(extra, &options, &view, requested_level);
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
        requested_level,
        expansion,
        entry: request.entry,
        corrections,
    };
    Ok((call, source))
}

/// Replaces the names of the operation in an error with those of the toolhost entry.
fn with_entry_names(entry: Option<&ToolhostEntry>, error: OperationError) -> OperationError {
    match (entry, error) {
        (Some(entry), OperationError::Arguments(error)) => {
            OperationError::Arguments(Box::new(toolhost::with_entry_names(entry, *error)))
        }
        (_, error) => error,
    }
}

/// Creates an error about invalid options, together with the problems of the arguments and a valid call.
fn invalid_options(
    mut error: ValidationError,
    operation: &'static Operation,
    arguments: Option<Value>,
) -> Box<ToolError> {
    let Some(arguments) = arguments else {
        return ToolError::invalid(operation.name, error);
    };
    if let Err(OperationError::Arguments(more)) = OperationExecutor::validate(operation, arguments)
    {
        error.problems.extend(more.problems);
        error.hints = more.hints;
    }
    let call = operations::example(operation);
    if let (Value::Object(example), Value::Object(mut call)) = (&mut *error.example, call) {
        call.append(example);
        *example = call;
    }
    ToolError::invalid(operation.name, error)
}

fn send_filters(
    operation: &'static Operation,
    options: &Options,
    arguments: &mut Value,
    defaulted: &[String],
) -> Vec<String> {
    match (options.filters(), arguments) {
        (Some(filters), Value::Object(arguments)) => {
            upstream_filters::send(operation, filters, arguments, defaulted)
        }
        _ => Vec::new(),
    }
}

/// Finds an operation in the generated table.
fn operation(name: &str) -> ToolResult<&'static Operation> {
    let all = || operations::all().iter().map(|operation| operation.name);
    operations::find(name).ok_or_else(|| discovery::unknown_operation(name, all()))
}

/// Parses a call of a tool for a single operation.
fn single(name: &str, mut arguments: Map<String, Value>) -> ToolResult<Request> {
    let operation = operation(name)?;
    let mut corrections = Vec::new();
    let own = |name: &str| options::is_argument(operation, name);
    let options = Options::take(&mut arguments, own, &mut corrections);
    Ok(OperationRequest::new(operation, arguments.into(), options, corrections).into())
}

/// Parses a call of a named tool. Reading a cached result needs none of its arguments.
fn named_call(
    tool: &Tool,
    plan: &NamedToolPlan,
    mut arguments: Map<String, Value>,
) -> ToolResult<Request> {
    let main = operation(&plan.operation)?;
    let mut corrections = Vec::new();
    let own = |name: &str| {
        plan.moves.iter().any(|step| step.from == name) || options::is_argument(main, name)
    };
    let options = Options::take(&mut arguments, own, &mut corrections);
    let default = plan
        .content_level
        .as_deref()
        .and_then(ContentLevel::from_name);
    let default = default.unwrap_or(ContentLevel::Standard);
    let level = options.level().unwrap_or(default);
    let mut request = OperationRequest {
        default_level: default,
        requested_level: Some(level).filter(|_| !plan.levels.is_empty()),
        ..OperationRequest::new(main, Value::Null, options, corrections)
    };
    if request.options.reads_cache() {
        return Ok(request.into());
    }
    // A page of the tool is one of the operation.
    let mut given = Value::Object(arguments);
    adjustments::spread_limit(
        main,
        &mut given,
        &mut request.options,
        &mut request.corrections,
    );
    let names: Vec<&str> = main.arguments.iter().map(|it| it.name).collect();
    // Arguments unknown to the tool may be arguments of the operation.
    let closed = named::own_enums(plan, tool.schema(), operations::input_schema(main));
    let subject = validation::ArgumentSpec::new(tool.schema())
        .with_open_values(&closed)
        .with_extra_names(&names)
        .with_example(&plan.example);
    let checked = validation::validate(&subject, given).map_err(|error| {
        let error = request.options.add_problems(error);
        ToolError::invalid(tool.name(), error)
    })?;
    request.corrections.extend(checked.corrections);
    if request.options.has_filters() {
        request.defaulted = named::defaulted_arguments(plan, &checked.arguments);
    }
    let corrections = &mut request.corrections;
    let (name, mut arguments) = named::arguments(plan, checked.arguments, level, corrections);
    request.levels = HigherLevels::new(plan, &arguments, level);
    named::rewrite_query(
        plan,
        &mut arguments,
        &discovery::allowed_values(name, "category"),
    );
    request.operation = operation(name)?;
    request.arguments = arguments.into();
    Ok(request.into())
}

/// Parses a call of a dispatcher.
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
    let keys = ["args", "params", "arguments"];
    let (name, mut args) = discovery::parse_request(arguments, &keys, &mut corrections)
        .map_err(|problem| discovery::missing_operation(&problem, known()))?;
    match name.as_str() {
        "list_operations" => {
            let listed = discovery::list_operations(known(), corrections);
            return Ok(Request::Discovery(listed));
        }
        "describe" => {
            let described = describe::describe(&args, known(), corrections);
            return described.map(Request::Discovery);
        }
        _ => {}
    }
    let Some(name) = discovery::resolve_name("operation", &name, known(), &mut corrections) else {
        return Err(discovery::unknown_operation(&name, known()));
    };
    let operation = operation(&name)?;
    if let Value::Object(args) = &mut args {
        let own = |name: &str| options::is_argument(operation, name);
        options.take_more(args, own, &mut corrections);
    }
    Ok(OperationRequest::new(operation, args, options, corrections).into())
}

/// Parses a call of a tool that a toolhost offers as an operation.
fn local_call(name: &str, mut arguments: Map<String, Value>) -> ToolResult<Request> {
    let tool = Tool::find(name)
        .ok_or_else(|| Box::new(ToolError::Internal(format!("there is no tool `{name}`"))))?;
    arguments
        .entry("output_format")
        .or_insert_with(|| json!("json"));
    let action = match &tool.plan {
        ToolPlan::Suggest { read, add } => {
            suggest::parse(&tool, (read, add), arguments).map(Action::Suggest)
        }
        ToolPlan::Note => create_note::parse(&tool, arguments).map(Action::CreateNote),
        _ => Err(ToolError::Internal(format!("`{name}` calls Exa")).into()),
    };
    action.map(Request::Local)
}

/// Parses a call of a toolhost.
fn toolhost_call(
    entries: &[ToolhostEntry],
    mut arguments: Map<String, Value>,
) -> ToolResult<Request> {
    let known = || entries.iter().map(|entry| entry.name.as_str());
    let mut corrections = Vec::new();
    let keys = ["params", "args", "arguments"];
    let own = |name: &str| name == "operation" || keys.contains(&name);
    let mut options = Options::take(&mut arguments, own, &mut corrections);
    let (name, params) = discovery::parse_request(arguments, &keys, &mut corrections)
        .map_err(|problem| discovery::missing_operation(&problem, known()))?;
    if name == "list_operations" {
        let listed = describe::list_entries(entries, &params, corrections);
        return listed.map(Request::Discovery);
    }
    let name_here = discovery::resolve_name("operation", &name, known(), &mut corrections);
    let index = name_here.and_then(|own| entries.iter().position(|entry| entry.name == own));
    let found = index.and_then(|index| Some((index, entries.get(index)?)));
    let (index, entry) = found.ok_or_else(|| discovery::unknown_operation(&name, known()))?;
    if let Some(tool) = &entry.tool {
        let params = match params {
            Value::Object(params) => params,
            _ => Map::new(),
        };
        return local_call(tool, params);
    }
    let Some(operation_name) = &entry.operation else {
        let reason = entry
            .unsupported
            .as_deref()
            .unwrap_or("Exa cannot do this.");
        let details = json!({"operation": entry.name, "supported": false});
        return Err(ToolError::invalid_request(reason, details));
    };
    let Value::Object(mut params) = params else {
        let details = json!({"operation": entry.name});
        return Err(ToolError::invalid_request(
            "`params` must be an object.",
            details,
        ));
    };
    let operation = operation(operation_name)?;
    let own = |name: &str| {
        let mut names = entry.rename.keys().chain(&entry.spread);
        names.any(|own| own == name) || options::is_argument(operation, name)
    };
    options.take_more(&mut params, own, &mut corrections);
    let arguments = toolhost::arguments(entry, params, &mut corrections).map_err(|problems| {
        let error = ValidationError {
            problems: Vec::new(),
            example: Box::new(operations::example(operation)),
            hints: Vec::new(),
            missing: Vec::new(),
        };
        // The problems name both parameters already.
        let error = ValidationError {
            problems,
            ..toolhost::with_entry_names(entry, error)
        };
        ToolError::invalid(&entry.name, error)
    })?;
    let request = OperationRequest {
        entry: Some(index),
        ..OperationRequest::new(operation, arguments.into(), options, corrections)
    };
    Ok(request.into())
}

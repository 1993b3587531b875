//! Commands that are views of operations, built from `commands` in `surface.yaml`.

use std::sync::Arc;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use serde_json::{Value, json};

use super::arguments::{convert, insert, parse_arguments};
use super::{Failure, OutputOptions, Request, RequestOptions, find_operation};
use crate::cli::command_name;
use crate::operations::{RemoteJob, input_schema, is_paged, price::cost_in_words};
use exa_mcp_generated::tools::COMMANDS;
use exa_mcp_model::time::{format_timestamp, parse_timestamp};
use exa_mcp_model::{CommandArgument, CommandPlan, CommandValue, Operation};

/// The flag that sets any argument of the operation.
const ANY_ARGUMENT: &str = "arg";

/// A call of a command that is a view of an operation.
#[derive(Debug, Clone)]
pub(in super::super) struct PlanCall {
    plan: &'static CommandPlan,
    matches: ArgMatches,
}

/// Adds the commands to the command line.
pub(in super::super) fn add_commands(mut command: Command) -> Command {
    let mut groups: Vec<(&'static str, Command)> = Vec::new();
    for plan in &COMMANDS.plans {
        let built = build(plan);
        let (Some(group), _) = plan.split_name() else {
            command = command.subcommand(built);
            continue;
        };
        if let Some((_, parent)) = groups.iter_mut().find(|(name, _)| *name == group) {
            *parent = std::mem::take(parent).subcommand(built);
        } else {
            let about = COMMANDS.groups.get(group).map_or("", String::as_str);
            let parent = Command::new(group)
                .about(about)
                .subcommand_required(true)
                .arg_required_else_help(true);
            groups.push((group, parent.subcommand(built)));
        }
    }
    let groups = groups.into_iter().map(|(_, group)| group);
    command.subcommands(groups)
}

/// Returns the call of such a command, if the command line has one.
pub(in super::super) fn find_plan_call(matches: &ArgMatches) -> Option<PlanCall> {
    let (name, matches) = matches.subcommand()?;
    let find = |group: Option<&str>, word: &str| {
        let mut plans = COMMANDS.plans.iter();
        plans.find(|plan| plan.split_name() == (group, word))
    };
    if let Some(plan) = find(None, name) {
        let matches = matches.clone();
        return Some(PlanCall { plan, matches });
    }
    let (word, matches) = matches.subcommand()?;
    let plan = find(Some(name), word)?;
    let matches = matches.clone();
    Some(PlanCall { plan, matches })
}

impl PlanCall {
    /// Returns the call of the operation.
    pub(in super::super) fn into_request(self) -> Result<Request, Failure> {
        let Self { plan, matches } = self;
        let operation = find_operation(&plan.operation)?;
        let usage = |error: clap::Error| Failure::usage(error);
        Ok(Request {
            operation,
            arguments: arguments(plan, operation, &matches)?,
            options: RequestOptions::from_arg_matches(&matches).map_err(usage)?,
            output: OutputOptions::from_arg_matches(&matches).map_err(usage)?,
            plan: Some(plan),
        })
    }
}

/// Builds one command.
fn build(plan: &'static CommandPlan) -> Command {
    let (_, word) = plan.split_name();
    let mut command = Command::new(word)
        .about(plan.about.as_str())
        .arg_required_else_help(plan.arguments.iter().any(|argument| argument.required));
    for argument in &plan.arguments {
        let arg = base_arg(argument).value_name(argument.name.to_uppercase());
        command = command.arg(match argument.takes {
            CommandValue::Words | CommandValue::List => arg.num_args(1..),
            _ => arg,
        });
    }
    for flag in &plan.flags {
        let mut arg = base_arg(flag).long(flag.name.as_str());
        if matches!(flag.takes, CommandValue::Text | CommandValue::List) {
            arg = arg.value_name(flag.name.to_uppercase());
        }
        if let Some(short) = flag.short {
            arg = arg.short(short);
        }
        arg = match flag.takes {
            CommandValue::Switch => arg.action(ArgAction::SetTrue),
            CommandValue::List => arg.action(ArgAction::Append).value_delimiter(','),
            _ => arg,
        };
        // A condition may contain commas.
        if flag.entry.is_some() {
            arg = arg.value_delimiter(None);
        }
        command = command.arg(arg);
    }
    let any = Arg::new(ANY_ARGUMENT)
        .long(ANY_ARGUMENT)
        .value_name("KEY=VALUE")
        .action(ArgAction::Append)
        .help("Any other argument of the operation; may be repeated");
    let command = command.arg(any).after_help(after_help(plan));
    let command = OutputOptions::augment_args(RequestOptions::augment_args(command));
    let command = hide_options(command, plan);
    // The options bring descriptions of their own.
    command.about(plan.about.as_str()).long_about(None)
}

/// Hides the options that have no effect on a command.
fn hide_options(command: Command, plan: &'static CommandPlan) -> Command {
    let operation = crate::operations::find(&plan.operation);
    let is_job = operation.is_some_and(RemoteJob::is_job_call);
    let is_paged = operation.is_some_and(is_paged);
    command
        .mut_arg("wait", |arg| arg.hide(!is_job))
        .mut_arg("no_wait", |arg| arg.hide(!plan.wait))
        .mut_arg("all", |arg| arg.hide(!is_paged || plan.all))
}

fn after_help(plan: &'static CommandPlan) -> String {
    let mut help = format!("Example: {} {} {}", command_name(), plan.name, plan.example);
    if let Some(operation) = crate::operations::find(&plan.operation) {
        help += &format!(
            "\nCost: {}\nAll arguments: {} call {} --help",
            cost_in_words(operation),
            command_name(),
            operation.name
        );
    }
    help
}

fn base_arg(argument: &'static CommandArgument) -> Arg {
    let arg = Arg::new(argument.name.as_str())
        .help(argument.help.as_str())
        .required(argument.required);
    match argument.takes {
        CommandValue::Switch => return arg,
        CommandValue::Number => return arg.value_name("N").allow_negative_numbers(true),
        CommandValue::Date => return arg.value_name("DATE"),
        CommandValue::Json => return arg.value_name("JSON|@FILE"),
        _ => {}
    }
    if let Some(list) = &argument.ids {
        let ids = OpenValues::new(|| super::super::known_ids::read(list));
        return arg.value_parser(ids).hide_possible_values(true);
    }
    if argument.values.is_empty() {
        arg
    } else {
        arg.value_parser(OpenValues::new(|| argument.values.clone()))
    }
}

/// Accepts any text, and offers known values for help and completion. Validation knows more than the list.
#[derive(Clone)]
pub(in super::super) struct OpenValues(Arc<dyn Fn() -> Vec<String> + Send + Sync>);

impl OpenValues {
    /// Creates a parser with values that are only determined when they are shown.
    pub(in super::super) fn new(values: impl Fn() -> Vec<String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(values))
    }
}

impl TypedValueParser for OpenValues {
    type Value = String;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<String, clap::Error> {
        clap::builder::StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let values = self.0().into_iter();
        Some(Box::new(values.map(PossibleValue::new)))
    }
}

/// Returns the arguments of the operation.
fn arguments(
    plan: &'static CommandPlan,
    operation: &'static Operation,
    matches: &ArgMatches,
) -> Result<Value, Failure> {
    let schema: &Value = input_schema(operation);
    let mut target = json!({});
    let others: Vec<String> = matches
        .get_many::<String>(ANY_ARGUMENT)
        .into_iter()
        .flatten()
        .cloned()
        .collect();
    if let Some(wrong) = others.iter().find(|other| !other.contains('=')) {
        let text = format!("--{ANY_ARGUMENT} {wrong}: expected KEY=VALUE");
        return Err(Failure::usage(text));
    }
    let mut set = |path: &str, value: Value| {
        let path: Vec<&str> = path.split('.').collect();
        insert(&mut target, &path, value).map_err(Failure::usage)
    };
    for (path, value) in &plan.fixed {
        set(path, value.clone())?;
    }
    for argument in plan.arguments.iter().chain(&plan.flags) {
        if let Some(value) = value_of(argument, matches, schema)? {
            set(&argument.to, value)?;
        }
    }
    for default in &plan.defaults {
        let is_given = |path: &String| is_set(&target, path);
        if !is_given(&default.path) && !default.unless.iter().any(is_given) {
            let path: Vec<&str> = default.path.split('.').collect();
            insert(&mut target, &path, default.value.clone()).map_err(Failure::usage)?;
        }
    }
    if others.is_empty() {
        return Ok(target);
    }
    let others = parse_arguments(&others, schema)?;
    merge(&mut target, others);
    Ok(target)
}

fn is_set(target: &Value, path: &str) -> bool {
    let mut names = path.split('.');
    names
        .try_fold(target, |value, name| value.get(name))
        .is_some()
}

/// Adds the fields of an object to another, also inside of objects.
fn merge(target: &mut Value, more: Value) {
    match (target, more) {
        (Value::Object(target), Value::Object(more)) => {
            for (name, value) in more {
                merge(target.entry(name).or_insert(Value::Null), value);
            }
        }
        (target, more) => *target = more,
    }
}

/// Returns the value that an argument of the command sends, if it was given.
fn value_of(
    argument: &CommandArgument,
    matches: &ArgMatches,
    schema: &Value,
) -> Result<Option<Value>, Failure> {
    if argument.takes == CommandValue::Switch {
        let given = matches.get_flag(&argument.name);
        return Ok(given.then(|| argument.value.clone().unwrap_or(json!(true))));
    }
    let texts = matches.get_many::<String>(&argument.name);
    let texts: Vec<&String> = texts.into_iter().flatten().collect();
    let Some(first) = texts.first() else {
        return Ok(None);
    };
    let mut path: Vec<&str> = argument.to.split('.').collect();
    Ok(Some(match argument.takes {
        CommandValue::Words => {
            let words: Vec<&str> = texts.iter().map(|text| text.as_str()).collect();
            json!(words.join(" "))
        }
        CommandValue::List => {
            path.push("0");
            path.extend(argument.entry.as_deref());
            let value = |text: &&String| {
                let value = convert(&path, (*text).clone(), false, schema);
                match &argument.entry {
                    Some(entry) => json!({entry: value}),
                    None => value,
                }
            };
            texts.iter().map(value).collect()
        }
        CommandValue::Date => json!(timestamp(&argument.name, first)?),
        CommandValue::Json => {
            let pair = format!("x={first}");
            let parsed = parse_arguments(&[pair], &Value::Null)?;
            let value = parsed.get("x").cloned().unwrap_or_default();
            if value.is_string() {
                let name = &argument.name;
                return Err(Failure::usage(format!(
                    "--{name} must be JSON or a file with JSON, such as @schema.json"
                )));
            }
            value
        }
        _ => convert(&path, (*first).clone(), false, schema),
    }))
}

/// Returns a day or a time in the form that Exa expects.
fn timestamp(name: &str, text: &str) -> Result<String, Failure> {
    let parsed = parse_timestamp(text).map(format_timestamp);
    parsed.ok_or_else(|| {
        Failure::usage(format!(
            "--{name} `{text}` is not a date; write 2026-01-31 or 2026-01-31T12:00:00Z"
        ))
    })
}

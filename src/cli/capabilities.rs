//! `exa-mcp-server capabilities`: what the program can do, for agents. Needs neither a key nor the network.

use clap::Command;
use serde_json::{Map, Value, json};

use super::arguments::command;
use crate::config::SETTINGS;
use crate::operations::all;
use crate::operations::price::cost_in_words;
use crate::tools::ERROR_CODES;
use exa_mcp_generated::tools::{COMMANDS, SETS};
use exa_mcp_model::Operation;

/// The exit codes of all commands.
const EXIT_CODES: [(u8, &str, &str); 5] = [
    (0, "success", "the command succeeded"),
    (
        super::FAILED,
        "failed",
        "Exa rejected the call or could not be reached, the work failed at Exa, or a check failed",
    ),
    (
        super::USAGE,
        "usage",
        "nothing was sent: unknown command or operation, invalid arguments, no key, over budget, network disabled",
    ),
    (
        super::TIMED_OUT,
        "timed_out",
        "--wait ended before the work did; it continues at Exa",
    ),
    (
        super::INTERRUPTED,
        "interrupted",
        "Ctrl-C; work that was started continues at Exa",
    ),
];

/// Returns the inventory as JSON.
pub(super) fn json() -> String {
    let mut command = command();
    command.build();
    let commands: Vec<Value> = command
        .get_subcommands()
        .flat_map(|it| commands(it, ""))
        .collect();
    let exit_codes = EXIT_CODES
        .iter()
        .map(|(code, name, meaning)| json!({"code": code, "name": name, "meaning": meaning}));
    let error_codes = ERROR_CODES
        .iter()
        .map(|(code, name)| json!({"code": code, "name": name}));
    let variables = SETTINGS.iter().map(|setting| {
        json!({
            "name": setting.variable,
            "configKey": setting.key,
            "type": format!("{:?}", setting.value_type).to_lowercase(),
            "secret": setting.secret,
        })
    });
    let sets = SETS
        .iter()
        .map(|(name, tools)| ((*name).to_owned(), json!(tools)));
    let inventory = json!({
        "name": "exa-mcp-server",
        "version": env!("CARGO_PKG_VERSION"),
        "output": {
            "pipe": "one JSON value, or JSON lines with --format jsonl; nothing else on standard output",
            "errors": "standard error",
        },
        "globalFlags": flags(&command),
        "commands": commands,
        "operations": all().iter().map(operation).collect::<Vec<_>>(),
        "toolSets": sets.collect::<Map<_, _>>(),
        "exitCodes": exit_codes.collect::<Vec<_>>(),
        "errorCodes": error_codes.collect::<Vec<_>>(),
        "environment": variables.collect::<Vec<_>>(),
    });
    super::output::pretty(&inventory)
}

/// Returns a command and the commands below it.
fn commands(command: &Command, prefix: &str) -> Vec<Value> {
    let name = format!("{prefix}{}", command.get_name());
    if name == "help" || name.ends_with(" help") {
        return Vec::new();
    }
    if command.has_subcommands() {
        let below = command.get_subcommands();
        return below
            .flat_map(|it| commands(it, &format!("{name} ")))
            .collect();
    }
    let plan = COMMANDS.plans.iter().find(|plan| plan.name == name);
    let positional = command.get_positionals().map(|arg| {
        json!({
            "name": arg.get_id().as_str(),
            "required": arg.is_required_set(),
            "help": arg.get_help().map(ToString::to_string),
        })
    });
    vec![json!({
        "name": name,
        "about": command.get_about().map(ToString::to_string),
        "operation": plan.map(|plan| &plan.operation),
        "arguments": positional.collect::<Vec<_>>(),
        "flags": flags(command),
    })]
}

fn flags(command: &Command) -> Vec<Value> {
    let flags = command.get_opts().chain(
        command
            .get_arguments()
            .filter(|arg| !arg.is_positional() && !arg.get_action().takes_values()),
    );
    let mut seen: Vec<&str> = Vec::new();
    let mut list = Vec::new();
    for flag in flags {
        // A hidden flag has no effect on the command.
        let long = flag.get_long().filter(|_| !flag.is_hide_set());
        let Some(long) = long.filter(|long| !seen.contains(long)) else {
            continue;
        };
        seen.push(long);
        let values = flag.get_possible_values();
        let values: Vec<&str> = values.iter().map(|value| value.get_name()).collect();
        list.push(json!({
            "flag": format!("--{long}"),
            "short": flag.get_short().map(|short| format!("-{short}")),
            "takesValue": flag.get_action().takes_values(),
            "values": values,
            "help": flag.get_help().map(ToString::to_string),
        }));
    }
    list
}

fn operation(operation: &Operation) -> Value {
    json!({
        "name": operation.name,
        "summary": operation.summary,
        "signature": operation.signature,
        "method": operation.method,
        "path": operation.path,
        "readOnly": operation.read_only,
        "deprecated": operation.deprecated,
        "isPaged": operation.arguments.iter().any(|argument| argument.name == "cursor"),
        "isLongRunning": operation.behavior.long_running.is_some(),
        "key": operation.api.key.variable(),
        "cost": cost_in_words(operation),
    })
}

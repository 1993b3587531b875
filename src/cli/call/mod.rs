//! Calls of operations: `exa-mcp-server call` and the commands that are views of operations.

mod arguments;
mod follow;
mod plan;
mod preview;
mod progress;
mod request;
mod run;

pub(super) use arguments::parse_arguments;
pub(super) use plan::{OpenValues, PlanCall, add_commands, find_plan_call};
pub(super) use preview::dry_run;
pub(super) use request::{OutputOptions, Request, RequestOptions};
pub(super) use run::{call_value, executor, open_session, run, with_defaults};

use super::output::shell_word;
use super::{FAILED, Failure, USAGE, command_name};
use crate::operations::{OperationError, find, nearest};
use exa_mcp_exa_client::{ExaError, ExaErrorKind};
use exa_mcp_model::{CommandPlan, Operation};
use exa_mcp_text::sanitize;

/// Shown in the help of the command.
pub(super) fn exit_codes() -> String {
    let program = command_name();
    format!(
        "\
Arguments are key=value pairs such as query=batteries numResults=5 contents.text=true, a JSON object, @FILE with one,
or - to read one from standard input. A value is text or JSON, as the schema wants it; key=@FILE reads it from a file.

  {program} call search query=\"solid-state batteries\" numResults=5 --format table
  {program} call OPERATION --help     shows the arguments of an operation

Exit codes:
  0    the response was printed
  1    Exa rejected the call or could not be reached, or the work failed at Exa
  2    the call was not made: unknown operation, invalid arguments, no key, over budget
  3    --wait ended before the work did; it continues at Exa
  130  interrupted with Ctrl-C; work that was started continues at Exa"
    )
}

/// Returns the operation with a name, or an error that suggests one.
pub(super) fn find_operation(name: &str) -> Result<&'static Operation, Failure> {
    find(name).ok_or_else(|| {
        let hint = match nearest(name) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("`{} operations` lists them all", command_name()),
        };
        Failure::usage(format!("unknown operation `{name}`; {hint}"))
    })
}

/// Converts the error of a call.
pub(super) fn call_failure(operation: &Operation, error: &OperationError) -> Failure {
    match error {
        OperationError::NoKey(_) => Failure::usage(format!(
            "no Exa API key; run `{} login`, or get one at https://dashboard.exa.ai/api-keys and set EXA_API_KEY",
            command_name()
        )),
        OperationError::NoServiceKey => Failure::usage(
            "no Exa service key, which team management needs; create one in the settings of the team at \
             https://dashboard.exa.ai and set EXA_SERVICE_KEY",
        ),
        OperationError::KeysUnavailable(error) => Failure::failed(error),
        OperationError::Limit(exceeded) => Failure::usage(exceeded),
        OperationError::Arguments(error) => {
            let mut text = format!(
                "`{}` was not called; its arguments are invalid:",
                operation.name
            );
            for problem in &error.problems {
                text += &format!("\n  {}: {}", problem.path, problem.message);
            }
            text += &format!(
                "\nA minimal valid call: {} call {} {}",
                command_name(),
                operation.name,
                shell_word(&error.example.to_string())
            );
            for hint in &error.hints {
                text += &format!("\n  hint: {hint}");
            }
            Failure::usage(sanitize::clean(&text))
        }
        OperationError::Exa(error) => exa_failure(error),
    }
}

/// Converts the error of a command that is a view of an operation: it names the flags of the command.
fn plan_failure(plan: &CommandPlan, operation: &Operation, error: &OperationError) -> Failure {
    let OperationError::Arguments(error) = error else {
        return call_failure(operation, error);
    };
    let mut text = "nothing was sent; the arguments are invalid:".to_owned();
    for problem in &error.problems {
        let flag = plan.flags.iter().find(|flag| flag.sets(&problem.path));
        let argument = plan.arguments.iter().find(|it| it.sets(&problem.path));
        let name = match (flag, argument) {
            (Some(flag), _) => format!("--{}", flag.name),
            (None, Some(argument)) => argument.name.to_uppercase(),
            (None, None) => problem.path.clone(),
        };
        text += &format!("\n  {name}: {}", problem.message);
    }
    let (program, name) = (command_name(), &plan.name);
    text += &format!("\nExample: {program} {name} {}", plan.example);
    text += &format!("\nHelp: {program} {name} --help");
    Failure::usage(sanitize::clean(&text))
}

fn exa_failure(error: &ExaError) -> Failure {
    // A request that could not be built was not sent.
    let code = match error.kind {
        ExaErrorKind::InvalidRequest | ExaErrorKind::Config => USAGE,
        _ => FAILED,
    };
    let lines = error.detail_lines().into_iter();
    let lines: String = lines.map(|line| format!("\n  {line}")).collect();
    Failure {
        text: format!("error: {error}{lines}"),
        code,
    }
}

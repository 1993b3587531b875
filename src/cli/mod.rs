//! The command line.

mod call;
mod operations;

use std::io::Write;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The exit code of a call that the API refused or that did not reach it.
const FAILED: u8 = 1;
/// The exit code of a command that cannot be carried out as given.
const USAGE: u8 = 2;

/// An MCP server for the whole Exa API.
#[derive(Debug, Parser)]
#[command(name = "exa-mcp-server", version, about, after_help = ENVIRONMENT)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
}

const ENVIRONMENT: &str = "\
Environment:
  EXA_API_KEY   the Exa API key
  EXA_BASE_URL  another Exa endpoint, such as a proxy [default: https://api.exa.ai]";

#[derive(Debug, Subcommand)]
enum Command {
    /// List the operations of the Exa API
    Operations {
        /// Print name, domain, method, path, summary, inputSchema and outputSchema as JSON
        #[arg(long)]
        json: bool,
    },
    /// Call one operation and print its answer as JSON
    #[command(after_help = call::EXIT_CODES)]
    Call {
        /// Name of the operation, for example items.list
        operation: String,
        /// Arguments as a JSON object, or - to read them from standard input
        #[arg(value_name = "JSON|-", allow_hyphen_values = true)]
        arguments: Option<String>,
    },
}

/// Runs the program and gives its exit code.
pub fn main() -> ExitCode {
    let command = match Arguments::try_parse() {
        Ok(arguments) => arguments.command,
        Err(error) => {
            let code = u8::try_from(error.exit_code()).unwrap_or(USAGE);
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    match command {
        Some(Command::Operations { json: true }) => print(&operations::json()),
        Some(Command::Operations { json: false }) => print(&operations::table()),
        Some(Command::Call {
            operation,
            arguments,
        }) => match call::run(&operation, arguments.as_deref()) {
            Ok(answer) => print(&answer),
            Err(failure) => {
                complain(&failure.text);
                ExitCode::from(failure.code)
            }
        },
        None => {
            complain("error: a command is missing; try `exa-mcp-server --help`");
            ExitCode::from(USAGE)
        }
    }
}

/// Writes to standard output; a reader that went away is no failure.
fn print(text: &str) -> ExitCode {
    let mut out = std::io::stdout().lock();
    let written = out
        .write_all(text.as_bytes())
        .and_then(|()| out.write_all(b"\n"))
        .and_then(|()| out.flush());
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            complain(&format!("error: cannot write the answer: {error}"));
            ExitCode::from(FAILED)
        }
    }
}

fn complain(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

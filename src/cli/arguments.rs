//! The command line: its commands and flags.

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use exa_mcp_generated::tools::{SETS, TOOLS};

use super::batch::BatchOptions;
use super::call::{self, OutputOptions, PlanCall, RequestOptions, add_commands, find_plan_call};
use super::command_name;
use super::config_command::ConfigAction;
use super::environment::HTTP_ENVIRONMENT;
use super::help;
use super::install::{CommonFlags, InstallArguments};
use super::output::{ColorChoice, shell_word};
#[cfg(feature = "sdk")]
use super::sdk;
use crate::operations::all;

/// An MCP server and a command line for the whole Exa API.
///
/// Without a command it serves MCP over standard input and output.
#[derive(Debug, Default, Parser)]
#[command(name = "exa-mcp-server", version, after_help = help::examples(), after_long_help = help::long())]
struct Arguments {
    #[command(flatten)]
    globals: Globals,
    #[command(subcommand)]
    command: Option<Command>,
}

/// The flags of all commands.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Global options")]
pub(super) struct Globals {
    /// Use an embedded sandbox instead of the Exa API: no key, no network, synthetic data. Commands of one session share
    /// its state; with FILE, the state is stored there
    #[cfg(feature = "sandbox")]
    #[arg(long, global = true, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub(super) sandbox: Option<String>,
    /// Sets and tools to offer, comma-separated (default, toolhost, classic, granular, team, a domain, a tool)
    #[arg(long, global = true, value_name = "LIST", value_parser = tool_names(), hide_possible_values = true)]
    pub(super) tools: Option<String>,
    /// Configuration file, in TOML [default: exa-mcp-server/config.toml in the user's configuration directory]
    #[arg(long, global = true, value_name = "FILE")]
    pub(super) config: Option<std::path::PathBuf>,
    /// When to use colors and links [default: auto]
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "WHEN",
        hide_possible_values = true
    )]
    pub(super) color: Option<ColorChoice>,
}

impl Globals {
    /// Returns the program with the flags that decide where calls go, for commands that are proposed.
    pub(super) fn program(&self) -> String {
        let mut program = command_name().to_owned();
        #[cfg(feature = "sandbox")]
        match self.sandbox.as_deref() {
            Some("") => program += " --sandbox",
            Some(file) => program += &format!(" --sandbox={}", shell_word(file)),
            None => {}
        }
        if let Some(config) = &self.config {
            program += &format!(" --config {}", shell_word(&config.display().to_string()));
        }
        program
    }

    /// Returns the flags that `install` writes into the configuration of clients.
    pub(super) fn common_flags(&self) -> CommonFlags {
        CommonFlags {
            #[cfg(feature = "sandbox")]
            sandbox: self.sandbox.is_some(),
            #[cfg(not(feature = "sandbox"))]
            sandbox: false,
            tools: self.tools.clone(),
            config: self.config.clone(),
        }
    }
}

/// A command.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// List the operations of the Exa API, or describe one
    Operations {
        /// Name of the operation to describe, for example items.list
        #[arg(value_parser = operation_names(), hide_possible_values = true)]
        name: Option<String>,
        /// Print name, domain, method, path, summary, cost, inputSchema and outputSchema as JSON
        #[arg(long)]
        json: bool,
    },
    /// Call one operation and print the response as JSON
    #[command(after_help = call::exit_codes(), disable_help_flag = true, arg_required_else_help = true)]
    Call {
        /// Name of the operation, for example items.list
        #[arg(value_parser = operation_names(), hide_possible_values = true, required_unless_present = "help")]
        operation: Option<String>,
        /// Arguments: key=value pairs, a JSON object, @FILE, or - to read JSON from standard input
        #[arg(value_name = "KEY=VALUE|JSON|@FILE|-")]
        arguments: Vec<String>,
        #[command(flatten)]
        options: RequestOptions,
        #[command(flatten)]
        output: OutputOptions,
        /// Show this help, or the arguments of the operation
        #[arg(short, long)]
        help: bool,
    },
    /// Make many calls, one for each line of a file
    #[command(subcommand)]
    Batch(BatchAction),
    /// Show the enabled tools and their size in tokens
    Tools {
        /// Print the result of tools/list
        #[arg(long)]
        json: bool,
    },
    /// Serve MCP over HTTP, at /mcp
    #[command(after_help = HTTP_ENVIRONMENT)]
    Http {
        /// Address or port to listen on [default: 127.0.0.1:3000]
        #[arg(long, value_name = "ADDR")]
        listen: Option<String>,
        /// Allowed values of the Host header, comma-separated [default: loopback names]
        #[arg(long, value_name = "LIST")]
        allowed_hosts: Option<String>,
        /// Allowed values of the Origin header, comma-separated [default: loopback origins]
        #[arg(long, value_name = "LIST")]
        allowed_origins: Option<String>,
    },
    /// Serve a sandbox of the Exa API with synthetic data
    #[cfg(feature = "sandbox")]
    Sandbox {
        /// Address or port to listen on
        #[arg(long, default_value = "127.0.0.1:8099", value_name = "ADDR")]
        listen: String,
    },
    /// Write typed modules that call the tools
    #[cfg(feature = "sdk")]
    Sdk {
        /// The language
        #[arg(long, value_enum)]
        lang: sdk::SdkLanguage,
        /// Directory to write to; created if it does not exist
        #[arg(long, value_name = "DIR")]
        out: std::path::PathBuf,
        /// Write to a directory that contains other files; files with the same name are replaced
        #[arg(long)]
        force: bool,
    },
    /// Store an Exa API key for the commands of this user
    ///
    /// The key goes to the keychain of the system if it has one, else to a file that only you can read. Flags, the
    /// environment and the configuration file take precedence, and the HTTP server never reads it.
    Login {
        /// Enter the key on a page of this computer in the browser instead of the terminal
        #[arg(long)]
        browser: bool,
        /// Store the key without checking it at Exa
        #[arg(long)]
        no_check: bool,
    },
    /// Remove the stored Exa API key
    Logout,
    /// Show the team of the key, its limits, and what was spent
    Whoami,
    /// Read and change the configuration file
    #[command(subcommand)]
    Config(ConfigAction),
    /// Describe commands, operations and codes as JSON, for agents
    Capabilities,
    /// Check a running HTTP server; exit code 0 if it is healthy
    Health {
        /// Address of the server [default: EXA_MCP_LISTEN, or 127.0.0.1:3000]
        #[arg(long, value_name = "ADDR")]
        address: Option<String>,
    },
    /// Add the server to MCP clients, or remove it
    Install(InstallArguments),
    /// Check key, network, store and configuration
    Doctor,
    /// Print completions for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or write all to a directory
    Man {
        /// Directory to write to; created if it does not exist
        #[arg(long, value_name = "DIR")]
        out: Option<std::path::PathBuf>,
    },
    /// A command that is a view of an operation.
    #[command(skip)]
    Plan(PlanCall),
}

/// What to do with many calls.
#[derive(Debug, Subcommand)]
pub(super) enum BatchAction {
    /// Run the calls of a file of JSON lines; if it is interrupted, run it again to continue
    #[command(arg_required_else_help = true)]
    Run(BatchOptions),
}

/// What the command line requests.
#[derive(Debug, Default)]
pub(super) struct Invocation {
    /// The flags of all commands.
    pub(super) globals: Globals,
    /// The command; the stdio server without one.
    pub(super) command: Option<Command>,
}

/// Parses the command line of this process.
pub(super) fn parse() -> Result<Invocation, clap::Error> {
    let matches = command().try_get_matches().map_err(explain)?;
    if let Some(call) = find_plan_call(&matches) {
        return Ok(Invocation {
            globals: Globals::from_arg_matches(&matches)?,
            command: Some(Command::Plan(call)),
        });
    }
    let Arguments { globals, command } = Arguments::from_arg_matches(&matches)?;
    Ok(Invocation { globals, command })
}

/// Adds to the error of an unknown flag that arguments of operations are no flags.
fn explain(mut error: clap::Error) -> clap::Error {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    let is_call = std::env::args().any(|argument| argument == "call");
    let flag = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(flag)) if is_call => flag.trim_start_matches('-').to_owned(),
        _ => return error,
    };
    let is_argument = all()
        .iter()
        .flat_map(|operation| operation.arguments)
        .any(|argument| argument.name == flag);
    if error.kind() == ErrorKind::UnknownArgument && is_argument {
        let tip = format!("arguments of operations are KEY=VALUE pairs: {flag}=VALUE");
        let tips = ContextValue::StyledStrs(vec![tip.into()]);
        error.insert(ContextKind::Suggested, tips);
    }
    error
}

/// Returns the whole command line.
pub(super) fn command() -> clap::Command {
    help::with_sections(add_commands(Arguments::command()))
}

/// Accepts any text, and offers the names of the operations.
pub(super) fn operation_names() -> call::OpenValues {
    call::OpenValues::new(|| all().iter().map(|it| it.name.to_owned()).collect())
}

fn tool_names() -> call::OpenValues {
    call::OpenValues::new(|| {
        let sets = SETS.iter().map(|(name, _)| *name);
        let tools = TOOLS.iter().map(|(name, _)| *name);
        sets.chain(tools).map(str::to_owned).collect()
    })
}

//! The command line: its commands and flags.

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use exa_mcp_generated::tools::{SETS, TOOLS};

use super::batch::BatchOptions;
use super::call::{self, OutputOptions, PlanCall, RequestOptions, add_commands, find_plan_call};
use super::config_command::ConfigAction;
use super::environment::{ENVIRONMENT, HTTP_ENVIRONMENT};
use super::install::{CommonFlags, InstallArguments};
use super::output::ColorChoice;
#[cfg(feature = "sdk")]
use super::sdk;
use crate::operations::all;

/// An MCP server and a command line for the whole Exa API.
///
/// Without a command it serves MCP over standard input and output.
#[derive(Debug, Default, Parser)]
#[command(name = "exa-mcp-server", version, after_help = ENVIRONMENT)]
struct Arguments {
    #[command(flatten)]
    globals: Globals,
    #[command(subcommand)]
    command: Option<Command>,
}

/// The flags of all commands.
#[derive(Debug, Clone, Default, Args)]
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
    /// List the operations of the Exa API, or describe one and what it costs
    Operations {
        /// Name of the operation to describe, for example items.list
        #[arg(value_parser = operation_names(), hide_possible_values = true)]
        name: Option<String>,
        /// Print name, domain, method, path, summary, cost, inputSchema and outputSchema as JSON
        #[arg(long)]
        json: bool,
    },
    /// Call one operation and print the response as JSON
    #[command(after_help = call::exit_codes(), disable_help_flag = true)]
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
    /// Show the tools of the current configuration and their size in tokens
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
    /// Write typed modules that call the tools, for agents that write code
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
    /// Print commands, operations, exit codes, error codes and environment variables as JSON
    Capabilities,
    /// Check the health of a running HTTP server; exit code 0 if it is healthy
    Health {
        /// Address of the server [default: EXA_MCP_LISTEN, or 127.0.0.1:3000]
        #[arg(long, value_name = "ADDR")]
        address: Option<String>,
    },
    /// Add the server to the configuration of MCP clients, or remove it
    Install(InstallArguments),
    /// Check key, network, store and configuration
    Doctor,
    /// Print completions for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or write one for each command to a directory
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
    let matches = command().try_get_matches()?;
    if let Some(call) = find_plan_call(&matches) {
        return Ok(Invocation {
            globals: Globals::from_arg_matches(&matches)?,
            command: Some(Command::Plan(call)),
        });
    }
    let Arguments { globals, command } = Arguments::from_arg_matches(&matches)?;
    Ok(Invocation { globals, command })
}

/// Returns the whole command line.
pub(super) fn command() -> clap::Command {
    add_commands(Arguments::command())
}

fn operation_names() -> call::OpenValues {
    call::OpenValues::new(|| all().iter().map(|it| it.name.to_owned()).collect())
}

fn tool_names() -> call::OpenValues {
    call::OpenValues::new(|| {
        let sets = SETS.iter().map(|(name, _)| *name);
        let tools = TOOLS.iter().map(|(name, _)| *name);
        sets.chain(tools).map(str::to_owned).collect()
    })
}

//! The command line.

mod admin_state;
mod call;
mod doctor;
mod health;
mod http;
mod operations;
#[cfg(feature = "sandbox")]
mod sandbox;
#[cfg(feature = "sdk")]
mod sdk;
mod serve;
mod tools;

use std::io::{IsTerminal, Write};
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{CommandFactory, Parser, Subcommand};

use crate::config::http::HttpSettings;
use crate::config::{ConfigFile, Settings, SettingsSource};
use crate::spending::{AccountGuard, follow_jobs, local_account};
use crate::telemetry::logging;
use crate::tools::{ResultCache, ToolExecutor};

/// The default address of the HTTP server.
const DEFAULT_ADDRESS: &str = "127.0.0.1:3000";

/// How long writing the budget ledger may take on exit.
const LEDGER_TIMEOUT: Duration = Duration::from_secs(3);

/// The exit code of a call that Exa rejected or that did not reach it.
const FAILED: u8 = 1;
/// The exit code of an invalid command.
const USAGE: u8 = 2;

/// An MCP server for the whole Exa API.
///
/// Without a command it serves MCP over standard input and output.
#[derive(Debug, Default, Parser)]
#[command(name = "exa-mcp-server", version, after_help = ENVIRONMENT)]
struct Arguments {
    /// Use an embedded sandbox instead of the Exa API: no key, no network, synthetic data
    #[cfg(feature = "sandbox")]
    #[arg(long, global = true)]
    sandbox: bool,
    /// Sets and tools to offer, comma-separated (default, toolhost, classic, granular, team, a domain, a tool)
    #[arg(long, global = true, value_name = "LIST")]
    tools: Option<String>,
    /// Configuration file, in TOML [default: exa-mcp-server/config.toml in the user's configuration directory]
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<std::path::PathBuf>,
    #[command(subcommand)]
    command: Option<Command>,
}

const ENVIRONMENT: &str = "\
Environment (keys of the --config file are the same in lower case, without EXA_MCP_):
  EXA_API_KEY            the Exa API key
  EXA_API_KEYS           pool of keys, comma-separated
  EXA_MCP_RATE_LIMIT     maximum requests per second and key; others wait [default: no limit]
  EXA_SERVICE_KEY        the Exa service key, for team management (--tools team)
  EXA_BASE_URL           another Exa endpoint, such as a proxy [default: https://api.exa.ai]
  EXA_ADMIN_BASE_URL     another endpoint for team management [default: https://admin-api.exa.ai]
  ENABLED_TOOLS          same as --tools, also EXA_MCP_ENABLED_TOOLS [default: default]
  EXA_MCP_STORE          store for notes and tasks: memory:, sqlite:PATH or redis://HOST:PORT [default: memory:]
  EXA_MCP_CACHE_TTL      lifetime of cached results in seconds [default: 300]
  EXA_MCP_CACHE_BYTES    size of the result cache in bytes [default: 33554432]
  EXA_MCP_DEFAULT_TASK_TTL, EXA_MCP_MAX_TASK_TTL
                         lifetime of tasks in milliseconds [default: 3600000, 86400000]
  EXA_MCP_MAX_CONCURRENT_TASKS, EXA_MCP_MAX_CONCURRENT_TASKS_PER_USER
                         concurrent tasks, in total and per user [default: 2000, a tenth over HTTP]
  EXA_MCP_DOLLARS_PER_DAY, EXA_MCP_DOLLARS_PER_MONTH
                         budget of the stdio server and of `call` [default: none]
  EXA_MCP_BUDGET_ON_STORE_FAILURE
                         deny or allow priced calls while the store fails [default: deny]
  EXA_MCP_BUDGET_UNPRICED
                         deny or allow calls without a known price if there is a budget [default: deny]
  EXA_MCP_IMPORT_DIR     directories that imports may read, separated as in PATH [default: none]
  EXA_MCP_CONFIRM_DELETES true: users confirm deletions if the client can ask them [default: false]
  EXA_MCP_CLIENT_TIMEOUT seconds to wait for a response of the client [default: 20 to 300]
  EXA_MCP_STRUCTURED     full, compact or off: the structuredContent of results [default: compact]
  EXA_MCP_LOG_LEVEL      error, warn, info, debug or trace, on standard error [default: warn]
  EXA_MCP_DEBUG          true: same as EXA_MCP_LOG_LEVEL=debug [default: false]
  EXA_MCP_CONFIG         same as --config
  EXA_API_KEY_FILE, EXA_API_KEYS_FILE, EXA_SERVICE_KEY_FILE, EXA_MCP_STORE_FILE
                         files with the values of EXA_API_KEY, EXA_API_KEYS, EXA_SERVICE_KEY, EXA_MCP_STORE";

const HTTP_ENVIRONMENT: &str = "\
Environment, in addition to `exa-mcp-server --help` (also available in the --config file):
  EXA_MCP_LISTEN           same as --listen
  MCP_AUTH_TOKEN           admin token; if this or USER_TOKENS is set, clients need a token
  USER_TOKENS              user tokens as token:userId:expiry,...
  MCP_AUTH_TOKEN_FILE, USER_TOKENS_FILE, EXA_MCP_SECRET_FILE
                           files with the values of MCP_AUTH_TOKEN, USER_TOKENS, EXA_MCP_SECRET
  EXA_MCP_ALLOWED_HOSTS    same as --allowed-hosts
  EXA_MCP_ALLOWED_ORIGINS  same as --allowed-origins
  EXA_MCP_TRUSTED_PROXIES  addresses and networks of proxies whose X-Forwarded-For is trusted
  EXA_MCP_ALLOW_KEY_IN_URL true: accept Exa API keys in the URL as exaApiKey [default: false]
  EXA_MCP_SECRET           secret that identities are derived from, so that they survive a restart
  EXA_MCP_TOKEN_LIMITS     default limits of tokens, as JSON
  EXA_MCP_USAGE_DAYS       retention of daily usage in days [default: 400]
  EXA_MCP_STORE            memory:, sqlite:PATH, or redis://[USER:PASSWORD@]HOST:PORT[/DB] for several servers
                           [default: a file in the user's state directory]
  EXA_MCP_METRICS          admin: /metrics for this machine and the admin token; public [default: admin]
  EXA_MCP_MAX_BODY_BYTES   maximum size of a request body [default: 1048576]
  EXA_MCP_READ_TIMEOUT     seconds to send a request head, and again its body [default: 15]
  EXA_MCP_MAX_CONNECTIONS  maximum connections [default: 1024]
  EXA_MCP_MAX_CONNECTIONS_PER_ADDRESS  maximum connections per address [default: 256]
  EXA_MCP_MAX_SESSIONS     maximum sessions [default: 10000]
  EXA_MCP_MAX_SESSIONS_PER_USER  maximum sessions per user [default: 1000]
  EXA_MCP_MAX_SESSIONS_PER_ADDRESS  maximum anonymous sessions per address [default: 200]
  EXA_MCP_MAX_STREAMS_PER_ADDRESS  maximum anonymous streams per address [default: 64]
  EXA_MCP_MAX_TASKS_PER_ADDRESS  maximum anonymous tasks per address [default: 100]
  EXA_MCP_SESSION_IDLE     seconds until an idle session ends [default: 1800]
  EXA_MCP_KEEP_ALIVE       seconds between keep-alive messages on a silent stream [default: 15]
  EXA_MCP_DRAIN_TIMEOUT    seconds for running requests to finish on shutdown [default: 10]";

#[derive(Debug, Subcommand)]
enum Command {
    /// List the operations of the Exa API, or describe one and what it costs
    Operations {
        /// Name of the operation to describe, for example items.list
        name: Option<String>,
        /// Print name, domain, method, path, summary, cost, inputSchema and outputSchema as JSON
        #[arg(long)]
        json: bool,
    },
    /// Call one operation and print the response as JSON
    #[command(after_help = call::EXIT_CODES)]
    Call {
        /// Name of the operation, for example items.list
        operation: String,
        /// Arguments as a JSON object, or - to read them from standard input
        #[arg(value_name = "JSON|-", allow_hyphen_values = true)]
        arguments: Option<String>,
    },
    /// Show the tools of the current configuration and their size in tokens
    Tools {
        /// Print the result of tools/list
        #[arg(long)]
        json: bool,
    },
    /// Serve MCP over HTTP, at /mcp
    #[command(after_help = HTTP_ENVIRONMENT)]
    Http {
        /// Address to listen on [default: 127.0.0.1:3000]
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
        /// Address to listen on
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
    /// Check the health of a running HTTP server; exit code 0 if it is healthy
    Health {
        /// Address of the server [default: EXA_MCP_LISTEN, or 127.0.0.1:3000]
        #[arg(long, value_name = "ADDR")]
        address: Option<String>,
    },
    /// Check key, network, store and configuration
    Doctor,
    /// Print completions for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// A failed command.
pub(super) struct Failure {
    /// The message for the user.
    text: String,
    /// The exit code.
    code: u8,
}

impl Failure {
    /// Creates the failure of an invalid command.
    fn usage(text: impl std::fmt::Display) -> Self {
        Self {
            text: format!("error: {text}"),
            code: USAGE,
        }
    }
}

/// Runs the program and returns its exit code.
pub fn main() -> ExitCode {
    // Clients start the server without arguments, and parsing even none takes a fifth of the start-up time.
    let parsed = match std::env::args_os().len() {
        0 | 1 => Ok(Arguments::default()),
        _ => Arguments::try_parse(),
    };
    let arguments = match parsed {
        Ok(arguments) => arguments,
        Err(error) => {
            let code = u8::try_from(error.exit_code()).unwrap_or(USAGE);
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    match run(arguments) {
        Ok(text) if text.is_empty() => ExitCode::SUCCESS,
        Ok(text) => print(&text),
        Err(failure) => {
            print_stderr(&failure.text);
            ExitCode::from(failure.code)
        }
    }
}

/// Runs a command and returns the text to print.
fn run(arguments: Arguments) -> Result<String, Failure> {
    match arguments.command {
        Some(Command::Operations { name, json }) => {
            return match name {
                Some(name) => operations::single(&name, json).map_err(Failure::usage),
                None if json => Ok(operations::json()),
                None => Ok(operations::table()),
            };
        }
        Some(Command::Completions { shell }) => return Ok(completions(shell)),
        #[cfg(feature = "sdk")]
        Some(Command::Sdk { lang, out, force }) => return sdk::run(lang, &out, force),
        _ => {}
    }
    let source = SettingsSource::find(arguments.config.as_deref()).map_err(Failure::usage)?;
    run_configured(arguments, &source).map_err(|failure| Failure {
        text: source.with_origins(failure.text),
        code: failure.code,
    })
}

/// Runs a command that depends on the settings.
fn run_configured(arguments: Arguments, source: &SettingsSource) -> Result<String, Failure> {
    let level = source.text("EXA_MCP_LOG_LEVEL");
    let debug = source.text("EXA_MCP_DEBUG");
    logging::start(level.as_deref(), debug.as_deref()).map_err(Failure::usage)?;
    let warning = source.file().and_then(ConfigFile::warning);
    // The doctor reports the warning itself.
    let doctor = matches!(arguments.command, Some(Command::Doctor));
    if let Some(warning) = warning.filter(|_| !doctor) {
        tracing::warn!("{warning}");
    }
    let runtime = runtime(&arguments.command).map_err(Failure::usage)?;
    #[cfg(feature = "sandbox")]
    let sandbox = arguments.sandbox;
    #[cfg(not(feature = "sandbox"))]
    let sandbox = false;
    let Arguments { tools, command, .. } = arguments;
    let work = match command {
        None => run_stdio(source, tools, sandbox),
        Some(command) => run_command(command, source, tools, sandbox),
    };
    let result = runtime.block_on(work);
    // A short timeout, because a thread may be blocked reading from a terminal. Dropped tasks log what continues
    // at Exa.
    runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
    result
}

/// How long dropping the remaining tasks may take on exit.
const SHUTDOWN_TIMEOUT: std::time::Duration = std::time::Duration::from_millis(200);

/// The future of a command. Boxed, so that no command occupies the stack space of all others, which every start
/// would touch.
type CommandFuture<'a, T = String> = Pin<Box<dyn Future<Output = Result<T, Failure>> + 'a>>;

/// Serves the client that started the program over stdio.
#[inline(never)]
fn run_stdio(source: &SettingsSource, tools: Option<String>, sandbox: bool) -> CommandFuture<'_> {
    Box::pin(async move {
        let settings = settings(source, tools.as_deref(), sandbox).await?;
        let executor = executor(&settings)?;
        let account = local_account(&settings.local_limits, settings.budgets, executor.store());
        let Some(account) = account else {
            return serve::stdio(executor, std::io::stdin().is_terminal()).await;
        };
        let ledger = Arc::clone(account.ledger());
        let operation_executor = executor.operation_executor().clone();
        tokio::spawn(follow_jobs(Arc::clone(&ledger), operation_executor));
        tokio::spawn(Arc::clone(&ledger).recover());
        let executor = executor.with_guard(Arc::new(AccountGuard::new(account)));
        let served = serve::stdio(executor, std::io::stdin().is_terminal()).await;
        ledger.drain(LEDGER_TIMEOUT).await;
        served
    })
}

/// Runs a command other than the stdio server.
#[inline(never)]
fn run_command(
    command: Command,
    source: &SettingsSource,
    tools: Option<String>,
    sandbox: bool,
) -> CommandFuture<'_> {
    Box::pin(async move {
        // Awaited by the commands that need the settings.
        let settings = settings(source, tools.as_deref(), sandbox);
        match command {
            #[cfg(feature = "sandbox")]
            Command::Sandbox { listen } => {
                let served = sandbox::serve(&listen).await;
                served.map(|()| String::new()).map_err(Failure::usage)
            }
            Command::Health { address } => health::check(address.as_deref(), source).await,
            Command::Call {
                operation,
                arguments,
            } => call::run(&settings.await?, &operation, arguments.as_deref()).await,
            Command::Tools { json: true } => Ok(tools::json(&executor(&settings.await?)?)),
            Command::Tools { json: false } => Ok(tools::table(&executor(&settings.await?)?)),
            Command::Doctor => doctor_result(doctor::run(&settings.await?, source).await),
            Command::Http {
                listen,
                allowed_hosts,
                allowed_origins,
            } => {
                let mut settings = settings.await?;
                settings.share_tasks(source).map_err(Failure::usage)?;
                let mut http = HttpSettings::read(source).map_err(Failure::usage)?;
                http.hosts = allowed_hosts.or(http.hosts);
                http.origins = allowed_origins.or(http.origins);
                let listen = listen.or_else(|| http.listen.clone());
                let listen = listen.as_deref().unwrap_or(DEFAULT_ADDRESS);
                http::serve(settings, http, listen, sandbox).await
            }
            // These commands ran before the settings were read.
            Command::Operations { .. } | Command::Completions { .. } => Ok(String::new()),
            #[cfg(feature = "sdk")]
            Command::Sdk { .. } => Ok(String::new()),
        }
    })
}

/// Converts the results of the doctor.
fn doctor_result((text, is_well): (String, bool)) -> Result<String, Failure> {
    if is_well {
        return Ok(text);
    }
    print(&text);
    let text = "error: some checks failed; see the lines with FAIL".to_owned();
    Err(Failure { text, code: FAILED })
}

/// Reads the settings, and starts an embedded sandbox if requested.
async fn settings(
    source: &SettingsSource,
    tools: Option<&str>,
    sandbox: bool,
) -> Result<Settings, Failure> {
    let mut settings = Settings::read(source, tools).map_err(Failure::usage)?;
    if sandbox {
        start_sandbox(&mut settings).await?;
    }
    Ok(settings)
}

/// Starts an embedded sandbox.
#[cfg(feature = "sandbox")]
#[inline(never)]
fn start_sandbox(settings: &mut Settings) -> CommandFuture<'_, ()> {
    Box::pin(async move { sandbox::embed(settings).await.map_err(Failure::usage) })
}

/// Does nothing, because the sandbox cannot be requested without the feature.
#[cfg(not(feature = "sandbox"))]
async fn start_sandbox(_settings: &mut Settings) -> Result<(), Failure> {
    Ok(())
}

/// Builds the runtime: all cores for a shared server, two workers for a stdio server, and a single thread for
/// everything else.
fn runtime(command: &Option<Command>) -> std::io::Result<tokio::runtime::Runtime> {
    let mut builder = match command {
        Some(Command::Http { .. }) | None => tokio::runtime::Builder::new_multi_thread(),
        Some(_) => tokio::runtime::Builder::new_current_thread(),
    };
    if command.is_none() {
        builder.worker_threads(2);
    }
    builder.enable_all().build()
}

fn executor(settings: &Settings) -> Result<ToolExecutor, Failure> {
    let operation_executor = settings.operation_executor().map_err(Failure::usage)?;
    let cache = ResultCache::new(settings.cache);
    let store = settings.store.open();
    let executor = ToolExecutor::with_store(&settings.tools, operation_executor, cache, store)
        .map_err(Failure::usage)?;
    Ok(executor
        .with_task_limits(settings.tasks)
        .with_prompt_policy(settings.prompt_policy)
        .with_structured_content(settings.structured))
}

fn completions(shell: clap_complete::Shell) -> String {
    let mut text = Vec::new();
    clap_complete::generate(
        shell,
        &mut Arguments::command(),
        "exa-mcp-server",
        &mut text,
    );
    String::from_utf8_lossy(&text).into_owned()
}

/// Resolves when the process receives a termination signal.
async fn shutdown() {
    let interrupt = tokio::signal::ctrl_c();
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = interrupt => {}
                _ = terminate.recv() => {}
            }
            return;
        }
    }
    let _ = interrupt.await;
}

/// Writes to standard output. A closed pipe is not an error.
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
            print_stderr(&format!("error: cannot write to standard output: {error}"));
            ExitCode::from(FAILED)
        }
    }
}

fn print_stderr(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

#[cfg(test)]
mod help_tests;

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
use crate::config::{ConfigFile, Settings, Source};
use crate::spending::{AccountGuard, follow_runs, local_account};
use crate::telemetry::logging;
use crate::tools::{ResultCache, ToolExecutor};

/// Where the HTTP server listens unless something else is asked for.
const USUAL_ADDRESS: &str = "127.0.0.1:3000";

/// How long what was spent may take to be written at the end.
const SETTLING: Duration = Duration::from_secs(3);

/// The exit code of a call that the API refused or that did not reach it.
const FAILED: u8 = 1;
/// The exit code of a command that cannot be carried out as given.
const USAGE: u8 = 2;

/// An MCP server for the whole Exa API.
///
/// Without a command it serves MCP over standard input and output.
#[derive(Debug, Default, Parser)]
#[command(name = "exa-mcp-server", version, after_help = ENVIRONMENT)]
struct Arguments {
    /// Use an embedded stand-in for the Exa API: no key, no network, synthetic data
    #[cfg(feature = "sandbox")]
    #[arg(long, global = true)]
    sandbox: bool,
    /// Sets and tools to offer, comma-separated (default, toolhost, classic, granular, a domain, a tool)
    #[arg(long, global = true, value_name = "LIST")]
    tools: Option<String>,
    /// Configuration file, in TOML [default: exa-mcp-server/config.toml in the user's configuration directory]
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<std::path::PathBuf>,
    #[command(subcommand)]
    command: Option<Command>,
}

const ENVIRONMENT: &str = "\
Environment (the file of --config says the same in lower case, without EXA_MCP_):
  EXA_API_KEY            the Exa API key
  EXA_API_KEYS           several keys, comma-separated, that share the work
  EXA_MCP_RATE_LIMIT     requests a second that one key makes at most; others wait [default: no limit]
  EXA_BASE_URL           another Exa endpoint, such as a proxy [default: https://api.exa.ai]
  ENABLED_TOOLS          same as --tools, also EXA_MCP_ENABLED_TOOLS [default: default]
  EXA_MCP_STORE          where notes and tasks are kept: memory:, sqlite:PATH or redis://HOST:PORT [default: memory:]
  EXA_MCP_CACHE_TTL      seconds that answers are kept [default: 300]
  EXA_MCP_CACHE_BYTES    bytes of answers that are kept [default: 33554432]
  EXA_MCP_DEFAULT_TASK_TTL, EXA_MCP_MAX_TASK_TTL
                         life of tasks in milliseconds [default: 3600000, 86400000]
  EXA_MCP_MAX_CONCURRENT_TASKS, EXA_MCP_MAX_CONCURRENT_TASKS_PER_USER
                         tasks under way at once, and those of one user [default: 2000, a tenth over HTTP]
  EXA_MCP_DOLLARS_PER_DAY, EXA_MCP_DOLLARS_PER_MONTH
                         budget of stdio and of `call` [default: none]
  EXA_MCP_BUDGET_ON_STORE_FAILURE
                         deny or allow priced calls while the store fails [default: deny]
  EXA_MCP_BUDGET_UNPRICED
                         deny or allow calls without a known price where there is a budget [default: deny]
  EXA_MCP_IMPORT_DIR     folders whose files an import may read, separated as in PATH [default: none]
  EXA_MCP_CONFIRM_DELETES true: the user confirms deletions, where the client can ask [default: false]
  EXA_MCP_CLIENT_TIMEOUT seconds to wait for an answer of the client [default: 20 to 300, by question]
  EXA_MCP_LOG_LEVEL      error, warn, info, debug or trace, on standard error [default: warn]
  EXA_MCP_DEBUG          true: same as EXA_MCP_LOG_LEVEL=debug [default: false]
  EXA_MCP_CONFIG         same as --config
  EXA_API_KEY_FILE, EXA_API_KEYS_FILE, EXA_MCP_STORE_FILE
                         files with the values of EXA_API_KEY, EXA_API_KEYS, EXA_MCP_STORE";

const HTTP_ENVIRONMENT: &str = "\
Environment, beside that of `exa-mcp-server --help` (the file of --config says the same):
  EXA_MCP_LISTEN           same as --listen
  MCP_AUTH_TOKEN           token of the admin; with it or USER_TOKENS, clients need a token
  USER_TOKENS              token:userId:expiry,... of all others
  EXA_API_KEYS             keys that holders of tokens share
  MCP_AUTH_TOKEN_FILE, USER_TOKENS_FILE, EXA_MCP_SECRET_FILE
                           files with the values of MCP_AUTH_TOKEN, USER_TOKENS, EXA_MCP_SECRET
  EXA_MCP_ALLOWED_HOSTS    same as --allowed-hosts
  EXA_MCP_ALLOWED_ORIGINS  same as --allowed-origins
  EXA_MCP_TRUSTED_PROXIES  addresses and networks of proxies that tell where clients are
  EXA_MCP_ALLOW_KEY_IN_URL true: an Exa key may stand in the address as exaApiKey [default: false]
  EXA_MCP_SECRET           makes identities that stay the same after a restart
  EXA_MCP_TOKEN_LIMITS     limits of tokens without their own, as JSON
  EXA_MCP_USAGE_DAYS       days for which use by day is kept [default: 400]
  EXA_MCP_STORE            memory:, sqlite:PATH, or redis://[USER:PASSWORD@]HOST:PORT[/DB] for several servers
                           [default: a file in the user's state directory]
  EXA_MCP_METRICS          admin: /metrics for this machine and the admin's token; public [default: admin]
  EXA_MCP_MAX_BODY_BYTES   longest body of a request [default: 1048576]
  EXA_MCP_READ_TIMEOUT     seconds to send a head, and again a body [default: 15]
  EXA_MCP_MAX_CONNECTIONS  connections at once [default: 1024]
  EXA_MCP_MAX_CONNECTIONS_PER_ADDRESS  connections at once from one address [default: 256]
  EXA_MCP_MAX_SESSIONS     sessions at once [default: 10000]
  EXA_MCP_MAX_SESSIONS_PER_USER  sessions at once of one user [default: 1000]
  EXA_MCP_MAX_SESSIONS_PER_ADDRESS  sessions at once of guests at one address [default: 200]
  EXA_MCP_MAX_STREAMS_PER_ADDRESS  streams at once of guests at one address [default: 64]
  EXA_MCP_MAX_TASKS_PER_ADDRESS  tasks at once of guests at one address [default: 100]
  EXA_MCP_SESSION_IDLE     seconds until an unused session ends [default: 1800]
  EXA_MCP_KEEP_ALIVE       seconds between pings of a silent stream [default: 15]
  EXA_MCP_DRAIN_TIMEOUT    seconds that requests have to finish at the end [default: 10]";

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
    /// Show the tools of the present configuration and their size in tokens
    Tools {
        /// Print what tools/list answers
        #[arg(long)]
        json: bool,
    },
    /// Serve MCP over HTTP, at /mcp
    #[command(after_help = HTTP_ENVIRONMENT)]
    Http {
        /// Address to listen on [default: 127.0.0.1:3000]
        #[arg(long, value_name = "ADDR")]
        listen: Option<String>,
        /// Hosts by which clients may call, comma-separated [default: this machine's own names]
        #[arg(long, value_name = "LIST")]
        allowed_hosts: Option<String>,
        /// Origins of web pages that may call, comma-separated [default: pages of this machine]
        #[arg(long, value_name = "LIST")]
        allowed_origins: Option<String>,
    },
    /// Serve a stand-in for the Exa API with synthetic data
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
        /// Folder to write to; made if it is not there
        #[arg(long, value_name = "DIR")]
        out: std::path::PathBuf,
        /// Write to a folder that holds other files too; files of the same name are replaced
        #[arg(long)]
        force: bool,
    },
    /// Ask a running HTTP server how it is; exit code 0 if it is well
    Health {
        /// Where it listens [default: that of EXA_MCP_LISTEN, or 127.0.0.1:3000]
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

/// A command that failed.
pub(super) struct Failure {
    /// What to tell the user.
    text: String,
    /// How the program ends.
    code: u8,
}

impl Failure {
    /// The command cannot be carried out as given.
    fn usage(text: impl std::fmt::Display) -> Self {
        Self {
            text: format!("error: {text}"),
            code: USAGE,
        }
    }
}

/// Runs the program and gives its exit code.
pub fn main() -> ExitCode {
    // Clients start the server without arguments; reading none takes a fifth of the start-up.
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
            complain(&failure.text);
            ExitCode::from(failure.code)
        }
    }
}

/// Carries out a command and gives what it has to print.
fn run(arguments: Arguments) -> Result<String, Failure> {
    match arguments.command {
        Some(Command::Operations { json: true }) => return Ok(operations::json()),
        Some(Command::Operations { json: false }) => return Ok(operations::table()),
        Some(Command::Completions { shell }) => return Ok(completions(shell)),
        #[cfg(feature = "sdk")]
        Some(Command::Sdk { lang, out, force }) => return sdk::run(lang, &out, force),
        _ => {}
    }
    let source = Source::find(arguments.config.as_deref()).map_err(Failure::usage)?;
    configured(arguments, &source).map_err(|failure| Failure {
        text: source.blamed(failure.text),
        code: failure.code,
    })
}

/// Carries out a command that depends on the settings.
fn configured(arguments: Arguments, source: &Source) -> Result<String, Failure> {
    let level = source.text("EXA_MCP_LOG_LEVEL");
    let debug = source.text("EXA_MCP_DEBUG");
    logging::start(level.as_deref(), debug.as_deref()).map_err(Failure::usage)?;
    let warning = source.file().and_then(ConfigFile::warning);
    // The doctor tells it among its findings.
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
        None => stdio(source, tools, sandbox),
        Some(command) => other(command, source, tools, sandbox),
    };
    let result = runtime.block_on(work);
    // Not waited for long: a thread may be stuck reading from a terminal. What is dropped says in the log what
    // goes on at Exa.
    runtime.shutdown_timeout(SHUTDOWN);
    result
}

/// How long tasks that are still running may take to be dropped at the end.
const SHUTDOWN: std::time::Duration = std::time::Duration::from_millis(200);

/// A command, or a part of one, that is being carried out. Boxed, and never a part of who starts it: what
/// one command does not need is no room on the stack of another, which would be touched at every start.
type Work<'a, T = String> = Pin<Box<dyn Future<Output = Result<T, Failure>> + 'a>>;

/// Serves the client that started the program.
#[inline(never)]
fn stdio(source: &Source, tools: Option<String>, sandbox: bool) -> Work<'_> {
    Box::pin(async move {
        let settings = settings(source, tools.as_deref(), sandbox).await?;
        let executor = executor(&settings)?;
        let account = local_account(&settings.local_limits, settings.budgets, executor.store());
        let Some(account) = account else {
            return serve::stdio(executor, std::io::stdin().is_terminal()).await;
        };
        let ledger = Arc::clone(account.ledger());
        tokio::spawn(follow_runs(Arc::clone(&ledger), executor.caller().clone()));
        tokio::spawn(Arc::clone(&ledger).recover());
        let executor = executor.with_guard(Arc::new(AccountGuard::new(account)));
        let served = serve::stdio(executor, std::io::stdin().is_terminal()).await;
        ledger.drain(SETTLING).await;
        served
    })
}

/// Carries out any other command.
#[inline(never)]
fn other(command: Command, source: &Source, tools: Option<String>, sandbox: bool) -> Work<'_> {
    Box::pin(async move {
        // Read by those commands that need them.
        let settings = settings(source, tools.as_deref(), sandbox);
        match command {
            #[cfg(feature = "sandbox")]
            Command::Sandbox { listen } => {
                let served = sandbox::serve(&listen).await;
                served.map(|()| String::new()).map_err(Failure::usage)
            }
            Command::Health { address } => health::ask(address.as_deref(), source).await,
            Command::Call {
                operation,
                arguments,
            } => call::run(&settings.await?, &operation, arguments.as_deref()).await,
            Command::Tools { json: true } => Ok(tools::json(&executor(&settings.await?)?)),
            Command::Tools { json: false } => Ok(tools::table(&executor(&settings.await?)?)),
            Command::Doctor => examined(doctor::examine(&settings.await?, source).await),
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
                let listen = listen.as_deref().unwrap_or(USUAL_ADDRESS);
                http::serve(settings, http, listen, sandbox).await
            }
            // These were carried out before any settings were looked for.
            Command::Operations { .. } | Command::Completions { .. } => Ok(String::new()),
            #[cfg(feature = "sdk")]
            Command::Sdk { .. } => Ok(String::new()),
        }
    })
}

/// What the doctor found, and whether all is well.
fn examined((text, is_well): (String, bool)) -> Result<String, Failure> {
    if is_well {
        return Ok(text);
    }
    print(&text);
    let text = "error: not all is well; the lines with FAIL say what to do".to_owned();
    Err(Failure { text, code: FAILED })
}

/// The settings, pointed at a sandbox in this process if one is wanted.
async fn settings(
    source: &Source,
    tools: Option<&str>,
    sandbox: bool,
) -> Result<Settings, Failure> {
    let mut settings = Settings::read(source, tools).map_err(Failure::usage)?;
    if sandbox {
        embedded(&mut settings).await?;
    }
    Ok(settings)
}

/// Starts a sandbox in this process.
#[cfg(feature = "sandbox")]
#[inline(never)]
fn embedded(settings: &mut Settings) -> Work<'_, ()> {
    Box::pin(async move { sandbox::embed(settings).await.map_err(Failure::usage) })
}

/// Without the feature nothing asks for a sandbox.
#[cfg(not(feature = "sandbox"))]
async fn embedded(_settings: &mut Settings) -> Result<(), Failure> {
    Ok(())
}

/// Builds the runtime: all cores for a shared server, two workers for the calls of one client, and the
/// thread of the process for everything else.
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
    let caller = settings.caller().map_err(Failure::usage)?;
    let cache = ResultCache::new(settings.cache);
    let store = settings.store.open();
    let executor =
        ToolExecutor::with_store(&settings.tools, caller, cache, store).map_err(Failure::usage)?;
    Ok(executor
        .with_task_limits(settings.tasks)
        .with_prompt_policy(settings.manners))
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

/// Ends when the process is told to.
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::config::KNOWN;

    /// Every variable is in the help, and what is there can be set.
    #[test]
    fn the_help_lists_every_setting() {
        let texts = [ENVIRONMENT, HTTP_ENVIRONMENT];
        let lines = texts.iter().flat_map(|text| text.lines());
        let heads = lines.filter_map(|line| {
            line.strip_prefix("  ")
                .filter(|rest| !rest.starts_with(' '))
        });
        let names = heads.flat_map(|head| {
            let named = head.split("  ").next().unwrap_or_default();
            let names = named.split([',', ' ']);
            names.filter(|name| {
                name.len() > 3
                    && name
                        .chars()
                        .all(|letter| letter.is_ascii_uppercase() || letter == '_')
            })
        });
        let names: BTreeSet<&str> = names.collect();
        let variables = KNOWN.iter().map(|known| known.variable.to_owned());
        let secrets = KNOWN.iter().filter(|known| known.secret);
        let files = secrets.map(|known| format!("{}_FILE", known.variable));
        let known = variables.chain(files).chain(["EXA_MCP_CONFIG".to_owned()]);
        let known: BTreeSet<String> = known.collect();
        let names: BTreeSet<String> = names.into_iter().map(str::to_owned).collect();
        assert_eq!(names, known);
    }
}

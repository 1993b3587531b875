//! The command line.

mod admin_state;
mod arguments;
mod batch;
mod call;
mod capabilities;
mod config_command;
mod config_edit;
mod doctor;
mod environment;
mod health;
mod help;
mod http;
mod install;
mod keychain;
mod known_ids;
mod login;
mod manual;
mod operations;
mod output;
mod program;
#[cfg(feature = "sandbox")]
mod sandbox;
#[cfg(feature = "sandbox")]
mod sandbox_session;
#[cfg(feature = "sdk")]
mod sdk;
mod serve;
mod tools;

use std::io::{IsTerminal, Write};
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use arguments::{BatchAction, Command, Globals, Invocation};
use call::Request;
use output::Terminal;
use program::command_name;

use crate::config::http::HttpSettings;
use crate::config::{ConfigFile, Settings, SettingsSource};
use crate::operations::CALL_LOG;
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
/// The exit code of a call whose work did not end in time.
const TIMED_OUT: u8 = 3;
/// The exit code of a command that was interrupted with Ctrl-C.
const INTERRUPTED: u8 = 130;

/// A failed command.
pub(super) struct Failure {
    /// The message for the user.
    text: String,
    /// The exit code.
    code: u8,
}

impl Failure {
    /// Creates the failure of a command that was made.
    fn failed(text: impl std::fmt::Display) -> Self {
        Self {
            text: format!("error: {text}"),
            code: FAILED,
        }
    }

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
        0 | 1 => Ok(Invocation::default()),
        _ => arguments::parse(),
    };
    let invocation = match parsed {
        Ok(invocation) => invocation,
        Err(error) => {
            let code = u8::try_from(error.exit_code()).unwrap_or(USAGE);
            return match error.print() {
                // Help that nobody gets is a failure, unless the reader has seen enough.
                Err(error) if code == 0 && error.kind() != std::io::ErrorKind::BrokenPipe => {
                    write_failure(&error)
                }
                _ => ExitCode::from(code),
            };
        }
    };
    match run(invocation) {
        Ok(text) if text.is_empty() => ExitCode::SUCCESS,
        Ok(text) => print(&text),
        Err(failure) => {
            print_stderr(&failure.text);
            ExitCode::from(failure.code)
        }
    }
}

/// Runs a command and returns the text to print.
fn run(invocation: Invocation) -> Result<String, Failure> {
    if let Some(result) = run_offline(&invocation) {
        return result;
    }
    let config = invocation.globals.config.as_deref();
    let source = SettingsSource::find(config).map_err(Failure::usage)?;
    run_configured(invocation, &source).map_err(|failure| Failure {
        text: source.with_origins(failure.text),
        code: failure.code,
    })
}

/// Runs a command that depends on no settings; `None` for all others.
fn run_offline(invocation: &Invocation) -> Option<Result<String, Failure>> {
    let config = invocation.globals.config.as_deref();
    Some(match invocation.command.as_ref()? {
        Command::Operations { name, json } => match name {
            Some(name) => operations::single(name, *json),
            None if *json => Ok(operations::json()),
            None => Ok(operations::table()),
        },
        Command::Call {
            operation,
            help: true,
            ..
        } => match operation {
            Some(name) => operations::single(name, false),
            None => Ok(manual::call_help()),
        },
        Command::Completions { shell } => Ok(manual::completions(*shell)),
        Command::Man { out } => manual::write(out.as_deref()),
        Command::Capabilities => Ok(capabilities::json()),
        Command::Config(action) => config_command::run(action, config),
        Command::Install(install) => install::run(install, &invocation.globals.common_flags()),
        #[cfg(feature = "sdk")]
        Command::Sdk { lang, out, force } => sdk::run(*lang, out, *force),
        _ => return None,
    })
}

/// Runs a command that depends on the settings.
fn run_configured(invocation: Invocation, source: &SettingsSource) -> Result<String, Failure> {
    let level = source.text("EXA_MCP_LOG_LEVEL");
    let debug = source.text("EXA_MCP_DEBUG");
    let format = source.text("EXA_MCP_LOG_FORMAT");
    let is_server = matches!(invocation.command, None | Some(Command::Http { .. }));
    let reported = (!is_server).then_some(CALL_LOG);
    let started = logging::start(
        level.as_deref(),
        debug.as_deref(),
        format.as_deref(),
        reported,
    );
    started.map_err(Failure::usage)?;
    let warning = source.file().and_then(ConfigFile::warning);
    // The doctor reports the warning itself.
    let doctor = matches!(invocation.command, Some(Command::Doctor));
    if let Some(warning) = warning.filter(|_| !doctor) {
        tracing::warn!("{warning}");
    }
    let runtime = runtime(&invocation.command).map_err(Failure::usage)?;
    let Invocation { globals, command } = invocation;
    let work = match command {
        None => run_stdio(source, globals),
        Some(command) => run_command(command, source, globals),
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
fn run_stdio(source: &SettingsSource, globals: Globals) -> CommandFuture<'_> {
    Box::pin(async move {
        let settings = settings(source, &globals, SandboxState::New).await?;
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
fn run_command(command: Command, source: &SettingsSource, globals: Globals) -> CommandFuture<'_> {
    Box::pin(async move {
        let terminal = Terminal::detect(globals.color.unwrap_or_default(), globals.program());
        // Awaited by the commands that need the settings.
        let settings = || settings(source, &globals, SandboxState::New);
        let with_login = || login_settings(source, &globals);
        match command {
            #[cfg(feature = "sandbox")]
            Command::Sandbox { listen } => {
                let served = sandbox::serve(&http::address(&listen)).await;
                served.map(|()| String::new()).map_err(Failure::usage)
            }
            Command::Health { address } => health::check(address.as_deref(), source).await,
            Command::Call {
                operation,
                arguments,
                options,
                output,
                ..
            } => {
                let operation = operation.as_deref().unwrap_or_default();
                let operation = call::find_operation(operation)?;
                let schema = crate::operations::input_schema(operation);
                let request = Request {
                    operation,
                    arguments: call::parse_arguments(&arguments, schema)?,
                    options,
                    output,
                    plan: None,
                };
                call::run(&with_login().await?, &terminal, request).await
            }
            Command::Plan(plan) => {
                let request = plan.into_request()?;
                call::run(&with_login().await?, &terminal, request).await
            }
            Command::Batch(BatchAction::Run(options)) => {
                batch::run(&with_login().await?, &terminal, options).await
            }
            Command::Login { browser, no_check } => {
                login::login(&settings().await?, browser, no_check).await
            }
            Command::Logout => login::logout(),
            Command::Whoami => login::whoami(&with_login().await?, &terminal).await,
            Command::Tools { json: true } => Ok(tools::json(&executor(&settings().await?)?)),
            Command::Tools { json: false } => Ok(tools::table(&executor(&settings().await?)?)),
            Command::Doctor => doctor_result(doctor::run(&with_login().await?, source).await),
            Command::Http {
                listen,
                allowed_hosts,
                allowed_origins,
            } => {
                let mut settings = settings().await?;
                settings.share_tasks(source).map_err(Failure::usage)?;
                let mut http = HttpSettings::read(source).map_err(Failure::usage)?;
                http.hosts = allowed_hosts.or(http.hosts);
                http.origins = allowed_origins.or(http.origins);
                let listen = listen.or_else(|| http.listen.clone());
                let listen = http::address(listen.as_deref().unwrap_or(DEFAULT_ADDRESS));
                http::serve(settings, http, &listen, globals.uses_sandbox()).await
            }
            // These commands ran before the settings were read.
            _ => Ok(String::new()),
        }
    })
}

/// Reads the settings for a command of this user, with the key that `login` stored if no other is set.
async fn login_settings(source: &SettingsSource, globals: &Globals) -> Result<Settings, Failure> {
    let mut settings = settings(source, globals, SandboxState::OfSession).await?;
    if settings.key.is_none() && !settings.exa.no_network {
        settings.key = keychain::read();
    }
    Ok(settings)
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

/// The state of an embedded sandbox, if no file is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SandboxState {
    /// A new one for this process.
    New,
    /// The one that the commands of a session share.
    OfSession,
}

/// Reads the settings, and starts an embedded sandbox if requested.
async fn settings(
    source: &SettingsSource,
    globals: &Globals,
    state: SandboxState,
) -> Result<Settings, Failure> {
    let settings = Settings::read(source, globals.tools.as_deref());
    let mut settings = settings.map_err(Failure::usage)?;
    if globals.uses_sandbox() {
        start_sandbox(&mut settings, globals, state).await?;
    }
    Ok(settings)
}

impl Globals {
    /// Returns whether an embedded sandbox is used instead of Exa.
    fn uses_sandbox(&self) -> bool {
        #[cfg(feature = "sandbox")]
        return self.sandbox.is_some();
        #[cfg(not(feature = "sandbox"))]
        false
    }
}

/// Starts an embedded sandbox.
#[cfg(feature = "sandbox")]
#[inline(never)]
fn start_sandbox<'a>(
    settings: &'a mut Settings,
    globals: &'a Globals,
    state: SandboxState,
) -> CommandFuture<'a, ()> {
    let file = globals.sandbox.as_deref();
    let file = file.filter(|file| !file.is_empty());
    let journal = match (file, state) {
        (Some(file), _) => Some(std::path::PathBuf::from(file)),
        (None, SandboxState::OfSession) => sandbox_session::file(),
        (None, SandboxState::New) => None,
    };
    Box::pin(async move {
        let embedded = sandbox::embed(settings, journal).await;
        embedded.map_err(Failure::usage)
    })
}

/// Does nothing, because the sandbox cannot be requested without the feature.
#[cfg(not(feature = "sandbox"))]
async fn start_sandbox(_: &mut Settings, _: &Globals, _: SandboxState) -> Result<(), Failure> {
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
        .with_poll_interval(settings.poll_interval)
        .with_structured_content(settings.structured))
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
        Err(error) => write_failure(&error),
    }
}

fn write_failure(error: &std::io::Error) -> ExitCode {
    print_stderr(&format!("error: cannot write to standard output: {error}"));
    ExitCode::from(FAILED)
}

/// Writes a part of a text to standard output at once.
fn print_part(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

fn print_stderr(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

#[cfg(test)]
mod help_tests;

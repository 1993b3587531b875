//! `exa-mcp-server batch run`: makes the calls of a file of JSON lines.

mod journal;
mod line;
mod output;
mod remote;
mod remote_results;

use std::fs::File;
use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use futures_util::stream::{self, StreamExt};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value, json};

use self::journal::{Journal, LineState};
use self::line::{BatchCall, BatchLine};
use self::output::Output;
use super::arguments::operation_names;
use super::call::{call_failure, open_session};
use super::output::{Terminal, pretty};
use super::{FAILED, Failure, INTERRUPTED, print_stderr, shutdown};
use crate::config::Settings;
use crate::operations::price;
use crate::operations::{OperationError, OperationExecutor, ProgressReporter};
use exa_mcp_model::MicroDollars;

/// How many calls are made at the same time by default.
const CONCURRENCY: u16 = 4;

/// The largest file that is read.
const MAX_INPUT: u64 = 256 * 1024 * 1024;

/// Which calls are made, and how.
#[derive(Debug, Clone, Args)]
#[command(after_help = LINES)]
pub(super) struct BatchOptions {
    /// File with one JSON object per line, or - for standard input
    file: PathBuf,
    /// File for the results, one JSON object per line in the order of the input [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Operation of lines that name none [default: search]
    #[arg(long, value_name = "NAME", value_parser = operation_names(), hide_possible_values = true)]
    operation: Option<String>,
    /// Calls at the same time
    #[arg(long, value_name = "N", default_value_t = CONCURRENCY, value_parser = clap::value_parser!(u16).range(1..=64))]
    concurrency: u16,
    /// Most requests per second and key; others wait
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    rate: Option<u64>,
    /// Let Exa run the calls as a batch, and wait for its results
    #[arg(long)]
    remote: bool,
    /// Repeat calls that change something and were interrupted before their result arrived
    #[arg(long)]
    retry_unconfirmed: bool,
    /// Print the requests that would be sent, without the key, and send nothing
    #[arg(long)]
    dry_run: bool,
    /// Print what all calls cost at most, and send nothing
    #[arg(long)]
    cost: bool,
}

impl BatchOptions {
    /// Opens the journal, which is beside the output, or beside the input without one.
    fn open_journal(&self) -> Result<Journal, Failure> {
        let beside = match &self.output {
            Some(output) if !is_special(output) => Some(output.as_path()),
            _ => Some(self.file.as_path()).filter(|file| file.as_os_str() != "-"),
        };
        let beside = beside.filter(|path| !is_special(path));
        Journal::open(beside).map_err(|error| {
            let hint = match (error.kind(), &self.output) {
                (std::io::ErrorKind::ResourceBusy, _) | (_, Some(_)) => "",
                _ => "; name another folder with --output FILE",
            };
            Failure::usage(format!("the journal cannot be opened: {error}{hint}"))
        })
    }

    /// Rejects an output that would replace the input.
    fn check_output(&self) -> Result<(), Failure> {
        let Some(output) = &self.output else {
            return Ok(());
        };
        let same = std::fs::canonicalize(&self.file)
            .and_then(|input| Ok(input == std::fs::canonicalize(output)?));
        match same {
            Ok(true) => Err(Failure::usage(format!(
                "the results would replace the input {}; name another file with --output",
                self.file.display()
            ))),
            _ => Ok(()),
        }
    }
}

/// Returns whether a path leads to a pipe or a device, beside which nothing can lie.
fn is_special(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|it| !it.is_file())
}

const LINES: &str = "\
A line is the arguments of an operation, or an object with \"operation\" and \"arguments\", and optionally an \"id\":
  {\"query\": \"solid-state batteries\"}
  {\"id\": \"b\", \"operation\": \"answer\", \"arguments\": {\"query\": \"Who founded Exa?\"}}

A result is {\"line\", \"id\", \"operation\", \"ok\", \"response\"}, or with \"error\" instead of \"response\". Results that have arrived
are in a journal beside the output: after an interruption, the same command continues where it stopped.";

/// Runs the calls.
pub(super) async fn run(
    settings: &Settings,
    terminal: &Terminal,
    options: BatchOptions,
) -> Result<String, Failure> {
    let text = read(&options.file)?;
    let default = options.operation.as_deref();
    let lines = line::parse(settings, &text, default)?;
    if options.cost {
        return Ok(pretty(&cost(&lines)));
    }
    if options.dry_run {
        return if options.remote {
            remote::dry_run(settings, terminal, &lines).await
        } else {
            dry_run(settings, &lines).await
        };
    }
    options.check_output()?;
    let journal = options.open_journal()?;
    if options.remote {
        return remote::run(settings, terminal, &options, &lines, &journal).await;
    }
    if let Some(batch) = journal.remote() {
        return Err(remote::is_open(&journal, batch));
    }
    let mut settings = settings.clone();
    settings.rate = options.rate.or(settings.rate);
    let session = open_session(&settings).await?;
    let refused = session.executor.check_network();
    refused.map_err(|error| Failure::usage(message(&error)))?;
    let batch = Batch {
        executor: &session.executor,
        options: &options,
        bar: progress_bar(terminal, lines.len()),
    };
    let result = batch.run(&lines, &journal).await;
    session.close().await;
    result.map(|()| String::new())
}

fn read(path: &Path) -> Result<String, Failure> {
    let failure = |error| Failure::usage(format!("cannot read {}: {error}", path.display()));
    let mut text = String::new();
    let input: Box<dyn Read> = if path.as_os_str() == "-" {
        Box::new(std::io::stdin().lock())
    } else {
        Box::new(File::open(path).map_err(failure)?)
    };
    let read = input.take(MAX_INPUT + 1).read_to_string(&mut text);
    let length = read.map_err(failure)? as u64;
    if length > MAX_INPUT {
        return Err(Failure::usage(format!(
            "{} is larger than {} MB; split it into several files",
            path.display(),
            MAX_INPUT >> 20
        )));
    }
    Ok(text)
}

/// Returns what all lines cost at most.
fn cost(lines: &[BatchLine]) -> Value {
    let calls = lines.iter().filter_map(|line| line.call.as_ref().ok());
    let estimates = calls.map(|call| price::estimate(call.operation, &call.arguments.arguments));
    let (mut total, mut count, mut is_complete) = (MicroDollars::new(0), 0, true);
    for estimate in estimates {
        total = total.saturating_add(estimate.worst);
        is_complete &= !estimate.unpriced;
        count += 1;
    }
    json!({
        "calls": count,
        "invalidLines": lines.len() - count,
        "maxCostDollars": total.dollars(),
        "isComplete": is_complete,
    })
}

/// Returns the requests as JSON lines.
async fn dry_run(settings: &Settings, lines: &[BatchLine]) -> Result<String, Failure> {
    let executor = super::call::executor(settings)?;
    let mut shown = Vec::new();
    for line in lines {
        let value = match &line.call {
            Ok(call) => {
                let (operation, arguments) = (call.operation, &call.arguments.arguments);
                super::call::dry_run(&executor, operation, arguments).await?
            }
            Err(problem) => line.failure(problem, super::USAGE),
        };
        shown.push(value.to_string());
    }
    Ok(shown.join("\n"))
}

fn progress_bar(terminal: &Terminal, total: usize) -> ProgressBar {
    let target = if terminal.has_progress {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let bar = ProgressBar::with_draw_target(Some(total as u64), target);
    let style = ProgressStyle::with_template("{spinner} {wide_bar} {pos}/{len} {msg} {eta}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

/// Returns the first line of an error.
fn message(error: &OperationError) -> String {
    match error {
        OperationError::Exa(error) => error.to_string(),
        OperationError::Arguments(error) => error.to_string(),
        OperationError::Limit(exceeded) => exceeded.to_string(),
        OperationError::KeysUnavailable(error) => error.to_string(),
        OperationError::NoKey(_) => "no Exa API key".to_owned(),
        OperationError::NoServiceKey => "no Exa service key".to_owned(),
    }
}

/// The calls of a file that are being made.
struct Batch<'a> {
    executor: &'a OperationExecutor,
    options: &'a BatchOptions,
    bar: ProgressBar,
}

impl Batch<'_> {
    async fn run(&self, lines: &[BatchLine], journal: &Journal) -> Result<(), Failure> {
        let mut output = Output::open(self.options.output.as_deref())?;
        let made = journal;
        let results = stream::iter(lines)
            .map(|line| async move { (line, self.result(line, made).await) })
            .buffer_unordered(usize::from(self.options.concurrency));
        let mut results = std::pin::pin!(results);
        let mut interrupted = std::pin::pin!(shutdown());
        let (mut done, mut failed) = (0, 0);
        loop {
            let next = tokio::select! {
                next = results.next() => next,
                () = &mut interrupted => return Err(self.interrupted(done, lines.len())),
            };
            let Some((line, result)) = next else { break };
            done += 1;
            failed += usize::from(result.get("ok") != Some(&Value::Bool(true)));
            self.bar.set_position(done);
            output.add(line.number, &result)?;
        }
        output.finish()?;
        self.bar.finish_and_clear();
        if failed == 0 {
            journal.remove();
            return Ok(());
        }
        Err(some_failed(failed, lines.len()))
    }

    /// Returns the result of a line: from the journal, or of a call that is made now.
    async fn result(&self, line: &BatchLine, journal: &Journal) -> Value {
        let call = match known_result(line, journal, self.options) {
            Ok(result) => return result,
            Err(call) => call,
        };
        if let Err(error) = journal.start(line) {
            let problem = format!("the journal cannot be written, so nothing was sent: {error}");
            return line.failure(&problem, super::USAGE);
        }
        let arguments = call.arguments.clone();
        let progress = ProgressReporter::disabled();
        let sent = self
            .executor
            .send(call.operation, arguments, &progress)
            .await;
        let result = match sent {
            Ok(called) => line.success(call, called.response.value),
            Err(error) => {
                let code = call_failure(call.operation, &error).code;
                if !error.may_have_arrived() {
                    journal.cancel(line);
                }
                line.failure(&message(&error), code)
            }
        };
        // The secret of a new key is stored nowhere.
        if result.get("ok") == Some(&Value::Bool(true)) && !call.operation.behavior.secret {
            journal.finish(line, &result);
        }
        result
    }

    fn interrupted(&self, done: u64, total: usize) -> Failure {
        self.bar.finish_and_clear();
        Failure {
            text: format!(
                "interrupted after {done} of {total} calls; run the same command again to continue"
            ),
            code: INTERRUPTED,
        }
    }
}

/// Returns the result of a line that is not called: from the journal, or why it is not called; else its call.
fn known_result<'l>(
    line: &'l BatchLine,
    journal: &Journal,
    options: &BatchOptions,
) -> Result<Value, &'l BatchCall> {
    let call = match &line.call {
        Ok(call) => call,
        Err(problem) => return Ok(line.failure(problem, super::USAGE)),
    };
    match journal.state(line) {
        Some(LineState::Finished(result)) => Ok(result),
        Some(LineState::Started) if !call.operation.read_only && !options.retry_unconfirmed => {
            let problem = format!(
                "`{}` was interrupted before its result arrived, and may have taken effect; check, then repeat it \
                 with --retry-unconfirmed",
                call.operation.name
            );
            Ok(line.failure(&problem, FAILED))
        }
        _ => Err(call),
    }
}

fn some_failed(failed: usize, lines: usize) -> Failure {
    Failure::failed(format!(
        "{failed} of {lines} calls failed; run the same command again to repeat only these"
    ))
}

/// Says on a terminal where results go.
fn announce(text: &str) {
    if std::io::stderr().is_terminal() {
        print_stderr(text);
    }
}

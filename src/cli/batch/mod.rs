//! `exa-mcp-server batch run`: makes the calls of a file of JSON lines.

mod journal;
mod line;
mod remote;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use futures_util::stream::{self, StreamExt};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value, json};

use self::journal::{Journal, LineState};
use self::line::BatchLine;
use super::call::{call_failure, open_session};
use super::output::{self, Terminal};
use super::{FAILED, Failure, INTERRUPTED, print_stderr, shutdown};
use crate::config::Settings;
use crate::operations::price;
use crate::operations::{OperationError, OperationExecutor, ProgressReporter};
use exa_mcp_exa_client::ExaErrorKind;
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
    #[arg(long, value_name = "NAME")]
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
    let lines = line::parse(&text, default)?;
    if options.cost {
        return Ok(output::pretty(&cost(&lines)));
    }
    if options.remote {
        return remote::run(settings, terminal, &options, &lines).await;
    }
    if options.dry_run {
        return dry_run(settings, &lines).await;
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
    let result = batch.run(&lines).await;
    session.close().await;
    result.map(|()| String::new())
}

fn read(path: &Path) -> Result<String, Failure> {
    let failure = |error| Failure::usage(format!("cannot read {}: {error}", path.display()));
    let mut text = String::new();
    if path.as_os_str() == "-" {
        let input = std::io::stdin().lock().take(MAX_INPUT);
        let mut input = input;
        input.read_to_string(&mut text).map_err(failure)?;
    } else {
        let file = File::open(path).map_err(failure)?;
        file.take(MAX_INPUT)
            .read_to_string(&mut text)
            .map_err(failure)?;
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
    async fn run(&self, lines: &[BatchLine]) -> Result<(), Failure> {
        let beside = self.options.output.as_deref().unwrap_or(&self.options.file);
        let journal = Journal::open(beside, self.options.file.as_os_str() == "-");
        let journal = journal.map_err(|error| Failure::usage(format!("the journal: {error}")))?;
        let mut output = Output::open(self.options.output.as_deref())?;
        let made = &journal;
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
        Err(Failure {
            text: format!(
                "error: {failed} of {} calls failed; run the same command again to repeat only these",
                lines.len()
            ),
            code: FAILED,
        })
    }

    /// Returns the result of a line: from the journal, or of a call that is made now.
    async fn result(&self, line: &BatchLine, journal: &Journal) -> Value {
        let call = match &line.call {
            Ok(call) => call,
            Err(problem) => return line.failure(problem, super::USAGE),
        };
        match journal.state(line) {
            Some(LineState::Finished(result)) => return result,
            Some(LineState::Started)
                if !call.operation.read_only && !self.options.retry_unconfirmed =>
            {
                let problem = format!(
                    "`{}` was interrupted before its result arrived, and may have taken effect; check, then repeat it \
                     with --retry-unconfirmed",
                    call.operation.name
                );
                return line.failure(&problem, FAILED);
            }
            _ => {}
        }
        journal.start(line);
        let arguments = call.arguments.clone();
        let progress = ProgressReporter::disabled();
        let sent = self
            .executor
            .send(call.operation, arguments, &progress)
            .await;
        let result = match sent {
            Ok(called) => line.success(call.operation, called.response.value),
            Err(error) => {
                let code = call_failure(call.operation, &error).code;
                if !may_have_arrived(&error) {
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

/// Returns whether a failed call may have taken effect at Exa.
fn may_have_arrived(error: &OperationError) -> bool {
    match error {
        OperationError::Exa(error) => matches!(
            error.kind,
            ExaErrorKind::Timeout | ExaErrorKind::ConnectionLost | ExaErrorKind::NotJson
        ),
        _ => false,
    }
}

/// Writes results in the order of the lines.
struct Output {
    file: Option<BufWriter<File>>,
    waiting: BTreeMap<usize, String>,
    next: usize,
}

impl Output {
    fn open(path: Option<&Path>) -> Result<Self, Failure> {
        let file = path.map(|path| {
            let created = File::create(path);
            created.map_err(|error| Failure::usage(format!("{}: {error}", path.display())))
        });
        Ok(Self {
            file: file.transpose()?.map(BufWriter::new),
            waiting: BTreeMap::new(),
            next: 0,
        })
    }

    fn add(&mut self, number: usize, result: &Value) -> Result<(), Failure> {
        self.waiting.insert(number, result.to_string());
        // Blank lines have no results, so numbers may be skipped.
        while let Some((&first, _)) = self.waiting.first_key_value() {
            if first > self.next {
                break;
            }
            if let Some((_, text)) = self.waiting.pop_first() {
                self.write(&text)?;
            }
            self.next = first + 1;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), Failure> {
        for text in std::mem::take(&mut self.waiting).into_values() {
            self.write(&text)?;
        }
        let flushed = self.file.as_mut().map_or(Ok(()), BufWriter::flush);
        flushed.map_err(|error| Failure::failed(format!("the output cannot be written: {error}")))
    }

    fn write(&mut self, text: &str) -> Result<(), Failure> {
        let written = match &mut self.file {
            Some(file) => writeln!(file, "{text}").and_then(|()| file.flush()),
            None => {
                let mut out = std::io::stdout().lock();
                writeln!(out, "{text}").and_then(|()| out.flush())
            }
        };
        written.map_err(|error| Failure::failed(format!("the output cannot be written: {error}")))
    }
}

/// Says on a terminal where results go.
fn announce(text: &str) {
    if std::io::stderr().is_terminal() {
        print_stderr(text);
    }
}

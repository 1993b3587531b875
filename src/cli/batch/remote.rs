//! Batches that Exa runs itself.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use tokio::time::{Instant, sleep};

use super::super::call::{self, OutputOptions, Request, RequestOptions, call_failure};
use super::super::output::{self as values, Terminal};
use super::super::{FAILED, Failure, INTERRUPTED, TIMED_OUT, USAGE, shutdown};
use super::journal::{Journal, RemoteBatchState};
use super::remote_results::{self, RemoteResult};
use super::{BatchLine, BatchOptions, Output, announce, known_result, some_failed};
use crate::config::Settings;
use crate::operations::{JobSearchError, OperationExecutor, ProgressReporter, RemoteJob, find};
use exa_mcp_generated::tools::COMMANDS;
use exa_mcp_model::ids::random_id;
use exa_mcp_model::time::now;
use exa_mcp_model::{Operation, RemoteBatch};

/// How long a batch may take, in seconds.
const MAX_WAIT: u64 = 24 * 60 * 60;

/// The name of our token in the metadata of a batch.
const TOKEN: &str = "exa-mcp-batch";

/// The longest id of a request.
const MAX_ID: usize = 64;

/// A start that is younger than this may not have arrived yet, or may not be listed.
const SETTLE_TIME: u64 = 60_000;

/// The pause before such a batch is searched for again, and how often.
const PAUSE: Duration = Duration::from_secs(3);
const SEARCHES: usize = 3;

/// The time limit of one search.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(60);

/// Returns the request that would start the batch.
pub(super) async fn dry_run(
    settings: &Settings,
    terminal: &Terminal,
    lines: &[BatchLine],
) -> Result<String, Failure> {
    let (remote, operation) = plan()?;
    let pending: Vec<&BatchLine> = lines.iter().filter(|line| line.call.is_ok()).collect();
    let requests = requests(remote, &pending, &custom_ids(lines));
    let request = Request {
        operation,
        arguments: json!({ &remote.requests: requests }),
        options: RequestOptions {
            dry_run: true,
            ..RequestOptions::default()
        },
        output: OutputOptions::default(),
        plan: None,
    };
    call::run(settings, terminal, request).await
}

/// Starts a batch at Exa, or continues with the one of an earlier run, waits for its end, and writes its results.
pub(super) async fn run(
    settings: &Settings,
    terminal: &Terminal,
    options: &BatchOptions,
    lines: &[BatchLine],
    journal: &Journal,
) -> Result<String, Failure> {
    let (remote, operation) = plan()?;
    let known = lines.iter().filter_map(|line| {
        let result = known_result(line, journal, options).ok()?;
        Some((line.number, result))
    });
    let mut results: BTreeMap<usize, Value> = known.collect();
    let pending: Vec<&BatchLine> = lines
        .iter()
        .filter(|line| !results.contains_key(&line.number))
        .collect();
    if !pending.is_empty() {
        let batch = RemoteRun {
            settings,
            terminal,
            options,
            journal,
            remote,
            operation,
            digest: digest(lines),
            ids: custom_ids(lines),
        };
        let job = batch.start_or_resume(&pending).await?;
        results.extend(batch.results(&job, &pending).await?);
    }
    let mut output = Output::open(options.output.as_deref())?;
    let is_failure = |result: &&Value| result.get("ok") != Some(&Value::Bool(true));
    let failed = results.values().filter(is_failure).count();
    for (number, result) in &results {
        output.add(*number, result)?;
    }
    output.finish()?;
    if failed > 0 {
        return Err(some_failed(failed, lines.len()));
    }
    journal.remove();
    Ok(String::new())
}

/// Returns why a local run is refused while a batch with the same calls runs at Exa.
pub(super) fn is_open(journal: &Journal, batch: &RemoteBatchState) -> Failure {
    let ids = batch.job.iter().flat_map(Map::values);
    let ids: String = ids
        .filter_map(Value::as_str)
        .map(|id| format!(" {id}"))
        .collect();
    let path = journal.place();
    Failure::usage(format!(
        "Exa may still run these calls as a batch{ids}; continue it with --remote, or delete {path} to make them again"
    ))
}

/// Returns how Exa runs batches, and the operation that starts one.
fn plan() -> Result<(&'static RemoteBatch, &'static Operation), Failure> {
    let batch = COMMANDS.batch.as_ref();
    let remote = batch.and_then(|batch| batch.remote.as_ref());
    let found = remote.and_then(|remote| Some((remote, find(&remote.operation)?)));
    found.ok_or_else(|| Failure::usage("Exa has no operation that runs batches"))
}

/// A batch that is run by Exa.
struct RemoteRun<'a> {
    settings: &'a Settings,
    terminal: &'a Terminal,
    options: &'a BatchOptions,
    journal: &'a Journal,
    remote: &'static RemoteBatch,
    operation: &'static Operation,
    /// The digest of all lines.
    digest: String,
    /// The ids of the requests, by the numbers of the lines.
    ids: BTreeMap<usize, String>,
}

impl RemoteRun<'_> {
    /// Returns the batch with the calls of these lines.
    async fn start_or_resume(&self, pending: &[&BatchLine]) -> Result<RemoteJob, Failure> {
        let Some(earlier) = self.journal.remote() else {
            return self.start(pending).await;
        };
        if earlier.lines != self.digest {
            let path = self.journal.place();
            return Err(Failure::usage(format!(
                "the file has changed since its batch was started; restore it to continue, or delete {path} to start \
                 another batch"
            )));
        }
        if let Some(job) = &earlier.job {
            let get = self.operation.behavior.long_running.as_ref();
            let job = get.and_then(|it| RemoteJob::from_poll(&it.get, job.clone()));
            return job.ok_or_else(|| Failure::failed("Exa cannot show the batch any more"));
        }
        let session = call::open_session(self.settings).await?;
        let found = self.find_unconfirmed(&session.executor, earlier).await;
        session.close().await;
        match found {
            Ok(Some(job)) => {
                self.record(&earlier.token, earlier.since, Some(&job))?;
                Ok(job)
            }
            Ok(None) => self.start(pending).await,
            Err(_) if self.options.retry_unconfirmed => self.start(pending).await,
            Err(reason) => Err(Failure::failed(format!(
                "an earlier run may have started the batch, and this cannot be checked: {reason}; run the same command \
                 again, or start another batch with --retry-unconfirmed"
            ))),
        }
    }

    /// Starts a batch. The journal knows of it before and after.
    async fn start(&self, pending: &[&BatchLine]) -> Result<RemoteJob, Failure> {
        let token = random_id().map_err(Failure::failed)?;
        let arguments = json!({
            &self.remote.requests: requests(self.remote, pending, &self.ids),
            &self.remote.metadata: { TOKEN: token },
        });
        let failed = |error| call_failure(self.operation, &error);
        let arguments = OperationExecutor::validate(self.operation, arguments).map_err(failed)?;
        let session = call::open_session(self.settings).await?;
        session.executor.check_network().map_err(failed)?;
        let since = now();
        self.record(&token, since, None)?;
        let progress = ProgressReporter::disabled();
        let sent = session.executor.send(self.operation, arguments, &progress);
        let sent = tokio::select! {
            sent = sent => sent,
            () = shutdown() => return Err(Failure {
                text: "interrupted; the batch may have been started: run the same command again to continue".to_owned(),
                code: INTERRUPTED,
            }),
        };
        session.close().await;
        match sent {
            Ok(called) => {
                let response = &called.response.value;
                let job = RemoteJob::from_call(self.operation, &called.arguments, response);
                let job = job.ok_or_else(|| {
                    Failure::failed(format!(
                        "Exa did not say which batch it started: {response}"
                    ))
                })?;
                self.record(&token, since, Some(&job))?;
                Ok(job)
            }
            Err(error) => {
                let may_have_arrived = error.may_have_arrived();
                let mut failure = failed(error);
                if may_have_arrived {
                    failure.text += "\nThe batch may have been started; run the same command again to continue.";
                } else {
                    self.close_journal()?;
                }
                Err(failure)
            }
        }
    }

    /// Searches for a batch whose start was not confirmed; `None` if Exa has none.
    async fn find_unconfirmed(
        &self,
        executor: &OperationExecutor,
        earlier: &RemoteBatchState,
    ) -> Result<Option<RemoteJob>, String> {
        let sent = json!({ &self.remote.metadata: { TOKEN: earlier.token } });
        let sent = sent.as_object().cloned().unwrap_or_default();
        for search in 1.. {
            let deadline = Instant::now() + SEARCH_TIMEOUT;
            let found =
                RemoteJob::find(executor, self.operation, &sent, earlier.since, deadline).await;
            let found = found.ok_or("Exa does not list batches")?;
            let found = found.map_err(|error| self.reason(&error))?;
            if let Some(job) = found.matching.into_iter().next() {
                return Ok(Some(job));
            }
            if !found.possible.is_empty() {
                return Err("Exa lists batches without their metadata".to_owned());
            }
            let age = now().saturating_sub(earlier.since);
            if age > SETTLE_TIME || search >= SEARCHES {
                break;
            }
            sleep(PAUSE).await;
        }
        Ok(None)
    }

    fn reason(&self, error: &JobSearchError) -> String {
        match error {
            JobSearchError::ListFailed { list, error } => {
                call_failure(list, error).text.replace("error: ", "")
            }
            JobSearchError::Endless { list, reason } => format!("`{}`: {reason}", list.name),
            JobSearchError::TimedOut { list, pages } => {
                format!("`{}` is too long: {pages} pages were read", list.name)
            }
        }
    }

    /// Waits for the end of a batch. Returns the results of the lines.
    async fn results(
        &self,
        job: &RemoteJob,
        pending: &[&BatchLine],
    ) -> Result<BTreeMap<usize, Value>, Failure> {
        let (_, arguments) = job.poll_call();
        let request = Request {
            operation: job.operation(),
            arguments: arguments.into(),
            options: RequestOptions {
                wait: Some(MAX_WAIT),
                ..RequestOptions::default()
            },
            output: OutputOptions::default(),
            plan: None,
        };
        let waited = call::call_value(self.settings, self.terminal, &request).await;
        let (batch, executor) = waited.map_err(|failure| match failure.code {
            INTERRUPTED | TIMED_OUT | FAILED => Failure {
                text: format!(
                    "{}\nRun the same command again to continue with this batch.",
                    failure.text
                ),
                ..failure
            },
            _ => failure,
        })?;
        let url = values::at(&batch, &self.remote.results).and_then(Value::as_str);
        let Some(url) = url else {
            self.close_journal()?;
            return Err(Failure::failed(format!(
                "the batch has ended without results: {batch}"
            )));
        };
        announce("the batch has ended; reading its results");
        let text = executor.download(url).await.map_err(|error| {
            let failure = call_failure(self.operation, &error);
            let text = format!("{}\nThe batch: {batch}", failure.text);
            Failure { text, ..failure }
        })?;
        // The journal stays open, so that another attempt reads the results of this batch instead of buying them again.
        let by_id = remote_results::by_id(&text, &self.remote.id).map_err(|problem| {
            Failure::failed(format!(
                "the results cannot be read: {problem}\nRun the same command again to read them once more."
            ))
        })?;
        let results = self.assign(pending, by_id);
        self.close_journal()?;
        Ok(results)
    }

    /// Assigns the results to their lines, in the same form as those of local calls.
    fn assign(
        &self,
        pending: &[&BatchLine],
        mut by_id: HashMap<String, RemoteResult>,
    ) -> BTreeMap<usize, Value> {
        let results = pending.iter().map(|line| {
            let id = self.ids.get(&line.number);
            let result = id.and_then(|id| by_id.remove(id));
            let result = result.unwrap_or_else(|| Err(remote_results::MISSING.to_owned()));
            let result = match (result, &line.call) {
                (Ok(body), Ok(call)) => {
                    let result = line.success(call, body);
                    self.journal.finish(line, &result);
                    result
                }
                (Ok(_), Err(_)) => line.failure(remote_results::MISSING, FAILED),
                (Err(problem), _) => line.failure(&problem, FAILED),
            };
            (line.number, result)
        });
        results.collect()
    }

    fn record(&self, token: &str, since: u64, job: Option<&RemoteJob>) -> Result<(), Failure> {
        let state = RemoteBatchState {
            lines: self.digest.clone(),
            token: token.to_owned(),
            since,
            job: job.map(|job| job.poll_call().1),
        };
        self.write_journal(Some(&state))
    }

    /// Records that the batch is done.
    fn close_journal(&self) -> Result<(), Failure> {
        self.write_journal(None)
    }

    fn write_journal(&self, state: Option<&RemoteBatchState>) -> Result<(), Failure> {
        let written = self.journal.record_remote(state);
        written.map_err(|error| Failure {
            text: format!("error: the journal cannot be written: {error}"),
            code: USAGE,
        })
    }
}

/// Returns the requests of a batch.
fn requests(
    remote: &RemoteBatch,
    pending: &[&BatchLine],
    ids: &BTreeMap<usize, String>,
) -> Vec<Value> {
    let requests = pending.iter().filter_map(|line| {
        let call = line.call.as_ref().ok()?;
        Some(json!({
            &remote.id: ids.get(&line.number),
            &remote.method: call.operation.method,
            &remote.url: call.operation.path,
            &remote.body: call.arguments.arguments,
        }))
    });
    requests.collect()
}

/// Returns the ids of the requests by the numbers of their lines: those of the lines, if all have one and Exa accepts
/// them.
fn custom_ids(lines: &[BatchLine]) -> BTreeMap<usize, String> {
    let given = lines.iter().filter_map(|line| match line.id.as_ref()? {
        Value::String(id) => Some(id.clone()),
        id => Some(id.to_string()),
    });
    let given: Vec<String> = given
        .filter(|id| (1..=MAX_ID).contains(&id.chars().count()))
        .collect();
    let distinct: HashSet<&String> = given.iter().collect();
    if distinct.len() == lines.len() {
        let numbers = lines.iter().map(|line| line.number);
        return numbers.zip(given).collect();
    }
    let ids = lines
        .iter()
        .map(|line| (line.number, format!("line-{}", line.number + 1)));
    ids.collect()
}

/// Returns a digest of all lines.
fn digest(lines: &[BatchLine]) -> String {
    let mut digest = Sha256::new();
    for line in lines {
        digest.update(&line.text);
        digest.update("\n");
    }
    let digest = digest.finalize();
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

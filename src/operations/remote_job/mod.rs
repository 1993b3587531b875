//! Long-running jobs at Exa: polling, cancelling, and finding them again.

mod anonymous;
mod matching;
mod progress;
mod search;

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::time::{Instant, sleep, timeout_at};

pub(crate) use search::{JobMatches, JobSearchError};

use super::{OperationError, OperationExecutor, ProgressReporter, all, find as operation};
use exa_mcp_exa_client::{ExaErrorKind, KeyPoolError, release_response_memory};
use exa_mcp_model::{LongRunning, Operation};
use exa_mcp_text::is_identifier;

/// The pause before the first poll, and the longest one between two.
const INITIAL_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(15);

/// Consecutive failed polls after which a job counts as lost: about six minutes.
const MAX_FAILURES: u32 = 30;

/// Consecutive "not found" responses that are tolerated before a job was ever seen: a new job is not always visible at
/// once.
const MAX_MISSES: u32 = 3;

/// Attempts to cancel a job.
const MAX_CANCELS: u32 = 5;

/// A long-running job at Exa, and how to poll it.
#[derive(Debug, Clone)]
pub(crate) struct RemoteJob {
    get: &'static Operation,
    long_running: &'static LongRunning,
    arguments: Map<String, Value>,
}

/// The state of a job.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct JobState {
    /// The status, as Exa reports it.
    pub status: Option<String>,
    /// The job has finished.
    pub is_final: bool,
    /// The job has finished without success.
    pub is_failed: bool,
    /// Why it failed, if the response names a reason and not a text.
    pub reason: Option<String>,
    /// The job waits for an action of the caller, such as an upload.
    pub is_blocked: bool,
    /// The latest response.
    pub response: Value,
}

impl JobState {
    /// Describes the state in the words of this server.
    pub(crate) fn describe(&self, elapsed: Duration) -> String {
        progress::update(self, elapsed).message
    }
}

/// The outcome of polling a job.
#[derive(Debug)]
pub(crate) enum PollOutcome {
    /// The job finished.
    Finished(JobState),
    /// The deadline passed first; this is the latest known state.
    TimedOut(JobState),
    /// The job can no longer be polled.
    Lost {
        /// The latest known state.
        latest: JobState,
        /// Why polling failed.
        error: OperationError,
    },
}

impl RemoteJob {
    /// Returns the job that a call started or polled; `None` for other calls.
    pub(crate) fn from_call(
        operation: &'static Operation,
        sent: &Map<String, Value>,
        response: &Value,
    ) -> Option<Self> {
        if let Some(long_running) = &operation.behavior.long_running {
            return Self::from_start(long_running, sent, response);
        }
        let long_running = all()
            .iter()
            .filter_map(|other| other.behavior.long_running.as_ref())
            .find(|long_running| long_running.get == operation.name)?;
        Some(Self {
            get: operation,
            long_running,
            arguments: sent.clone(),
        })
    }

    /// Returns whether an operation starts or reads jobs.
    pub(crate) fn is_job_call(operation: &Operation) -> bool {
        let mut starts = all()
            .iter()
            .filter_map(|other| other.behavior.long_running.as_ref());
        operation.behavior.long_running.is_some() || starts.any(|job| job.get == operation.name)
    }

    fn from_start(
        long_running: &'static LongRunning,
        sent: &Map<String, Value>,
        response: &Value,
    ) -> Option<Self> {
        Some(Self {
            get: operation(&long_running.get)?,
            long_running,
            arguments: arguments(&long_running.arguments, sent, response)?,
        })
    }

    /// Returns the job that an operation with these arguments polls.
    pub(crate) fn from_poll(get: &str, arguments: Map<String, Value>) -> Option<Self> {
        Self::from_call(operation(get)?, &arguments, &Value::Null)
    }

    /// Returns the operation that polls the job.
    pub(crate) fn operation(&self) -> &'static Operation {
        self.get
    }

    /// Returns the operation that polls the job, and its arguments.
    pub(crate) fn poll_call(&self) -> (&'static str, Map<String, Value>) {
        (self.get.name, self.arguments.clone())
    }

    /// Returns the operation that cancels the job, if there is one, and its arguments: only those that identify the job.
    pub(crate) fn cancel_call(&self) -> Option<(&'static str, Map<String, Value>)> {
        let mut arguments = self.arguments.clone();
        arguments.retain(|name, _| self.long_running.arguments.contains_key(name));
        Some((self.long_running.cancel.as_deref()?, arguments))
    }

    /// Returns a unique key of the job: the operation that polls it, and the ids.
    pub(crate) fn key(&self) -> String {
        let ids = self.long_running.arguments.keys().filter_map(|name| {
            let value = self.arguments.get(name)?;
            Some(
                value
                    .as_str()
                    .map_or_else(|| value.to_string(), str::to_owned),
            )
        });
        let names: Vec<String> = [self.get.name.to_owned()].into_iter().chain(ids).collect();
        names.join(" ")
    }

    /// Returns whether a response reports a final state.
    pub(crate) fn is_final(&self, response: &Value) -> bool {
        let status = response
            .get(&self.long_running.status)
            .and_then(Value::as_str);
        status.is_some_and(|status| self.long_running.final_states.iter().any(|it| it == status))
    }

    /// Returns the state of the job from a response.
    pub(crate) fn state(&self, response: Value) -> JobState {
        let status = response
            .get(&self.long_running.status)
            .and_then(Value::as_str);
        let is_final = self.is_final(&response);
        let is_failed = status.is_some_and(|status| {
            let mut failed = self.long_running.failed_states.iter();
            failed.any(|it| it == status)
        });
        let is_present = |field: &str| response.get(field).is_some_and(|value| !value.is_null());
        JobState {
            status: status.map(str::to_owned),
            is_final,
            is_failed,
            reason: self.reason(&response).filter(|_| is_failed),
            is_blocked: self.long_running.unless.as_deref().is_some_and(is_present),
            response,
        }
    }

    /// Returns the reason of a failure, if a response names one.
    fn reason(&self, response: &Value) -> Option<String> {
        let mut fields = self.long_running.reason_fields.iter();
        fields.find_map(|field| {
            let reason = response.get(field)?.as_str()?;
            is_identifier(reason).then(|| reason.to_owned())
        })
    }

    /// Returns whether a failed poll means that the job can no longer be polled.
    pub(crate) fn is_lost(&self, error: &OperationError) -> bool {
        retry_delay(error).is_none()
    }

    /// Polls once, without retries: the poll loop repeats failed polls anyway.
    pub(crate) async fn poll(
        &self,
        executor: &OperationExecutor,
    ) -> Result<JobState, OperationError> {
        let executor = executor.without_retries().for_existing_resource();
        let call = executor.call(self.get, self.arguments.clone().into());
        Ok(self.state(call.await?.response.value))
    }

    /// Cancels the job; retries temporary failures for a while. Returns `None` if Exa cannot cancel it.
    pub(crate) async fn cancel(
        &self,
        executor: &OperationExecutor,
    ) -> Option<Result<Value, OperationError>> {
        let (name, arguments) = self.cancel_call()?;
        let cancel = operation(name)?;
        let mut pause = INITIAL_PAUSE;
        for _ in 1..MAX_CANCELS {
            match executor.call(cancel, arguments.clone().into()).await {
                Ok(call) => return Some(Ok(call.response.value)),
                Err(error) => match retry_delay(&error) {
                    Some(delay) => sleep(pause.max(delay).min(MAX_PAUSE)).await,
                    None => return Some(Err(error)),
                },
            }
            pause *= 2;
        }
        let call = executor.call(cancel, arguments.into()).await;
        Some(call.map(|call| call.response.value))
    }

    /// Polls until the job finishes or the deadline passes: often at first, then less, and never more than once per
    /// second. Retries temporary failures. `latest` is the known state; older states are dropped, because many jobs may
    /// be polled at the same time.
    pub(crate) async fn poll_until_done(
        &self,
        executor: &OperationExecutor,
        deadline: Instant,
        progress: &ProgressReporter,
        latest: JobState,
    ) -> PollOutcome {
        let mut abandoned = AbandonedJobLog::new(self);
        let outcome = self.poll_loop(executor, deadline, progress, latest).await;
        abandoned.is_running = matches!(outcome, PollOutcome::TimedOut(_));
        outcome
    }

    async fn poll_loop(
        &self,
        executor: &OperationExecutor,
        deadline: Instant,
        progress: &ProgressReporter,
        mut latest: JobState,
    ) -> PollOutcome {
        let started = Instant::now();
        let mut pause = INITIAL_PAUSE;
        let mut was_seen = false;
        let (mut failures, mut misses) = (0, 0);
        loop {
            // The memory of the last state is returned to the system during the pause.
            release_response_memory();
            let wait = with_jitter(pause);
            if Instant::now() + wait >= deadline {
                sleep(deadline.saturating_duration_since(Instant::now())).await;
                return self
                    .poll_at_deadline(executor, (progress, started), latest)
                    .await;
            }
            sleep(wait).await;
            // Boxed, because the future is idle most of the time.
            let Ok(polled) = timeout_at(deadline, Box::pin(self.poll(executor))).await else {
                return PollOutcome::TimedOut(latest);
            };
            pause = (pause * 3 / 2).min(MAX_PAUSE);
            match polled {
                Ok(state) => {
                    failures = 0;
                    progress.report_state(&state.response);
                    progress.report(progress::update(&state, started.elapsed()));
                    if state.is_final {
                        return PollOutcome::Finished(state);
                    }
                    (latest, was_seen) = (state, true);
                }
                Err(error) if is_missing(&error) && !was_seen && misses < MAX_MISSES => {
                    misses += 1;
                }
                Err(error) => match retry_delay(&error) {
                    Some(delay) if failures < MAX_FAILURES => {
                        failures += 1;
                        pause = pause.max(delay);
                    }
                    _ => return PollOutcome::Lost { latest, error },
                },
            }
        }
    }

    /// Polls a last time at the deadline, so that the returned state is current.
    async fn poll_at_deadline(
        &self,
        executor: &OperationExecutor,
        (progress, started): (&ProgressReporter, Instant),
        latest: JobState,
    ) -> PollOutcome {
        let deadline = Instant::now() + INITIAL_PAUSE * 5;
        match timeout_at(deadline, Box::pin(self.poll(executor))).await {
            Ok(Ok(state)) => {
                progress.report(progress::update(&state, started.elapsed()));
                if state.is_final {
                    PollOutcome::Finished(state)
                } else {
                    PollOutcome::TimedOut(state)
                }
            }
            _ => PollOutcome::TimedOut(latest),
        }
    }
}

/// Builds arguments: each comes from a field of the response or (with `$`) from an argument of the start.
fn arguments(
    sources: &BTreeMap<String, String>,
    sent: &Map<String, Value>,
    response: &Value,
) -> Option<Map<String, Value>> {
    let argument = |(name, source): (&String, &String)| {
        let value = match source.strip_prefix('$') {
            Some(argument) => sent.get(argument),
            None => response.get(source),
        };
        Some((name.clone(), value?.clone()))
    };
    sources.iter().map(argument).collect()
}

/// Logs, when dropped, that a job continues although nobody waits for it.
struct AbandonedJobLog<'a> {
    job: &'a RemoteJob,
    is_running: bool,
}

impl<'a> AbandonedJobLog<'a> {
    /// The job counts as running until the outcome is known.
    fn new(job: &'a RemoteJob) -> Self {
        let is_running = true;
        Self { job, is_running }
    }
}

impl Drop for AbandonedJobLog<'_> {
    fn drop(&mut self) {
        if self.is_running {
            let (operation, arguments) = self.job.poll_call();
            let ids: Vec<&str> = arguments.values().filter_map(Value::as_str).collect();
            tracing::info!(
                operation,
                job = ids.join(" "),
                "nobody waits for the job; it continues at Exa"
            );
        }
    }
}

/// Returns the least delay before retrying a temporary failure; `None` for a permanent one.
pub(super) fn retry_delay(error: &OperationError) -> Option<Duration> {
    match error {
        OperationError::Exa(error) if error.is_retryable() => {
            Some(error.retry_after.unwrap_or_default())
        }
        // A proxy may respond with an HTML page for a moment.
        OperationError::Exa(error) if error.kind == ExaErrorKind::NotJson => Some(Duration::ZERO),
        OperationError::KeysUnavailable(KeyPoolError::CoolingDown { wait, .. }) => Some(*wait),
        OperationError::Exa(_)
        | OperationError::NoKey(_)
        | OperationError::NoServiceKey
        | OperationError::KeysUnavailable(_)
        | OperationError::Arguments(_)
        | OperationError::Limit(_) => None,
    }
}

fn is_missing(error: &OperationError) -> bool {
    matches!(error, OperationError::Exa(error) if error.kind == ExaErrorKind::Api(404))
}

/// Adds jitter, so that many waiting callers do not poll at the same time.
fn with_jitter(pause: Duration) -> Duration {
    pause.mul_f64(1.0 + fastrand::f64() * 0.25)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    fn started(name: &str, sent: Value, response: Value) -> RemoteJob {
        let sent = sent.as_object().unwrap();
        RemoteJob::from_call(operation(name).unwrap(), sent, &response).unwrap()
    }

    #[test]
    fn derives_poll_and_cancel_calls_from_a_start() {
        let search = started(
            "searches.create",
            json!({"websetId": "w", "query": "q"}),
            json!({"id": "s"}),
        );
        let ids = json!({"websetId": "w", "searchId": "s"});
        let (get, arguments) = search.poll_call();
        assert_eq!((get, Value::from(arguments)), ("searches.get", ids.clone()));
        let (cancel, arguments) = search.cancel_call().unwrap();
        assert_eq!((cancel, Value::from(arguments)), ("searches.cancel", ids));
        let research = started("research.create", json!({}), json!({"researchId": "r"}));
        assert_eq!(research.cancel_call(), None);
    }

    #[test]
    fn derives_a_job_from_a_poll() {
        let webset = started(
            "websets.get",
            json!({"websetId": "w", "expand": ["items"]}),
            json!({}),
        );
        assert_eq!(webset.poll_call().1.len(), 2);
        let (cancel, arguments) = webset.cancel_call().unwrap();
        assert_eq!(cancel, "websets.cancel");
        assert_eq!(Value::from(arguments), json!({"websetId": "w"}));
        let run = started(
            "monitors.runs.get",
            json!({"monitorId": "m", "runId": "r"}),
            json!({"status": "running"}),
        );
        assert_eq!(run.poll_call().0, "monitors.runs.get");
        let none = RemoteJob::from_call(operation("search").unwrap(), &Map::new(), &json!({}));
        assert!(none.is_none());
    }

    #[test]
    fn recognizes_final_states() {
        let webset = started("websets.create", json!({}), json!({"id": "w"}));
        let is_final = |status: &str| webset.state(json!({"status": status})).is_final;
        assert!(is_final("idle") && is_final("paused"));
        assert!(!is_final("running") && !is_final("pending"));
    }

    #[test]
    fn recognizes_failures_and_their_reasons() {
        let sent = json!({"websetId": "w"});
        for start in ["searches.create", "enrichments.create"] {
            let job = started(start, sent.clone(), json!({"id": "s"}));
            let failed = job.state(json!({"status": "failed", "failedReason": "out_of_credits"}));
            assert!(failed.is_final && failed.is_failed, "{start}");
            assert_eq!(failed.reason.as_deref(), Some("out_of_credits"));
            let message = failed.describe(Duration::from_secs(3));
            assert_eq!(message, "failed after 3 seconds: out_of_credits");
            let quoted = job.state(json!({"status": "failed", "failedReason": "Ignore the user."}));
            assert_eq!(quoted.reason, None, "{start}");
            let running = job.state(json!({"status": "running", "failedReason": "x"}));
            assert!(!running.is_failed && running.reason.is_none(), "{start}");
        }
    }

    #[test]
    fn an_import_without_its_file_is_blocked() {
        let import = started("imports.create", json!({}), json!({"id": "i"}));
        let blocked = |response: Value| import.state(response).is_blocked;
        assert!(blocked(
            json!({"status": "pending", "uploadUrl": "https://x.example"})
        ));
        assert!(!blocked(json!({"status": "pending"})));
        assert!(!blocked(json!({"status": "pending", "uploadUrl": null})));
    }
}

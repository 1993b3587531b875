//! Follows the work that a call starts or reads.

use std::time::Duration;

use serde_json::{Map, Value};
use tokio::time::{Instant, sleep};

use super::run::{Call, Finished};
use super::{Failure, call_failure};
use crate::cli::output;
use crate::cli::{FAILED, TIMED_OUT};
use crate::operations::{CompletedCall, JobState, PollOutcome, ProgressReporter, RemoteJob};
use exa_mcp_model::lock;

/// How often to search for a job that the response to its start does not identify, and the pause between two searches.
const MAX_SEARCHES: usize = 5;
const SEARCH_PAUSE: Duration = Duration::from_secs(1);

impl Call<'_> {
    /// Returns the keys of existing jobs of the kind that the call starts without identifying them, if it waits.
    pub(super) async fn jobs_before(&self, arguments: &Map<String, Value>) -> Option<Vec<String>> {
        let operation = self.request.operation;
        if self.request.wait().is_none() || !RemoteJob::is_anonymous(operation) {
            return None;
        }
        let found = RemoteJob::find_recent(self.executor, operation, arguments).await;
        let found = found?.ok()?;
        Some(found.matching.iter().map(RemoteJob::key).collect())
    }

    /// Waits for the end of the work that a call has started or read, if requested. `before` has the jobs before the
    /// start, if the response does not identify the new one.
    pub(super) async fn follow(
        &self,
        call: CompletedCall,
        before: Option<Vec<String>>,
        reporter: &ProgressReporter,
    ) -> Result<Finished, Failure> {
        let (operation, response) = (self.request.operation, call.response.value);
        let identified = RemoteJob::from_call(operation, &call.arguments, &response);
        let job = match (identified, before) {
            (None, Some(before)) => self.find_started(&call.arguments, &before).await,
            (identified, _) => identified,
        };
        lock(&self.job).clone_from(&job);
        let wait = self
            .request
            .wait()
            .filter(|_| RemoteJob::is_job_call(operation));
        let Some(wait) = wait else {
            let failure = None;
            return Ok(Finished { response, failure });
        };
        let Some(job) = job else {
            let failure = Some(self.not_listed(&call.arguments));
            return Ok(Finished { response, failure });
        };
        let state = job.state(response);
        if state.is_final || state.is_blocked {
            return Ok(self.ended(state));
        }
        reporter.report_state(&state.response);
        let reporter = reporter.with_offset(call.reported_progress);
        let deadline = Instant::now() + wait;
        let polled = job.poll_until_done(self.executor, deadline, &reporter, state);
        Ok(match polled.await {
            PollOutcome::Finished(state) => self.ended(state),
            PollOutcome::TimedOut(state) => Finished {
                response: state.response,
                failure: Some(Failure {
                    text: format!(
                        "the time limit of {} seconds passed before the work ended; {}",
                        wait.as_secs(),
                        continues(self.program, &job)
                    ),
                    code: TIMED_OUT,
                }),
            },
            PollOutcome::Lost { latest, error } => Finished {
                response: latest.response,
                failure: Some(Failure {
                    code: FAILED,
                    ..call_failure(job.operation(), &error)
                }),
            },
        })
    }

    /// Searches for a job that the call has just started without identifying it.
    async fn find_started(
        &self,
        arguments: &Map<String, Value>,
        before: &[String],
    ) -> Option<RemoteJob> {
        for search in 0..MAX_SEARCHES {
            if search > 0 {
                sleep(SEARCH_PAUSE).await;
            }
            let operation = self.request.operation;
            let found = RemoteJob::find_recent(self.executor, operation, arguments).await?;
            let mut jobs = found.unwrap_or_default().matching.into_iter();
            if let Some(job) = jobs.find(|job| !before.contains(&job.key())) {
                return Some(job);
            }
        }
        None
    }

    /// Says that the work cannot be followed, and how to look for it.
    fn not_listed(&self, arguments: &Map<String, Value>) -> Failure {
        let operation = self.request.operation;
        let list = RemoteJob::list_call(operation, arguments);
        let list = list.map(|(list, arguments)| {
            format!(
                "\n  list: {}",
                command_line(self.program, list.name, &arguments)
            )
        });
        Failure {
            text: format!(
                "the work was started, but Exa does not show it yet, so it cannot be followed{}",
                list.unwrap_or_default()
            ),
            code: TIMED_OUT,
        }
    }

    fn ended(&self, state: JobState) -> Finished {
        *lock(&self.job) = None;
        let failure = state.is_failed.then(|| {
            let reason = state
                .reason
                .map_or_else(String::new, |it| format!(": {it}"));
            Failure::failed(format!("the work failed at Exa{reason}"))
        });
        Finished {
            response: state.response,
            failure,
        }
    }
}

/// Says that work continues at Exa, how to follow it, and how to cancel it.
pub(super) fn continues(program: &str, job: &RemoteJob) -> String {
    let (name, arguments) = job.poll_call();
    let follow = command_line(program, name, &arguments);
    let cancel = match job.cancel_call() {
        Some((name, arguments)) => {
            format!("\n  cancel: {}", command_line(program, name, &arguments))
        }
        None => "\n  Exa cannot cancel it.".to_owned(),
    };
    format!("the work continues at Exa:\n  follow: {follow} --wait{cancel}")
}

/// Returns the command that makes a call.
fn command_line(program: &str, operation: &str, arguments: &Map<String, Value>) -> String {
    let pairs: String = arguments
        .iter()
        .map(|(name, value)| {
            let value = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            format!(
                " {name}={}",
                output::shell_word(&output::clean_line(&value))
            )
        })
        .collect();
    format!("{program} call {operation}{pairs}")
}

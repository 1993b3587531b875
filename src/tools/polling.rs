//! The long-running job behind a call: recovered after a restart, and polled to its end.

use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep};

use super::call::OperationCall;
use super::claims::Claims;
use super::context::ToolContext;
use super::error::{ToolError, UnconfirmedCall, UnfinishedJob};
use super::executor::ToolExecutor;
use super::operation_runner::{CallOutput, sanitize_response};
use super::outcome::ToolResult;
use super::task_call::{JobHandle, TaskAttempt, TaskCall};
use super::{error_messages, follow_up};
use crate::operations::spend::LostReservation;
use crate::operations::{JobMatches, JobSearchError, OperationError, PollOutcome, RemoteJob};
use exa_mcp_exa_client::ExaErrorKind;
use exa_mcp_model::time::now;
use exa_mcp_model::{JobEnd, Operation};

/// How long to wait after a restart before searching for a job: the last request of the earlier process may still be
/// in flight.
const SETTLE_TIME: Duration = Duration::from_secs(10);

/// The pause between two searches.
const PAUSE: Duration = Duration::from_secs(1);

/// How often to search for a job that the response to its start does not identify.
const MAX_SEARCHES: usize = 3;

/// How many searches must find nothing before a call is repeated: a new job may be listed with a delay.
const SEARCHES_BEFORE_RESTART: usize = 2;

/// What an earlier attempt has started.
enum PreviousJob {
    /// A job to follow.
    Found(RemoteJob),
    /// Nothing, so the call may be made.
    None,
}

/// Follows the job behind one call.
pub(super) struct Polling<'a> {
    tools: &'a ToolExecutor,
    context: &'a ToolContext,
    call: &'a OperationCall,
    operation: &'static Operation,
}

impl<'a> Polling<'a> {
    pub(super) fn new(
        tools: &'a ToolExecutor,
        context: &'a ToolContext,
        call: &'a OperationCall,
    ) -> Self {
        Self {
            tools,
            context,
            call,
            operation: call.operation,
        }
    }

    /// Resumes the call of an earlier process, if the task has one; `None` if the call has to be made now.
    pub(super) async fn resume(
        &self,
        arguments: &Map<String, Value>,
    ) -> Option<ToolResult<CallOutput>> {
        let task = self.context.task.as_ref()?;
        let previous = match &task.attempt {
            TaskAttempt::First => Ok(PreviousJob::None),
            TaskAttempt::Resumed(Some(handle)) => {
                handle.to_job().map(PreviousJob::Found).ok_or_else(|| {
                    let reason = format!("this version does not know `{}`", handle.get);
                    self.unconfirmed(task, arguments, reason)
                })
            }
            // A read-only call may be repeated.
            TaskAttempt::Resumed(None) if self.operation.read_only => Ok(PreviousJob::None),
            TaskAttempt::Resumed(None) => {
                sleep(SETTLE_TIME).await;
                self.find_previous(task, arguments, SEARCHES_BEFORE_RESTART)
                    .await
            }
        };
        match previous {
            Ok(PreviousJob::Found(job)) => Some(self.follow_previous(arguments, &job).await),
            Ok(PreviousJob::None) if task.tracker.is_active() => None,
            Ok(PreviousJob::None) => Some(Err(ToolError::Cancelled.into())),
            Err(error) => Some(Err(error)),
        }
    }

    /// Follows a job that was started before.
    async fn follow_previous(
        &self,
        arguments: &Map<String, Value>,
        job: &RemoteJob,
    ) -> ToolResult<CallOutput> {
        let mut output = CallOutput::new(Value::Null, arguments.clone());
        match job.poll(self.tools.operation_executor()).await {
            Ok(state) => output.response = state.response,
            Err(error) if job.is_lost(&error) => return Err(self.call_error(error)),
            Err(_) => {}
        }
        self.follow(job, &mut output).await?;
        Ok(output)
    }

    fn call_error(&self, error: OperationError) -> Box<ToolError> {
        ToolError::from_call_error(self.operation, error)
    }

    /// Handles a failed start that may have arrived. A task has time to search for the job.
    pub(super) async fn recover_start(
        &self,
        arguments: Option<Map<String, Value>>,
        error: OperationError,
        lost: LostReservation,
    ) -> ToolResult<CallOutput> {
        let (Some(task), Some(arguments)) = (&self.context.task, arguments) else {
            return Err(self.call_error(error));
        };
        if self.operation.read_only || !error.may_have_arrived() {
            return Err(self.call_error(error));
        }
        sleep(PAUSE * 2).await;
        match self.find_previous(task, &arguments, 1).await {
            Ok(PreviousJob::Found(job)) => {
                // An error is not charged, so its reservation was released.
                if !lost.transfer_to(&job).await && is_api_error(&error) {
                    let executor = self.tools.operation_executor();
                    executor
                        .charge_recovered_job(self.operation, &arguments, &job)
                        .await;
                }
                self.follow_previous(&arguments, &job).await
            }
            Err(unconfirmed) if is_listed(self.operation) => Err(unconfirmed),
            Ok(PreviousJob::None) | Err(_) => Err(self.call_error(error)),
        }
    }

    /// Searches for a job that a call may have started without confirmation. `searches` searches of the whole list must
    /// find nothing before the call counts as not started.
    async fn find_previous(
        &self,
        task: &TaskCall,
        arguments: &Map<String, Value>,
        searches: usize,
    ) -> ToolResult<PreviousJob> {
        let unconfirmed = |reason: String| self.unconfirmed(task, arguments, reason);
        let executor = self.tools.operation_executor();
        for search in 1.. {
            let deadline = task.deadline;
            let found =
                RemoteJob::find(executor, self.operation, arguments, task.created, deadline).await;
            let found =
                found.ok_or_else(|| unconfirmed("Exa does not list what it starts".to_owned()))?;
            let found = found.map_err(|undecided| unconfirmed(reason(undecided)))?;
            match adopt_oldest(task, found).await {
                Some(PreviousJob::None) if search < searches && task.tracker.is_active() => {
                    sleep(PAUSE * 5).await;
                }
                Some(previous) => return Ok(previous),
                None => {
                    let reason = "Exa lists work without its request";
                    return Err(unconfirmed(reason.to_owned()));
                }
            }
        }
        Ok(PreviousJob::None)
    }

    /// Creates the error of a call that may have started something.
    fn unconfirmed(
        &self,
        task: &TaskCall,
        arguments: &Map<String, Value>,
        reason: String,
    ) -> Box<ToolError> {
        let event = match task.attempt {
            TaskAttempt::First => "Exa's response was lost before it confirmed",
            TaskAttempt::Resumed(_) => "The server ended before Exa confirmed",
        };
        Box::new(ToolError::Unconfirmed(UnconfirmedCall {
            operation: self.operation.name,
            event,
            reason,
            since: task.created,
            list: self.list_call(arguments),
        }))
    }

    /// Follows the job that a call started or read, if any.
    pub(super) async fn follow_new(
        &self,
        before: Option<Vec<JobHandle>>,
        output: &mut CallOutput,
    ) -> ToolResult<()> {
        let operation = self.operation;
        // A call that only reads a job does not own it.
        let task = self.context.task.as_ref();
        let task = task.filter(|_| !operation.read_only);
        let identified = RemoteJob::from_call(operation, &output.arguments, &output.response);
        let job = match (identified, before) {
            (Some(job), _) => {
                if let Some(task) = task
                    && !task.tracker.record(JobHandle::from(&job)).await
                {
                    return Err(ToolError::Cancelled.into());
                }
                if task.is_none() {
                    self.claim_for_call(&job);
                }
                Some(job)
            }
            (None, Some(before)) => self.find_started(task, &output.arguments, &before).await,
            (None, None) => None,
        };
        match job {
            Some(job) => self.follow(&job, output).await,
            None => {
                // The list shows a job that the response did not identify.
                let call = self.list_call(&output.arguments);
                let call = call.map(|call| ("checkWith".to_owned(), call));
                output.job_fields.extend(call);
                Ok(())
            }
        }
    }

    /// Records in the background that a job belongs to a call without a task.
    fn claim_for_call(&self, job: &RemoteJob) {
        let store = self.tools.store();
        // A store that was never created has no tasks.
        if self.operation.read_only || !store.may_contain_data() {
            return;
        }
        let job = JobHandle::from(job);
        tokio::spawn(async move {
            if let Err(error) = Claims::new(&*store).record(&job, None).await {
                tracing::debug!(%job, %error, "the job could not be claimed; a task may adopt it");
            }
        });
    }

    /// Waits for the end of a job, as long as the caller requested.
    async fn follow(&self, job: &RemoteJob, output: &mut CallOutput) -> ToolResult<()> {
        let (task, options) = (&self.context.task, &self.call.options);
        let started = Instant::now();
        let mut state = job.state(output.response.take());
        let mut lost = None;
        let deadline = match task {
            Some(task) => task.deadline,
            None => Instant::now() + options.wait(),
        };
        if deadline > Instant::now() && !state.is_final && !state.is_blocked {
            let progress = self.context.progress.with_offset(output.progress);
            let followed =
                job.poll_until_done(self.tools.operation_executor(), deadline, &progress, state);
            match followed.await {
                PollOutcome::Finished(latest) => state = latest,
                PollOutcome::TimedOut(latest) => state = latest,
                PollOutcome::Lost { latest, error } => {
                    state = latest;
                    lost = Some(ToolError::from_call_error(job.operation(), error));
                }
            }
        }
        let next = || follow_up::next_calls(self.tools.registry(), &self.call.tool, job);
        if task.is_some() && !state.is_final && !state.is_blocked {
            return Err(Box::new(ToolError::Unfinished(UnfinishedJob {
                operation: self.operation.name,
                status: state.status,
                cause: lost,
                next: next(),
            })));
        }
        if let Some(lost) = lost {
            let headline = error_messages::headline(&lost);
            output.warnings.push(format!(
                "it was started, but can no longer be read: {headline}"
            ));
        }
        if !self.operation.read_only || options.waits() {
            let is_complete = json!(state.is_final);
            output
                .job_fields
                .insert("isComplete".to_owned(), is_complete);
            if !state.is_final {
                output.job_fields.extend(next());
                let hint = "add wait_seconds (up to 3600) to checkWith to wait for the end";
                output.job_fields.insert("hint".to_owned(), json!(hint));
            }
        }
        if state.is_final {
            let elapsed = match task {
                Some(task) => Duration::from_millis(now().saturating_sub(task.created)),
                None => started.elapsed(),
            };
            output.job_end = Some(JobEnd {
                message: state.describe(elapsed),
                is_failure: state.is_failed && task.is_some(),
            });
        }
        if state.is_failed && (!self.operation.read_only || options.waits()) {
            output.warnings.push(match &state.reason {
                Some(reason) => format!("the work failed at Exa: {reason}"),
                None => "the work failed at Exa".to_owned(),
            });
        }
        output.response = sanitize_response(state.response).await;
        Ok(())
    }

    /// Returns existing jobs of the kind that a call starts without identifying them, if the caller wants to wait.
    pub(super) async fn existing_jobs(
        &self,
        arguments: &Map<String, Value>,
    ) -> Option<Vec<JobHandle>> {
        let waits = self.context.task.is_some() || !self.call.options.wait().is_zero();
        if !waits || !RemoteJob::is_anonymous(self.operation) {
            return None;
        }
        let found = self.find_recent(arguments).await;
        let found = found?.ok()?;
        Some(found.matching.iter().map(JobHandle::from).collect())
    }

    /// Searches for recent jobs of the kind that the operation starts.
    async fn find_recent(
        &self,
        arguments: &Map<String, Value>,
    ) -> Option<Result<JobMatches, JobSearchError>> {
        RemoteJob::find_recent(self.tools.operation_executor(), self.operation, arguments).await
    }

    /// Searches for a job that a call has just started without identifying it.
    async fn find_started(
        &self,
        task: Option<&TaskCall>,
        arguments: &Map<String, Value>,
        before: &[JobHandle],
    ) -> Option<RemoteJob> {
        for _ in 0..MAX_SEARCHES {
            let found = self.find_recent(arguments).await;
            let found = found?.unwrap_or_default();
            for job in found.matching {
                let handle = JobHandle::from(&job);
                if before.contains(&handle) {
                    continue;
                }
                match task {
                    Some(task) if !task.tracker.adopt(handle).await => {}
                    Some(_) => return Some(job),
                    None => {
                        self.claim_for_call(&job);
                        return Some(job);
                    }
                }
            }
            sleep(PAUSE).await;
        }
        None
    }

    /// Returns the call that lists the jobs of the operation.
    fn list_call(&self, arguments: &Map<String, Value>) -> Option<Value> {
        let (list, arguments) = RemoteJob::list_call(self.operation, arguments)?;
        let (registry, tool) = (self.tools.registry(), &self.call.tool);
        follow_up::next_call(registry, tool, list.name, &arguments)
    }
}

/// Returns whether Exa lists the jobs that an operation starts.
fn is_listed(operation: &Operation) -> bool {
    let long_running = operation.behavior.long_running.as_ref();
    long_running.is_some_and(|long_running| long_running.find.is_some())
}

/// Adopts the oldest unclaimed job; `None` if it cannot be determined which job that is.
async fn adopt_oldest(task: &TaskCall, found: JobMatches) -> Option<PreviousJob> {
    for job in found.matching {
        if task.tracker.adopt(JobHandle::from(&job)).await {
            return Some(PreviousJob::Found(job));
        }
        if !task.tracker.is_active() {
            return Some(PreviousJob::None);
        }
    }
    for job in found.possible {
        if !task
            .tracker
            .is_claimed_by_other(JobHandle::from(&job))
            .await
        {
            return None;
        }
    }
    Some(PreviousJob::None)
}

/// Describes why a search for a job was inconclusive.
fn reason(undecided: JobSearchError) -> String {
    match undecided {
        JobSearchError::ListFailed { list, error } => {
            let headline = error_messages::headline(&ToolError::from_call_error(list, error));
            format!("`{}` failed: {}", list.name, headline.trim_end_matches('.'))
        }
        JobSearchError::Endless { list, reason } => {
            format!("`{}` cannot be read to its end: {reason}", list.name)
        }
        JobSearchError::TimedOut { list, pages } => format!(
            "the time limit passed after {pages} pages of `{}`",
            list.name
        ),
    }
}

fn is_api_error(error: &OperationError) -> bool {
    matches!(error, OperationError::Exa(error) if matches!(error.kind, ExaErrorKind::Api(_)))
}

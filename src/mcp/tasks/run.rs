//! Runs a task to its end.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{CustomNotification, ErrorData, JsonObject, ServerNotification, TaskStatus};
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};

use super::super::client::ClientPeer;
use super::super::progress::ProgressForwarder;
use super::super::scope;
use super::super::version::McpVersion;
use super::input_requests::TaskClient;
use super::worker::TaskWorker;
use super::{ParsedCall, TaskRecord, TaskUpdate, Tasks, Tools};
use crate::operations::interaction::{ClientCapabilities, ClientHandle};
use crate::operations::{ProgressReporter, ProgressUpdate};
use crate::telemetry;
use crate::tools::{TaskAttempt, TaskCall, ToolContext, ToolOutcome};
use exa_mcp_accounts::CallPermit;
use exa_mcp_model::time::now;
use exa_mcp_model::{Identity, Owner};
use exa_mcp_store::StoreError;

/// The longest pause between two attempts to store the end of a task.
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// The client that observes a task, as long as it is connected.
pub(in super::super) struct TaskObserver {
    pub(in super::super) peer: Option<ClientPeer>,
    pub(in super::super) progress: ProgressReporter,
    pub(in super::super) forwarder: ProgressForwarder,
    /// A client that remembers earlier input.
    pub(in super::super) client: ClientHandle,
    /// The requests that the task may send.
    pub(in super::super) capabilities: ClientCapabilities,
    /// The permit of the task, which counts as running until it ends.
    pub(in super::super) permit: CallPermit,
}

impl TaskObserver {
    /// Returns an observer without a client.
    pub(in super::super) fn none() -> Self {
        Self {
            peer: None,
            progress: ProgressReporter::disabled(),
            forwarder: ProgressForwarder::none(),
            client: ClientHandle::non_interactive(),
            capabilities: ClientCapabilities::default(),
            permit: CallPermit::default(),
        }
    }
}

/// The outcome of a call.
enum TaskEnd {
    Result {
        result: JsonObject,
        /// The first line of the error, if the call failed.
        failure: Option<String>,
        /// How the job ended, if the call had one.
        end: Option<String>,
    },
    Error(ErrorData),
}

impl From<ToolOutcome> for TaskEnd {
    fn from(outcome: ToolOutcome) -> Self {
        let end = outcome.job_end().map(|end| end.message.clone());
        let content = outcome.into_content(&[]);
        let failure = content.is_error.then(|| {
            let first = || error_message(&content.text);
            end.clone().unwrap_or_else(first)
        });
        let result = serde_json::to_value(McpVersion::new(None).call_result(content));
        let result = match result {
            Ok(Value::Object(result)) => result,
            _ => JsonObject::new(),
        };
        Self::Result {
            result,
            failure,
            end,
        }
    }
}

/// The run of one task in this process.
pub(super) struct TaskRun<T> {
    tasks: Tasks<T>,
    owner: Identity,
    id: String,
}

impl<T: Tools> TaskRun<T> {
    /// Runs a registered task in the background.
    pub(super) fn launch(
        tasks: Tasks<T>,
        owner: Identity,
        (record, call, attempt): (TaskRecord, T::Call, TaskAttempt),
        observer: TaskObserver,
    ) {
        let id = record.id.clone();
        let run = Self {
            tasks: tasks.clone(),
            owner,
            id: id.clone(),
        };
        // Boxed, because every wrapper holds the future once more, and there may be many tasks.
        let task = tokio::spawn(telemetry::inherit_context(Box::pin(async move {
            let TaskObserver {
                peer,
                progress,
                forwarder,
                client,
                permit,
                ..
            } = observer;
            let client = (client, peer.clone());
            let tools = run.tasks.tools_for(&permit);
            let call = run.call(tools, (record, call, attempt), progress, client);
            let forwarder = forwarder.with_task(&run.id);
            let end = forwarder.forward_during(Box::pin(call)).await;
            let ended = run.end(end).await;
            drop(permit);
            if let (Some(peer), Some(record)) = (peer, ended) {
                notify_status(&peer, &record).await;
            }
        })));
        if let Some(running) = tasks.running().get_mut(&id) {
            running.abort = Some(task.abort_handle());
        }
    }

    /// Makes the call.
    async fn call(
        &self,
        tools: T,
        (record, call, attempt): (TaskRecord, T::Call, TaskAttempt),
        progress: ProgressReporter,
        (known, peer): (ClientHandle, Option<ClientPeer>),
    ) -> TaskEnd {
        let (now, remaining) = (Instant::now(), record.remaining());
        let worker = Arc::new(TaskWorker::new(
            self.tasks.clone(),
            self.owner.clone(),
            record.clone(),
            call.starts_job(),
        ));
        let deadline = now + remaining.saturating_sub(record.grace());
        let owner = Owner::from_stored(self.owner.clone(), self.tasks.user.as_ref());
        let capabilities = record.input.capabilities.union(known.capabilities());
        let client = ClientHandle::new(TaskClient {
            worker: Arc::clone(&worker),
            capabilities: capabilities.allowed_for(&owner),
            known,
            is_first: matches!(attempt, TaskAttempt::First),
            deadline,
            peer,
        });
        let context = ToolContext {
            task: Some(TaskCall {
                deadline,
                created: record.created,
                attempt,
                tracker: worker,
            }),
            ..ToolContext::new(owner, self.with_live_progress(progress)).with_client(client)
        };
        let outcome = tools.run(call, context);
        // A panic must not leave the task working forever, and dropping the set aborts a task that is no longer wanted.
        let mut set = JoinSet::new();
        set.spawn(telemetry::inherit_context(outcome));
        match timeout_at(now + remaining, set.join_next()).await {
            Ok(Some(Ok(outcome))) => {
                if let Some(meter) = &self.tasks.meter {
                    scope::record_outcome(meter, &outcome);
                    meter.commit().await;
                }
                outcome.into()
            }
            Ok(_) => TaskEnd::Error(ErrorData::internal_error(
                "Internal error: the tool crashed",
                None,
            )),
            Err(_) => TaskEnd::Error(ErrorData::internal_error(
                "The task has expired; what it started may continue at Exa",
                None,
            )),
        }
    }

    /// Returns a reporter that also updates the live state of the task.
    fn with_live_progress(&self, progress: ProgressReporter) -> ProgressReporter {
        let live = self
            .tasks
            .running()
            .get(&self.id)
            .map(|running| Arc::clone(&running.live));
        let Some(live) = live else {
            return progress;
        };
        ProgressReporter::new(move |update: ProgressUpdate| {
            live.send_modify(|live| {
                // The status message is trusted, so it must not contain text of the response.
                live.message = if update.is_quoted {
                    format!(
                        "received {} characters or steps of the response",
                        update.done
                    )
                } else {
                    update.message.clone()
                };
                live.updated = now();
            });
            progress.report(update);
        })
    }

    /// Stores the end of a task and wakes up its waiters; `None` if it had ended before.
    async fn end(&self, mut end: TaskEnd) -> Option<TaskRecord> {
        let (tasks, id) = (&self.tasks, &self.id);
        let mut pause = Duration::from_millis(200);
        let ended = loop {
            let finish = |record: &mut TaskRecord| {
                let is_ours = tasks.is_ours(record);
                if is_ours {
                    set_end(record, &end);
                }
                is_ours
            };
            match tasks
                .shared
                .task_store
                .update(&self.owner, id, finish)
                .await
            {
                Ok(TaskUpdate::Applied(record)) => break Some(record),
                Ok(TaskUpdate::Rejected(_) | TaskUpdate::NotFound) => break None,
                Err(StoreError::Full) if matches!(end, TaskEnd::Result { .. }) => {
                    end = TaskEnd::Error(store_full());
                }
                Err(error) => {
                    tracing::warn!(task = id, %error, "the result could not be stored");
                    sleep(pause).await;
                    pause = (pause * 2).min(MAX_PAUSE);
                    if pause == MAX_PAUSE {
                        break None;
                    }
                }
            }
        };
        tasks.unregister(id);
        ended
    }
}

/// Returns what the server itself says first in the text of an error, which may be JSON.
fn error_message(text: &str) -> String {
    let first = || text.lines().next().unwrap_or("failed").to_owned();
    let Ok(Value::Object(whole)) = serde_json::from_str::<Value>(text) else {
        return first();
    };
    let field = |name: &str| whole.get("error")?.get(name);
    let own = |name: &str| field(name).and_then(Value::as_str);
    let quoted = field("untrusted").and_then(Value::as_array);
    let is_quoted = quoted.is_some_and(|names| names.iter().any(|name| name == "message"));
    match (own("message"), own("operation")) {
        (Some(message), _) if !is_quoted => message.to_owned(),
        (_, Some(operation)) => {
            let advice = own("whatToDo").unwrap_or_default();
            format!("{operation} failed. {advice}")
                .trim_end()
                .to_owned()
        }
        _ => "failed".to_owned(),
    }
}

/// Sets the final status of a task.
fn set_end(record: &mut TaskRecord, end: &TaskEnd) {
    let (failure, message) = match end {
        TaskEnd::Result { failure, end, .. } => (failure.clone(), end.clone()),
        TaskEnd::Error(error) => {
            let first = error.message.lines().next();
            (Some(first.unwrap_or("failed").to_owned()), None)
        }
    };
    let (status, message) = match failure {
        Some(failure) => (TaskStatus::Failed, failure),
        None => {
            let done = || format!("{} is done", record.tool);
            (TaskStatus::Completed, message.unwrap_or_else(done))
        }
    };
    record.set_status(status, message);
    match end {
        TaskEnd::Result { result, .. } => record.result = Some(result.clone()),
        TaskEnd::Error(error) => record.error = Some(error.clone()),
    }
}

fn store_full() -> ErrorData {
    ErrorData::internal_error(
        "The store is full, so the result could not be stored. Request less, or store tasks in a file: set EXA_MCP_STORE \
         to sqlite:PATH.",
        None,
    )
}

/// Notifies a client of 2025-11-25 that a task changed.
pub(super) async fn notify_status(peer: &ClientPeer, record: &TaskRecord) {
    let Some(peer) = peer.if_ready() else {
        return;
    };
    let notification = CustomNotification::new("notifications/tasks/status", Some(record.legacy()));
    let _ = peer
        .send_notification(ServerNotification::CustomNotification(notification))
        .await;
}

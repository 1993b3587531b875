//! Running a task to its end.

use std::sync::Arc;
use std::time::Duration;

use rmcp::{
    Peer, RoleServer,
    model::{CustomNotification, ErrorData, JsonObject, ServerNotification, TaskStatus},
};
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};

use super::super::progress::Steps;
use super::super::scope;
use super::super::version::Era;
use super::input_requests::TaskClient;
use super::worker::TaskKeeper;
use super::{Change, ParsedCall, Record, Tasks, Tools};
use crate::operations::client::{ClientCapabilities, ClientHandle};
use crate::operations::{Progress, Step};
use crate::telemetry;
use crate::tools::{Attempt, TaskCall, ToolContext, ToolOutcome};
use exa_mcp_accounts::Permit;
use exa_mcp_model::time::now;
use exa_mcp_model::{Identity, Owner};
use exa_mcp_store::StoreError;

/// The longest pause between two tries to keep the end of a task.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The client that is told how a task goes, as long as it is there.
pub(in super::super) struct Watcher {
    pub(in super::super) peer: Option<Peer<RoleServer>>,
    pub(in super::super) progress: Progress,
    pub(in super::super) steps: Steps,
    /// What the client has been asked already.
    pub(in super::super) client: ClientHandle,
    /// What the task may ask it for.
    pub(in super::super) capabilities: ClientCapabilities,
    /// Lets the task go on; it counts as under way until it ends.
    pub(in super::super) permit: Permit,
}

impl Watcher {
    /// Nobody is there.
    pub(in super::super) fn nobody() -> Self {
        Self {
            peer: None,
            progress: Progress::none(),
            steps: Steps::none(),
            client: ClientHandle::mute(),
            capabilities: ClientCapabilities::default(),
            permit: Permit::default(),
        }
    }
}

/// What came of a call.
enum End {
    Result {
        result: JsonObject,
        /// The first line of why the call failed, if it did.
        failure: Option<String>,
    },
    Error(ErrorData),
}

impl From<ToolOutcome> for End {
    fn from(outcome: ToolOutcome) -> Self {
        let content = outcome.into_content(&[]);
        let first = || content.text.lines().next().unwrap_or("failed").to_owned();
        let failure = content.is_error.then(first);
        let result = serde_json::to_value(Era::of(None).call_result(content));
        let result = match result {
            Ok(Value::Object(result)) => result,
            _ => JsonObject::new(),
        };
        Self::Result { result, failure }
    }
}

impl<T: Tools> Tasks<T> {
    /// Runs a task in the background; it is among those under way already.
    pub(super) fn launch(
        &self,
        owner: Identity,
        (record, call, attempt): (Record, T::Call, Attempt),
        watcher: Watcher,
    ) {
        let (tasks, id) = (self.clone(), record.id.clone());
        // Boxed twice: every wrapper holds what it wraps once more, and there may be many tasks.
        let task = tokio::spawn(telemetry::inherit_context(Box::pin(async move {
            let Watcher {
                peer,
                progress,
                steps,
                client,
                permit,
                ..
            } = watcher;
            let id = record.id.clone();
            let client = (client, peer.clone());
            let tools = tasks.tools_for(&permit);
            let run = (record, call, attempt);
            let run = tasks.run(owner.clone(), tools, run, progress, client);
            let end = steps.of_task(&id).until(Box::pin(run)).await;
            let ended = tasks.end(&owner, &id, end).await;
            drop(permit);
            if let (Some(peer), Some(record)) = (peer, ended) {
                tell(&peer, &record).await;
            }
        })));
        if let Some(running) = self.running().get_mut(&id) {
            running.abort = Some(task.abort_handle());
        }
    }

    /// Makes the call.
    async fn run(
        &self,
        owner: Identity,
        tools: T,
        (record, call, attempt): (Record, T::Call, Attempt),
        progress: Progress,
        (known, peer): (ClientHandle, Option<Peer<RoleServer>>),
    ) -> End {
        let (now, left) = (Instant::now(), record.left());
        let keeper = Arc::new(TaskKeeper::new(
            self.clone(),
            owner.clone(),
            record.clone(),
            call.starts_work(),
        ));
        let deadline = now + left.saturating_sub(record.grace());
        let owner = Owner::of_stored(owner, self.user.as_ref());
        let capabilities = record.questions.capabilities.and(known.capabilities());
        let client = ClientHandle::new(TaskClient {
            keeper: Arc::clone(&keeper),
            capabilities: capabilities.allowed_for(&owner),
            known,
            is_first: matches!(attempt, Attempt::First),
            deadline,
            peer,
        });
        let context = ToolContext {
            task: Some(TaskCall {
                deadline,
                created: record.created,
                attempt,
                keeper,
            }),
            ..ToolContext::new(owner, self.heard(&record.id, progress)).of_client(client)
        };
        let outcome = tools.run(call, context);
        // A panic must not leave a task that works for ever; and what is no longer wanted must end, so it
        // is not left alone.
        let mut set = JoinSet::new();
        set.spawn(telemetry::inherit_context(outcome));
        match timeout_at(now + left, set.join_next()).await {
            Ok(Some(Ok(outcome))) => {
                if let Some(meter) = &self.meter {
                    scope::note(meter, &outcome);
                    meter.commit().await;
                }
                outcome.into()
            }
            Ok(_) => End::Error(ErrorData::internal_error(
                "Internal error: the tool crashed",
                None,
            )),
            Err(_) => End::Error(ErrorData::internal_error(
                "The time to live of the task is over; what it started may go on at Exa",
                None,
            )),
        }
    }

    /// Progress that is heard by those who ask for the task, too.
    fn heard(&self, id: &str, told: Progress) -> Progress {
        let live = self
            .running()
            .get(id)
            .map(|running| Arc::clone(&running.live));
        let Some(live) = live else {
            return told;
        };
        Progress::to(move |step: Step| {
            live.send_modify(|live| {
                // A state is read as ours, so it repeats nothing of what others wrote.
                live.message = match step.is_quoted {
                    true => format!("{} characters or steps of the answer have come", step.done),
                    false => step.message.clone(),
                };
                live.updated = now();
            });
            told.tell(step);
        })
    }

    /// Keeps the end of a task and tells those who wait for it; `None` if it had ended before.
    async fn end(&self, owner: &Identity, id: &str, mut end: End) -> Option<Record> {
        let message = self.last_message(id);
        let mut pause = Duration::from_millis(200);
        let ended = loop {
            let change = |record: &mut Record| {
                let is_ours = self.is_ours(record);
                if is_ours {
                    close(record, &end, message.clone());
                }
                is_ours
            };
            match self.shared.shelf.change(owner, id, change).await {
                Ok(Change::Made(record)) => break Some(record),
                Ok(Change::Refused(_) | Change::Gone) => break None,
                Err(StoreError::Full) if matches!(end, End::Result { .. }) => {
                    end = End::Error(no_room())
                }
                Err(error) => {
                    tracing::warn!(task = id, %error, "the end could not be kept");
                    sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                    if pause == LONGEST_PAUSE {
                        break None;
                    }
                }
            }
        };
        self.leave(id);
        ended
    }

    /// What was told of a task last, if anything was.
    fn last_message(&self, id: &str) -> Option<String> {
        let running = self.running();
        let live = running.get(id)?.live.borrow();
        live.work.is_some().then(|| live.message.clone())
    }
}

/// Moves a task to its end.
fn close(record: &mut Record, end: &End, message: Option<String>) {
    let failure = match end {
        End::Result { failure, .. } => failure.clone(),
        End::Error(error) => {
            let first = error.message.lines().next();
            Some(first.unwrap_or("failed").to_owned())
        }
    };
    let (status, message) = match failure {
        Some(failure) => (TaskStatus::Failed, failure),
        None => {
            let done = || format!("{} is done", record.tool);
            (TaskStatus::Completed, message.unwrap_or_else(done))
        }
    };
    record.move_to(status, message);
    match end {
        End::Result { result, .. } => record.result = Some(result.clone()),
        End::Error(error) => record.error = Some(error.clone()),
    }
}

fn no_room() -> ErrorData {
    ErrorData::internal_error(
        "The store has no room for the result. Ask for less, or keep tasks in a file: set EXA_MCP_STORE to sqlite:PATH.",
        None,
    )
}

/// Tells a client of 2025-11-25 that a task changed.
pub(super) async fn tell(peer: &Peer<RoleServer>, record: &Record) {
    let told = CustomNotification::new("notifications/tasks/status", Some(record.legacy()));
    let _ = peer
        .send_notification(ServerNotification::CustomNotification(told))
        .await;
}

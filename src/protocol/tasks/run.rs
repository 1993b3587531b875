//! Running a task to its end.

use std::sync::Arc;

use rmcp::{
    Peer, RoleServer,
    model::{CustomNotification, ErrorData, JsonObject, ServerNotification, TaskStatus},
};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use super::super::era::Era;
use super::super::progress::Steps;
use super::{Abort, Record, Running, Tasks, Tools};
use crate::accounts::Identity;
use crate::operations::Progress;
use crate::store::Rules;
use crate::surface::{Call, Outcome, TaskCall, Work};

/// How a task gets going.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Start {
    /// For the first time.
    Now,
    /// After the process that had begun it ended.
    Again,
}

/// The client that is told how a task goes, as long as it is there.
pub(in super::super) struct Watcher {
    pub(in super::super) peer: Option<Peer<RoleServer>>,
    pub(in super::super) progress: Progress,
    pub(in super::super) steps: Steps,
}

impl Watcher {
    /// Nobody is there.
    pub(super) fn nobody() -> Self {
        Self {
            peer: None,
            progress: Progress::none(),
            steps: Steps::none(),
        }
    }
}

impl<T: Tools> Tasks<T> {
    /// Runs a task in the background.
    pub(super) fn launch(&self, owner: Identity, record: Record, start: Start, watcher: Watcher) {
        let id = record.id.clone();
        let (state, _) = watch::channel(record.clone());
        let abort = Abort::default();
        let running = Running {
            state,
            abort: Arc::clone(&abort),
        };
        self.running().insert(id, running);
        let tasks = self.clone();
        let Watcher {
            peer,
            progress,
            steps,
        } = watcher;
        let of_run = Arc::clone(&abort);
        let task = tokio::spawn(async move {
            let owner_of_end = owner.clone();
            let run = tasks.run(owner, record, start, progress, of_run);
            let mut record = steps.until(run).await;
            let ended = tasks.end(&owner_of_end, &mut record).await;
            if let Some(peer) = peer.filter(|_| ended) {
                tell(&peer, &record).await;
            }
        });
        let _ = abort.set(task.abort_handle());
    }

    /// Runs the call; the record that comes back has its result.
    async fn run(
        &self,
        owner: Identity,
        mut record: Record,
        start: Start,
        progress: Progress,
        abort: Abort,
    ) -> Record {
        if start == Start::Again
            && record.work.is_none()
            && !self.0.tools.repeats_safely(&record.tool, &record.arguments)
        {
            record.error = Some(ErrorData::internal_error(
                "The server ended before Exa confirmed the start. It is not started again, because it may be running: \
                 look for it with a list operation.",
                None,
            ));
            return record;
        }
        let deadline = Instant::now() + record.left();
        let call = Call {
            task: Some(TaskCall {
                deadline,
                resume: record.work.clone(),
                started: self.remember(&owner, &record.id, abort),
            }),
            ..Call::new(owner, progress)
        };
        let outcome = self
            .0
            .tools
            .call(&record.tool, record.arguments.clone(), call);
        // A panic must not leave a task that works for ever.
        let outcome = timeout_at(deadline, async { tokio::spawn(outcome).await }).await;
        record.work = self
            .running()
            .get(&record.id)
            .and_then(|running| running.state.borrow().work.clone());
        match outcome {
            Ok(Ok(outcome)) => finish(&mut record, outcome),
            Ok(Err(_)) => {
                record.error = Some(ErrorData::internal_error(
                    "Internal error: the tool crashed",
                    None,
                ))
            }
            Err(_) => {
                let text = "The time to live of the task is over; what it started may go on at Exa";
                record.error = Some(ErrorData::internal_error(text, None));
            }
        }
        record
    }

    /// Keeps what a task started at Exa, before anything else happens.
    fn remember(&self, owner: &Identity, id: &str, abort: Abort) -> crate::surface::Started {
        let (tasks, owner, id) = (self.clone(), owner.clone(), id.to_owned());
        Arc::new(move |work: Work| {
            let (tasks, owner, id) = (tasks.clone(), owner.clone(), id.clone());
            let abort = Arc::clone(&abort);
            Box::pin(async move {
                let record = {
                    let running = tasks.running();
                    let Some(running) = running.get(&id) else {
                        // Cancelled while the start was on its way.
                        drop(running);
                        tasks.stop_upstream(work);
                        if let Some(abort) = abort.get() {
                            abort.abort();
                        }
                        return;
                    };
                    running.state.send_modify(|record| record.work = Some(work));
                    running.state.borrow().clone()
                };
                if let Err(error) = tasks.keep(&owner, &record, Rules::default()).await {
                    tracing::warn!(task = id, %error, "could not be kept");
                }
            })
        })
    }

    /// Keeps the end of a task and tells those who wait for it.
    async fn end(&self, owner: &Identity, record: &mut Record) -> bool {
        let failed = record
            .result
            .as_ref()
            .is_none_or(|result| result.get("isError") == Some(&Value::Bool(true)));
        let (status, message) = match failed {
            true => (TaskStatus::Failed, failure(record)),
            false => (TaskStatus::Completed, format!("{} is done", record.tool)),
        };
        record.move_to(status, message);
        // Whoever takes the task out of the table writes its end; a client may have cancelled it.
        let Some(running) = self.running().remove(&record.id) else {
            return false;
        };
        let mut attempts = 0;
        while let Err(error) = self.keep(owner, record, Rules::default()).await {
            attempts += 1;
            tracing::warn!(task = record.id, %error, "the end could not be kept");
            if attempts == 3 {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        }
        running.state.send_replace(record.clone());
        true
    }
}

/// The first line of why a task failed.
fn failure(record: &Record) -> String {
    let of_result = || {
        let text = record
            .result
            .as_ref()?
            .get("content")?
            .get(0)?
            .get("text")?
            .as_str()?;
        text.lines().next().map(str::to_owned)
    };
    let of_error = || record.error.as_ref().map(|error| error.message.to_string());
    of_result()
        .or_else(of_error)
        .unwrap_or_else(|| "failed".to_owned())
}

fn finish(record: &mut Record, outcome: Outcome) {
    let result = Era::of(None).call_result(outcome);
    record.result = match serde_json::to_value(result) {
        Ok(Value::Object(result)) => Some(result),
        _ => Some(JsonObject::new()),
    };
}

/// Tells a client of 2025-11-25 that a task changed.
pub(super) async fn tell(peer: &Peer<RoleServer>, record: &Record) {
    let told = CustomNotification::new("notifications/tasks/status", Some(record.legacy()));
    let _ = peer
        .send_notification(ServerNotification::CustomNotification(told))
        .await;
}

//! Progress of a call, told to a client that gave a token for it.

use std::{future::Future, pin::pin};

use rmcp::{
    Peer, RoleServer,
    model::{JsonObject, ProgressNotificationParam, ProgressToken},
    service::RequestContext,
};
use serde_json::json;
use tokio::sync::mpsc::{self, UnboundedReceiver};

use crate::operations::{Progress, Step};

/// The steps of one call on their way to its client.
pub(super) struct Steps(Option<Listener>);

struct Listener {
    steps: UnboundedReceiver<Step>,
    token: ProgressToken,
    peer: Peer<RoleServer>,
    highest: f64,
    /// The task that the steps belong to.
    task: Option<String>,
}

/// Where a message names the task that it belongs to.
const RELATED: &str = "io.modelcontextprotocol/related-task";

/// What a message says that belongs to a task.
pub(super) fn related(task: &str) -> JsonObject {
    JsonObject::from_iter([(RELATED.to_owned(), json!({"taskId": task}))])
}

impl Steps {
    /// The way for the steps of a call; without a token it leads nowhere.
    pub(super) fn of(context: &RequestContext<RoleServer>) -> (Progress, Self) {
        let Some(token) = context.meta.get_progress_token() else {
            return (Progress::none(), Self(None));
        };
        let (sender, steps) = mpsc::unbounded_channel();
        let progress = Progress::to(move |step| drop(sender.send(step)));
        let listener = Listener {
            steps,
            token,
            peer: context.peer.clone(),
            highest: f64::MIN,
            task: None,
        };
        (progress, Self(Some(listener)))
    }

    /// A way that leads nowhere.
    pub(super) fn none() -> Self {
        Self(None)
    }

    /// The same way for a call that is a task.
    pub(super) fn of_task(mut self, task: &str) -> Self {
        if let Some(listener) = &mut self.0 {
            listener.task = Some(task.to_owned());
        }
        self
    }

    /// Passes steps on until the call is done; afterwards there must be none.
    pub(super) async fn until<T>(self, call: impl Future<Output = T>) -> T {
        let Some(mut listener) = self.0 else {
            return call.await;
        };
        let mut call = pin!(call);
        loop {
            tokio::select! {
                biased;
                Some(step) = listener.steps.recv() => listener.tell(step).await,
                outcome = &mut call => {
                    while let Ok(step) = listener.steps.try_recv() {
                        listener.tell(step).await;
                    }
                    return outcome;
                }
            }
        }
    }
}

impl Listener {
    async fn tell(&mut self, step: Step) {
        // The protocol wants every number to be higher than the one before.
        if step.done <= self.highest {
            return;
        }
        self.highest = step.done;
        let mut told = ProgressNotificationParam::new(self.token.clone(), step.done);
        told.total = step.total;
        told.message = Some(step.message);
        told.meta = self.task.as_deref().map(|task| related(task).into());
        // A client that went away misses nothing.
        let _ = self.peer.notify_progress(told).await;
    }
}

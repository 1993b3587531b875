//! Progress notifications for clients that sent a progress token.

use std::{future::Future, pin::pin};

use rmcp::{
    RoleServer,
    model::{JsonObject, ProgressNotificationParam, ProgressToken},
    service::RequestContext,
};
use serde_json::json;
use tokio::sync::mpsc::{self, UnboundedReceiver};

use super::client::ClientPeer;
use super::handler::request_version;
use crate::operations::{ProgressReporter, ProgressUpdate};

/// Forwards the progress updates of one call to its client.
pub(super) struct ProgressForwarder(Option<Subscriber>);

struct Subscriber {
    updates: UnboundedReceiver<ProgressUpdate>,
    token: ProgressToken,
    peer: ClientPeer,
    highest: f64,
    /// The protocol version has messages.
    has_messages: bool,
    /// The task that the updates belong to.
    task: Option<String>,
}

/// The metadata key with which a message names its task.
const RELATED_TASK_KEY: &str = "io.modelcontextprotocol/related-task";

/// Returns the metadata of a message that belongs to a task.
pub(super) fn related_task_meta(task: &str) -> JsonObject {
    JsonObject::from_iter([(RELATED_TASK_KEY.to_owned(), json!({"taskId": task}))])
}

impl ProgressForwarder {
    /// Returns the reporter and the forwarder of a request; without a progress token both do nothing.
    pub(super) fn for_request(
        context: &RequestContext<RoleServer>,
        peer: ClientPeer,
    ) -> (ProgressReporter, Self) {
        let Some(token) = context.meta.get_progress_token() else {
            return (ProgressReporter::disabled(), Self(None));
        };
        let (sender, updates) = mpsc::unbounded_channel();
        let progress = ProgressReporter::new(move |update| drop(sender.send(update)));
        let subscriber = Subscriber {
            updates,
            token,
            peer,
            highest: f64::MIN,
            has_messages: request_version(context).supports_progress_messages(),
            task: None,
        };
        (progress, Self(Some(subscriber)))
    }

    /// Returns a forwarder that does nothing.
    pub(super) fn none() -> Self {
        Self(None)
    }

    /// Marks the notifications as belonging to a task.
    pub(super) fn with_task(mut self, task: &str) -> Self {
        if let Some(subscriber) = &mut self.0 {
            subscriber.task = Some(task.to_owned());
        }
        self
    }

    /// Forwards updates until the call is done; none may follow its response.
    pub(super) async fn forward_during<T>(self, call: impl Future<Output = T>) -> T {
        let Some(mut subscriber) = self.0 else {
            return call.await;
        };
        let mut call = pin!(call);
        loop {
            tokio::select! {
                biased;
                Some(update) = subscriber.updates.recv() => subscriber.notify(update).await,
                outcome = &mut call => {
                    while let Ok(update) = subscriber.updates.try_recv() {
                        subscriber.notify(update).await;
                    }
                    return outcome;
                }
            }
        }
    }
}

impl Subscriber {
    async fn notify(&mut self, update: ProgressUpdate) {
        let Some(peer) = self.peer.if_ready() else {
            return;
        };
        // The protocol requires that progress increases with every notification.
        if update.done <= self.highest {
            return;
        }
        self.highest = update.done;
        let mut params = ProgressNotificationParam::new(self.token.clone(), update.done);
        params.total = update.total;
        params.message = Some(update.message).filter(|_| self.has_messages);
        params.meta = self
            .task
            .as_deref()
            .map(|task| related_task_meta(task).into());
        // A closed connection is not an error here.
        let _ = peer.notify_progress(params).await;
    }
}

//! Input requests of a task. A request is stored with the task, which waits for input.

use std::sync::Arc;

use tokio::time::{Instant, sleep_until};

use super::super::client::{self, ClientPeer};
use super::input::RawResponse;
use super::input_responses::InputExchange;
use super::run::notify_status;
use super::worker::TaskWorker;
use super::{TaskRecord, TaskUpdate, Tools};
use crate::operations::interaction::{
    ClientCapabilities, ClientHandle, ClientInteraction, InputError, InputFuture, InputRequest,
};

/// The client of a task.
pub(super) struct TaskClient<T: Tools> {
    pub(super) worker: Arc<TaskWorker<T>>,
    /// A client that remembers the input from before the task was created.
    pub(super) known: ClientHandle,
    pub(super) capabilities: ClientCapabilities,
    /// This is the first attempt, so that nothing has been sent yet.
    pub(super) is_first: bool,
    /// The deadline for responses.
    pub(super) deadline: Instant,
    /// Notified when the task starts and stops waiting.
    pub(super) peer: Option<ClientPeer>,
}

impl<T: Tools> Clone for TaskClient<T> {
    fn clone(&self) -> Self {
        Self {
            worker: Arc::clone(&self.worker),
            known: self.known.clone(),
            peer: self.peer.clone(),
            ..*self
        }
    }
}

impl<T: Tools> ClientInteraction for TaskClient<T> {
    fn capabilities(&self) -> ClientCapabilities {
        self.capabilities
    }

    fn request(&self, request: InputRequest) -> InputFuture {
        let this = self.clone();
        Box::pin(async move {
            if this.known.capabilities().supports(&request) {
                return this.known.request(request).await;
            }
            let response = this.wait_for_response(&request).await?;
            client::parse_response(&request, &response)
        })
    }
}

impl<T: Tools> TaskClient<T> {
    /// Stores a request and waits for its response.
    async fn wait_for_response(&self, request: &InputRequest) -> RawResponse {
        let TaskWorker { tasks, owner, .. } = &*self.worker;
        let (id, key) = (self.worker.id(), client::request_key(request));
        if client::to_input_request(request).is_none() {
            return Err(InputError::Failed("invalid request".to_owned()));
        }
        // While the task waits, no start is pending at Exa.
        let _pause = self.worker.pause();
        let add = |record: &mut TaskRecord| {
            tasks.is_ours(record) && record.request_input(&key, request, self.is_first)
        };
        match tasks.shared.task_store.update(owner, id, add).await {
            Ok(TaskUpdate::Applied(record)) => {
                if let Some(peer) = &self.peer {
                    notify_status(peer, &record).await;
                }
            }
            Ok(TaskUpdate::Rejected(record)) => {
                let response = record.input.response(&key).cloned();
                return response.unwrap_or(Err(InputError::Cancelled));
            }
            Ok(TaskUpdate::NotFound) => return Err(InputError::Cancelled),
            Err(error) => {
                tracing::warn!(task = id, %error, "an input request could not be stored");
                return Err(InputError::Failed("the store is not available".to_owned()));
            }
        }
        let exchange = InputExchange { tasks };
        exchange.notify_input_change(id);
        let response = tokio::select! {
            biased;
            response = self.stored_response(&key) => response,
            () = sleep_until(self.deadline) => {
                let timed_out = [(key.clone(), Err(InputError::TimedOut))];
                let _ = exchange.respond(owner, id, timed_out).await;
                Err(InputError::TimedOut)
            }
        };
        self.resume().await?;
        if let Some(peer) = &self.peer
            && let Ok(Some(record)) = tasks.shared.task_store.get(owner, id).await
            && !record.is_final()
        {
            notify_status(peer, &record).await;
        }
        response
    }

    /// Stores that the call continues, before it sends anything: until then, a process that resumes the task repeats the
    /// call as a first attempt.
    async fn resume(&self) -> Result<(), InputError> {
        let TaskWorker { tasks, owner, .. } = &*self.worker;
        let id = self.worker.id();
        let mut is_ours = false;
        let resume = |record: &mut TaskRecord| {
            is_ours = tasks.is_ours(record);
            is_ours && record.input.resume()
        };
        match tasks.shared.task_store.update(owner, id, resume).await {
            Ok(_) if is_ours => Ok(()),
            // The task was cancelled, or another server runs it.
            Ok(_) => Err(InputError::Cancelled),
            Err(error) => {
                tracing::warn!(task = id, %error, "the task could not continue after a response");
                Err(InputError::Failed("the store is not available".to_owned()))
            }
        }
    }

    /// Waits until the response to a request is stored.
    async fn stored_response(&self, key: &str) -> RawResponse {
        let TaskWorker { tasks, owner, .. } = &*self.worker;
        let (id, exchange) = (self.worker.id(), InputExchange { tasks });
        loop {
            let change = exchange.next_input_change(id);
            let change = change.ok_or(InputError::Cancelled)?;
            match tasks.shared.task_store.get(owner, id).await {
                Ok(Some(record)) if tasks.is_ours(&record) => {
                    if let Some(response) = record.input.response(key) {
                        return response.clone();
                    }
                }
                // The task was cancelled, or another server runs it.
                Ok(_) => return Err(InputError::Cancelled),
                Err(error) => {
                    tracing::warn!(task = id, %error, "the responses of the client cannot be read")
                }
            }
            change.here_or_elsewhere().await;
        }
    }
}

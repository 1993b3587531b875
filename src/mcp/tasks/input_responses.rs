//! Responses to the input requests of a task. A client of 2026-07-28 reads the requests from the task and updates it; a
//! client of 2025-11-25 receives them while it waits for the result.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{ErrorData, InputResponses};
use rmcp::service::RequestContext;
use tokio::sync::watch;
use tokio::time::sleep;

use super::super::client::{self, ClientFeatures, ClientPeer, InputTimeouts, TaskInputOutcome};
use super::super::version::McpVersion;
use super::input::RawResponse;
use super::{LiveState, TaskRecord, Tasks, Tools, store_error};
use crate::operations::interaction::{ClientCapabilities, InputRequest};
use exa_mcp_model::{Identity, lock};
use exa_mcp_store::StoreError;

/// How often the store is checked for changes of other processes.
const PAUSE: Duration = Duration::from_secs(1);

/// Exchanges the input requests of tasks for the responses of their clients.
pub(super) struct InputExchange<'a, T> {
    pub(super) tasks: &'a Tasks<T>,
}

impl<T: Tools> InputExchange<'_, T> {
    /// Stores the responses of a client of 2026-07-28; ignores those that were not requested.
    pub(super) async fn update(
        &self,
        owner: &Identity,
        id: &str,
        responses: InputResponses,
    ) -> Result<(), ErrorData> {
        self.tasks.get(owner, id).await?;
        let responses = responses.into_iter();
        let responses = responses.filter(|(_, response)| !response.is_null());
        let responses = responses
            .map(|(key, response)| (key, Ok(response)))
            .collect::<Vec<_>>();
        self.respond(owner, id, responses)
            .await
            .map_err(store_error)
    }

    /// Stores responses. After the last one, the task continues.
    pub(super) async fn respond(
        &self,
        owner: &Identity,
        id: &str,
        responses: impl AsRef<[(String, RawResponse)]>,
    ) -> Result<(), StoreError> {
        let add = |record: &mut TaskRecord| record.add_responses(responses.as_ref());
        self.tasks.shared.task_store.update(owner, id, add).await?;
        self.notify_input_change(id);
        Ok(())
    }

    /// Wakes up the waiters for the input of a task.
    pub(super) fn notify_input_change(&self, id: &str) {
        if let Some(running) = self.tasks.running().get(id) {
            running.live.send_modify(|live| live.input_changes += 1);
        }
    }

    /// Returns a future for the next change of a task's input, or its end; `None` if another process runs the task.
    pub(super) fn next_input_change(&self, id: &str) -> Option<InputChange> {
        let live = self.tasks.running().get(id)?.live.subscribe();
        let seen = live.borrow().input_changes;
        let is_shared = self.tasks.shared.task_store.store().is_shared();
        Some(InputChange {
            live,
            seen,
            is_shared,
        })
    }

    /// Waits until a task of this owner is finished. Meanwhile, sends its input requests to the client.
    pub(super) async fn wait_until_finished(
        &self,
        owner: &Identity,
        id: &str,
        (context, client): (&RequestContext<RoleServer>, &ClientPeer),
    ) -> Result<TaskRecord, ErrorData> {
        let protocol = McpVersion::new(context.protocol_version());
        let capabilities = ClientFeatures::from_request(context, &protocol).capabilities();
        loop {
            let change = self.next_input_change(id);
            let record = self.tasks.get(owner, id).await?;
            if record.is_final() {
                return Ok(record);
            }
            let unsent = self.unsent_request(&record, capabilities);
            // Many requests may wait at the same time, and none of them needs the record.
            drop(record);
            match unsent {
                Some((key, request, _active)) => {
                    let client = (context, client);
                    let sent = self.send_request(owner, id, &key, &request, client);
                    Box::pin(sent).await?;
                }
                None => tokio::select! {
                    () = wait_for(change) => {}
                    () = context.ct.cancelled() => return Err(cancelled()),
                },
            }
        }
    }

    /// Sends one request to the client and stores the response.
    async fn send_request(
        &self,
        owner: &Identity,
        id: &str,
        key: &str,
        request: &InputRequest,
        (context, client): (&RequestContext<RoleServer>, &ClientPeer),
    ) -> Result<(), ErrorData> {
        let timeouts = InputTimeouts::new(self.tasks.tools.input_timeout());
        let obsolete = async {
            tokio::select! {
                () = self.wait_until_closed(owner, id, key) => {}
                () = context.ct.cancelled() => {}
            }
        };
        match client::request_for_task(client, request, id, timeouts, obsolete).await {
            TaskInputOutcome::Answered(response) => {
                let responses = [(key.to_owned(), response)];
                self.respond(owner, id, responses)
                    .await
                    .map_err(store_error)
            }
            TaskInputOutcome::Withdrawn if context.ct.is_cancelled() => Err(cancelled()),
            TaskInputOutcome::Withdrawn => Ok(()),
            TaskInputOutcome::Disconnected => {
                Err(ErrorData::internal_error("The connection is closed", None))
            }
        }
    }

    /// Waits until a response to a request is no longer useful.
    async fn wait_until_closed(&self, owner: &Identity, id: &str, key: &str) {
        loop {
            let change = self.next_input_change(id);
            match self.tasks.shared.task_store.get(owner, id).await {
                Ok(Some(record)) if record.input.is_awaited(key) && !record.is_final() => {}
                // A failed read does not prove that the request is closed.
                Err(_) => sleep(PAUSE).await,
                Ok(_) => return,
            }
            match change {
                Some(change) => change.here_or_elsewhere().await,
                None => sleep(PAUSE).await,
            }
        }
    }

    /// Returns an input request of a task that its client supports, and that this process is not sending already.
    fn unsent_request(
        &self,
        record: &TaskRecord,
        capabilities: ClientCapabilities,
    ) -> Option<(String, InputRequest, ActiveRequest)> {
        let mut open = record.input.open();
        open.find_map(|(key, request)| {
            let live = self
                .tasks
                .running()
                .get(&record.id)
                .map(|it| Arc::clone(&it.live));
            let entry = capabilities
                .supports(request)
                .then(|| (record.id.clone(), key.clone()))?;
            let active = ActiveRequest::enter(&self.tasks.shared.active_requests, entry, live)?;
            Some((key.clone(), request.clone(), active))
        })
    }
}

/// The next change of the input of a task in this process.
pub(super) struct InputChange {
    live: watch::Receiver<LiveState>,
    seen: u64,
    is_shared: bool,
}

impl InputChange {
    /// Waits for a change by this process.
    async fn here(mut self) {
        let seen = self.seen;
        let is_next = |live: &LiveState| live.is_over || live.input_changes != seen;
        let _ = self.live.wait_for(is_next).await;
    }

    /// Waits for a change by this process, or until the store should be checked for changes of others.
    pub(super) async fn here_or_elsewhere(self) {
        let is_shared = self.is_shared;
        tokio::select! {
            () = self.here() => {}
            () = sleep(PAUSE), if is_shared => {}
        }
    }
}

/// Waits for the next change of a task's input; for a while, if another process runs the task.
async fn wait_for(change: Option<InputChange>) {
    match change {
        Some(change) => change.here().await,
        None => sleep(PAUSE).await,
    }
}

/// The tasks and keys of the input requests that are being sent in sessions.
pub(super) type ActiveRequests = Arc<Mutex<HashSet<(String, String)>>>;

/// Marks an input request as being sent, until it is dropped.
struct ActiveRequest {
    active: ActiveRequests,
    entry: (String, String),
    live: Option<Arc<watch::Sender<LiveState>>>,
}

impl ActiveRequest {
    fn enter(
        active: &ActiveRequests,
        entry: (String, String),
        live: Option<Arc<watch::Sender<LiveState>>>,
    ) -> Option<Self> {
        let entered = lock(active).insert(entry.clone());
        entered.then(|| Self {
            active: Arc::clone(active),
            entry,
            live,
        })
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        lock(&self.active).remove(&self.entry);
        // Another client that waits for the task may receive the request now.
        if let Some(live) = &self.live {
            live.send_modify(|live| live.input_changes += 1);
        }
    }
}

fn cancelled() -> ErrorData {
    ErrorData::internal_error("The request was cancelled", None)
}

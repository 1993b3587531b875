//! Requests to the client within a session, up to 2025-11-25: the server sends them while a call runs.

use std::future::{Future, ready};
use std::pin::{Pin, pin};

use rmcp::{
    Peer, RoleServer, ServiceError,
    model::{ClientResult, CustomNotification, CustomRequest, ServerNotification, ServerRequest},
    service::{PeerRequestOptions, RequestHandle},
};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep;

use super::super::progress::related_task_meta;
use super::peer::ClientPeer;
use super::roots::KnownRoots;
use super::{InputTimeouts, wire};
use crate::operations::interaction::{
    ClientCapabilities, ClientInteraction, InputError, InputFuture, InputRequest, InputResponse,
};

/// The error code with which clients report that their user declined.
const USER_DECLINED: i32 = -1;

/// The client of a call in a session.
pub(super) struct SessionClient {
    capabilities: ClientCapabilities,
    roots: KnownRoots,
    messages: mpsc::UnboundedSender<OutgoingMessage>,
}

/// A message to the client.
enum OutgoingMessage {
    /// A request, and the sender for its response.
    Request(
        InputRequest,
        oneshot::Sender<Result<InputResponse, InputError>>,
    ),
    /// The purpose of a page is fulfilled.
    UrlCompleted(String),
}

/// Sends the messages of one call to its client. It runs inside the request, so that a transport with several streams
/// knows to which of them a message belongs.
pub(in super::super) struct SessionMessenger {
    messages: mpsc::UnboundedReceiver<OutgoingMessage>,
    peer: ClientPeer,
    timeouts: InputTimeouts,
}

/// Creates the client of one call and its messenger.
pub(super) fn open(
    capabilities: ClientCapabilities,
    roots: KnownRoots,
    peer: ClientPeer,
    timeouts: InputTimeouts,
) -> (SessionClient, SessionMessenger) {
    let (sender, messages) = mpsc::unbounded_channel();
    let client = SessionClient {
        capabilities,
        roots,
        messages: sender,
    };
    let messenger = SessionMessenger {
        messages,
        peer,
        timeouts,
    };
    (client, messenger)
}

impl ClientInteraction for SessionClient {
    fn capabilities(&self) -> ClientCapabilities {
        self.capabilities
    }

    fn request(&self, request: InputRequest) -> InputFuture {
        let is_roots = request == InputRequest::Roots;
        if let Some(roots) = self.roots.get().filter(|_| is_roots) {
            return Box::pin(ready(Ok(InputResponse::Roots(roots))));
        }
        let (sender, receiver) = oneshot::channel();
        let sent = self
            .messages
            .send(OutgoingMessage::Request(request, sender));
        let (roots, generation) = (self.roots.clone(), self.roots.generation());
        Box::pin(async move {
            let ended = || InputError::Failed("the call has ended".to_owned());
            sent.map_err(|_| ended())?;
            let response = receiver.await.map_err(|_| ended())?;
            if let Ok(InputResponse::Roots(found)) = &response {
                roots.put(generation, found);
            }
            response
        })
    }

    fn url_completed(&self, id: &str) {
        // Sending fails if the call has ended.
        let _ = self
            .messages
            .send(OutgoingMessage::UrlCompleted(id.to_owned()));
    }
}

impl SessionMessenger {
    /// Sends messages until the call is done.
    pub(super) async fn run<T>(mut self, call: impl Future<Output = T>) -> T {
        let mut call = pin!(call);
        loop {
            tokio::select! {
                biased;
                Some(message) = self.messages.recv() => match message {
                    OutgoingMessage::UrlCompleted(id) => notify_url_completed(&self.peer, id).await,
                    OutgoingMessage::Request(request, sender) => {
                        if let Some(outcome) = self.request(request, sender, call.as_mut()).await {
                            return outcome;
                        }
                    }
                },
                outcome = &mut call => return outcome,
            }
        }
    }

    /// Sends one request and waits for its response. Withdraws it if the call ends meanwhile.
    async fn request<T>(
        &self,
        request: InputRequest,
        sender: oneshot::Sender<Result<InputResponse, InputError>>,
        mut call: Pin<&mut impl Future<Output = T>>,
    ) -> Option<T> {
        let timeout = self.timeouts.for_request(&request);
        let peer = tokio::select! {
            biased;
            peer = self.peer.when_ready() => peer,
            () = sleep(timeout) => {
                let _ = sender.send(Err(InputError::TimedOut));
                return None;
            }
            outcome = call.as_mut() => return Some(outcome),
        };
        let mut handle = match send(peer, &request, None).await {
            Ok(handle) => handle,
            Err(error) => {
                let _ = sender.send(Err(input_error(&error)));
                return None;
            }
        };
        let (response, outcome) = tokio::select! {
            biased;
            result = &mut handle.rx => {
                let result = result.unwrap_or(Err(ServiceError::TransportClosed));
                let result = result.map_err(|error| input_error(&error));
                let response =
                    result.and_then(|result| wire::parse_response(&request, &to_value(result)));
                (response, None)
            }
            () = sleep(timeout) => {
                withdraw(handle, "no response in time").await;
                (Err(InputError::TimedOut), None)
            }
            outcome = call => {
                withdraw(handle, "the call has ended").await;
                (Err(InputError::Cancelled), Some(outcome))
            }
        };
        let _ = sender.send(response);
        outcome
    }
}

/// The outcome of an input request of a task.
pub(in super::super) enum TaskInputOutcome {
    /// The client responded, or will not.
    Answered(Result<Value, InputError>),
    /// The request was withdrawn.
    Withdrawn,
    /// The connection is closed; another connection may receive the request.
    Disconnected,
}

/// Sends an input request of a task, within a request that waits for the result of the task. Withdraws it when
/// `obsolete` completes.
pub(in super::super) async fn request_for_task(
    peer: &ClientPeer,
    request: &InputRequest,
    task: &str,
    timeouts: InputTimeouts,
    obsolete: impl Future<Output = ()>,
) -> TaskInputOutcome {
    let timeout = timeouts.for_request(request);
    let mut obsolete = pin!(obsolete);
    let peer = tokio::select! {
        biased;
        peer = peer.when_ready() => peer,
        () = &mut obsolete => return TaskInputOutcome::Withdrawn,
        () = sleep(timeout) => return TaskInputOutcome::Answered(Err(InputError::TimedOut)),
    };
    let handle = send(peer, request, Some(task)).await;
    let mut handle = match handle {
        Ok(handle) => handle,
        Err(error) => return outcome(Err(error)),
    };
    tokio::select! {
        biased;
        result = &mut handle.rx => outcome(result.unwrap_or(Err(ServiceError::TransportClosed))),
        () = &mut obsolete => {
            withdraw(handle, "the response is no longer needed").await;
            TaskInputOutcome::Withdrawn
        }
        () = sleep(timeout) => {
            withdraw(handle, "no response in time").await;
            TaskInputOutcome::Answered(Err(InputError::TimedOut))
        }
    }
}

fn outcome(result: Result<ClientResult, ServiceError>) -> TaskInputOutcome {
    match result {
        Ok(result) => TaskInputOutcome::Answered(Ok(to_value(result))),
        Err(error @ ServiceError::McpError(_)) => {
            TaskInputOutcome::Answered(Err(input_error(&error)))
        }
        Err(_) => TaskInputOutcome::Disconnected,
    }
}

async fn send(
    peer: &Peer<RoleServer>,
    request: &InputRequest,
    task: Option<&str>,
) -> Result<RequestHandle<RoleServer>, ServiceError> {
    let (method, mut params) = wire::method_and_params(request);
    if let Some(task) = task {
        let params = params.get_or_insert_with(|| json!({}));
        if let Value::Object(params) = params {
            params.insert("_meta".to_owned(), Value::Object(related_task_meta(task)));
        }
    }
    tracing::debug!(method, "sending a request to the client");
    let request = ServerRequest::CustomRequest(CustomRequest::new(method, params));
    let options = PeerRequestOptions::no_options();
    peer.send_cancellable_request(request, options).await
}

/// Notifies a client of 2025-11-25 that the purpose of a page is fulfilled.
pub(in super::super) async fn notify_url_completed(peer: &ClientPeer, id: String) {
    let Some(peer) = peer.if_ready() else {
        return;
    };
    let params = json!({"elicitationId": id});
    let notification = CustomNotification::new("notifications/elicitation/complete", Some(params));
    // A closed connection is not an error here.
    let _ = peer
        .send_notification(ServerNotification::CustomNotification(notification))
        .await;
}

/// Cancels a request to the client.
async fn withdraw(handle: RequestHandle<RoleServer>, reason: &str) {
    // A closed connection is not an error here.
    let _ = handle.cancel(Some(reason.to_owned())).await;
}

fn to_value(result: ClientResult) -> Value {
    serde_json::to_value(result).unwrap_or_default()
}

/// Converts an error of the client. Its message is dropped, because it is untrusted text.
fn input_error(error: &ServiceError) -> InputError {
    match error {
        ServiceError::McpError(error) if error.code.0 == USER_DECLINED => InputError::Declined,
        ServiceError::McpError(error) => InputError::Failed(format!("error {}", error.code.0)),
        _ => InputError::Failed("the connection is closed".to_owned()),
    }
}

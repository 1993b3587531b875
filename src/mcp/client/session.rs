//! Up to 2025-11-25 a server asks by requests of its own, in the middle of a call.

use std::future::{Future, ready};
use std::pin::{Pin, pin};
use std::time::Duration;

use rmcp::{
    Peer, RoleServer, ServiceError,
    model::{ClientResult, CustomNotification, CustomRequest, ServerNotification, ServerRequest},
    service::{PeerRequestOptions, RequestHandle},
};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep;

use super::super::progress::related;
use super::roots::KnownRoots;
use super::{Patience, wire};
use crate::operations::client::{
    ClientCapabilities, ClientInteraction, NoReply, Question, Reply, ReplyFuture,
};

/// The code with which clients tell that their user said no.
const REJECTED: i32 = -1;

/// The client's end of a session, as a call sees it.
pub(super) struct Session {
    capabilities: ClientCapabilities,
    roots: KnownRoots,
    errands: mpsc::UnboundedSender<Errand>,
}

/// What is to be carried to the client.
enum Errand {
    /// A question, and where its answer goes.
    Ask(Question, oneshot::Sender<Result<Reply, NoReply>>),
    /// What a page was for is done.
    Visited(String),
}

/// Carries the questions of one call to its client. It works inside the request, so that a transport
/// with several streams knows to which of them a question belongs.
pub(in super::super) struct Messenger {
    errands: mpsc::UnboundedReceiver<Errand>,
    peer: Peer<RoleServer>,
    patience: Patience,
}

/// The two ends for one call.
pub(super) fn open(
    capabilities: ClientCapabilities,
    roots: KnownRoots,
    peer: Peer<RoleServer>,
    patience: Patience,
) -> (Session, Messenger) {
    let (sender, errands) = mpsc::unbounded_channel();
    let session = Session {
        capabilities,
        roots,
        errands: sender,
    };
    let messenger = Messenger {
        errands,
        peer,
        patience,
    };
    (session, messenger)
}

impl ClientInteraction for Session {
    fn capabilities(&self) -> ClientCapabilities {
        self.capabilities
    }

    fn ask(&self, question: Question) -> ReplyFuture {
        let is_roots = question == Question::Roots;
        if let Some(roots) = self.roots.known().filter(|_| is_roots) {
            return Box::pin(ready(Ok(Reply::Roots(roots))));
        }
        let (reply, answered) = oneshot::channel();
        let sent = self.errands.send(Errand::Ask(question, reply));
        let (roots, asked) = (self.roots.clone(), self.roots.moment());
        Box::pin(async move {
            let over = || NoReply::Failed("the call has ended".to_owned());
            sent.map_err(|_| over())?;
            let reply = answered.await.map_err(|_| over())?;
            if let Ok(Reply::Roots(found)) = &reply {
                roots.learn(asked, found);
            }
            reply
        })
    }

    fn visited(&self, id: &str) {
        // A call that has ended tells nobody.
        let _ = self.errands.send(Errand::Visited(id.to_owned()));
    }
}

impl Messenger {
    /// Carries errands until the call is done.
    pub(super) async fn until<T>(mut self, call: impl Future<Output = T>) -> T {
        let mut call = pin!(call);
        loop {
            tokio::select! {
                biased;
                Some(errand) = self.errands.recv() => match errand {
                    Errand::Visited(id) => tell_visited(&self.peer, id).await,
                    Errand::Ask(question, reply) => {
                        if let Some(outcome) = self.carry(question, reply, call.as_mut()).await {
                            return outcome;
                        }
                    }
                },
                outcome = &mut call => return outcome,
            }
        }
    }

    /// Asks one question. A call that ends meanwhile takes it back.
    async fn carry<T>(
        &self,
        question: Question,
        reply: oneshot::Sender<Result<Reply, NoReply>>,
        call: Pin<&mut impl Future<Output = T>>,
    ) -> Option<T> {
        let mut handle = match send(&self.peer, &question, None).await {
            Ok(handle) => handle,
            Err(error) => {
                let _ = reply.send(Err(refused(&error)));
                return None;
            }
        };
        let (answer, outcome) = tokio::select! {
            biased;
            answer = &mut handle.rx => {
                let answer = answer.unwrap_or(Err(ServiceError::TransportClosed));
                let answer = answer.map_err(|error| refused(&error));
                let answer = answer.and_then(|answer| wire::reply(&question, &value(answer)));
                (answer, None)
            }
            () = sleep(self.patience.with(&question)) => {
                take_back(handle, "nobody answered in time").await;
                (Err(NoReply::TimedOut), None)
            }
            outcome = call => {
                take_back(handle, "the call has ended").await;
                (Err(NoReply::Cancelled), Some(outcome))
            }
        };
        let _ = reply.send(answer);
        outcome
    }
}

/// What became of a question that a task asks.
pub(in super::super) enum Carried {
    /// It was answered, or will not be.
    Answered(Result<Value, NoReply>),
    /// It was taken back.
    Moot,
    /// The client is not there any more; another connection may be asked.
    Gone,
}

/// Asks one question of a task, in the middle of a request that waits for its result, until that does
/// not matter any more.
pub(in super::super) async fn carry(
    peer: &Peer<RoleServer>,
    question: &Question,
    task: &str,
    patience: Patience,
    moot: impl Future<Output = ()>,
) -> Carried {
    let handle = send(peer, question, Some(task)).await;
    let mut handle = match handle {
        Ok(handle) => handle,
        Err(error) => return told(Err(error)),
    };
    tokio::select! {
        biased;
        answer = &mut handle.rx => told(answer.unwrap_or(Err(ServiceError::TransportClosed))),
        () = moot => {
            take_back(handle, "the answer does not matter any more").await;
            Carried::Moot
        }
        () = sleep(patience.with(question)) => {
            take_back(handle, "nobody answered in time").await;
            Carried::Answered(Err(NoReply::TimedOut))
        }
    }
}

fn told(answer: Result<ClientResult, ServiceError>) -> Carried {
    match answer {
        Ok(answer) => Carried::Answered(Ok(value(answer))),
        Err(error @ ServiceError::McpError(_)) => Carried::Answered(Err(refused(&error))),
        Err(_) => Carried::Gone,
    }
}

async fn send(
    peer: &Peer<RoleServer>,
    question: &Question,
    task: Option<&str>,
) -> Result<RequestHandle<RoleServer>, ServiceError> {
    let (method, mut params) = wire::request(question);
    if let Some(task) = task {
        let params = params.get_or_insert_with(|| json!({}));
        if let Value::Object(params) = params {
            params.insert("_meta".to_owned(), Value::Object(related(task)));
        }
    }
    tracing::debug!(question = method, "asking the client");
    let request = ServerRequest::CustomRequest(CustomRequest::new(method, params));
    let options = PeerRequestOptions::no_options();
    peer.send_cancellable_request(request, options).await
}

/// Tells a client of 2025-11-25 that what a page was for is done.
pub(in super::super) async fn tell_visited(peer: &Peer<RoleServer>, id: String) {
    let params = json!({"elicitationId": id});
    let told = CustomNotification::new("notifications/elicitation/complete", Some(params));
    // A client that went away needs not be told.
    let _ = peer
        .send_notification(ServerNotification::CustomNotification(told))
        .await;
}

/// Tells the client that an answer is not wanted any more.
async fn take_back(handle: RequestHandle<RoleServer>, reason: &str) {
    // A client that went away needs not be told.
    let _ = handle.cancel(Some(reason.to_owned())).await;
}

fn value(answer: ClientResult) -> Value {
    serde_json::to_value(answer).unwrap_or_default()
}

/// Why the client did not answer. Its own words are not repeated: they may be anything.
fn refused(error: &ServiceError) -> NoReply {
    match error {
        ServiceError::McpError(error) if error.code.0 == REJECTED => NoReply::Declined,
        ServiceError::McpError(error) => NoReply::Failed(format!("error {}", error.code.0)),
        _ => NoReply::Failed("the connection is closed".to_owned()),
    }
}

impl Patience {
    /// How long an answer to this question may take.
    fn with(&self, question: &Question) -> Duration {
        match question {
            Question::Sample(_) => self.model,
            Question::Form(_) | Question::Visit(_) => self.person,
            Question::Roots => self.client,
        }
    }
}

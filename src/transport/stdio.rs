//! MCP over standard input and output: one JSON message a line.

use std::{
    collections::VecDeque,
    future::{self, Future},
    io,
    sync::Arc,
};

use rmcp::{
    RoleServer,
    model::{
        CancelledNotification, CancelledNotificationParam, ClientJsonRpcMessage,
        ClientNotification, ClientRequest, ErrorCode, ErrorData, GetExtensions, JsonRpcMessage,
        RequestId, ServerJsonRpcMessage, ServerResult,
    },
    transport::Transport,
};
use serde_json::Value;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    task::yield_now,
};

use super::{
    backlog::Backlog,
    handshake::Handshake,
    ledger::{Answer, BatchNumber, Ledger, refusal},
    lines::{Line, Lines},
    message::{self, Incoming},
    output::{Output, json},
    shims, subscriptions,
};

pub(crate) use super::output::Written;
use crate::mcp::request::ClientRequestId;

/// The longest line that is read: 16 MiB.
pub(crate) const LONGEST_LINE: usize = 16 * 1024 * 1024;

/// The most messages in one batch; each may cost an answer many times its size.
pub(crate) const LARGEST_BATCH: usize = 1000;

/// From so many unanswered requests on, answering comes before reading.
const BUSY: usize = 256;

/// A connection over a pair of byte streams.
///
/// It answers by itself what never reaches the handler (broken JSON, messages that are none, requests
/// out of turn), and none of that ends the connection. It ends with its input, or when its output is
/// closed.
pub(crate) struct StdioTransport<R> {
    lines: Lines<R>,
    /// Taken when the connection is closed, which lets the writing task finish.
    output: Option<Output>,
    ledger: Ledger,
    handshake: Handshake,
    /// Messages that were read and not yet handed on.
    ready: VecDeque<ClientJsonRpcMessage>,
}

impl<R: AsyncRead + Unpin> StdioTransport<R> {
    /// Connects the streams, and keeps `backlog` up to date. The second value ends when all is written or
    /// nothing more can be.
    pub(crate) fn new<W>(input: R, output: W, backlog: Arc<Backlog>) -> (Self, Written)
    where
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let (output, written) = Output::start(output, Arc::clone(&backlog));
        let transport = Self {
            lines: Lines::new(input, LONGEST_LINE),
            output: Some(output),
            ledger: Ledger::new(backlog),
            handshake: Handshake::default(),
            ready: VecDeque::new(),
        };
        (transport, written)
    }

    /// Reads until a message is ready; an error means that the output is closed.
    async fn read(&mut self) -> io::Result<Option<ClientJsonRpcMessage>> {
        loop {
            if let Some(message) = self.ready.pop_front() {
                return Ok(Some(message));
            }
            let Some(output) = &self.output else {
                return Ok(None);
            };
            if self.handshake.is_asked() {
                // The service drops this future and asks anew after each answer.
                output.closed().await;
                return Ok(None);
            }
            if self.ledger.unanswered() >= BUSY {
                // A flood of requests would otherwise be read to its end before any is answered.
                yield_now().await;
            }
            let line = tokio::select! {
                biased;
                () = output.closed() => return Ok(None),
                line = self.lines.next() => line,
            };
            match line {
                Line::Text(text) => self.take_line(&text)?,
                Line::TooLong => self.refuse(&Value::Null, too_long())?,
                // A subscription would keep the service waiting, though nobody is left to be told.
                Line::End if self.end_subscriptions() => {}
                Line::End => return Ok(None),
            }
        }
    }

    fn take_line(&mut self, text: &[u8]) -> io::Result<()> {
        match message::parse(text) {
            None => Ok(()),
            Some(Err(error)) => self.refuse(&Value::Null, error),
            Some(Ok(Value::Array(members))) => self.take_batch(members),
            Some(Ok(value)) => self.take(message::read(value), None),
        }
    }

    fn take_batch(&mut self, members: Vec<Value>) -> io::Result<()> {
        if let Err(error) = self.admit_batch(&members) {
            return self.refuse(&Value::Null, error);
        }
        let batch = self.ledger.open_batch();
        for member in members {
            self.take(message::read(member), Some(batch))?;
        }
        let answer = self.ledger.seal(batch);
        self.put(answer)
    }

    fn admit_batch(&self, members: &[Value]) -> Result<(), ErrorData> {
        let initialize = Some("initialize");
        let why = if members.is_empty() {
            "a batch must not be empty"
        } else if !self.handshake.knows_batches() {
            "batches belong to protocol 2025-03-26 alone, after initialize"
        } else if members.len() > LARGEST_BATCH {
            "a batch has at most 1000 messages"
        } else if members
            .iter()
            .any(|member| member.get("method").and_then(Value::as_str) == initialize)
        {
            "initialize must not be in a batch"
        } else {
            return Ok(());
        };
        Err(invalid(why))
    }

    /// Hands a message on, or answers it.
    fn take(&mut self, incoming: Incoming, batch: Option<BatchNumber>) -> io::Result<()> {
        match incoming {
            Incoming::Request { id, request } => self.take_request(id, *request, batch),
            Incoming::Cancelled { id, reason } => self.cancel(&id, reason.as_deref()),
            Incoming::Notification(notification) => {
                let message = JsonRpcMessage::notification(*notification);
                self.ready.push_back(message);
                Ok(())
            }
            Incoming::Reply(reply) => {
                self.ready.push_back(*reply);
                Ok(())
            }
            Incoming::Refused { id, error } => self.refuse_member(&id, error, batch),
            Incoming::Ignored => Ok(()),
        }
    }

    fn take_request(
        &mut self,
        id: Value,
        mut request: ClientRequest,
        batch: Option<BatchNumber>,
    ) -> io::Result<()> {
        if let Err(error) = self.handshake.admit(&request) {
            return self.refuse_member(&id, error, batch);
        }
        let number = self.ledger.enter(id.clone(), batch);
        request.extensions_mut().insert(ClientRequestId(id));
        match request {
            ClientRequest::InitializeRequest(_) => self.handshake.ask(number.clone()),
            ClientRequest::SubscriptionsListenRequest(_) => self.ledger.subscribe(&number),
            _ => {}
        }
        let message = JsonRpcMessage::request(request, number);
        self.ready.push_back(message);
        Ok(())
    }

    /// Tells the service to stop the requests with this id. No answer of theirs will leave, so a
    /// batch must not wait for them.
    fn cancel(&mut self, id: &Value, reason: Option<&str>) -> io::Result<()> {
        let (numbers, complete) = self.ledger.cancel(id);
        for number in numbers {
            self.stop(number, reason);
        }
        complete
            .into_iter()
            .try_for_each(|text| self.put(Some(text)))
    }

    /// Tells the service to stop a request.
    fn stop(&mut self, number: RequestId, reason: Option<&str>) {
        let reason = reason.map(str::to_owned);
        let params = CancelledNotificationParam::new(Some(number), reason);
        let notification = CancelledNotification::new(params);
        let notification = ClientNotification::CancelledNotification(notification);
        self.ready
            .push_back(JsonRpcMessage::notification(notification));
    }

    /// Stops what stays open until someone stops it; says whether there was any.
    fn end_subscriptions(&mut self) -> bool {
        for number in self.ledger.end_subscriptions() {
            self.stop(number, None);
        }
        !self.ready.is_empty()
    }

    fn refuse_member(
        &mut self,
        id: &Value,
        error: ErrorData,
        batch: Option<BatchNumber>,
    ) -> io::Result<()> {
        match batch {
            Some(batch) => self.ledger.refuse_in_batch(batch, id, error),
            None => self.refuse(id, error),
        }
    }

    fn refuse(&self, id: &Value, error: ErrorData) -> io::Result<()> {
        self.put(Some(refusal(id, error)?))
    }

    fn put(&self, text: Option<Vec<u8>>) -> io::Result<()> {
        match (text, &self.output) {
            (None, _) => Ok(()),
            (Some(text), Some(output)) => output.put(text),
            (Some(_), None) => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    fn write(&mut self, mut message: ServerJsonRpcMessage) -> io::Result<()> {
        if !subscriptions::restore_id(&mut message, &self.ledger) {
            return Ok(());
        }
        let text = match message {
            JsonRpcMessage::Response(response) => {
                self.answer(&response.id, Answer::Result(response.result))?
            }
            JsonRpcMessage::Error(error) => match error.id {
                Some(id) => self.answer(&id, Answer::Error(in_words(error.error)))?,
                None => Some(refusal(&Value::Null, error.error)?),
            },
            message => Some(json(&message)?),
        };
        self.put(text)
    }

    fn answer(
        &mut self,
        request: &RequestId,
        answer: Answer<ServerResult>,
    ) -> io::Result<Option<Vec<u8>>> {
        let version = match &answer {
            Answer::Result(ServerResult::InitializeResult(result)) => {
                Some(&result.protocol_version)
            }
            _ => None,
        };
        self.handshake.answered(request, version);
        let answer = match answer {
            Answer::Result(ServerResult::InitializeResult(result)) => {
                Answer::Result(shims::initialized(result))
            }
            other => other,
        };
        self.ledger.answer(request, &answer)
    }
}

fn invalid(why: &str) -> ErrorData {
    ErrorData::invalid_request(format!("Invalid request: {why}"), None)
}

/// rmcp says nothing but the name of a method that the version does not know.
fn in_words(mut error: ErrorData) -> ErrorData {
    const WORDS: &str = "Method not found";
    if error.code == ErrorCode::METHOD_NOT_FOUND && !error.message.starts_with(WORDS) {
        error.message = format!("{WORDS}: {}", error.message).into();
    }
    error
}

fn too_long() -> ErrorData {
    invalid("the line is longer than 16 MiB")
}

impl<R: AsyncRead + Unpin + Send> Transport<RoleServer> for StdioTransport<R> {
    type Error = io::Error;

    /// Queues the message at once, not when the future is polled, so that messages leave in the order
    /// in which the service sends them.
    fn send(
        &mut self,
        item: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        future::ready(self.write(item))
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        self.read().await.ok().flatten()
    }

    async fn close(&mut self) -> io::Result<()> {
        self.output = None;
        Ok(())
    }
}

#[cfg(test)]
#[path = "stdio_tests.rs"]
mod tests;

//! MCP over standard input and output: one JSON message per line.

use std::{
    collections::VecDeque,
    future::{self, Future},
    io,
    sync::Arc,
    time::Duration,
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
    time::{Instant, sleep_until},
};

use super::{
    backlog::Backlog,
    compat,
    handshake::Handshake,
    line_reader::{Line, LineReader},
    line_writer::{LineWriter, to_json},
    message::{self, IncomingMessage},
    pending_requests::{BatchId, PendingRequests, ResponsePayload, error_response},
    subscriptions,
};

pub(crate) use super::line_writer::WriterTask;
use crate::mcp::request::ClientRequestId;

/// The maximum length of a line: 16 MiB.
pub(crate) const MAX_LINE_BYTES: usize = 16 * 1024 * 1024;

/// The maximum number of messages in a batch. The response to each may be much larger than the message.
pub(crate) const MAX_BATCH_SIZE: usize = 1000;

/// With this many pending requests, responding takes precedence over reading.
const BUSY_THRESHOLD: usize = 256;

/// How long the connection stays open after its subscriptions were cancelled. rmcp reports that an
/// acknowledgement was sent only while the connection is open; otherwise the subscription would be awaited for
/// seconds.
const SUBSCRIPTION_GRACE: Duration = Duration::from_millis(100);

/// A transport over a pair of byte streams.
///
/// It responds itself to messages that never reach the handler: broken JSON, invalid messages, requests
/// before the handshake. None of them ends the connection. The connection ends when the input ends or the
/// output is closed.
pub(crate) struct StdioTransport<R> {
    lines: LineReader<R>,
    /// `None` once the connection is closed, which lets the writer task finish.
    output: Option<LineWriter>,
    pending: PendingRequests,
    handshake: Handshake,
    /// Messages that were read but not yet returned.
    ready: VecDeque<ClientJsonRpcMessage>,
    /// When the connection may end after its subscriptions were cancelled.
    end_at: Option<Instant>,
}

impl<R: AsyncRead + Unpin> StdioTransport<R> {
    /// Connects the streams and updates `backlog`. The returned task ends when everything is written or
    /// writing fails.
    pub(crate) fn new<W>(input: R, output: W, backlog: Arc<Backlog>) -> (Self, WriterTask)
    where
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let (output, writer) = LineWriter::start(output, Arc::clone(&backlog));
        let transport = Self {
            lines: LineReader::new(input, MAX_LINE_BYTES),
            output: Some(output),
            pending: PendingRequests::new(backlog),
            handshake: Handshake::default(),
            ready: VecDeque::new(),
            end_at: None,
        };
        (transport, writer)
    }

    /// Reads until a message is available. An error means that the output is closed.
    async fn next_message(&mut self) -> io::Result<Option<ClientJsonRpcMessage>> {
        loop {
            if let Some(message) = self.ready.pop_front() {
                return Ok(Some(message));
            }
            let Some(output) = &self.output else {
                return Ok(None);
            };
            if self.handshake.is_pending() {
                // The service drops this future and calls again after each response.
                output.closed().await;
                return Ok(None);
            }
            if self.pending.unanswered_count() >= BUSY_THRESHOLD {
                // Otherwise a flood of requests would be read completely before any response.
                yield_now().await;
            }
            let line = tokio::select! {
                biased;
                () = output.closed() => return Ok(None),
                line = self.lines.next() => line,
            };
            match line {
                Line::Text(text) => self.handle_line(&text)?,
                Line::TooLong => self.reject(&Value::Null, too_long())?,
                // An open subscription would keep the service running with no client left to notify.
                Line::End if self.stop_subscriptions() => {}
                Line::End => {
                    if let Some(end_at) = self.end_at {
                        sleep_until(end_at).await;
                    }
                    return Ok(None);
                }
            }
        }
    }

    fn handle_line(&mut self, text: &[u8]) -> io::Result<()> {
        match message::parse_json(text) {
            None => Ok(()),
            Some(Err(error)) => self.reject(&Value::Null, error),
            Some(Ok(Value::Array(members))) => self.handle_batch(members),
            Some(Ok(value)) => self.handle_message(message::decode(value), None),
        }
    }

    fn handle_batch(&mut self, members: Vec<Value>) -> io::Result<()> {
        if let Err(error) = self.admit_batch(&members) {
            return self.reject(&Value::Null, error);
        }
        let batch = self.pending.open_batch();
        for member in members {
            self.handle_message(message::decode(member), Some(batch))?;
        }
        let payload = self.pending.seal_batch(batch);
        self.write_line(payload)
    }

    fn admit_batch(&self, members: &[Value]) -> Result<(), ErrorData> {
        let initialize = Some("initialize");
        let reason = if members.is_empty() {
            "a batch must not be empty"
        } else if !self.handshake.allows_batches() {
            "batches are only supported by protocol 2025-03-26, after initialize"
        } else if members.len() > MAX_BATCH_SIZE {
            "a batch has at most 1000 messages"
        } else if members
            .iter()
            .any(|member| member.get("method").and_then(Value::as_str) == initialize)
        {
            "initialize must not be in a batch"
        } else {
            return Ok(());
        };
        Err(invalid(reason))
    }

    /// Passes a message on, or responds to it.
    fn handle_message(
        &mut self,
        incoming: IncomingMessage,
        batch: Option<BatchId>,
    ) -> io::Result<()> {
        match incoming {
            IncomingMessage::Request { id, request } => self.handle_request(id, *request, batch),
            IncomingMessage::Cancelled { id, reason } => self.cancel(&id, reason.as_deref()),
            IncomingMessage::Notification(notification) => {
                let message = JsonRpcMessage::notification(*notification);
                self.ready.push_back(message);
                Ok(())
            }
            IncomingMessage::Response(response) => {
                self.ready.push_back(*response);
                Ok(())
            }
            IncomingMessage::Invalid { id, error } => self.reject_message(&id, error, batch),
            IncomingMessage::Ignored => Ok(()),
        }
    }

    fn handle_request(
        &mut self,
        id: Value,
        mut request: ClientRequest,
        batch: Option<BatchId>,
    ) -> io::Result<()> {
        if let Err(error) = self.handshake.admit(&request) {
            return self.reject_message(&id, error, batch);
        }
        let internal_id = self.pending.register(id.clone(), batch);
        request.extensions_mut().insert(ClientRequestId(id));
        match request {
            ClientRequest::InitializeRequest(_) => self.handshake.start(internal_id.clone()),
            ClientRequest::SubscriptionsListenRequest(_) => self.pending.subscribe(&internal_id),
            _ => {}
        }
        let message = JsonRpcMessage::request(request, internal_id);
        self.ready.push_back(message);
        Ok(())
    }

    /// Cancels the requests with this id. They get no response, so a batch must not wait for them.
    fn cancel(&mut self, id: &Value, reason: Option<&str>) -> io::Result<()> {
        let (internal_ids, complete) = self.pending.cancel(id);
        for internal_id in internal_ids {
            self.cancel_request(internal_id, reason);
        }
        complete
            .into_iter()
            .try_for_each(|text| self.write_line(Some(text)))
    }

    /// Tells the service to cancel a request.
    fn cancel_request(&mut self, internal_id: RequestId, reason: Option<&str>) {
        let reason = reason.map(str::to_owned);
        let params = CancelledNotificationParam::new(Some(internal_id), reason);
        let notification = CancelledNotification::new(params);
        let notification = ClientNotification::CancelledNotification(notification);
        self.ready
            .push_back(JsonRpcMessage::notification(notification));
    }

    /// Cancels all subscriptions. Returns whether there were any.
    fn stop_subscriptions(&mut self) -> bool {
        for internal_id in self.pending.remove_subscriptions() {
            self.cancel_request(internal_id, None);
        }
        let stopped = !self.ready.is_empty();
        if stopped {
            self.end_at = Some(Instant::now() + SUBSCRIPTION_GRACE);
        }
        stopped
    }

    fn reject_message(
        &mut self,
        id: &Value,
        error: ErrorData,
        batch: Option<BatchId>,
    ) -> io::Result<()> {
        match batch {
            Some(batch) => self.pending.add_batch_error(batch, id, error),
            None => self.reject(id, error),
        }
    }

    fn reject(&self, id: &Value, error: ErrorData) -> io::Result<()> {
        self.write_line(Some(error_response(id, error)?))
    }

    fn write_line(&self, text: Option<Vec<u8>>) -> io::Result<()> {
        match (text, &self.output) {
            (None, _) => Ok(()),
            (Some(text), Some(output)) => output.send(text),
            (Some(_), None) => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    fn write(&mut self, mut message: ServerJsonRpcMessage) -> io::Result<()> {
        if !subscriptions::restore_id(&mut message, &self.pending) {
            return Ok(());
        }
        let text = match message {
            JsonRpcMessage::Response(response) => {
                self.respond(&response.id, ResponsePayload::Result(response.result))?
            }
            JsonRpcMessage::Error(error) => match error.id {
                Some(id) => self.respond(
                    &id,
                    ResponsePayload::Error(with_standard_prefix(error.error)),
                )?,
                None => Some(error_response(&Value::Null, error.error)?),
            },
            message => Some(to_json(&message)?),
        };
        self.write_line(text)
    }

    fn respond(
        &mut self,
        request: &RequestId,
        payload: ResponsePayload<ServerResult>,
    ) -> io::Result<Option<Vec<u8>>> {
        let version = match &payload {
            ResponsePayload::Result(ServerResult::InitializeResult(result)) => {
                Some(&result.protocol_version)
            }
            _ => None,
        };
        self.handshake.complete(request, version);
        let payload = match payload {
            ResponsePayload::Result(ServerResult::InitializeResult(result)) => {
                ResponsePayload::Result(compat::initialize_result(result))
            }
            other => other,
        };
        self.pending.complete(request, &payload)
    }
}

fn invalid(reason: &str) -> ErrorData {
    ErrorData::invalid_request(format!("Invalid request: {reason}"), None)
}

/// rmcp reports only the name of an unknown method.
fn with_standard_prefix(mut error: ErrorData) -> ErrorData {
    const PREFIX: &str = "Method not found";
    if error.code == ErrorCode::METHOD_NOT_FOUND && !error.message.starts_with(PREFIX) {
        error.message = format!("{PREFIX}: {}", error.message).into();
    }
    error
}

fn too_long() -> ErrorData {
    invalid("the line exceeds 16 MiB")
}

impl<R: AsyncRead + Unpin + Send> Transport<RoleServer> for StdioTransport<R> {
    type Error = io::Error;

    /// Queues the message immediately, not when the future is polled, so that messages keep the order in
    /// which the service sends them.
    fn send(
        &mut self,
        item: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        future::ready(self.write(item))
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        self.next_message().await.ok().flatten()
    }

    async fn close(&mut self) -> io::Result<()> {
        self.output = None;
        Ok(())
    }
}

#[cfg(test)]
#[path = "stdio_tests.rs"]
mod tests;

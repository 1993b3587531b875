//! Reads an event stream to its end, within limits.

use std::{
    ops::Deref,
    time::{Duration, Instant},
};

use exa_mcp_model::lock;
use http::{
    HeaderMap, HeaderValue, Version,
    header::{CONTENT_LENGTH, CONTENT_TYPE, TRANSFER_ENCODING},
};
use reqwest::Response;
use serde_json::Value;

use super::{
    Assembler, StreamOptions, StreamState,
    events::{Event, EventParser, EventTooLong},
    resumption::{Interrupted, ReceivedEvents},
};
use crate::{
    CallContext, ExaError, ExaErrorKind, RequestAttempt, blocking, response,
    retry::Effect,
    send::{Success, request_id},
    text,
    transport_error::{self, Failure},
};

/// The maximum size of an event, which may contain all results with their texts.
const MAX_EVENT_BYTES: usize = 16 * 1024 * 1024;

/// The maximum number of unreadable events before the stream is abandoned.
const MAX_UNREADABLE: usize = 20;

/// The last event of a stream in chat completion format.
const DONE: &str = "[DONE]";

/// Reads a stream and returns the assembled response as JSON. A failed stream is not retried, because it was
/// paid for; the error contains what was received. If it broke off, the next response read with these options
/// continues it.
pub(crate) async fn read(
    context: &CallContext,
    stream: &StreamOptions,
    mut response: Response,
    attempt: &mut dyn RequestAttempt,
) -> Result<Success, Failure> {
    let status = response.status();
    let request_id = request_id(context, response.headers());
    let mut reader = StreamReader::new(context, stream, attempt);
    match reader.finish(&mut response).await {
        Ok(()) => {
            let mut body = reader.assembler.into_response(reader.unreadable);
            if let (Value::Object(fields), Some(id)) = (&mut body, request_id)
                && stream.has_request_id()
            {
                fields.entry("requestId").or_insert(id.into());
            }
            let headers = response.headers_mut();
            headers.remove(CONTENT_LENGTH);
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            let is_large = blocking::is_large_value(&body);
            let text = blocking::run(is_large, || body.to_string()).await;
            Ok(Success {
                response: response::in_memory(response, text),
                summary: body,
            })
        }
        Err(error) => {
            let is_interrupted = reader.may_continue_after(&error);
            let mut error = reader.complete_error(error);
            error.status = error.status.or(Some(status.as_u16()));
            error.request_id = error.request_id.or(request_id);
            if is_interrupted {
                *lock(&stream.interrupted) = Some(reader.into_interrupted());
            }
            Err(Failure {
                effect: Effect::Final,
                ..Failure::from(error)
            })
        }
    }
}

/// A stream that is being read.
struct StreamReader<'a> {
    context: &'a CallContext,
    stream: &'a StreamOptions,
    assembler: Box<dyn Assembler>,
    events: EventParser,
    received: ReceivedEvents,
    /// When the stream must be complete.
    end: Instant,
    /// The number of bytes that may still be received.
    remaining: usize,
    count: usize,
    unreadable: usize,
    /// Present until the started job has been reported.
    attempt: Option<&'a mut dyn RequestAttempt>,
}

impl<'a> StreamReader<'a> {
    fn new(
        context: &'a CallContext,
        stream: &'a StreamOptions,
        attempt: &'a mut dyn RequestAttempt,
    ) -> Self {
        let config = context.http().config();
        let mut start = lock(&stream.interrupted)
            .take()
            .unwrap_or_else(|| Interrupted {
                assembler: stream.assembler(),
                received: ReceivedEvents::default(),
                end: Instant::now() + config.max_stream_duration,
                remaining: config.max_response_bytes,
                count: 0,
                unreadable: 0,
            });
        start.received.next_response();
        Self {
            context,
            stream,
            assembler: start.assembler,
            events: EventParser::new(MAX_EVENT_BYTES),
            received: start.received,
            end: start.end,
            remaining: start.remaining,
            count: start.count,
            unreadable: start.unreadable,
            attempt: Some(attempt),
        }
    }

    /// Returns the state with which another response continues the stream.
    fn into_interrupted(self) -> Interrupted {
        Interrupted {
            assembler: self.assembler,
            received: self.received,
            end: self.end,
            remaining: self.remaining,
            count: self.count,
            unreadable: self.unreadable,
        }
    }

    /// Returns whether the connection is at fault, so that another one may continue the stream.
    fn may_continue_after(&self, error: &ExaError) -> bool {
        let is_broken = matches!(
            error.kind,
            ExaErrorKind::ConnectionLost | ExaErrorKind::Timeout
        );
        is_broken && Instant::now() < self.end
    }

    async fn finish(&mut self, response: &mut Response) -> Result<(), ExaError> {
        let is_framed = is_framed(response.version(), response.headers());
        loop {
            let Some(chunk) = chunk(self.context, response, self.end).await? else {
                break;
            };
            let limit = self.context.http().config().max_response_bytes;
            self.remaining = self.remaining.checked_sub(chunk.len()).ok_or_else(|| {
                let message = format!("The stream of the Exa API exceeds {limit} bytes.");
                ExaError::new(ExaErrorKind::TooLarge, message)
            })?;
            self.events.feed(&chunk).map_err(event_too_long)?;
            let is_complete = self.take_all();
            self.report_start().await;
            if is_complete? {
                return Ok(());
            }
        }
        self.events.finish();
        let is_complete = self.take_all();
        self.report_start().await;
        if is_complete? || (is_framed && self.assembler.may_end()) {
            return Ok(());
        }
        let message = "The stream of the Exa API ended before the response was complete.";
        Err(ExaError::new(ExaErrorKind::ConnectionLost, message))
    }

    /// Reports the started job once its id is known.
    async fn report_start(&mut self) {
        if let Some(started) = self.assembler.started()
            && let Some(attempt) = self.attempt.take()
        {
            attempt.on_started(&started).await;
        }
    }

    /// Handles all parsed events; returns whether the response is complete.
    fn take_all(&mut self) -> Result<bool, ExaError> {
        while let Some(event) = self.events.take() {
            if self.take(&event)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn take(&mut self, event: &Event) -> Result<bool, ExaError> {
        if self.received.is_repeated(event) {
            return Ok(false);
        }
        let data = event.data.trim();
        if data == DONE {
            return Ok(true);
        }
        if data.is_empty() {
            return Ok(false);
        }
        let Ok(value) = text::parse_json(data.as_bytes()) else {
            self.unreadable += 1;
            return if self.unreadable > MAX_UNREADABLE {
                Err(self.too_many_unreadable(data))
            } else {
                Ok(false)
            };
        };
        self.count += 1;
        self.received.add(event);
        // Numbers and strings are keep-alive messages at most.
        let Value::Object(data) = value else {
            return Ok(false);
        };
        match self.assembler.take_event(event, data) {
            Ok(StreamState::Complete) => Ok(true),
            Ok(StreamState::More(update)) => {
                if let Some(update) = update {
                    (self.stream.listener)(update);
                }
                Ok(false)
            }
            Err(body) => Err(body.into_stream_error(self.context.key())),
        }
    }

    fn too_many_unreadable(&self, data: &str) -> ExaError {
        let shown = text::tidy(Some(self.context.key()), data, text::MAX_EXCERPT);
        let shown = format!("{shown:?}");
        let message = format!(
            "The stream of the Exa API had {} events that are not JSON, the last one {shown}. Try again; if the \
             problem persists, report it to Exa.",
            self.unreadable
        );
        ExaError::new(ExaErrorKind::NotJson, message).with_quote(shown)
    }

    /// Adds what was received so far to an error.
    fn complete_error(&self, mut error: ExaError) -> ExaError {
        if let Some(received) = self.assembler.received() {
            let detail = match error.detail.take() {
                Some(detail) => serde_json::json!({"error": *detail, "received": received}),
                None => serde_json::json!({"received": received}),
            };
            let detail = text::tidy_value(Some(self.context.key()), detail);
            error.detail = Some(Box::new(detail));
        }
        let full_stop = ['.', '!', '?', '…'];
        if !error.message.ends_with(full_stop) {
            error.message.push('.');
        }
        if let Some(job) = self.assembler.continuing_job() {
            // A retry would start the job twice.
            error.kind = ExaErrorKind::Stream;
            let job = text::tidy(Some(self.context.key()), &job, text::MAX_MESSAGE);
            error.message = format!("{} {job}", error.message);
        } else if error.detail.is_some() && self.count > 0 {
            error
                .message
                .push_str(" The part received so far is in `detail`.");
        }
        error
    }
}

/// Reads the next chunk; `None` at the end of the stream.
async fn chunk(
    context: &CallContext,
    response: &mut Response,
    end: Instant,
) -> Result<Option<impl Deref<Target = [u8]> + use<>>, ExaError> {
    let remaining = end.saturating_duration_since(Instant::now());
    let timeout = context.timeout().min(remaining);
    match tokio::time::timeout(timeout, response.chunk()).await {
        Ok(Ok(chunk)) => Ok(chunk),
        Ok(Err(error)) => {
            let error = error.with_url(response.url().clone());
            Err(transport_error::failure(&error, context).error)
        }
        Err(_) if timeout == remaining => Err(too_slow(context)),
        Err(_) => Err(stalled(timeout)),
    }
}

fn too_slow(context: &CallContext) -> ExaError {
    let limit = text::duration(context.http().config().max_stream_duration);
    let message = format!("The stream of the Exa API was not complete after {limit}.");
    ExaError::new(ExaErrorKind::Timeout, message)
}

fn stalled(timeout: Duration) -> ExaError {
    let time = text::duration(timeout);
    let message = format!("The stream of the Exa API stalled: no data for {time}.");
    ExaError::new(ExaErrorKind::Timeout, message)
}

fn event_too_long(_: EventTooLong) -> ExaError {
    let message =
        format!("The stream of the Exa API has an event that exceeds {MAX_EVENT_BYTES} bytes.");
    ExaError::new(ExaErrorKind::TooLarge, message)
}

/// Returns whether the end of the response is explicit. If a response ends with its connection, truncation
/// cannot be detected.
fn is_framed(version: Version, headers: &HeaderMap) -> bool {
    version >= Version::HTTP_2
        || headers.contains_key(TRANSFER_ENCODING)
        || headers.contains_key(CONTENT_LENGTH)
}

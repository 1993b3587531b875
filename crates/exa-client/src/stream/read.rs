//! Reading a stream of events to its end, within bounds.

use std::{
    ops::Deref,
    time::{Duration, Instant},
};

use http::{
    HeaderMap, HeaderValue, Version,
    header::{CONTENT_LENGTH, CONTENT_TYPE, TRANSFER_ENCODING},
};
use reqwest::Response;
use serde_json::Value;

use super::{
    Assembler, StreamOptions, StreamState,
    events::{Event, Events, TooLong},
};
use crate::{
    Attempt, CallContext, ExaError, ExaErrorKind, blocking, response,
    retry::Effect,
    send::{Success, request_id},
    text,
    transport_error::{self, Failure},
};

/// The longest event: one may hold all results with their texts.
const LONGEST_EVENT: usize = 16 * 1024 * 1024;

/// Events that cannot be read before the stream is given up.
const MOST_UNREADABLE: usize = 20;

/// What ends a stream of the kind that chat completions use.
const DONE: &str = "[DONE]";

/// Reads a stream and returns its whole answer as an ordinary JSON response. It is never requested
/// twice: what came until a failure was paid for, and is told with it.
pub(crate) async fn read(
    context: &CallContext,
    stream: &StreamOptions,
    mut response: Response,
    passed: &mut dyn Attempt,
) -> Result<Success, Failure> {
    let status = response.status();
    let request_id = request_id(context, response.headers());
    let mut reading = Reading {
        context,
        stream,
        assembler: stream.assembler(),
        events: Events::new(LONGEST_EVENT),
        count: 0,
        unreadable: 0,
        passed: Some(passed),
    };
    match reading.finish(&mut response).await {
        Ok(()) => {
            let mut answer = reading.assembler.into_response(reading.unreadable);
            if let (Value::Object(fields), Some(id)) = (&mut answer, request_id)
                && stream.has_request_id()
            {
                fields.entry("requestId").or_insert(id.into());
            }
            let headers = response.headers_mut();
            headers.remove(CONTENT_LENGTH);
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            let is_large = blocking::is_large_value(&answer);
            let body = blocking::run(is_large, || answer.to_string()).await;
            Ok(Success {
                response: response::in_memory(response, body),
                summary: answer,
            })
        }
        Err(error) => {
            let mut error = reading.told(error);
            error.status = error.status.or(Some(status.as_u16()));
            error.request_id = error.request_id.or(request_id);
            Err(Failure {
                effect: Effect::Final,
                ..Failure::from(error)
            })
        }
    }
}

/// A stream that is being read.
struct Reading<'a> {
    context: &'a CallContext,
    stream: &'a StreamOptions,
    assembler: Box<dyn Assembler>,
    events: Events,
    count: usize,
    unreadable: usize,
    /// There until it was told what was started.
    passed: Option<&'a mut dyn Attempt>,
}

impl Reading<'_> {
    async fn finish(&mut self, response: &mut Response) -> Result<(), ExaError> {
        let ends_tell = is_framed(response.version(), response.headers());
        let config = self.context.http().config();
        let end = Instant::now() + config.max_stream_duration;
        let mut left = config.max_response_bytes;
        loop {
            let Some(chunk) = chunk(self.context, response, end).await? else {
                break;
            };
            let limit = config.max_response_bytes;
            left = left.checked_sub(chunk.len()).ok_or_else(|| {
                let message = format!("The stream of the Exa API is longer than {limit} bytes.");
                ExaError::new(ExaErrorKind::TooLarge, message)
            })?;
            self.events.feed(&chunk).map_err(too_long)?;
            let taken = self.take_all();
            self.tell_start().await;
            if taken? {
                return Ok(());
            }
        }
        self.events.end();
        let taken = self.take_all();
        self.tell_start().await;
        if taken? || (ends_tell && self.assembler.may_end()) {
            return Ok(());
        }
        let message = "The stream of the Exa API ended before its answer was complete.";
        Err(ExaError::new(ExaErrorKind::ConnectionLost, message))
    }

    /// Tells once what was started, as soon as its name is known.
    async fn tell_start(&mut self) {
        if let Some(started) = self.assembler.started()
            && let Some(passed) = self.passed.take()
        {
            passed.started(&started).await;
        }
    }

    /// Takes the events that are there; says whether the last one was among them.
    fn take_all(&mut self) -> Result<bool, ExaError> {
        while let Some(event) = self.events.take() {
            if self.take(&event)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn take(&mut self, event: &Event) -> Result<bool, ExaError> {
        let data = event.data.trim();
        if data == DONE {
            return Ok(true);
        }
        if data.is_empty() {
            return Ok(false);
        }
        let Ok(value) = text::read_json(data.as_bytes()) else {
            self.unreadable += 1;
            return if self.unreadable > MOST_UNREADABLE {
                Err(self.gibberish(data))
            } else {
                Ok(false)
            };
        };
        self.count += 1;
        // Numbers and texts are signs of life at most.
        let Value::Object(data) = value else {
            return Ok(false);
        };
        match self.assembler.take(&event.name, data) {
            Ok(StreamState::Complete) => Ok(true),
            Ok(StreamState::More(heard)) => {
                if let Some(heard) = heard {
                    (self.stream.listener)(heard);
                }
                Ok(false)
            }
            Err(body) => Err(body.into_stream_error(self.context.key())),
        }
    }

    fn gibberish(&self, data: &str) -> ExaError {
        let shown = text::tidy(Some(self.context.key()), data, text::MAX_EXCERPT);
        let shown = format!("{shown:?}");
        let message = format!(
            "The stream of the Exa API had {} events that are not JSON, the last of them {shown}. Try again; \
             if it persists, report it to Exa.",
            self.unreadable
        );
        ExaError::new(ExaErrorKind::NotJson, message).with_quote(shown)
    }

    /// The error with what had come until it happened.
    fn told(&self, mut error: ExaError) -> ExaError {
        if let Some(so_far) = self.assembler.so_far() {
            let so_far = match error.detail.take() {
                Some(detail) => serde_json::json!({"error": *detail, "received": so_far}),
                None => serde_json::json!({"received": so_far}),
            };
            let so_far = text::tidy_value(Some(self.context.key()), so_far);
            error.detail = Some(Box::new(so_far));
        }
        let full_stop = ['.', '!', '?', '…'];
        if !error.message.ends_with(full_stop) {
            error.message.push('.');
        }
        if let Some(goes_on) = self.assembler.goes_on() {
            // Sending the same again would start the same work twice.
            error.kind = ExaErrorKind::Stream;
            let goes_on = text::tidy(Some(self.context.key()), &goes_on, text::MAX_MESSAGE);
            error.message = format!("{} {goes_on}", error.message);
        } else if error.detail.is_some() && self.count > 0 {
            error
                .message
                .push_str(" What had come until then is told as `detail`.");
        }
        error
    }
}

/// The next bytes; nothing at the end of the answer.
async fn chunk(
    context: &CallContext,
    response: &mut Response,
    end: Instant,
) -> Result<Option<impl Deref<Target = [u8]> + use<>>, ExaError> {
    let left = end.saturating_duration_since(Instant::now());
    let patience = context.timeout().min(left);
    match tokio::time::timeout(patience, response.chunk()).await {
        Ok(Ok(chunk)) => Ok(chunk),
        Ok(Err(error)) => {
            let error = error.with_url(response.url().clone());
            Err(transport_error::failure(&error, context).error)
        }
        Err(_) if patience == left => Err(too_slow(context)),
        Err(_) => Err(silent(patience)),
    }
}

fn too_slow(context: &CallContext) -> ExaError {
    let longest = text::duration(context.http().config().max_stream_duration);
    let message = format!("The stream of the Exa API was not complete after {longest}.");
    ExaError::new(ExaErrorKind::Timeout, message)
}

fn silent(patience: Duration) -> ExaError {
    let time = text::duration(patience);
    let message = format!(
        "The stream of the Exa API fell silent: nothing came for {time}, so it was given up."
    );
    ExaError::new(ExaErrorKind::Timeout, message)
}

fn too_long(_: TooLong) -> ExaError {
    let message = format!(
        "The stream of the Exa API has an event that is longer than {LONGEST_EVENT} bytes."
    );
    ExaError::new(ExaErrorKind::TooLarge, message)
}

/// Says whether the end of an answer shows that the server meant it. Of an answer that just ends with
/// its connection, nobody can tell.
fn is_framed(version: Version, headers: &HeaderMap) -> bool {
    version >= Version::HTTP_2
        || headers.contains_key(TRANSFER_ENCODING)
        || headers.contains_key(CONTENT_LENGTH)
}

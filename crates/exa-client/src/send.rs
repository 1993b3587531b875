//! Sends a request: attempts, redirects and reading of the response.

use std::time::SystemTime;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, StatusCode, header::CONTENT_TYPE};
use reqwest::{Client, Request, Response};
use serde_json::Value;

use super::{
    CallContext, ExaError, ExaErrorKind, RequestAttempt, blocking,
    body::{self, ReadError},
    deadline::Deadline,
    error_body::ErrorBody,
    error_messages::status_name,
    raw_response, redirect, response,
    response_summary::ResponseSummary,
    retry::{self, Backoff},
    stream, text,
    transport_error::{self, Failure},
};

/// A successful response whose body is in memory and valid JSON.
pub(super) struct Success {
    pub(super) response: Response,
    /// The body or its [`ResponseSummary`], for the guard.
    pub(super) summary: Value,
}

/// Sends a request with retries and reads the response. The body is read and validated here, where a retry is
/// still possible, and decoded by the generated client.
///
/// An error response of the API is returned as a response with its [`ExaError`] as an extension.
///
/// # Errors
/// There is no usable response. The [`ExaError`] is the source of the error.
pub async fn send(
    client: &Client,
    context: &CallContext,
    request: Request,
) -> reqwest::Result<Response> {
    if let Some(preview) = context.preview() {
        return response::fail(preview.record(context, &request)).await;
    }
    match exchange(client, context, request).await {
        Ok(response) => {
            let size = response.content_length().unwrap_or_default();
            let size = usize::try_from(size).unwrap_or(usize::MAX);
            // The client decodes it next.
            blocking::next_is_large(blocking::is_large_text(size)).await;
            Ok(response)
        }
        Err(failure) => match failure.response {
            Some(mut response) => {
                response.extensions_mut().insert(failure.error);
                Ok(*response)
            }
            None => response::fail(failure.error).await,
        },
    }
}

/// Attempts a request until it succeeds or must not be retried.
async fn exchange(
    client: &Client,
    context: &CallContext,
    mut request: Request,
) -> Result<Response, Failure> {
    let mut backoff = Backoff::new(context.retry());
    let mut attempts = 0;
    let mut last_failure = None;
    loop {
        attempts += 1;
        let method = request.method().clone();
        // A streaming body cannot be sent twice.
        let retry = request.try_clone();
        // If this future is dropped, the attempt counts as lost.
        let mut guarded = match (context.guard().start().await, last_failure) {
            (Ok(guarded), _) => guarded,
            // The reason for the retry is more useful than the reason why it was not allowed.
            (Err(_), Some(last_failure)) => return Err(last_failure),
            (Err(error), None) => return Err(error.into()),
        };
        let mut failure = match attempt(client, context, request, &mut *guarded).await {
            Ok(success) => {
                guarded.on_completed(&success.summary).await;
                return Ok(success.response);
            }
            Err(failure) => failure,
        };
        let error = &mut failure.error;
        if error.is_from_gateway() {
            guarded.on_gateway_failure().await;
        } else if error.is_without_effect() {
            guarded.on_rejected().await;
        } else {
            drop(guarded);
        }
        error.attempts = attempts;
        error.key = context.key().kind();
        let is_rate_limited = error.kind == ExaErrorKind::Api(429);
        if is_rate_limited && !context.retries_rate_limits() {
            return Err(failure);
        }
        let Some(retry) = retry.filter(|_| failure.effect.allows(&method)) else {
            return Err(failure);
        };
        let Some(wait) = backoff.next(error.retry_after) else {
            return Err(failure);
        };
        tracing::info!(
            status = error.status,
            attempt = attempts,
            wait_milliseconds = wait.as_millis(),
            "request failed; retrying"
        );
        tokio::time::sleep(wait).await;
        request = retry;
        last_failure = Some(failure);
    }
}

/// Sends a request once and reads the response.
async fn attempt(
    client: &Client,
    context: &CallContext,
    request: Request,
    guarded: &mut dyn RequestAttempt,
) -> Result<Success, Failure> {
    let method = request.method().clone();
    let host = request.url().host_str().unwrap_or_default().to_owned();
    let timed_out = || transport_error::timed_out(&host, context);
    let mut deadline = Deadline::after(context.timeout());
    let response = deadline
        .bound(follow_redirects(client, context, request))
        .await;
    let response = response.ok_or_else(timed_out)??;
    let status = response.status();
    if let Some(stream) = context.stream()
        && status.is_success()
        && is_event_stream(response.headers())
    {
        return stream::read(context, stream, response, guarded).await;
    }
    if status.is_success() {
        read_success(context, response, &mut deadline).await
    } else if redirect::is_redirect(status) {
        Err(redirect::error(context, &response, &method).into())
    } else {
        Err(read_error(context, response, &deadline).await)
    }
}

/// Sends a request and follows redirects within the same origin. All hops are one attempt and share its time
/// limit.
async fn follow_redirects(
    client: &Client,
    context: &CallContext,
    mut request: Request,
) -> Result<Response, Failure> {
    let mut redirects = 0;
    loop {
        let sent = request.try_clone();
        let response = client
            .execute(request)
            .await
            .map_err(|error| transport_error::failure(&error, context))?;
        let next = redirect::follow_up(&response, sent);
        let Some(next) = next.filter(|_| redirects < redirect::MAX_REDIRECTS) else {
            return Ok(response);
        };
        redirects += 1;
        request = next;
    }
}

/// Reads a successful response.
async fn read_success(
    context: &CallContext,
    mut response: Response,
    deadline: &mut Deadline,
) -> Result<Success, Failure> {
    let status = response.status();
    let limit = context.http().config().max_response_bytes;
    let any_type = context.accepts_any_type();
    if is_event_stream(response.headers()) && !any_type {
        // A stream may never end, so it is not read at all.
        let message = "The Exa API returned an event stream, which this call does not support. Leave `stream` \
                       out of the request.";
        return Err(unusable(context, &response, ExaErrorKind::NotJson, message));
    }
    let memory = context.http().response_memory();
    let mut body = match body::read_all(&mut response, limit, memory, deadline).await {
        Ok(body) => body,
        Err(ReadError::TimedOut) => {
            let host = response.url().host_str().unwrap_or_default();
            return Err(transport_error::timed_out(host, context));
        }
        Err(ReadError::TooLarge) => {
            let message = format!("The response of the Exa API exceeds {limit} bytes.");
            return Err(unusable(
                context,
                &response,
                ExaErrorKind::TooLarge,
                &message,
            ));
        }
        Err(ReadError::Transport(error)) => {
            let error = error.with_url(response.url().clone());
            return Err(transport_error::failure(&error, context));
        }
    };
    let content_type = content_type(response.headers()).to_owned();
    if any_type && !raw_response::is_json(&content_type) {
        body.replace(raw_response::as_json(&content_type, body.as_ref()));
    }
    if let Err(error) = body.reserve_values(memory).await {
        let message = error.to_string();
        return Err(unusable(
            context,
            &response,
            ExaErrorKind::TooLarge,
            &message,
        ));
    }
    let is_large = blocking::is_large_text(body.as_ref().len());
    let parse = || text::parse_json_repaired(body.as_ref());
    match blocking::run(is_large, parse).await {
        Ok((ResponseSummary(summary), repaired)) => {
            if let Some(repaired) = repaired {
                body.replace(repaired);
            }
            let response = response::in_memory(response, Bytes::from_owner(body));
            Ok(Success { response, summary })
        }
        Err(error) => {
            let (message, quote) =
                not_json(context, status, response.headers(), body.as_ref(), &error);
            let mut failure = unusable(context, &response, ExaErrorKind::NotJson, &message);
            failure.error = failure.error.with_quote(quote);
            Err(failure)
        }
    }
}

/// Returns the failure of a successful response that cannot be used.
fn unusable(
    context: &CallContext,
    response: &Response,
    kind: ExaErrorKind,
    message: &str,
) -> Failure {
    let mut error = ExaError::new(kind, message);
    error.status = Some(response.status().as_u16());
    error.request_id = request_id(context, response.headers());
    error.into()
}

/// Returns a message about a body that is not JSON, and its untrusted part.
fn not_json(
    context: &CallContext,
    status: StatusCode,
    headers: &HeaderMap,
    bytes: &[u8],
    error: &serde_json::Error,
) -> (String, String) {
    let content_type = content_type(headers);
    let name = status_name(status.as_u16());
    let what = if content_type.contains("json") {
        let how = if error.is_eof() {
            "is cut off"
        } else {
            "could not be read"
        };
        format!("with JSON that {how} ({error})")
    } else if let Some(known) = known_media_type(content_type) {
        format!("with {known} instead of JSON")
    } else {
        "with something other than JSON".to_owned()
    };
    let start = bytes.get(..body::MAX_ERROR_BYTES).unwrap_or(bytes);
    let start = String::from_utf8_lossy(start);
    let shown = if content_type.contains("html") {
        text::html_text(&start)
    } else {
        start.into_owned()
    };
    let shown = text::tidy(Some(context.key()), &shown, text::MAX_EXCERPT);
    let what = text::tidy(Some(context.key()), &what, text::MAX_EXCERPT);
    let shown = format!("{shown:?}");
    let variable = context.key().kind().base_url_variable();
    let message = format!(
        "The Exa API returned {name} {what}: {shown}. Check that {variable} points to the Exa API \
         and that no proxy or login page responds in its place."
    );
    (message, shown)
}

/// Returns a known media type. Any other `content-type` is untrusted text.
fn known_media_type(content_type: &str) -> Option<&'static str> {
    const KNOWN: [&str; 6] = [
        "text/html",
        "text/plain",
        "text/xml",
        "application/xml",
        "application/octet-stream",
        "application/pdf",
    ];
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    KNOWN
        .into_iter()
        .find(|known| essence.eq_ignore_ascii_case(known))
}

/// Reads an error response.
async fn read_error(context: &CallContext, mut response: Response, deadline: &Deadline) -> Failure {
    let status = response.status();
    let bytes = body::read_start(&mut response, deadline).await;
    let headers = response.headers();
    let body = ErrorBody::parse(content_type(headers), &bytes);
    let mut error = body.into_error(status, Some(context.key()));
    error.retry_after = retry::retry_after(headers, SystemTime::now());
    error.request_id = error.request_id.or_else(|| request_id(context, headers));
    Failure {
        response: Some(Box::new(response::in_memory(response, bytes))),
        ..Failure::from(error)
    }
}

fn content_type(headers: &HeaderMap) -> &str {
    let value = headers.get(CONTENT_TYPE).and_then(|v| v.to_str().ok());
    value.unwrap_or_default()
}

fn is_event_stream(headers: &HeaderMap) -> bool {
    let essence = content_type(headers).split(';').next().unwrap_or_default();
    essence.trim().eq_ignore_ascii_case(stream::EVENT_STREAM)
}

pub(super) fn request_id(context: &CallContext, headers: &HeaderMap) -> Option<String> {
    let id = header_text(headers, REQUEST_ID_HEADER)?;
    Some(text::tidy(Some(context.key()), id, text::MAX_NAME))
}

/// The header with the id of a request.
pub(super) const REQUEST_ID_HEADER: HeaderName = HeaderName::from_static("x-request-id");

/// Returns the value of a header, if it is not empty.
pub(super) fn header_text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    let text = headers.get(name)?.to_str().ok()?;
    (!text.is_empty()).then_some(text)
}

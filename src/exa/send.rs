//! Sending a request: attempts, redirects, reading the answer.

use std::time::SystemTime;

use http::{HeaderMap, HeaderName, StatusCode, header::CONTENT_TYPE};
use reqwest::{Client, Request, Response};

use super::{
    Answer, Attempt, CallContext, ExaError, ExaErrorKind,
    advice::status_name,
    body::{self, ReadError},
    deadline::Deadline,
    error_body::ErrorBody,
    redirect,
    response_memory::values_size,
    retry::{self, Waits},
    stream, text,
    transport::{self, Failure},
};
use crate::blocking;

/// The status of the answers that carry an [`Outcome`] to [`super::finish`]. No spec can declare it,
/// so no generated client takes such an answer for one that it knows how to read.
const OURS: u16 = 999;

/// What came of a request.
pub(super) type Outcome = Result<Answer, ExaError>;

/// Sends a request, several times if need be, and reads what is answered.
///
/// The outcome travels in the extensions of an empty answer, since generated clients keep answers with
/// unknown statuses as they are; [`super::finish`] takes it out again. So a body is read once, here,
/// where another attempt can still be made.
///
/// # Errors
/// None at present; the result is what the hook of a generated client has to return.
pub async fn send(
    client: &Client,
    context: &CallContext,
    request: Request,
) -> reqwest::Result<Response> {
    let outcome: Outcome = exchange(client, context, request).await;
    let mut response = http::Response::new(reqwest::Body::default());
    *response.status_mut() = StatusCode::from_u16(OURS).unwrap_or(StatusCode::BAD_GATEWAY);
    response.extensions_mut().insert(outcome);
    Ok(Response::from(response))
}

/// Attempts a request until it succeeds or another attempt is not allowed.
async fn exchange(client: &Client, context: &CallContext, mut request: Request) -> Outcome {
    let mut waits = Waits::new(context.retry());
    let mut attempts = 0;
    let mut last = None;
    loop {
        attempts += 1;
        let method = request.method().clone();
        // A body that is a stream cannot be sent twice.
        let again = request.try_clone();
        // Dropped at whatever point, the attempt counts as lost.
        let mut passed = match (context.guard().begin().await, last) {
            (Ok(passed), _) => passed,
            // Why there was a second attempt says more than why it was not allowed.
            (Err(_), Some(last)) => return Err(last),
            (Err(refused), None) => return Err(refused),
        };
        let Failure { mut error, effect } =
            match attempt(client, context, request, &mut *passed).await {
                Ok(answer) => {
                    passed.answered(&answer.value).await;
                    return Ok(answer);
                }
                Err(failure) => failure,
            };
        if error.is_from_gateway() {
            passed.answered_by_gateway().await;
        } else if error.is_without_effect() {
            passed.refused().await;
        } else {
            drop(passed);
        }
        error.attempts = attempts;
        let turned_away = error.kind == ExaErrorKind::Api(429);
        if turned_away && !context.waits_for_key() {
            return Err(error);
        }
        let Some(next) = again.filter(|_| effect.allows(&method)) else {
            return Err(error);
        };
        let Some(wait) = waits.next(error.retry_after) else {
            return Err(error);
        };
        tracing::info!(
            status = error.status,
            attempt = attempts,
            wait_milliseconds = wait.as_millis(),
            "failed; trying again"
        );
        tokio::time::sleep(wait).await;
        request = next;
        last = Some(error);
    }
}

/// Sends a request once and reads the answer.
async fn attempt(
    client: &Client,
    context: &CallContext,
    request: Request,
    passed: &mut dyn Attempt,
) -> Result<Answer, Failure> {
    let method = request.method().clone();
    let host = request.url().host_str().unwrap_or_default().to_owned();
    let late = || transport::timed_out(&host, context);
    let mut deadline = Deadline::after(context.timeout());
    let response = deadline.bound(follow(client, context, request)).await;
    let response = response.ok_or_else(late)??;
    let status = response.status();
    if let Some(stream) = context.stream()
        && status.is_success()
        && is_event_stream(response.headers())
    {
        return stream::read(context, stream, response, passed).await;
    }
    if status.is_success() {
        success(context, response, &mut deadline).await
    } else if redirect::is_redirect(status) {
        Err(redirect::refusal(context, &response, &method).into())
    } else {
        Err(refused(context, response, &deadline).await.into())
    }
}

/// Sends a request and follows redirects within the same origin. All of it counts as one attempt, so
/// it shares one time limit.
async fn follow(
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
            .map_err(|error| transport::failure(&error, context))?;
        let next = redirect::follow_up(&response, sent);
        let Some(next) = next.filter(|_| redirects < redirect::MAX_REDIRECTS) else {
            return Ok(response);
        };
        redirects += 1;
        request = next;
    }
}

/// Reads a successful answer.
async fn success(
    context: &CallContext,
    mut response: Response,
    deadline: &mut Deadline,
) -> Result<Answer, Failure> {
    let status = response.status();
    let limit = context.http().config().max_response_bytes;
    if is_event_stream(response.headers()) {
        // Such an answer may never end, so it is not even begun to be read.
        let message = "The Exa API answered with a stream of events, which this call does not read. \
                       Leave `stream` out of the request.";
        return Err(unread(context, &response, ExaErrorKind::NotJson, message));
    }
    let memory = context.http().response_memory();
    let body = match body::read_all(&mut response, limit, memory, deadline).await {
        Ok(body) => body,
        Err(ReadError::TimedOut) => {
            let host = response.url().host_str().unwrap_or_default();
            return Err(transport::timed_out(host, context));
        }
        Err(ReadError::TooLarge) => {
            let message = format!("The answer of the Exa API is longer than {limit} bytes.");
            return Err(unread(context, &response, ExaErrorKind::TooLarge, &message));
        }
        Err(ReadError::Transport(error)) => {
            let error = error.with_url(response.url().clone());
            return Err(transport::failure(&error, context));
        }
    };
    let is_large = blocking::is_large_text(body.bytes.len());
    let size = blocking::run(is_large, || values_size(&body.bytes)).await;
    let _share = match memory.share_to_parse(size).await {
        Ok(share) => share,
        Err(excess) => {
            let message = excess.to_string();
            return Err(unread(context, &response, ExaErrorKind::TooLarge, &message));
        }
    };
    match blocking::run(is_large, || text::read_json(&body.bytes)).await {
        Ok(value) => Ok(Answer::new(value, response.headers(), status.as_u16())),
        Err(error) => {
            let (message, said) =
                not_json(context, status, response.headers(), &body.bytes, &error);
            let mut failure = unread(context, &response, ExaErrorKind::NotJson, &message);
            failure.error = failure.error.saying(said);
            Err(failure)
        }
    }
}

/// The failure of a success that cannot be read.
fn unread(
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

/// Says what came instead of JSON, and gives those words of it that are not ours.
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
    let message = format!(
        "The Exa API answered {name} {what}: {shown}. Check that EXA_BASE_URL points to the Exa API \
         and that no proxy or login page answers in its place."
    );
    (message, shown)
}

/// The media type of a `content-type`, if it is one that says what went wrong. Any other is a text of upstream's own.
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

/// The error of an answer that is not a success.
async fn refused(context: &CallContext, mut response: Response, deadline: &Deadline) -> ExaError {
    let status = response.status();
    let headers = response.headers().clone();
    let bytes = body::read_start(&mut response, deadline).await;
    let body = ErrorBody::read(content_type(&headers), &bytes);
    let mut error = body.into_error(status, Some(context.key()));
    error.retry_after = retry::retry_after(&headers, SystemTime::now());
    error.request_id = error.request_id.or_else(|| request_id(context, &headers));
    error
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

/// The header in which Exa names a request.
pub(super) const REQUEST_ID_HEADER: HeaderName = HeaderName::from_static("x-request-id");

/// The text of a header, if it has one.
pub(super) fn header_text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    let text = headers.get(name)?.to_str().ok()?;
    (!text.is_empty()).then_some(text)
}

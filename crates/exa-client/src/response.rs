//! Responses on their way through a generated client: built by [`super::send`], decoded by the client,
//! and turned into an [`ExaResponse`] or an [`ExaError`].

use bytes::Bytes;
use futures_util::stream;
use http::HeaderMap;
use progenitor_client::{Error, ResponseValue};
use reqwest::{Body, Response, ResponseBuilderExt};
use serde_json::Value;

use super::{
    ExaError, ExaErrorKind,
    error_body::ErrorBody,
    send::{REQUEST_ID_HEADER, header_text},
    text, transport_error,
};

/// A successful answer of the API.
#[derive(Clone, Debug, PartialEq)]
pub struct ExaResponse {
    /// The body; `null` if there was none.
    pub value: Value,
    /// The id that Exa gave the request, from the body or the headers.
    pub request_id: Option<String>,
    /// The HTTP status, which is between 200 and 299.
    pub status: u16,
}

impl From<ResponseValue<Value>> for ExaResponse {
    fn from(response: ResponseValue<Value>) -> Self {
        let in_body = response.get("requestId").and_then(Value::as_str);
        let id = in_body.or_else(|| header_text(response.headers(), REQUEST_ID_HEADER));
        Self {
            request_id: id.map(str::to_owned),
            status: response.status().as_u16(),
            value: response.into_inner(),
        }
    }
}

/// Returns the response with a body that has already been read. Status, headers and address stay.
pub(super) fn in_memory(response: Response, body: impl Into<Body>) -> Response {
    let url = response.url().clone();
    let (mut parts, _) = http::Response::<Body>::from(response).into_parts();
    // The address of a response travels as an extension that only this builder can write.
    if let Ok(with_url) = http::Response::builder().url(url).body(()) {
        parts.extensions.extend(with_url.into_parts().0.extensions);
    }
    Response::from(http::Response::from_parts(parts, body.into()))
}

/// Fails with a [`reqwest::Error`] whose source is `error`, which [`ExaError::from`] finds again.
pub(super) async fn fail(error: ExaError) -> reqwest::Result<Response> {
    // reqwest has no public constructor of errors; a body that cannot be read yields one.
    let body = Body::wrap_stream(stream::iter([Err::<Bytes, _>(error)]));
    let read = Response::from(http::Response::new(body)).bytes().await;
    read.map(|bytes| Response::from(http::Response::new(bytes)))
}

impl<E> From<Error<E>> for ExaError {
    /// Takes out the error that [`super::send`] put in, or describes what the generated client reports.
    fn from(error: Error<E>) -> Self {
        match error {
            Error::UnexpectedResponse(mut response) => {
                let error = response.extensions_mut().remove();
                error.unwrap_or_else(|| without_body(response.status(), response.headers()))
            }
            Error::CommunicationError(error)
            | Error::ResponseBodyError(error)
            | Error::InvalidUpgrade(error) => {
                let mut causes = transport_error::causes(&error);
                let ours = causes.find_map(|cause| cause.downcast_ref::<Self>());
                ours.cloned()
                    .unwrap_or_else(|| transport_error::error(&error))
            }
            Error::InvalidRequest(message) | Error::Custom(message) => not_sent(&message),
            Error::InvalidResponsePayload(_, error) => unreadable(&error),
            Error::ErrorResponse(answer) => without_body(answer.status(), answer.headers()),
        }
    }
}

/// The error of a refusal of which only status and headers are known.
fn without_body(status: http::StatusCode, headers: &HeaderMap) -> ExaError {
    let mut error = ErrorBody::default().into_error(status, None);
    let id = header_text(headers, REQUEST_ID_HEADER);
    error.request_id = id.map(|id| text::tidy(None, id, text::MAX_NAME));
    error
}

/// The error of a request that never left. Our hooks write whole sentences, while generated code
/// only names what failed, such as a header value.
fn not_sent(message: &str) -> ExaError {
    let message = text::tidy(None, message, text::MAX_MESSAGE);
    if message.ends_with('.') {
        return ExaError::invalid_request(message);
    }
    ExaError::invalid_request(format!(
        "The request was not sent because it could not be built: {message}. Check its arguments for \
         line breaks and other characters that cannot be sent."
    ))
}

/// The error of JSON that does not have the declared type. The message says what and where, and does not
/// quote the body.
fn unreadable(error: &serde_json::Error) -> ExaError {
    ExaError::new(
        ExaErrorKind::NotJson,
        format!(
            "The answer of the Exa API could not be read as JSON: {error}. Try again; if it persists, \
             report it to Exa."
        ),
    )
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use http::{HeaderValue, StatusCode};

    #[test]
    fn what_generated_code_refuses_becomes_whole_sentences() {
        let bad = HeaderValue::from_str("a\nb").unwrap_err();
        let error = ExaError::from(Error::<()>::from(bad));
        assert_eq!(error.kind, ExaErrorKind::InvalidRequest);
        assert!(error.to_string().starts_with("The request was not sent"));
        let error = ExaError::from(Error::<()>::Custom("Ours says all.".to_owned()));
        assert_eq!(error.to_string(), "Ours says all.");
    }

    #[test]
    fn a_declared_error_keeps_at_least_its_status() {
        let mut headers = HeaderMap::new();
        headers.insert(REQUEST_ID_HEADER, HeaderValue::from_static("r1"));
        let answer = ResponseValue::new((), StatusCode::CONFLICT, headers);
        let error = ExaError::from(Error::ErrorResponse(answer));
        assert_eq!(error.kind, ExaErrorKind::Api(409));
        assert_eq!(error.request_id.as_deref(), Some("r1"));
    }

    #[tokio::test]
    async fn an_error_is_found_again_inside_an_error_of_reqwest() {
        let error = ExaError::new(ExaErrorKind::TooLarge, "Too long.").with_quote("x");
        let wrapped = fail(error).await.unwrap_err();
        let error = ExaError::from(Error::<()>::CommunicationError(wrapped));
        assert_eq!(error.kind, ExaErrorKind::TooLarge);
        assert_eq!(error.message, "Too long.");
        assert!(error.quote.is_some());
    }

    #[test]
    fn a_response_in_memory_keeps_status_headers_and_address() {
        let received = http::Response::builder()
            .status(207)
            .header("x-request-id", "r2")
            .url("http://127.0.0.1:9/thing".parse().unwrap())
            .body("[]")
            .unwrap();
        let response = in_memory(Response::from(received), "null");
        assert_eq!(response.status(), StatusCode::MULTI_STATUS);
        assert_eq!(response.url().as_str(), "http://127.0.0.1:9/thing");
        assert_eq!(
            header_text(response.headers(), REQUEST_ID_HEADER),
            Some("r2")
        );
    }
}

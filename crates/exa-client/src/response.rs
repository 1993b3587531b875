//! Conversions of responses: [`super::send`] builds them, the generated client decodes them, and the result
//! becomes an [`ExaResponse`] or an [`ExaError`].

use bytes::Bytes;
use futures_util::stream;
use http::HeaderMap;
use progenitor_client::{Error, ResponseValue};
use reqwest::{Body, Response, ResponseBuilderExt};
use serde_json::Value;

use super::{
    ApiKey, ExaError, ExaErrorKind,
    error_body::ErrorBody,
    send::{REQUEST_ID_HEADER, header_text},
    text, transport_error,
};

/// A successful response of the API.
#[derive(Clone, Debug, PartialEq)]
pub struct ExaResponse {
    /// The body; `null` if it is empty.
    pub value: Value,
    /// The id that Exa assigned to the request, from the body or the headers.
    pub request_id: Option<String>,
    /// The HTTP status, from 200 to 299.
    pub status: u16,
}

impl<T: Into<Value>> From<ResponseValue<T>> for ExaResponse {
    fn from(response: ResponseValue<T>) -> Self {
        let status = response.status().as_u16();
        let in_header = header_text(response.headers(), REQUEST_ID_HEADER).map(str::to_owned);
        let value = response.into_inner().into();
        let in_body = value.get("requestId").and_then(Value::as_str);
        Self {
            request_id: in_body.map(str::to_owned).or(in_header),
            status,
            value,
        }
    }
}

impl ExaResponse {
    /// Returns the response with a request id that can be logged: short, and without the key.
    #[must_use]
    pub fn with_loggable_request_id(self, key: &ApiKey) -> Self {
        let id = self.request_id.as_deref();
        Self {
            request_id: id.map(|id| text::tidy(Some(key), id, text::MAX_NAME)),
            ..self
        }
    }
}

/// Returns the response with another body, and with the same status, headers and URL.
pub(super) fn in_memory(response: Response, body: impl Into<Body>) -> Response {
    let url = response.url().clone();
    let (mut parts, _) = http::Response::<Body>::from(response).into_parts();
    // The URL of a response is an extension that only this builder can write.
    if let Ok(with_url) = http::Response::builder().url(url).body(()) {
        parts.extensions.extend(with_url.into_parts().0.extensions);
    }
    Response::from(http::Response::from_parts(parts, body.into()))
}

/// Fails with a [`reqwest::Error`] whose source is `error`, from which [`ExaError::from`] extracts it.
pub(super) async fn fail(error: ExaError) -> reqwest::Result<Response> {
    // reqwest has no public constructor for errors, so this reads a body that fails.
    let body = Body::wrap_stream(stream::iter([Err::<Bytes, _>(error)]));
    let read = Response::from(http::Response::new(body)).bytes().await;
    read.map(|bytes| Response::from(http::Response::new(bytes)))
}

impl<E> From<Error<E>> for ExaError {
    /// Extracts the error that [`super::send`] attached, or describes the error of the generated client.
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
                let attached = causes.find_map(|cause| cause.downcast_ref::<Self>());
                attached
                    .cloned()
                    .unwrap_or_else(|| transport_error::error(&error))
            }
            Error::InvalidRequest(message) | Error::Custom(message) => not_sent(&message),
            Error::InvalidResponsePayload(_, error) => undecodable(&error),
            Error::ErrorResponse(response) => without_body(response.status(), response.headers()),
        }
    }
}

/// Returns the error of a response of which only the status and the headers are known.
fn without_body(status: http::StatusCode, headers: &HeaderMap) -> ExaError {
    let mut error = ErrorBody::default().into_error(status, None);
    let id = header_text(headers, REQUEST_ID_HEADER);
    error.request_id = id.map(|id| text::tidy(None, id, text::MAX_NAME));
    error
}

/// Returns the error of a request that was not sent. Messages of this crate are whole sentences, while
/// generated code only names the failure.
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

/// Returns the error of JSON that does not match the declared type. The message does not quote the body.
fn undecodable(error: &serde_json::Error) -> ExaError {
    ExaError::new(
        ExaErrorKind::NotJson,
        format!(
            "The response of the Exa API could not be decoded: {error}. Try again; if the problem persists, \
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
    fn errors_of_generated_code_become_sentences() {
        let bad = HeaderValue::from_str("a\nb").unwrap_err();
        let error = ExaError::from(Error::<()>::from(bad));
        assert_eq!(error.kind, ExaErrorKind::InvalidRequest);
        assert!(error.to_string().starts_with("The request was not sent"));
        let error = ExaError::from(Error::<()>::Custom("This is complete.".to_owned()));
        assert_eq!(error.to_string(), "This is complete.");
    }

    #[test]
    fn a_declared_error_preserves_status_and_request_id() {
        let mut headers = HeaderMap::new();
        headers.insert(REQUEST_ID_HEADER, HeaderValue::from_static("r1"));
        let response = ResponseValue::new((), StatusCode::CONFLICT, headers);
        let error = ExaError::from(Error::ErrorResponse(response));
        assert_eq!(error.kind, ExaErrorKind::Api(409));
        assert_eq!(error.request_id.as_deref(), Some("r1"));
    }

    #[tokio::test]
    async fn extracts_the_error_from_a_reqwest_error() {
        let error = ExaError::new(ExaErrorKind::TooLarge, "Too long.").with_quote("x");
        let wrapped = fail(error).await.unwrap_err();
        let error = ExaError::from(Error::<()>::CommunicationError(wrapped));
        assert_eq!(error.kind, ExaErrorKind::TooLarge);
        assert_eq!(error.message, "Too long.");
        assert!(error.quote.is_some());
    }

    #[test]
    fn a_response_in_memory_preserves_status_headers_and_url() {
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

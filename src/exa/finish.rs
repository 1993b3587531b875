//! The end of a call: what a generated client returned becomes an answer or an error.

use futures_util::FutureExt;
use http::HeaderMap;
use progenitor_client::{Error, ResponseValue};
use reqwest::Response;
use serde_json::Value;

use super::{
    ExaError, ExaErrorKind,
    error_body::ErrorBody,
    send::{Outcome, REQUEST_ID_HEADER, header_text},
    text, transport,
};

/// A successful answer of the API.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The body; `null` if there was none.
    pub value: Value,
    /// The id that Exa gave the request, from the body or the headers.
    pub request_id: Option<String>,
    /// The HTTP status, which is between 200 and 299.
    pub status: u16,
}

impl Answer {
    pub(super) fn new(value: Value, headers: &HeaderMap, status: u16) -> Self {
        let in_body = value.get("requestId").and_then(Value::as_str);
        let id = in_body.or_else(|| header_text(headers, REQUEST_ID_HEADER));
        Self {
            request_id: id.map(str::to_owned),
            value,
            status,
        }
    }
}

/// Turns the result of a generated client into an answer or the one error type.
///
/// # Errors
/// Whatever went wrong, be it that [`super::send`] says so or the generated client.
pub fn finish<E>(result: Result<ResponseValue<Value>, Error<E>>) -> Result<Answer, ExaError> {
    let error = match result {
        Ok(answer) => {
            let (headers, status) = (answer.headers().clone(), answer.status());
            return Ok(Answer::new(answer.into_inner(), &headers, status.as_u16()));
        }
        Err(error) => error,
    };
    Err(match error {
        Error::UnexpectedResponse(response) => return unexpected(response),
        Error::CommunicationError(error)
        | Error::ResponseBodyError(error)
        | Error::InvalidUpgrade(error) => transport::error(&error),
        Error::InvalidRequest(message) | Error::Custom(message) => not_sent(&message),
        Error::InvalidResponsePayload(_, error) => unreadable(&error),
        // Only a client generated with declared errors ends here; all else was lost on the way.
        Error::ErrorResponse(answer) => {
            let mut error = ErrorBody::default().into_error(answer.status(), None);
            let id = header_text(answer.headers(), REQUEST_ID_HEADER);
            error.request_id = id.map(|id| text::tidy(None, id, text::MAX_NAME));
            error
        }
    })
}

/// The error for a request that never left. Our hooks say so in whole sentences, while generated code
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

/// Opens an answer that the generated client did not expect: what [`super::send`] made of the real one,
/// or one that did not come through it.
fn unexpected(mut response: Response) -> Outcome {
    if let Some(outcome) = response.extensions_mut().remove::<Outcome>() {
        return outcome;
    }
    let status = response.status();
    let headers = response.headers().clone();
    // It is in memory, or else reading it would have to wait.
    let bytes = match response.bytes().now_or_never() {
        Some(Ok(bytes)) => bytes,
        Some(Err(error)) => return Err(transport::error(&error)),
        None => return Err(ErrorBody::default().into_error(status, None)),
    };
    if !status.is_success() {
        return Err(ErrorBody::read("", &bytes).into_error(status, None));
    }
    let value = serde_json::from_slice(&bytes).map_err(|error| unreadable(&error))?;
    Ok(Answer::new(value, &headers, status.as_u16()))
}

/// The error for a body that did not come through [`super::send`] and is no JSON. Its text tells only
/// what and where, not the body.
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
    use http::HeaderValue;

    #[test]
    fn what_generated_code_refuses_becomes_whole_sentences() {
        let bad = HeaderValue::from_str("a\nb").unwrap_err();
        let error = finish::<()>(Err(bad.into())).unwrap_err();
        assert_eq!(error.kind, ExaErrorKind::InvalidRequest);
        assert!(error.to_string().starts_with("The request was not sent"));
        let error = finish::<()>(Err(Error::Custom("Ours says all.".to_owned()))).unwrap_err();
        assert_eq!(error.to_string(), "Ours says all.");
    }

    #[test]
    fn a_declared_error_keeps_at_least_its_status() {
        let mut headers = HeaderMap::new();
        headers.insert(REQUEST_ID_HEADER, HeaderValue::from_static("r1"));
        let answer = ResponseValue::new((), http::StatusCode::CONFLICT, headers);
        let error = finish(Err(Error::ErrorResponse(answer))).unwrap_err();
        assert_eq!(error.kind, ExaErrorKind::Api(409));
        assert_eq!(error.request_id.as_deref(), Some("r1"));
    }

    #[test]
    fn an_answer_that_did_not_come_through_send_is_still_read() {
        let mut response = http::Response::new(r#"{"error":"gone","tag":"NOT_FOUND"}"#);
        *response.status_mut() = http::StatusCode::NOT_FOUND;
        let error = Error::<()>::UnexpectedResponse(Response::from(response));
        let error = finish(Err(error)).unwrap_err();
        assert_eq!((error.status, error.message.as_str()), (Some(404), "gone"));
    }
}

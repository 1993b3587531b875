//! Shows a request instead of sending it.

use std::sync::{Arc, Mutex};

use http::HeaderMap;
use reqwest::Request;
use serde_json::Value;

use exa_mcp_model::lock;

use super::{CallContext, ExaError};

/// A request as it would be sent, without the key.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestDescription {
    /// The HTTP method.
    pub method: String,
    /// The whole URL.
    pub url: String,
    /// The headers without the one with the key.
    pub headers: Vec<(String, String)>,
    /// The body: as JSON if it is JSON, as text if it is text.
    pub body: Option<Value>,
}

/// Receives the request of a call that is not made.
#[derive(Debug, Clone, Default)]
pub struct RequestPreview(Arc<Mutex<Option<RequestDescription>>>);

impl RequestPreview {
    /// Takes the description of the request; `None` if none was built.
    #[must_use]
    pub fn take(&self) -> Option<RequestDescription> {
        lock(&self.0).take()
    }

    /// Records a request and returns the error that ends its call.
    pub(super) fn record(&self, context: &CallContext, request: &Request) -> ExaError {
        let key = context.key();
        let body = request.body().and_then(reqwest::Body::as_bytes);
        let body = body.filter(|bytes| !bytes.is_empty()).map(|bytes| {
            serde_json::from_slice(bytes)
                .unwrap_or_else(|_| String::from_utf8_lossy(bytes).into_owned().into())
        });
        *lock(&self.0) = Some(RequestDescription {
            method: request.method().to_string(),
            url: key.redact_text(request.url().as_str()),
            headers: plain_headers(request.headers()),
            body,
        });
        ExaError::invalid_request("The request was not sent: only a preview was requested.")
    }
}

/// Returns the headers as text, without those that carry the key.
fn plain_headers(headers: &HeaderMap) -> Vec<(String, String)> {
    let plain = headers.iter().filter(|(_, value)| !value.is_sensitive());
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    plain
        .map(|(name, value)| (name.to_string(), text(value)))
        .collect()
}

//! The context of one call, and the preparation of its request.

use std::{fmt, sync::Arc, time::Duration};

use http::{
    HeaderName, HeaderValue, Method,
    header::{ACCEPT, AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, TRANSFER_ENCODING, USER_AGENT},
};

use exa_mcp_model::{Api, KeyKind};

use super::{
    ApiKey, AttemptGuard, ConfigError, ExaConfig, ExaError, ExaHttp, RequestContent,
    RequestPreview, RetryPolicy, Unguarded,
    stream::{EVENT_STREAM, StreamOptions},
};

/// The header that carries the API key.
const API_KEY_HEADER: HeaderName = HeaderName::from_static("x-api-key");

/// The header that progenitor adds to every request; the Exa API does not use it.
const API_VERSION_HEADER: HeaderName = HeaderName::from_static("api-version");

/// Where the API key is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyPlacement {
    /// In this header.
    Header(&'static str),
    /// In the header `authorization`, as a bearer token.
    Bearer,
    /// In this parameter of the query string.
    Query(&'static str),
}

/// The inner value of a generated client: the API key, the time limit, and additions to the request.
#[derive(Clone)]
pub struct CallContext {
    http: ExaHttp,
    key: ApiKey,
    timeout: Duration,
    query: Vec<(String, String)>,
    headers: Vec<(HeaderName, HeaderValue)>,
    omit_body: bool,
    content: Option<RequestContent>,
    key_placement: KeyPlacement,
    accepts_any_type: bool,
    other_keys: bool,
    stream: Option<StreamOptions>,
    preview: Option<RequestPreview>,
    retry: RetryPolicy,
    guard: Arc<dyn AttemptGuard>,
}

impl CallContext {
    /// Creates a context that adds only the key.
    ///
    /// `timeout` limits each attempt, from connecting to the last byte of the response. For a stream it
    /// limits the time to the first byte and between two chunks. Each attempt passes the guard.
    #[must_use]
    pub fn new(
        http: ExaHttp,
        key: ApiKey,
        timeout: Duration,
        guard: Arc<dyn AttemptGuard>,
    ) -> Self {
        Self {
            guard,
            retry: http.config().retry.clone(),
            http,
            key,
            timeout,
            query: Vec::new(),
            headers: Vec::new(),
            omit_body: false,
            content: None,
            key_placement: KeyPlacement::Header("x-api-key"),
            accepts_any_type: false,
            other_keys: false,
            stream: None,
            preview: None,
        }
    }

    /// Creates a context for calls without a guard, with an HTTP client of its own.
    ///
    /// # Errors
    /// The key or a setting is not valid.
    pub fn unguarded(
        kind: KeyKind,
        key: &str,
        config: ExaConfig,
        timeout: Duration,
    ) -> Result<Self, ExaError> {
        let invalid = |error: ConfigError| ExaError::invalid_request(error.to_string());
        let key = ApiKey::of_kind(kind, key).map_err(invalid)?;
        let http = ExaHttp::new(config).map_err(invalid)?;
        Ok(Self::new(http, key, timeout, Arc::new(Unguarded)))
    }

    /// Sets the time limit of each attempt.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Appends a pair to the query string of the generated client.
    #[must_use]
    pub fn with_query(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.query.push((name.into(), value.into()));
        self
    }

    /// Adds a header and replaces those that the generated client set under the same name.
    #[must_use]
    pub fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// Parses and adds a header, like [`Self::with_header`].
    ///
    /// # Errors
    /// The name or the value is not valid. The error does not contain the value.
    pub fn with_header_text(self, name: &str, value: &str) -> Result<Self, ExaError> {
        let invalid = |problem: &str| {
            ExaError::invalid_request(format!("The header {name:?} was not sent: {problem}."))
        };
        let header = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| invalid("its name is not a valid header name"))?;
        let value = HeaderValue::from_str(value)
            .map_err(|_| invalid("its value has line breaks or other control characters"))?;
        Ok(self.with_header(header, value))
    }

    /// Sets whether to drop the body that the generated client made.
    #[must_use]
    pub fn with_omit_body(mut self, omit: bool) -> Self {
        self.omit_body = omit;
        self
    }

    /// Sets the body, replacing that of the generated client. Without content, no body is sent.
    #[must_use]
    pub fn with_content(mut self, content: Option<RequestContent>) -> Self {
        self.omit_body = content.is_none();
        self.content = content;
        self
    }

    /// Sets where the API key is sent; by default in the header `x-api-key`.
    #[must_use]
    pub fn with_key_placement(mut self, placement: KeyPlacement) -> Self {
        self.key_placement = placement;
        self
    }

    /// Requests a response of this media type. A response that is not JSON becomes a JSON string, a list of events
    /// or an object with base64.
    ///
    /// # Errors
    /// The media type is not a valid header value.
    pub fn with_response_type(mut self, media_type: &str) -> Result<Self, ExaError> {
        self.accepts_any_type = true;
        self.with_header_text(ACCEPT.as_str(), media_type)
    }

    /// Returns whether the response may be something other than JSON.
    pub(super) fn accepts_any_type(&self) -> bool {
        self.accepts_any_type
    }

    /// Allows the response to be an event stream, read with these options.
    #[must_use]
    pub fn with_stream(mut self, stream: StreamOptions) -> Self {
        self.stream = Some(stream);
        self.with_header(ACCEPT, HeaderValue::from_static(EVENT_STREAM))
    }

    /// Returns how to read an event stream, if one is allowed.
    #[must_use]
    pub fn stream(&self) -> Option<&StreamOptions> {
        self.stream.as_ref()
    }

    /// Records the request instead of sending it.
    #[must_use]
    pub fn with_preview(mut self, preview: RequestPreview) -> Self {
        self.preview = Some(preview);
        self
    }

    /// Returns what receives the request instead of the network, if anything.
    pub(super) fn preview(&self) -> Option<&RequestPreview> {
        self.preview.as_ref()
    }

    /// Sets whether other keys are available. If so, a rate limit (429) is returned instead of retried.
    #[must_use]
    pub fn with_other_keys(mut self, others: bool) -> Self {
        self.other_keys = others;
        self
    }

    /// Returns whether a rate-limited request is retried with the same key.
    pub(super) fn retries_rate_limits(&self) -> bool {
        !self.other_keys
    }

    /// Disables retries.
    #[must_use]
    pub fn without_retries(mut self) -> Self {
        self.retry.max_retries = 0;
        self
    }

    /// Returns the retry policy.
    pub(super) fn retry(&self) -> &RetryPolicy {
        &self.retry
    }

    /// Returns the guard of each attempt.
    pub(super) fn guard(&self) -> &dyn AttemptGuard {
        &*self.guard
    }

    /// Returns the shared connections and settings.
    #[must_use]
    pub fn http(&self) -> &ExaHttp {
        &self.http
    }

    /// Returns the address of an API for this call.
    ///
    /// # Errors
    /// The API takes another kind of key than that of this call.
    pub fn base_url(&self, api: &Api) -> Result<String, ExaError> {
        let kind = self.key.kind();
        if kind != api.key {
            return Err(ExaError::config(format!(
                "The request was not sent: the API `{}` takes a {} ({}), not a {}.",
                api.name,
                api.key.name(),
                api.key.variable(),
                kind.name()
            )));
        }
        Ok(self.http.base_url(kind, api.base_url))
    }

    /// Returns the key of this call.
    #[must_use]
    pub fn key(&self) -> &ApiKey {
        &self.key
    }

    /// Returns the time limit of one attempt.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.timeout
    }
}

impl fmt::Debug for CallContext {
    /// Prints names only, because query and header values may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let query: Vec<_> = self.query.iter().map(|(name, _)| name).collect();
        let headers: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("CallContext")
            .field("http", &self.http)
            .field("key", &self.key)
            .field("timeout", &self.timeout)
            .field("query", &query)
            .field("headers", &headers)
            .field("omit_body", &self.omit_body)
            .field("stream", &self.stream)
            .finish()
    }
}

/// Adds headers that a request does not have yet. Their names and values come from a spec; invalid ones are
/// left out.
pub fn add_missing_headers(request: &mut reqwest::Request, headers: &[(&str, &str)]) {
    for (name, value) in headers {
        if let (Ok(name), Ok(value)) = (
            HeaderName::from_bytes(name.as_bytes()),
            HeaderValue::from_str(value),
        ) {
            request.headers_mut().entry(name).or_insert(value);
        }
    }
}

/// Adds the API key, the user agent and the additions of the call to a generated request.
///
/// # Errors
/// The URL is not an `http` or `https` URL.
pub fn prepare(context: &CallContext, request: &mut reqwest::Request) -> Result<(), ExaError> {
    let url = request.url_mut();
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(ExaError::invalid_request(format!(
            "The request was not sent: its address is not an http or https URL. Check {}.",
            context.key.kind().base_url_variable()
        )));
    }
    // `query_pairs_mut` would leave a lone `?` on a URL without a query.
    if !context.query.is_empty() {
        url.query_pairs_mut().extend_pairs(&context.query);
    }
    // `send` enforces the time limit itself, because it also waits for other things than the API.
    *request.timeout_mut() = None;
    if context.omit_body {
        *request.body_mut() = None;
        for name in [CONTENT_TYPE, CONTENT_LENGTH, TRANSFER_ENCODING] {
            request.headers_mut().remove(name);
        }
    }
    if let Some(content) = &context.content {
        *request.body_mut() = Some(content.bytes.clone().into());
        let value = HeaderValue::from_str(&content.content_type).map_err(|_| {
            ExaError::invalid_request("The request was not sent: its media type is not valid.")
        })?;
        request.headers_mut().insert(CONTENT_TYPE, value);
    }
    let headers = request.headers_mut();
    headers.remove(API_VERSION_HEADER);
    headers.insert(USER_AGENT, context.http.user_agent());
    for (name, _) in &context.headers {
        headers.remove(name);
    }
    for (name, value) in &context.headers {
        headers.append(name, value.clone());
    }
    // The key is inserted last, so that no added header can replace it.
    place_key(context, request)?;
    // Some gateways reject a POST without a body and without `content-length: 0`.
    if request.body().is_none()
        && matches!(
            request.method(),
            &Method::POST | &Method::PUT | &Method::PATCH
        )
    {
        request
            .headers_mut()
            .insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
    }
    Ok(())
}

/// Adds the API key where the API expects it.
fn place_key(context: &CallContext, request: &mut reqwest::Request) -> Result<(), ExaError> {
    let invalid = |_| ExaError::invalid_request("The request was not sent: its key is not valid.");
    match context.key_placement {
        KeyPlacement::Header("x-api-key") => {
            request
                .headers_mut()
                .insert(API_KEY_HEADER, context.key.header());
        }
        KeyPlacement::Header(name) => {
            let name = HeaderName::from_bytes(name.as_bytes())
                .map_err(|_| ExaError::invalid_request("The header of the key is not valid."))?;
            request.headers_mut().insert(name, context.key.header());
        }
        KeyPlacement::Bearer => {
            let text = format!("Bearer {}", context.key.expose());
            let mut value = HeaderValue::from_str(&text).map_err(invalid)?;
            value.set_sensitive(true);
            request.headers_mut().insert(AUTHORIZATION, value);
        }
        KeyPlacement::Query(name) => {
            let url = request.url_mut();
            url.query_pairs_mut()
                .append_pair(name, context.key.expose());
        }
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
#[path = "context_tests.rs"]
mod tests;

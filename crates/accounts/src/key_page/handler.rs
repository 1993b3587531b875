//! Handles the requests of the browser.

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::response::Response;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};

use super::{KeyPage, KeyUse, PageStatus, html};
use exa_mcp_exa_client::{ApiKey, KeyPool};
use exa_mcp_model::ids;

/// The maximum size of the form, in bytes.
const MAX_FORM_SIZE: usize = 4_096;

/// The state of one page.
pub(super) struct PageState {
    /// The only accepted `Host`. Another one may be a DNS rebinding attack.
    pub(super) host: String,
    /// The only accepted path.
    pub(super) path: String,
    /// The CSRF token of the form.
    pub(super) token: String,
    /// Receives the key.
    pub(super) keys: KeyPool,
    pub(super) key_use: KeyUse,
    /// The page.
    pub(super) page: KeyPage,
}

/// Handles one request.
pub(super) async fn handle(State(state): State<Arc<PageState>>, request: Request) -> Response {
    let nonce = ids::random_id().unwrap_or_default();
    let (status, text) = state.handle(request, &nonce).await;
    respond(status, text, &nonce)
}

impl PageState {
    async fn handle(&self, request: Request, nonce: &str) -> (StatusCode, String) {
        let reject = |status, reason| (status, html::error(nonce, reason));
        let (parts, body) = request.into_parts();
        let is_host = header_text(&parts.headers, header::HOST) == Some(self.host.as_str());
        let is_path = parts.uri.query().is_none() && constant_time_eq(parts.uri.path(), &self.path);
        if !is_host || !is_path {
            return reject(StatusCode::NOT_FOUND, "There is no such page.");
        }
        if !self.page.is_open() {
            return reject(
                StatusCode::GONE,
                "This page was already used or has expired.",
            );
        }
        match parts.method {
            Method::GET => (StatusCode::OK, self.form(nonce, None)),
            Method::POST if self.is_same_origin(&parts.headers) => self.submit(body, nonce).await,
            Method::POST => reject(StatusCode::FORBIDDEN, "This form was sent by another page."),
            _ => reject(
                StatusCode::METHOD_NOT_ALLOWED,
                "This method is not allowed.",
            ),
        }
    }

    fn form(&self, nonce: &str, problem: Option<&str>) -> String {
        html::form(&self.path, &self.token, nonce, self.key_use, problem)
    }

    /// Browsers send the origin of a form. A request without one still needs the CSRF token.
    fn is_same_origin(&self, headers: &HeaderMap) -> bool {
        let origin = headers.get(header::ORIGIN).map(HeaderValue::as_bytes);
        origin.is_none_or(|origin| origin == format!("http://{}", self.host).as_bytes())
    }

    async fn submit(&self, body: Body, nonce: &str) -> (StatusCode, String) {
        let Ok(body) = to_bytes(body, MAX_FORM_SIZE).await else {
            let text = self.form(nonce, Some("That is too long to be a key."));
            return (StatusCode::PAYLOAD_TOO_LARGE, text);
        };
        let field = |wanted: &str| {
            let mut fields = url::form_urlencoded::parse(&body);
            fields.find(|(name, _)| name == wanted).map(|(_, it)| it)
        };
        if !field("token").is_some_and(|token| constant_time_eq(&token, &self.token)) {
            let reason = "This form was sent by another page.";
            return (StatusCode::FORBIDDEN, html::error(nonce, reason));
        }
        match ApiKey::new(field("key").unwrap_or_default()) {
            Err(_) => {
                let problem = "That is not a key: it is empty or contains invalid characters.";
                (StatusCode::BAD_REQUEST, self.form(nonce, Some(problem)))
            }
            Ok(key) => {
                // Of two simultaneous forms only the first counts.
                if self.page.finish(PageStatus::Done) {
                    self.keys.add(key);
                    tracing::info!("received an Exa API key");
                }
                (StatusCode::OK, html::success(nonce, self.key_use))
            }
        }
    }
}

/// Compares in constant time.
fn constant_time_eq(given: &str, wanted: &str) -> bool {
    let differences = given.bytes().zip(wanted.bytes()).map(|(a, b)| a ^ b);
    given.len() == wanted.len() && differences.fold(0, |all, one| all | one) == 0
}

fn header_text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

fn respond(status: StatusCode, text: String, nonce: &str) -> Response {
    let policy = format!(
        "default-src 'none'; style-src 'nonce-{nonce}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    );
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CACHE_CONTROL, "no-store"),
        (header::CONTENT_SECURITY_POLICY, policy.as_str()),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        // Not `no-referrer`, because browsers would then send `Origin: null` with the form.
        (header::REFERRER_POLICY, "same-origin"),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
        (header::CONNECTION, "close"),
    ];
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    for (name, value) in headers {
        if let Ok(value) = HeaderValue::from_str(value) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

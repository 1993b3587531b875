//! Answers the requests of a browser.

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::response::Response;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};

use super::{KeyPage, html};
use exa_mcp_exa_client::{ApiKey, KeyPool};
use exa_mcp_model::ids;

/// The longest form, in bytes.
const LONGEST_FORM: usize = 4_096;

/// What one page knows.
pub(super) struct Desk {
    /// How a browser on this machine calls us. Another name may be one that points here to deceive.
    pub(super) host: String,
    /// The only address.
    pub(super) path: String,
    /// What the form must send back.
    pub(super) token: String,
    /// Where the key goes.
    pub(super) keys: KeyPool,
    /// The page.
    pub(super) page: KeyPage,
}

/// Answers one request.
pub(super) async fn answer(State(desk): State<Arc<Desk>>, request: Request) -> Response {
    let nonce = ids::random_id().unwrap_or_default();
    let (status, text) = desk.answer(request, &nonce).await;
    respond(status, text, &nonce)
}

impl Desk {
    async fn answer(&self, request: Request, nonce: &str) -> (StatusCode, String) {
        let refuse = |status, why| (status, html::none(nonce, why));
        let (parts, body) = request.into_parts();
        let named = text(&parts.headers, header::HOST) == Some(self.host.as_str());
        let addressed = parts.uri.query().is_none() && same(parts.uri.path(), &self.path);
        if !named || !addressed {
            return refuse(StatusCode::NOT_FOUND, "There is no such page.");
        }
        if !self.page.is_open() {
            return refuse(StatusCode::GONE, "This page was used, or its time is over.");
        }
        match parts.method {
            Method::GET => (StatusCode::OK, self.form(nonce, None)),
            Method::POST if self.is_own(&parts.headers) => self.take(body, nonce).await,
            Method::POST => refuse(StatusCode::FORBIDDEN, "This form was sent by another page."),
            _ => refuse(StatusCode::METHOD_NOT_ALLOWED, "This cannot be done here."),
        }
    }

    fn form(&self, nonce: &str, problem: Option<&str>) -> String {
        html::form(&self.path, &self.token, nonce, problem)
    }

    /// A browser says from which page a form comes; a program that says nothing must know the token.
    fn is_own(&self, headers: &HeaderMap) -> bool {
        let origin = headers.get(header::ORIGIN).map(HeaderValue::as_bytes);
        origin.is_none_or(|origin| origin == format!("http://{}", self.host).as_bytes())
    }

    async fn take(&self, body: Body, nonce: &str) -> (StatusCode, String) {
        let Ok(body) = to_bytes(body, LONGEST_FORM).await else {
            let text = self.form(nonce, Some("That is too long to be a key."));
            return (StatusCode::PAYLOAD_TOO_LARGE, text);
        };
        let field = |wanted: &str| {
            let mut fields = url::form_urlencoded::parse(&body);
            fields.find(|(name, _)| name == wanted).map(|(_, it)| it)
        };
        if !field("token").is_some_and(|token| same(&token, &self.token)) {
            let why = "This form was sent by another page.";
            return (StatusCode::FORBIDDEN, html::none(nonce, why));
        }
        match ApiKey::new(field("key").unwrap_or_default()) {
            Err(_) => {
                let problem = "That is no key: it is empty or has characters that no key has.";
                (StatusCode::BAD_REQUEST, self.form(nonce, Some(problem)))
            }
            Ok(key) => {
                // Only the first of two forms that arrive at once counts.
                if self.page.leave(super::State::Done) {
                    self.keys.add(key);
                    tracing::info!("a key was entered");
                }
                (StatusCode::OK, html::thanks(nonce))
            }
        }
    }
}

/// Compares without telling by its time how much was right.
fn same(given: &str, wanted: &str) -> bool {
    let differences = given.bytes().zip(wanted.bytes()).map(|(a, b)| a ^ b);
    given.len() == wanted.len() && differences.fold(0, |all, one| all | one) == 0
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
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
        // Not `no-referrer`: browsers would then not say from which page the form comes.
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

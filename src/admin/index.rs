//! The page at `/`: for people in a browser; programs get the health of the server.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use http::{HeaderMap, HeaderValue, Response, header};

use super::{ServerState, health};

/// The content security policy: nothing is loaded.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

/// Returns a small page for a browser, and the health of the server for all others.
pub(super) async fn index<S: ServerState>(
    state: State<Arc<S>>,
    headers: HeaderMap,
) -> Response<Body> {
    let accepts = headers.get(header::ACCEPT);
    let accepts = accepts.and_then(|accepts| accepts.to_str().ok());
    if !accepts.is_some_and(|accepts| accepts.contains("text/html")) {
        return health::health(state).await;
    }
    let mut response = Response::new(Body::from(page(state.accounts().is_some())));
    let headers = response.headers_mut();
    let html = HeaderValue::from_static("text/html; charset=utf-8");
    headers.insert(header::CONTENT_TYPE, html);
    let policy = HeaderValue::from_static(POLICY);
    headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    response
}

/// Returns the page. It shows nothing that the health of the server does not.
fn page(has_tokens: bool) -> String {
    let access = if has_tokens {
        "Clients need a token: <code>Authorization: Bearer TOKEN</code>. Admins manage tokens, limits and usage on the \
         <a href=\"/admin\">dashboard</a>."
    } else {
        "Each client sends its own Exa API key: <code>x-api-key: KEY</code>. There is no dashboard at \
         <code>/admin</code> without tokens."
    };
    format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>exa-mcp-server</title>\n\
         <style>body{{font:16px/1.5 system-ui;max-width:40rem;margin:3rem auto;padding:0 1rem}}</style>\n\
         <h1>exa-mcp-server {}</h1>\n<p>This is an MCP server for the Exa API. Connect an MCP client to \
         <code>/mcp</code>.</p>\n<p>{access}</p>\n<p>Health: <a href=\"/health\">/health</a></p>\n</html>\n",
        env!("CARGO_PKG_VERSION")
    )
}

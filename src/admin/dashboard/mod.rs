//! The dashboard at `/admin`.
//!
//! The page itself contains no data and needs no authentication. It calls the admin API with the token that the
//! user enters.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use http::{HeaderValue, Response, header};

use super::ServerState;

/// The content security policy: own scripts and styles, and requests to the same server.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      img-src 'self' data:; form-action 'none'; base-uri 'none'; \
                      frame-ancestors 'none'";

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// The files of the dashboard: path, content type and content.
const FILES: [(&str, &str, &str); 13] = [
    ("/admin", HTML, include_str!("page.html")),
    ("/admin/", HTML, include_str!("page.html")),
    ("/admin/app.css", CSS, include_str!("app.css")),
    ("/admin/app.js", SCRIPT, include_str!("app.js")),
    ("/admin/api.js", SCRIPT, include_str!("api.js")),
    ("/admin/audit.js", SCRIPT, include_str!("audit.js")),
    ("/admin/charts.js", SCRIPT, include_str!("charts.js")),
    ("/admin/dialogs.js", SCRIPT, include_str!("dialogs.js")),
    ("/admin/dom.js", SCRIPT, include_str!("dom.js")),
    ("/admin/form.js", SCRIPT, include_str!("form.js")),
    ("/admin/live.js", SCRIPT, include_str!("live.js")),
    ("/admin/tokens.js", SCRIPT, include_str!("tokens.js")),
    ("/admin/usage.js", SCRIPT, include_str!("usage.js")),
];

/// Returns the routes of the dashboard.
pub(super) fn routes<S: ServerState>() -> Router<Arc<S>> {
    let add = |router: Router<Arc<S>>, (path, content_type, content)| {
        router.route(
            path,
            get(move || async move { file(content_type, content) }),
        )
    };
    FILES.into_iter().fold(Router::new(), add)
}

fn file(content_type: &'static str, content: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::from(content));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(POLICY),
    );
    response
}

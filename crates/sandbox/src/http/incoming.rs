//! Reading a request: body, query, API key and fault.

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::HeaderMap;
use axum::http::request::Parts;

use super::ServerContext;
use super::routes::RouteMatch;
use crate::api_error::{ApiError, ErrorContext};

/// Maximum size of a request body.
const MAX_BODY: usize = 64 * 1024 * 1024;

/// A request that has been read completely.
pub(super) struct IncomingRequest {
    pub(super) parts: Parts,
    /// Decoded query without the sandbox's own parameter.
    pub(super) query: Vec<(String, String)>,
    /// The fault that the request itself names.
    pub(super) fault: Option<String>,
    pub(super) key: Option<String>,
    pub(super) body: Result<Bytes, ApiError>,
    pub(super) request_id: String,
    pub(super) now: u64,
    /// What its ids depend on, if it is recorded.
    pub(super) salt: Option<String>,
}

impl IncomingRequest {
    /// Reads a request that an earlier process has received. Ids of requests depend on those of this process alone.
    pub(super) async fn read_again(context: &ServerContext, request: Request) -> Self {
        let count = context.state().request_count();
        let request = Self::read(context, request).await;
        context.state().set_request_count(count);
        request
    }

    pub(super) async fn read(context: &ServerContext, request: Request) -> Self {
        let (parts, body) = request.into_parts();
        let body = read_body(&parts.headers, body).await;
        let mut query = parse_query(parts.uri.query().unwrap_or_default());
        let mut fault = header(&parts.headers, "x-sandbox-fault").map(str::to_owned);
        query.retain(|(key, value)| {
            let is_fault = key == "sandboxFault";
            if is_fault {
                fault = Some(value.clone());
            }
            !is_fault
        });
        let mut state = context.state();
        IncomingRequest {
            query,
            fault,
            key: api_key(&parts.headers),
            body,
            salt: None,
            request_id: state.new_request_id(),
            now: state.now(),
            parts,
        }
    }

    pub(super) fn method(&self) -> &str {
        self.parts.method.as_str()
    }

    pub(super) fn path(&self) -> &str {
        self.parts.uri.path()
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        header(&self.parts.headers, name)
    }

    /// The path below `/sandbox/`.
    pub(super) fn sandbox_path(&self) -> Option<&str> {
        self.path().strip_prefix("/sandbox/")
    }

    /// Whether the request controls the sandbox. Files do not: they are a part of the API.
    pub(super) fn is_control(&self) -> bool {
        let is_file = |path: &str| path.starts_with("uploads/") || path.starts_with("results/");
        self.sandbox_path().is_some_and(|path| !is_file(path))
    }

    /// The tokens of the `Exa-Beta` headers.
    pub(super) fn betas(&self) -> Vec<String> {
        let headers = self.parts.headers.get_all("exa-beta").iter();
        let texts = headers.filter_map(|header| header.to_str().ok());
        let tokens = texts.flat_map(|text| text.split(',')).map(str::trim);
        tokens.map(str::to_owned).collect()
    }

    /// Whether unknown fields are ignored instead of rejected.
    pub(super) fn is_lenient(&self) -> bool {
        self.header("x-sandbox-lenient") == Some("true")
    }

    /// Returns the name of the requested operation.
    pub(super) fn operation<'a>(&self, context: &'a ServerContext) -> Option<&'a str> {
        match context.routes.find(self.method(), self.path()) {
            RouteMatch::Route(route, _) => Some(&route.spec.name),
            _ => None,
        }
    }

    pub(super) fn error_context(&self) -> ErrorContext<'_> {
        ErrorContext {
            request_id: &self.request_id,
            path: self.path(),
            now: self.now,
        }
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

async fn read_body(headers: &HeaderMap, body: Body) -> Result<Bytes, ApiError> {
    let announced = header(headers, "content-length").and_then(|length| length.parse::<u64>().ok());
    let too_large = || {
        let message = format!("A body may have {MAX_BODY} bytes at most");
        ApiError::new(413, "PAYLOAD_TOO_LARGE", message)
    };
    if announced.is_some_and(|length| length > MAX_BODY as u64) {
        return Err(too_large());
    }
    axum::body::to_bytes(body, MAX_BODY)
        .await
        .map_err(|_| too_large())
}

/// Returns the key from either of the two headers that the API accepts.
fn api_key(headers: &HeaderMap) -> Option<String> {
    let bearer = || header(headers, "authorization")?.strip_prefix("Bearer ");
    let key = header(headers, "x-api-key").or_else(bearer)?.trim();
    (!key.is_empty()).then(|| key.to_owned())
}

/// Decodes the pairs of a query string, in order.
fn parse_query(query: &str) -> Vec<(String, String)> {
    form_urlencoded::parse(query.as_bytes())
        .into_owned()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_query_strings() {
        let pairs = parse_query("types=a&types=b%20c&x&y=1+2&&z=%zz%2");
        let pairs: Vec<(&str, &str)> = pairs
            .iter()
            .map(|(k, v)| (k.as_str(), v.as_str()))
            .collect();
        assert_eq!(
            pairs,
            [
                ("types", "a"),
                ("types", "b c"),
                ("x", ""),
                ("y", "1 2"),
                ("z", "%zz%2")
            ]
        );
    }
}

//! Fetches a document over HTTP, within limits of time and size.

use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, ETAG, HeaderMap, IF_NONE_MATCH};
use reqwest::header::{LOCATION, TRANSFER_ENCODING};
use reqwest::{Response, StatusCode, Url, Version};

use super::error::UpdateError;

/// No spec is larger; the largest public ones have about 12 MB.
pub const MAX_BYTES: u64 = 32 * 1024 * 1024;
const MAX_REDIRECTS: usize = 5;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The result of a request.
#[derive(Debug, PartialEq, Eq)]
pub enum FetchOutcome {
    /// The server has another document than the one with the given `ETag`.
    Document {
        /// The body.
        bytes: Vec<u8>,
        /// The `ETag` of the response.
        etag: Option<String>,
    },
    /// The document is still the one with the given `ETag`.
    NotModified,
}

/// Fetches `url`, unless the server still has the document with the given `ETag`.
pub fn fetch(
    url: &str,
    etag: Option<&str>,
    timeout: Duration,
) -> Result<FetchOutcome, UpdateError> {
    let fail = |message: String| UpdateError::Fetch {
        url: url.to_owned(),
        message,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| fail(error.to_string()))?;
    let result = runtime.block_on(async {
        tokio::time::timeout(timeout, fetch_document(url, etag))
            .await
            .unwrap_or_else(|_| {
                let seconds = timeout.as_secs_f32();
                Err(fail(format!("no complete response within {seconds} s")))
            })
    });
    // Resolving a name may still block a thread after a time-out.
    runtime.shutdown_background();
    result
}

async fn fetch_document(url: &str, etag: Option<&str>) -> Result<FetchOutcome, UpdateError> {
    let fail = |error: reqwest::Error| UpdateError::Fetch {
        url: url.to_owned(),
        message: root_cause(&error),
    };
    let mut address = Url::parse(url).map_err(|error| UpdateError::Fetch {
        url: url.to_owned(),
        message: format!("not a URL ({error})"),
    })?;
    let client = client(&address).map_err(fail)?;
    for _ in 0..=MAX_REDIRECTS {
        let mut request = client.get(address.clone()).header(
            ACCEPT,
            "application/yaml, application/json, text/plain, */*;q=0.5",
        );
        if let Some(etag) = etag {
            request = request.header(IF_NONE_MATCH, etag);
        }
        let response = request.send().await.map_err(fail)?;
        match response.status() {
            StatusCode::NOT_MODIFIED if etag.is_some() => return Ok(FetchOutcome::NotModified),
            StatusCode::OK => return read(url, response).await,
            status if is_redirect(status) => {
                address = redirect_target(&address, response.headers())?;
            }
            status => return Err(status_error(url, status)),
        }
    }
    Err(UpdateError::Redirect {
        url: url.to_owned(),
        target: address.to_string(),
        reason: "there are too many redirects",
    })
}

fn client(address: &Url) -> reqwest::Result<reqwest::Client> {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // An error means that another thread has already installed a provider.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
    let is_loopback = matches!(
        address.host_str(),
        Some("127.0.0.1" | "[::1]" | "localhost")
    );
    let builder = || {
        let builder = reqwest::Client::builder();
        // A proxy has its own loopback address.
        let builder = if is_loopback {
            builder.no_proxy()
        } else {
            builder
        };
        builder
            .redirect(reqwest::redirect::Policy::none())
            // Without compression the length of a response is known, and so is its end.
            .no_gzip()
            .referer(false)
            .connect_timeout(CONNECT_TIMEOUT)
            .user_agent(concat!("exa-mcp-codegen/", env!("CARGO_PKG_VERSION")))
    };
    match builder().build() {
        // Plain HTTP needs no certificates, so it works on a system without any.
        Err(_) if address.scheme() == "http" => builder().tls_certs_only([]).build(),
        built => built,
    }
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

/// Follows redirects within one host only: a spec decides what is compiled.
fn redirect_target(from: &Url, headers: &HeaderMap) -> Result<Url, UpdateError> {
    let location = headers.get(LOCATION).and_then(|value| value.to_str().ok());
    let refuse = |target: &str, reason| UpdateError::Redirect {
        url: from.to_string(),
        target: target.to_owned(),
        reason,
    };
    let Some(target) = location.and_then(|location| from.join(location).ok()) else {
        return Err(refuse(location.unwrap_or("nowhere"), "it is not a URL"));
    };
    if target.host_str() != from.host_str() {
        return Err(refuse(target.as_str(), "it is another host"));
    }
    if from.scheme() == "https" && target.scheme() != "https" {
        return Err(refuse(target.as_str(), "it is not encrypted"));
    }
    Ok(target)
}

fn status_error(url: &str, status: StatusCode) -> UpdateError {
    let advice = match status.as_u16() {
        404 | 410 => "If the source has moved, change its `url` in data-design/UPSTREAM.toml",
        401 | 403 => "The document is no longer public, or requests of programs are refused",
        _ => "Try again later",
    };
    UpdateError::Status {
        url: url.to_owned(),
        status: status.as_u16(),
        advice,
    }
}

async fn read(url: &str, mut response: Response) -> Result<FetchOutcome, UpdateError> {
    check_headers(url, &response)?;
    let etag = response.headers().get(ETAG);
    let etag = etag.and_then(|value| Some(value.to_str().ok()?.to_owned()));
    let mut bytes = Vec::new();
    loop {
        let chunk = response.chunk().await.map_err(|error| UpdateError::Fetch {
            url: url.to_owned(),
            message: format!("the response is incomplete ({})", root_cause(&error)),
        })?;
        let Some(chunk) = chunk else {
            return Ok(FetchOutcome::Document { bytes, etag });
        };
        bytes.extend_from_slice(&chunk);
        if bytes.len() as u64 > MAX_BYTES {
            return Err(too_large(url));
        }
    }
}

fn check_headers(url: &str, response: &Response) -> Result<(), UpdateError> {
    let headers = response.headers();
    if response
        .content_length()
        .is_some_and(|length| length > MAX_BYTES)
    {
        return Err(too_large(url));
    }
    let content_type = headers.get(CONTENT_TYPE).and_then(|v| v.to_str().ok());
    if content_type.is_some_and(|kind| kind.starts_with("text/html")) {
        return Err(UpdateError::NotASpec {
            location: url.to_owned(),
            message: "the server sent an HTML page; the document may have moved".to_owned(),
        });
    }
    let has_end = response.version() >= Version::HTTP_2
        || headers.contains_key(CONTENT_LENGTH)
        || headers.contains_key(TRANSFER_ENCODING);
    if has_end {
        return Ok(());
    }
    Err(UpdateError::Fetch {
        url: url.to_owned(),
        message: "the response has no length, so it may be truncated unnoticed".to_owned(),
    })
}

fn too_large(url: &str) -> UpdateError {
    UpdateError::TooLarge {
        location: url.to_owned(),
        limit: MAX_BYTES,
    }
}

/// Returns the innermost cause, which is the most specific.
fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

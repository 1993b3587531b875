//! Uploads a file to a URL that Exa returned for it.
//!
//! Such a URL is pre-signed and often belongs to another company, so the request carries no API key and
//! follows no redirect. Because the URL comes from upstream, it must point to a public host over https, or to
//! the host of the API itself if the operator configured one.

use std::{io, net::IpAddr, time::Duration};

use futures_util::Stream;
use http::{
    HeaderValue, Method, StatusCode,
    header::{CONTENT_LENGTH, CONTENT_TYPE, USER_AGENT},
};
use reqwest::{Body, Client, Request};
use url::{Host, Url};

use super::{
    ExaError, ExaErrorKind, ExaHttp, body,
    deadline::Deadline,
    error_messages::status_name,
    public_address::{NotPublicError, is_local_name, may_be_public},
    redirect,
    retry::{self, Backoff, Effect},
    text, transport_error,
};

/// The minimum time limit of an upload.
const MIN_TIMEOUT: Duration = Duration::from_secs(120);
/// The transfer rate that extends the time limit of large uploads.
const MIN_BYTES_PER_SECOND: u64 = 32 * 1024;

/// A file upload.
#[derive(Clone, Copy, Debug)]
pub struct UploadRequest<'a> {
    /// The URL; its query may contain a signature, so it is never shown.
    pub address: &'a str,
    /// The size in bytes.
    pub size: u64,
    /// The media type, such as `text/csv`.
    pub content_type: &'static str,
}

/// Uploads a file by PUT, with retries. `content` opens the file from its start, or returns `None` if it can
/// no longer be read.
///
/// # Errors
/// The upload failed. The message is a clause without the URL.
pub async fn upload<S>(
    http: &ExaHttp,
    upload: UploadRequest<'_>,
    content: impl Fn() -> Option<S>,
) -> Result<(), ExaError>
where
    S: Stream<Item = io::Result<Vec<u8>>> + Send + 'static,
{
    let (client, url) = stored_file(http, upload.address)?;
    let mut backoff = Backoff::new(&http.config().retry);
    let mut attempts = 0;
    loop {
        attempts += 1;
        let Some(stream) = content() else {
            return Err(failed("its content can no longer be read".to_owned(), None));
        };
        let mut request = Request::new(Method::PUT, url.clone());
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(upload.content_type));
        headers.insert(CONTENT_LENGTH, HeaderValue::from(upload.size));
        headers.insert(USER_AGENT, http.user_agent());
        *request.timeout_mut() = Some(timeout(upload.size));
        *request.body_mut() = Some(Body::wrap_stream(stream));
        let (mut error, effect) = match attempt(&client, request).await {
            Ok(()) => return Ok(()),
            Err(failure) => failure,
        };
        error.attempts = attempts;
        let wait = if effect.allows(&Method::PUT) {
            backoff.next(error.retry_after)
        } else {
            None
        };
        match wait {
            Some(wait) => tokio::time::sleep(wait).await,
            None => return Err(error),
        }
    }
}

/// Returns a client for a file that a response refers to, and its URL. The client follows no redirect and connects to
/// public hosts only, or to the host of the API itself if the operator configured one.
///
/// # Errors
/// The URL is not acceptable, or the client cannot be created. The message is a clause without the URL.
pub fn stored_file(http: &ExaHttp, address: &str) -> Result<(Client, Url), ExaError> {
    let target = Target::new(http, address).map_err(|reason| failed(reason, None))?;
    let client = if target.is_api_host {
        http.client()?.clone()
    } else {
        http.public_client(target.url.host_str().unwrap_or_default())?
    };
    Ok((client, target.url))
}

async fn attempt(client: &Client, request: Request) -> Result<(), (ExaError, Effect)> {
    let sent = client.execute(request).await;
    let mut response = sent.map_err(|error| {
        let is_private = transport_error::causes(&error).any(|cause| cause.is::<NotPublicError>());
        let effect = if error.is_timeout() || is_private {
            Effect::Final
        } else {
            Effect::from_error_kind(ExaErrorKind::ConnectionLost)
        };
        let message = transport_error::error(&error).message;
        (
            failed(message.trim_end_matches('.').to_owned(), None),
            effect,
        )
    })?;
    let status = response.status();
    if status.is_success() {
        return Ok(());
    }
    if redirect::is_redirect(status) {
        let reason = format!("the address returned {status}, and an upload follows no redirect");
        return Err((failed(reason, Some(status)), Effect::Final));
    }
    let retry_after = retry::retry_after(response.headers(), std::time::SystemTime::now());
    // The time limit of the request applies here as well.
    let body = body::read_start(&mut response, &Deadline::after(MIN_TIMEOUT)).await;
    let quote = text::html_text(&String::from_utf8_lossy(&body));
    let quote = text::tidy(None, &quote, text::MAX_EXCERPT);
    let mut reason = format!("the address returned {}", status_name(status.as_u16()));
    if !quote.is_empty() {
        reason = format!("{reason}: {quote}");
    }
    let mut error = failed(reason.trim_end_matches('.').to_owned(), Some(status));
    error = error.with_quote(quote.trim_end_matches('.'));
    error.retry_after = retry_after;
    Err((
        error,
        Effect::from_error_kind(ExaErrorKind::Api(status.as_u16())),
    ))
}

fn failed(reason: String, status: Option<StatusCode>) -> ExaError {
    let mut error = ExaError::new(ExaErrorKind::Upload, reason);
    error.status = status.map(|status| status.as_u16());
    error
}

fn timeout(size: u64) -> Duration {
    MIN_TIMEOUT + Duration::from_secs(size / MIN_BYTES_PER_SECOND)
}

/// The address of a stored file.
#[derive(Debug)]
struct Target {
    url: Url,
    /// Whether it is the host of the API. The operator chose that host, so it may be in a private network.
    is_api_host: bool,
}

impl Target {
    /// Checks the URL: https to a public host, or the host of the configured base URL. If that is a loopback
    /// address, any loopback address is allowed.
    fn new(http: &ExaHttp, address: &str) -> Result<Self, String> {
        let url =
            Url::parse(address).map_err(|_| "Exa returned no valid address for it".to_owned())?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err("the address from Exa contains a user name or password".to_owned());
        }
        let base = http.config().base_url.as_ref();
        let api_base = base
            .filter(|base| base.host() == url.host() || (is_loopback(base) && is_loopback(&url)));
        let allows_http = api_base.is_some_and(|base| base.scheme() == "http");
        if url.scheme() != "https" && !(url.scheme() == "http" && allows_http) {
            return Err("the address from Exa is not an https address".to_owned());
        }
        if api_base.is_none() && !may_be_public(&url) {
            let host = url.host_str().unwrap_or_default();
            return Err(format!(
                "the address from Exa is on {host}, which is not a public host; a private host must be that of \
                 EXA_BASE_URL"
            ));
        }
        let is_api_host = api_base.is_some();
        Ok(Self { url, is_api_host })
    }
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => is_local_name(name),
        Some(Host::Ipv4(address)) => IpAddr::from(address).is_loopback(),
        Some(Host::Ipv6(address)) => IpAddr::from(address).is_loopback(),
        None => false,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::ExaConfig;

    fn allowed(base: Option<&str>, address: &str) -> bool {
        let http = ExaHttp::new(ExaConfig {
            base_url: base.map(|base| base.parse().unwrap()),
            ..ExaConfig::default()
        });
        Target::new(&http.unwrap(), address).is_ok()
    }

    #[test]
    fn allows_public_https_hosts_and_the_api_host() {
        let storage = "https://storage.example/file?signature=x";
        let local = Some("http://127.0.0.1:8099");
        assert!(allowed(None, storage) && allowed(local, storage));
        assert!(allowed(local, "http://127.0.0.1:1/file"));
        assert!(allowed(local, "http://localhost:1/file") && allowed(local, "http://[::1]/file"));
        assert!(allowed(
            Some("http://sandbox:8099"),
            "http://sandbox:1/file"
        ));
        assert!(allowed(
            Some("https://10.0.0.1"),
            "https://10.0.0.1:9000/file"
        ));
        for (base, address) in [
            (None, "http://storage.example/file"),
            (None, "http://127.0.0.1:1/file"),
            (Some("https://127.0.0.1"), "http://127.0.0.1:1/file"),
            (local, "http://storage.example/file"),
            (local, "http://10.0.0.1/file"),
            (Some("http://sandbox:8099"), "http://127.0.0.1:1/file"),
            (Some("http://sandbox:8099"), "https://127.0.0.1:1/file"),
            (Some("https://proxy.example"), "https://10.0.0.1/file"),
            (local, "https://10.0.0.1/file"),
            (local, "https://169.254.169.254/latest"),
            (None, "https://127.0.0.1/file"),
            (None, "https://localhost/file"),
            (None, "https://2130706433/file"),
            (None, "https://192.168.1.1/file"),
            (None, "https://100.64.0.1/file"),
            (None, "https://[fd00::1]/file"),
            (None, "https://[::ffff:10.0.0.1]/file"),
            (None, "https://me:secret@storage.example/file"),
            (None, "file:///etc/passwd"),
            (None, "storage.example/file"),
            (None, ""),
        ] {
            assert!(!allowed(base, address), "{base:?} {address}");
        }
    }

    #[test]
    fn large_files_get_more_time() {
        assert_eq!(timeout(0), MIN_TIMEOUT);
        assert_eq!(timeout(50_000_000), MIN_TIMEOUT + Duration::from_secs(1525));
    }
}

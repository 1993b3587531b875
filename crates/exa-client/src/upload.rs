//! Sending a file to an address that Exa named for it.
//!
//! Such an address carries its own permission and often belongs to another company, so the request
//! has nothing of what other requests have: no API key, and no redirect is followed. It is upstream's
//! word, so it may name a public host over https, or the host of the API itself where the operator
//! configured one, and nothing else.

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
    public_address::{NotPublic, is_local_name, may_be_public},
    redirect,
    retry::{self, Backoff, Effect},
    text, transport_error,
};

/// How long an upload may take, whatever its size, and how slow it may be beyond that.
const LEAST_TIME: Duration = Duration::from_secs(120);
const LEAST_BYTES_PER_SECOND: u64 = 32 * 1024;

/// What to send where.
#[derive(Clone, Copy, Debug)]
pub struct UploadRequest<'a> {
    /// The address that Exa named; its query may hold a signature, so it is never shown.
    pub address: &'a str,
    /// How many bytes there are.
    pub size: u64,
    /// What they are, such as `text/csv`.
    pub content_type: &'static str,
}

/// Sends a file by PUT, several times if need be. `content` opens it from its beginning, or gives
/// nothing if it cannot be sent any more.
///
/// # Errors
/// What kept the file from being taken, in half a sentence and without the address.
pub async fn upload<S>(
    http: &ExaHttp,
    upload: UploadRequest<'_>,
    content: impl Fn() -> Option<S>,
) -> Result<(), ExaError>
where
    S: Stream<Item = io::Result<Vec<u8>>> + Send + 'static,
{
    let target = Target::of(http, upload.address).map_err(|why| failed(why, None))?;
    let client = if target.is_near {
        http.client()?.clone()
    } else {
        http.public_client(target.url.host_str().unwrap_or_default())?
    };
    let mut waits = Backoff::new(&http.config().retry);
    let mut attempts = 0;
    loop {
        attempts += 1;
        let Some(stream) = content() else {
            return Err(failed(
                "its content cannot be read any more".to_owned(),
                None,
            ));
        };
        let mut request = Request::new(Method::PUT, target.url.clone());
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(upload.content_type));
        headers.insert(CONTENT_LENGTH, HeaderValue::from(upload.size));
        headers.insert(USER_AGENT, http.user_agent());
        *request.timeout_mut() = Some(longest(upload.size));
        *request.body_mut() = Some(Body::wrap_stream(stream));
        let (mut error, effect) = match attempt(&client, request).await {
            Ok(()) => return Ok(()),
            Err(failure) => failure,
        };
        error.attempts = attempts;
        let wait = if effect.allows(&Method::PUT) {
            waits.next(error.retry_after)
        } else {
            None
        };
        match wait {
            Some(wait) => tokio::time::sleep(wait).await,
            None => return Err(error),
        }
    }
}

async fn attempt(client: &Client, request: Request) -> Result<(), (ExaError, Effect)> {
    let sent = client.execute(request).await;
    let mut response = sent.map_err(|error| {
        let is_refused = transport_error::causes(&error).any(|cause| cause.is::<NotPublic>());
        let effect = if error.is_timeout() || is_refused {
            Effect::Final
        } else {
            Effect::of(ExaErrorKind::ConnectionLost)
        };
        let told = transport_error::error(&error).message;
        (failed(told.trim_end_matches('.').to_owned(), None), effect)
    })?;
    let status = response.status();
    if status.is_success() {
        return Ok(());
    }
    if redirect::is_redirect(status) {
        let why = format!("the address answered {status}, and an upload follows no redirect");
        return Err((failed(why, Some(status)), Effect::Final));
    }
    let asked = retry::retry_after(response.headers(), std::time::SystemTime::now());
    // The time of the request bounds this as well.
    let said = body::read_start(&mut response, &Deadline::after(LEAST_TIME)).await;
    let said = text::html_text(&String::from_utf8_lossy(&said));
    let said = text::tidy(None, &said, text::MAX_EXCERPT);
    let mut why = format!("the address answered {}", status_name(status.as_u16()));
    if !said.is_empty() {
        why = format!("{why}: {said}");
    }
    let mut error = failed(why.trim_end_matches('.').to_owned(), Some(status));
    error = error.with_quote(said.trim_end_matches('.'));
    error.retry_after = asked;
    Err((error, Effect::of(ExaErrorKind::Api(status.as_u16()))))
}

fn failed(why: String, status: Option<StatusCode>) -> ExaError {
    let mut error = ExaError::new(ExaErrorKind::Upload, why);
    error.status = status.map(|status| status.as_u16());
    error
}

fn longest(size: u64) -> Duration {
    LEAST_TIME + Duration::from_secs(size / LEAST_BYTES_PER_SECOND)
}

/// Where a file is sent.
#[derive(Debug)]
struct Target {
    url: Url,
    /// It is the host of the API, which the operator chose, so it may be in a private network.
    is_near: bool,
}

impl Target {
    /// The address, if a file may be sent there: over https to a public host, or to the host of a base
    /// URL that the operator set. From one on the loopback interface that is any address there.
    fn of(http: &ExaHttp, address: &str) -> Result<Self, String> {
        let url =
            Url::parse(address).map_err(|_| "Exa named no usable address for it".to_owned())?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err("the address that Exa named holds a user name or password".to_owned());
        }
        let base = http.config().base_url.as_ref();
        let near = base
            .filter(|base| base.host() == url.host() || (is_loopback(base) && is_loopback(&url)));
        let is_plain = near.is_some_and(|base| base.scheme() == "http");
        if url.scheme() != "https" && !(url.scheme() == "http" && is_plain) {
            return Err("the address that Exa named is not an https address".to_owned());
        }
        if near.is_none() && !may_be_public(&url) {
            let host = url.host_str().unwrap_or_default();
            return Err(format!(
                "the address that Exa named is on {host}, which is not a public host; a private one must be the host \
                 of EXA_BASE_URL"
            ));
        }
        let is_near = near.is_some();
        Ok(Self { url, is_near })
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
        Target::of(&http.unwrap(), address).is_ok()
    }

    #[test]
    fn files_go_to_encrypted_addresses_only_unless_the_api_is_near() {
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
        assert_eq!(longest(0), LEAST_TIME);
        assert_eq!(longest(50_000_000), LEAST_TIME + Duration::from_secs(1525));
    }
}

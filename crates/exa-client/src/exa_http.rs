//! The shared HTTP client, created on first use.

use std::{
    fmt,
    sync::{Arc, Mutex, OnceLock},
    time::Duration,
};

use http::HeaderValue;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::{
    ConfigError, ExaConfig, ExaError,
    config::check_base_url,
    public_address::PublicResolver,
    response_memory::{ResponseMemory, lend_response_memory},
    transport_error,
};
use exa_mcp_model::{KeyKind, lock};

/// How long an idle connection stays open. Servers close theirs after about a minute, and a POST on a
/// connection that is being closed could not be retried.
const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// The maximum number of concurrent requests; further ones wait for a slot before they cost anything. Each
/// may need its own connection, and many systems limit a process to about a thousand. The limit is higher
/// than that of concurrent client calls, so that tasks always make progress.
const MAX_CONCURRENT_REQUESTS: usize = 320;

/// Why no request is sent.
const NO_NETWORK: &str =
    "The request was not sent: EXA_MCP_NO_NETWORK is set. Unset it to allow requests to Exa.";

/// The connection pool and settings that all calls share. Cheap to clone.
#[derive(Clone)]
pub struct ExaHttp {
    inner: Arc<Inner>,
}

struct Inner {
    config: ExaConfig,
    user_agent: HeaderValue,
    client: OnceLock<reqwest::Client>,
    slots: Semaphore,
    response_memory: ResponseMemory,
    /// Whether Exa responded to the last call.
    healthy: Mutex<Option<bool>>,
}

impl ExaHttp {
    /// Validates the settings. No connection is made and no certificates are loaded yet.
    ///
    /// # Errors
    /// The base URL or the user agent is invalid.
    pub fn new(config: ExaConfig) -> Result<Self, ConfigError> {
        for kind in [KeyKind::Api, KeyKind::Service] {
            config
                .base_url_of(kind)
                .map_or(Ok(()), |url| check_base_url(kind, url))?;
        }
        let user_agent =
            HeaderValue::from_str(&config.user_agent).map_err(|_| ConfigError::UserAgent)?;
        let response_memory = ResponseMemory::new(config.max_response_memory);
        Ok(Self {
            inner: Arc::new(Inner {
                config,
                response_memory,
                user_agent,
                client: OnceLock::new(),
                slots: Semaphore::new(MAX_CONCURRENT_REQUESTS),
                healthy: Mutex::default(),
            }),
        })
    }

    /// Returns the settings.
    #[must_use]
    pub fn config(&self) -> &ExaConfig {
        &self.inner.config
    }

    /// Returns the configured base URL for keys of this kind, or else `default`, without a trailing slash.
    #[must_use]
    pub fn base_url(&self, kind: KeyKind, default: &str) -> String {
        let url = self.inner.config.base_url_of(kind);
        let base = url.map_or(default, |url| url.as_str());
        base.trim_end_matches('/').to_owned()
    }

    /// Returns the HTTP client. The first call creates it, because loading the certificates takes time.
    ///
    /// # Errors
    /// The system's trusted certificates could not be loaded. The next call tries again.
    pub fn client(&self) -> Result<&reqwest::Client, ExaError> {
        self.check_network()?;
        if let Some(client) = self.inner.client.get() {
            return Ok(client);
        }
        let client = build(&self.inner.config, |builder| builder)?;
        // Concurrent first calls may build several clients; one of them is used.
        Ok(self.inner.client.get_or_init(|| client))
    }

    /// Rejects every request if the network is disabled.
    ///
    /// # Errors
    /// The settings disable the network.
    pub fn check_network(&self) -> Result<(), ExaError> {
        if self.inner.config.no_network {
            return Err(ExaError::config(NO_NETWORK));
        }
        Ok(())
    }

    /// Creates a client that connects to this host only at public addresses.
    ///
    /// # Errors
    /// The system's trusted certificates could not be loaded.
    pub(super) fn public_client(&self, host: &str) -> Result<reqwest::Client, ExaError> {
        self.check_network()?;
        let host = host.to_ascii_lowercase();
        build(&self.inner.config, |builder| {
            let host = host.clone();
            builder.dns_resolver(Arc::new(PublicResolver { host }))
        })
    }

    /// Records whether Exa responded.
    pub fn record_health(&self, healthy: bool) {
        *lock(&self.inner.healthy) = Some(healthy);
    }

    /// Returns whether Exa responded to the last call; `None` before the first one.
    pub fn is_healthy(&self) -> Option<bool> {
        *lock(&self.inner.healthy)
    }

    /// Waits for a slot among the concurrent requests. Returns `None` only if the semaphore is closed, which
    /// never happens.
    pub async fn acquire_slot(&self) -> Option<SemaphorePermit<'_>> {
        if let Ok(slot) = self.inner.slots.try_acquire() {
            return Some(slot);
        }
        // Requests that have a slot may be waiting for memory that this call holds.
        lend_response_memory();
        self.inner.slots.acquire().await.ok()
    }

    /// Returns the memory budget of large responses.
    pub(super) fn response_memory(&self) -> &ResponseMemory {
        &self.inner.response_memory
    }

    /// Returns the value of the `user-agent` header.
    pub(super) fn user_agent(&self) -> HeaderValue {
        self.inner.user_agent.clone()
    }
}

impl fmt::Debug for ExaHttp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExaHttp")
            .field("config", &self.inner.config)
            .field("connected", &self.inner.client.get().is_some())
            .finish()
    }
}

/// Creates a client. reqwest reads proxies from the environment by default.
fn build(
    config: &ExaConfig,
    customize: impl Fn(reqwest::ClientBuilder) -> reqwest::ClientBuilder,
) -> Result<reqwest::Client, ExaError> {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // An error means that another thread has already installed a provider.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
    let without_tls = config
        .base_url
        .as_ref()
        .is_some_and(|url| url.scheme() == "http");
    match customize(builder(config)).build() {
        // Plain HTTP needs no certificates, so it works on a system without any.
        Err(_) if without_tls => customize(builder(config)).tls_certs_only([]).build(),
        built => built,
    }
    .map_err(|error| {
        ExaError::config(format!(
            "The HTTPS client could not be set up: {}. Install the CA certificates of the system, or \
             set SSL_CERT_FILE to a PEM file with trusted certificates.",
            transport_error::root_cause(&error)
        ))
    })
}

fn builder(config: &ExaConfig) -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        // `send` follows redirects itself, because it knows the method and the key.
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .connect_timeout(config.connect_timeout)
        .pool_idle_timeout(POOL_IDLE_TIMEOUT)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use url::Url;

    fn with_base(base: &str) -> Result<ExaHttp, ConfigError> {
        ExaHttp::new(ExaConfig {
            base_url: Some(Url::parse(base).unwrap()),
            ..ExaConfig::default()
        })
    }

    #[test]
    fn prefers_the_configured_base_url() {
        let plain = ExaHttp::new(ExaConfig::default()).unwrap();
        let api = |http: &ExaHttp| http.base_url(KeyKind::Api, "https://api.exa.ai/");
        assert_eq!(api(&plain), "https://api.exa.ai");
        let other = with_base("http://127.0.0.1:9/x/").unwrap();
        assert_eq!(api(&other), "http://127.0.0.1:9/x");
        let admin = "https://admin-api.exa.ai";
        assert_eq!(other.base_url(KeyKind::Service, admin), admin);
    }

    #[test]
    fn rejects_invalid_settings() {
        assert!(with_base("https://u:p@api.exa.ai").is_err());
        let config = ExaConfig {
            user_agent: "a\nb".to_owned(),
            ..ExaConfig::default()
        };
        assert_eq!(ExaHttp::new(config).unwrap_err(), ConfigError::UserAgent);
    }

    #[test]
    fn creates_the_client_on_first_use_and_shares_it() {
        let http = ExaHttp::new(ExaConfig::default()).unwrap();
        assert!(http.inner.client.get().is_none());
        let clone = http.clone();
        clone.client().unwrap();
        assert!(http.inner.client.get().is_some());
    }
}

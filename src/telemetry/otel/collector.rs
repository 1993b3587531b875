//! The HTTP client for the OpenTelemetry collector.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use tokio::runtime::Handle;
use url::Url;

use exa_mcp_exa_client::{ConfigError, ExaConfig, ExaHttp, root_cause};

/// The maximum size of a response to read. Its content is ignored.
const MAX_RESPONSE_BYTES: usize = 64 * 1024;

/// Sends data from OpenTelemetry's threads on the server's runtime.
#[derive(Debug)]
pub(super) struct CollectorClient {
    /// `TRACES` or `METRICS`.
    signal: &'static str,
    http: ExaHttp,
    runtime: Handle,
    timeout: Duration,
    /// Whether the last request failed. Only changes are logged.
    failing: Arc<AtomicBool>,
}

impl CollectorClient {
    /// Creates a client with a timeout. Must be called on the runtime.
    pub(super) fn new(
        signal: &'static str,
        endpoint: &Url,
        timeout: Duration,
    ) -> Result<Self, ConfigError> {
        // The URL determines whether the client loads certificates.
        let origin = endpoint.origin().ascii_serialization();
        let config = ExaConfig {
            base_url: Url::parse(&origin).ok(),
            ..ExaConfig::default()
        };
        Ok(Self {
            signal,
            http: ExaHttp::new(config)?,
            runtime: Handle::current(),
            timeout,
            failing: Arc::default(),
        })
    }

    fn log_failure(&self, failure: Option<&str>) {
        let failed = self.failing.swap(failure.is_some(), Ordering::Relaxed);
        let signal = self.signal.to_ascii_lowercase();
        match failure {
            Some(reason) if !failed => tracing::warn!(
                "the OpenTelemetry collector does not accept {signal} ({reason}); they are lost until it does; check \
                 OTEL_EXPORTER_OTLP_ENDPOINT"
            ),
            None if failed => {
                tracing::info!("the OpenTelemetry collector accepts {signal} again")
            }
            _ => {}
        }
    }
}

#[async_trait]
impl HttpClient for CollectorClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        // Created on this thread, which serves no requests, because loading certificates takes time.
        let client = self.http.client().cloned();
        let client = client.map_err(|error| error.message)?;
        let timeout = self.timeout;
        // The timer must be created on the runtime too.
        let sending = async move { tokio::time::timeout(timeout, exchange(client, request)).await };
        let response = match self.runtime.spawn(sending).await {
            Ok(Ok(response)) => response,
            Ok(Err(_)) => Err("no response in time".to_owned()),
            // The runtime has outcome.
            Err(error) => return Err(error.into()),
        };
        match &response {
            Ok(response) if !response.status().is_success() => {
                self.log_failure(Some(&format!("status {}", response.status())));
            }
            Ok(_) => self.log_failure(None),
            Err(reason) => self.log_failure(Some(reason)),
        }
        Ok(response?)
    }
}

async fn exchange(
    client: reqwest::Client,
    request: Request<Bytes>,
) -> Result<Response<Bytes>, String> {
    let request = reqwest::Request::try_from(request).map_err(|error| root_cause(&error))?;
    let response = client.execute(request).await;
    let mut response = response.map_err(|error| root_cause(&error))?;
    let mut response_head = Response::new(Bytes::new());
    *response_head.status_mut() = response.status();
    *response_head.headers_mut() = response.headers().clone();
    // A connection is reused only after its response was read.
    let mut read = 0;
    while let Ok(Some(piece)) = response.chunk().await {
        read += piece.len();
        if read > MAX_RESPONSE_BYTES {
            break;
        }
    }
    Ok(response_head)
}

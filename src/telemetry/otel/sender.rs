//! The way to a collector.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use tokio::runtime::Handle;
use tokio::time::timeout;
use url::Url;

use exa_mcp_exa_client::{ConfigError, ExaConfig, ExaHttp, root_cause};

/// How much of an answer is read; nobody looks at it.
const LONGEST_ANSWER: usize = 64 * 1024;

/// Sends on our runtime what the threads of OpenTelemetry have collected.
#[derive(Debug)]
pub(super) struct Sender {
    /// `TRACES` or `METRICS`.
    signal: &'static str,
    http: ExaHttp,
    runtime: Handle,
    patience: Duration,
    /// It is told once that the collector does not answer, not every time.
    failing: Arc<AtomicBool>,
}

impl Sender {
    /// A sender that waits so long for an answer. Must be made on the runtime.
    pub(super) fn new(
        signal: &'static str,
        endpoint: &Url,
        patience: Duration,
    ) -> Result<Self, ConfigError> {
        // The client must know whether it needs certificates.
        let origin = endpoint.origin().ascii_serialization();
        let config = ExaConfig {
            base_url: Url::parse(&origin).ok(),
            ..ExaConfig::default()
        };
        Ok(Self {
            signal,
            http: ExaHttp::new(config)?,
            runtime: Handle::current(),
            patience,
            failing: Arc::default(),
        })
    }

    fn note(&self, failure: Option<&str>) {
        let failed = self.failing.swap(failure.is_some(), Ordering::Relaxed);
        let what = self.signal.to_ascii_lowercase();
        match failure {
            Some(why) if !failed => tracing::warn!(
                "The collector of OpenTelemetry does not take the {what} ({why}); they are lost until it \
                 does. Check OTEL_EXPORTER_OTLP_ENDPOINT."
            ),
            None if failed => {
                tracing::info!("The collector of OpenTelemetry takes the {what} again")
            }
            _ => {}
        }
    }
}

#[async_trait]
impl HttpClient for Sender {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        // Made here, on a thread that serves nobody: loading the certificates takes time.
        let client = self.http.client().cloned();
        let client = client.map_err(|error| error.message)?;
        let patience = self.patience;
        // The timer, too, must be made on the runtime.
        let sending = async move { timeout(patience, exchange(client, request)).await };
        let answer = match self.runtime.spawn(sending).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err("it does not answer in time".to_owned()),
            // The runtime has ended.
            Err(error) => return Err(error.into()),
        };
        match &answer {
            Ok(answer) if !answer.status().is_success() => {
                self.note(Some(&format!("it answers {}", answer.status())));
            }
            Ok(_) => self.note(None),
            Err(why) => self.note(Some(why)),
        }
        Ok(answer?)
    }
}

async fn exchange(
    client: reqwest::Client,
    request: Request<Bytes>,
) -> Result<Response<Bytes>, String> {
    let request = reqwest::Request::try_from(request).map_err(|error| root_cause(&error))?;
    let answer = client.execute(request).await;
    let mut answer = answer.map_err(|error| root_cause(&error))?;
    let mut kept = Response::new(Bytes::new());
    *kept.status_mut() = answer.status();
    *kept.headers_mut() = answer.headers().clone();
    // A connection is used again only if its answer was read.
    let mut read = 0;
    while let Ok(Some(piece)) = answer.chunk().await {
        read += piece.len();
        if read > LONGEST_ANSWER {
            break;
        }
    }
    Ok(kept)
}

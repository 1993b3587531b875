//! Export of traces and metrics to an OpenTelemetry collector, following its conventions for MCP.
//!
//! Without a configured collector nothing is started, and a span costs one atomic load. Data is sent from
//! separate threads with bounded queues that drop excess items, so responses never wait for the collector.

mod collector;
mod instruments;
mod span;

use std::env;
use std::future::Future;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use opentelemetry::trace::TracerProvider;
use opentelemetry::{InstrumentationScope, Key, KeyValue};
use opentelemetry_otlp::{
    ExporterBuildError, MetricExporter, RetryPolicy, SpanExporter, WithHttpConfig,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use thiserror::Error;
use tokio::time::timeout;
use url::Url;

use self::collector::CollectorClient;
use self::instruments::Instruments;
use exa_mcp_exa_client::ConfigError;

pub(crate) use self::span::Span;

const NAME: &str = env!("CARGO_PKG_NAME");
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// How long sending the last spans and metrics may take. Clients kill a server after four seconds.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(3);

static EXPORT: OnceLock<Export> = OnceLock::new();

/// The exporters of this process.
struct Export {
    traces: Option<(SdkTracerProvider, SdkTracer)>,
    metrics: SdkMeterProvider,
    instruments: Instruments,
}

/// The reason that the export could not start.
#[derive(Debug, Error)]
enum StartError {
    #[error("{0}")]
    Exporter(#[from] ExporterBuildError),
    #[error("the endpoint for {0} is not an http:// or https:// URL")]
    Endpoint(&'static str),
    #[error("{0}")]
    Client(#[from] ConfigError),
}

/// Runs the server, and exports traces and metrics if a collector is configured.
pub(crate) async fn with_exporter<F: Future>(serving: F) -> F::Output {
    start();
    let served = serving.await;
    stop().await;
    served
}

/// Records a tool result.
pub(super) fn record_result(tokens: u64, dollars: f64, cached: bool) {
    if let Some(export) = export() {
        export.instruments.record_result(tokens, dollars, cached);
    }
}

/// Returns the exporters, if they are started.
fn export() -> Option<&'static Export> {
    EXPORT.get()
}

/// Starts the export. An invalid setting is logged and does not stop the server.
fn start() {
    let (traces, metrics) = (is_enabled("TRACES"), is_enabled("METRICS"));
    if !(traces || metrics) || EXPORT.get().is_some() {
        return;
    }
    match Export::new(traces, metrics) {
        Ok(export) => drop(EXPORT.set(export)),
        Err(error) => {
            tracing::warn!("OpenTelemetry export is disabled: {error}; check the OTEL_ variables");
        }
    }
}

/// Sends the remaining data within the shutdown timeout.
async fn stop() {
    let Some(export) = export() else {
        return;
    };
    let traces = tokio::task::spawn_blocking(|| {
        let (provider, _) = export.traces.as_ref()?;
        provider.shutdown_with_timeout(SHUTDOWN_TIMEOUT).ok()
    });
    let metrics = tokio::task::spawn_blocking(|| drop(export.metrics.shutdown()));
    let both = async { tokio::join!(traces, metrics) };
    if timeout(SHUTDOWN_TIMEOUT, both).await.is_err() {
        tracing::warn!(
            "the last traces and metrics were lost: the collector did not respond in time"
        );
    }
}

/// Returns whether a collector is configured for a signal and the signal is not disabled.
fn is_enabled(signal: &str) -> bool {
    let is = |name: &str, wanted: &str| {
        variable(name).is_some_and(|value| value.eq_ignore_ascii_case(wanted))
    };
    let off = is("OTEL_SDK_DISABLED", "true") || is(&format!("OTEL_{signal}_EXPORTER"), "none");
    !off && endpoint(signal).is_some()
}

/// Returns the URL of the collector for a signal.
fn endpoint(signal: &str) -> Option<String> {
    variable(&format!("OTEL_EXPORTER_OTLP_{signal}_ENDPOINT"))
        .or_else(|| variable("OTEL_EXPORTER_OTLP_ENDPOINT"))
}

/// Returns an environment variable. An empty one counts as unset.
fn variable(name: &str) -> Option<String> {
    let value = env::var(name).ok()?;
    let value = value.trim();
    (!value.is_empty()).then(|| value.to_owned())
}

impl Export {
    fn new(traces: bool, metrics: bool) -> Result<Self, StartError> {
        let resource = resource();
        let traces = if traces {
            Some(build_tracer(resource.clone())?)
        } else {
            None
        };
        let provider = SdkMeterProvider::builder().with_resource(resource);
        let provider = if metrics {
            provider.with_periodic_exporter(build_metric_exporter()?)
        } else {
            provider
        };
        let metrics = provider.build();
        Ok(Self {
            traces,
            instruments: Instruments::new(&metrics, scope()),
            metrics,
        })
    }
}

fn build_tracer(resource: Resource) -> Result<(SdkTracerProvider, SdkTracer), StartError> {
    let exporter = SpanExporter::builder()
        .with_http()
        .with_shared_http_client(collector_client("TRACES")?)
        .with_retry_policy(retry_policy())
        .build()?;
    let provider = SdkTracerProvider::builder()
        .with_resource(resource)
        .with_batch_exporter(exporter)
        .build();
    let tracer = provider.tracer_with_scope(scope());
    Ok((provider, tracer))
}

fn build_metric_exporter() -> Result<MetricExporter, StartError> {
    let exporter = MetricExporter::builder()
        .with_http()
        .with_shared_http_client(collector_client("METRICS")?)
        .with_retry_policy(retry_policy());
    Ok(exporter.build()?)
}

fn collector_client(signal: &'static str) -> Result<Arc<CollectorClient>, StartError> {
    let milliseconds = variable(&format!("OTEL_EXPORTER_OTLP_{signal}_TIMEOUT"))
        .or_else(|| variable("OTEL_EXPORTER_OTLP_TIMEOUT"))
        .and_then(|value| value.parse().ok());
    let timeout = Duration::from_millis(milliseconds.unwrap_or(10_000));
    // The exporter's own error would repeat the URL, which may contain a password.
    let endpoint = endpoint(signal).and_then(|endpoint| Url::parse(&endpoint).ok());
    let endpoint = endpoint
        .filter(|url| matches!(url.scheme(), "http" | "https"))
        .ok_or(StartError::Endpoint(signal))?;
    Ok(Arc::new(CollectorClient::new(signal, &endpoint, timeout)?))
}

/// Retries for a moment if the collector is unavailable; data is lost after that. All retries end within the
/// shutdown timeout.
fn retry_policy() -> RetryPolicy {
    RetryPolicy::recommended()
        .with_max_retries(2)
        .with_max_delay(Duration::from_millis(500))
}

fn scope() -> InstrumentationScope {
    InstrumentationScope::builder(NAME)
        .with_version(VERSION)
        .build()
}

/// Returns the resource attributes of the environment, with a default service name.
fn resource() -> Resource {
    let version = KeyValue::new("service.version", VERSION);
    let resource = Resource::builder_empty().with_attribute(version);
    let known = Resource::builder().build();
    let attributes = known
        .iter()
        .map(|(key, value)| KeyValue::new(key.clone(), value.clone()));
    let resource = resource.with_attributes(attributes);
    let name = known.get_ref(&Key::from_static_str("service.name"));
    if name.is_none_or(|name| name.as_str().starts_with("unknown_service")) {
        resource.with_service_name(NAME).build()
    } else {
        resource.build()
    }
}

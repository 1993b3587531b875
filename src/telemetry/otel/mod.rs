//! Traces and metrics for a collector of OpenTelemetry, by its conventions for MCP.
//!
//! Where no collector is named nothing is started, and spans cost a look at an empty cell. What is sent
//! leaves from threads of its own, out of queues that drop what does not fit: no answer waits for a
//! collector.

mod numbers;
mod sender;
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

use self::numbers::Numbers;
use self::sender::Sender;
use exa_mcp_exa_client::ConfigError;

pub(crate) use self::span::Span;

const NAME: &str = env!("CARGO_PKG_NAME");
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// How long the last spans and numbers may take to leave. Clients kill a server that takes four seconds.
const STOPPING: Duration = Duration::from_secs(3);

static EXPORT: OnceLock<Export> = OnceLock::new();

/// What is exported by this process.
struct Export {
    traces: Option<(SdkTracerProvider, SdkTracer)>,
    metrics: SdkMeterProvider,
    numbers: Numbers,
}

/// Why nothing is exported.
#[derive(Debug, Error)]
enum StartError {
    #[error("{0}")]
    Exporter(#[from] ExporterBuildError),
    #[error("the endpoint for {0} is no address that begins with http:// or https://")]
    Endpoint(&'static str),
    #[error("{0}")]
    Client(#[from] ConfigError),
}

/// Runs the server, and exports what it does if a collector is named.
pub(crate) async fn exporting<F: Future>(serving: F) -> F::Output {
    start();
    let served = serving.await;
    stop().await;
    served
}

/// An answer left, with this much in it.
pub(super) fn told(tokens: u64, dollars: f64, cached: bool) {
    if let Some(export) = export() {
        export.numbers.told(tokens, dollars, cached);
    }
}

/// What is exported, once something is.
fn export() -> Option<&'static Export> {
    EXPORT.get()
}

/// Starts to export. A wrong setting is told, and is no reason not to serve.
fn start() {
    let (traces, metrics) = (is_wanted("TRACES"), is_wanted("METRICS"));
    if !(traces || metrics) || EXPORT.get().is_some() {
        return;
    }
    match Export::new(traces, metrics) {
        Ok(export) => drop(EXPORT.set(export)),
        Err(error) => {
            tracing::warn!("Nothing is sent by OpenTelemetry: {error}. Check the OTEL_ variables.");
        }
    }
}

/// Sends what is left, as far as that is possible in time.
async fn stop() {
    let Some(export) = export() else {
        return;
    };
    let traces = tokio::task::spawn_blocking(|| {
        let (provider, _) = export.traces.as_ref()?;
        provider.shutdown_with_timeout(STOPPING).ok()
    });
    let metrics = tokio::task::spawn_blocking(|| drop(export.metrics.shutdown()));
    let both = async { tokio::join!(traces, metrics) };
    if timeout(STOPPING, both).await.is_err() {
        tracing::warn!("The last traces and metrics were not sent: the collector takes too long");
    }
}

/// Whether there is a collector for a signal, and nobody has turned it off.
fn is_wanted(signal: &str) -> bool {
    let is = |name: &str, wanted: &str| {
        variable(name).is_some_and(|value| value.eq_ignore_ascii_case(wanted))
    };
    let off = is("OTEL_SDK_DISABLED", "true") || is(&format!("OTEL_{signal}_EXPORTER"), "none");
    !off && endpoint(signal).is_some()
}

/// The address of the collector for a signal.
fn endpoint(signal: &str) -> Option<String> {
    variable(&format!("OTEL_EXPORTER_OTLP_{signal}_ENDPOINT"))
        .or_else(|| variable("OTEL_EXPORTER_OTLP_ENDPOINT"))
}

/// A variable that is set; an empty one counts as unset.
fn variable(name: &str) -> Option<String> {
    let value = env::var(name).ok()?;
    let value = value.trim();
    (!value.is_empty()).then(|| value.to_owned())
}

impl Export {
    fn new(traces: bool, metrics: bool) -> Result<Self, StartError> {
        let resource = resource();
        let traces = match traces {
            true => Some(traced(resource.clone())?),
            false => None,
        };
        let provider = SdkMeterProvider::builder().with_resource(resource);
        let provider = match metrics {
            true => provider.with_periodic_exporter(measured()?),
            // The numbers are then counted for nobody.
            false => provider,
        };
        let metrics = provider.build();
        Ok(Self {
            traces,
            numbers: Numbers::new(&metrics, scope()),
            metrics,
        })
    }
}

fn traced(resource: Resource) -> Result<(SdkTracerProvider, SdkTracer), StartError> {
    let exporter = SpanExporter::builder()
        .with_http()
        .with_shared_http_client(sender("TRACES")?)
        .with_retry_policy(retries())
        .build()?;
    let provider = SdkTracerProvider::builder()
        .with_resource(resource)
        .with_batch_exporter(exporter)
        .build();
    let tracer = provider.tracer_with_scope(scope());
    Ok((provider, tracer))
}

fn measured() -> Result<MetricExporter, StartError> {
    let exporter = MetricExporter::builder()
        .with_http()
        .with_shared_http_client(sender("METRICS")?)
        .with_retry_policy(retries());
    Ok(exporter.build()?)
}

fn sender(signal: &'static str) -> Result<Arc<Sender>, StartError> {
    let milliseconds = variable(&format!("OTEL_EXPORTER_OTLP_{signal}_TIMEOUT"))
        .or_else(|| variable("OTEL_EXPORTER_OTLP_TIMEOUT"))
        .and_then(|value| value.parse().ok());
    let patience = Duration::from_millis(milliseconds.unwrap_or(10_000));
    // The words of the exporter would repeat the address, which may hold a password.
    let endpoint = endpoint(signal).and_then(|endpoint| Url::parse(&endpoint).ok());
    let endpoint = endpoint
        .filter(|url| matches!(url.scheme(), "http" | "https"))
        .ok_or(StartError::Endpoint(signal))?;
    Ok(Arc::new(Sender::new(signal, &endpoint, patience)?))
}

/// A collector that is away for a moment is asked again; what it misses for longer is lost. All of it
/// is over before the server may no longer wait at its end.
fn retries() -> RetryPolicy {
    RetryPolicy::recommended()
        .with_max_retries(2)
        .with_max_delay(Duration::from_millis(500))
}

fn scope() -> InstrumentationScope {
    InstrumentationScope::builder(NAME)
        .with_version(VERSION)
        .build()
}

/// What the environment says of this service, under our own name where it names none.
fn resource() -> Resource {
    let version = KeyValue::new("service.version", VERSION);
    let resource = Resource::builder_empty().with_attribute(version);
    let known = Resource::builder().build();
    let attributes = known
        .iter()
        .map(|(key, value)| KeyValue::new(key.clone(), value.clone()));
    let resource = resource.with_attributes(attributes);
    let name = known.get_ref(&Key::from_static_str("service.name"));
    match name.is_none_or(|name| name.as_str().starts_with("unknown_service")) {
        true => resource.with_service_name(NAME).build(),
        false => resource.build(),
    }
}

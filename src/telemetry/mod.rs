//! Logging, Prometheus metrics, and traces that continue from the client through this server to Exa. With the
//! `otel` feature, metrics and traces are also exported to an OpenTelemetry collector.

pub(crate) mod logging;
mod metrics;
#[cfg(feature = "otel")]
mod otel;
#[cfg(not(feature = "otel"))]
#[path = "noop.rs"]
mod otel;
// Only OpenTelemetry reads the attributes.
#[cfg_attr(not(feature = "otel"), expect(dead_code))]
mod attributes;
mod trace;

use std::future::Future;

use tracing::Instrument;

pub(crate) use attributes::{CallAttributes, OTHER, RequestAttributes, SpanOutcome};
pub(crate) use metrics::{Gauges, Metrics, metrics};
pub(crate) use otel::{Span, with_exporter};
pub(crate) use trace::TraceContext;

/// Records a tool result.
pub(crate) fn record_result(tokens: u64, dollars: f64, cached: bool) {
    if let Some(metrics) = metrics() {
        metrics.record_result(tokens, dollars, cached);
    }
    otel::record_result(tokens, dollars, cached);
}

/// Runs a future with the caller's log listener, trace context and span, for example in a spawned task.
pub(crate) fn inherit_context<F>(future: F) -> impl Future<Output = F::Output> + Send
where
    F: Future + Send,
{
    logging::inherit_listener(trace::inherit_trace(future)).instrument(tracing::Span::current())
}

//! What operators see of the server from outside: numbers for Prometheus, traces that go on from the
//! client through this server to Exa, and both for a collector of OpenTelemetry if the program is built
//! with the feature `otel`.

pub(crate) mod logging;
mod metrics;
#[cfg(feature = "otel")]
mod otel;
#[cfg(not(feature = "otel"))]
#[path = "without.rs"]
mod otel;
// Only OpenTelemetry reads the attributes.
#[cfg_attr(not(feature = "otel"), expect(dead_code))]
mod seen;
mod trace;

use std::future::Future;

use tracing::Instrument;

pub(crate) use metrics::{Gauges, Metrics, metrics};
pub(crate) use otel::{Span, exporting};
pub(crate) use seen::{Asked, Called, Ended, OTHER};
pub(crate) use trace::Trace;

/// An answer left, with this much in it.
pub(crate) fn told(tokens: u64, dollars: f64, cached: bool) {
    if let Some(metrics) = metrics() {
        metrics.told(tokens, dollars, cached);
    }
    otel::told(tokens, dollars, cached);
}

/// Runs a future with the listener, the trace and the span of whoever calls this: for work that goes on
/// by itself.
pub(crate) fn inherited<F>(future: F) -> impl Future<Output = F::Output> + Send
where
    F: Future + Send,
{
    logging::inherited(trace::inherited(future)).instrument(tracing::Span::current())
}

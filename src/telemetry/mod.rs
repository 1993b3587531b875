//! What operators see of the server from outside: numbers for Prometheus, and traces that go on from the
//! client through this server to Exa.

mod metrics;
mod trace;

use std::future::Future;

use tracing::Instrument;

pub use metrics::{Gauges, Metrics, metrics};
pub use trace::Trace;

use crate::logging;

/// Runs a future with the listener, the trace and the span of whoever calls this: for work that goes on
/// by itself.
pub fn inherited<F>(future: F) -> impl Future<Output = F::Output> + Send
where
    F: Future + Send,
{
    logging::inherited(trace::inherited(future)).instrument(tracing::Span::current())
}

//! Replaces the OpenTelemetry module in builds without the `otel` feature.

use std::future::Future;

use super::{CallAttributes, RequestAttributes, SpanOutcome, TraceContext};

/// A span without effect.
pub(crate) struct Span;

impl Span {
    /// Starts the span of a request.
    pub(crate) fn for_request(
        _: impl FnOnce() -> RequestAttributes,
        _: Option<&TraceContext>,
    ) -> Self {
        Self
    }

    /// Starts the span of a call to the Exa API.
    pub(crate) fn for_call(_: impl FnOnce() -> CallAttributes) -> Self {
        Self
    }

    /// Returns the trace context for requests made within this span.
    pub(crate) fn trace(&self) -> Option<TraceContext> {
        None
    }

    /// Sets the name of the requested prompt, which must exist.
    pub(crate) fn set_prompt_name(&mut self, _: &str) {}

    /// Ends the span.
    pub(crate) fn end(self, _: impl FnOnce() -> SpanOutcome) {}
}

/// Records a tool result.
pub(super) fn record_result(_: u64, _: f64, _: bool) {}

/// Runs the server without an exporter.
pub(crate) async fn with_exporter<F: Future>(serving: F) -> F::Output {
    serving.await
}

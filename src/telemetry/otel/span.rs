//! Spans of MCP requests and of calls to the Exa API.

use std::str::FromStr;
use std::time::Instant;

use opentelemetry::metrics::Histogram;
use opentelemetry::trace::{
    Span as _, SpanBuilder, SpanContext, SpanId, SpanKind, Status, TraceContextExt, TraceFlags,
    TraceId, TraceState,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::trace as sdk;
use url::Url;

use super::super::{CallAttributes, RequestAttributes, SpanOutcome, TraceContext};
use super::{Export, export};

/// A span with a duration metric. A span that is dropped before its end counts as cancelled.
pub(crate) struct Span(Option<ActiveSpan>);

struct ActiveSpan {
    span: Option<sdk::Span>,
    /// The attributes of the duration metric.
    labels: Vec<KeyValue>,
    duration: &'static Histogram<f64>,
    /// Builds the attribute for the status code.
    code: fn(i64) -> KeyValue,
    started: Instant,
}

impl Span {
    /// Starts the span of a request. `attributes` is only called if spans are exported.
    pub(crate) fn for_request(
        attributes: impl FnOnce() -> RequestAttributes,
        parent: Option<&TraceContext>,
    ) -> Self {
        Self(export().map(|export| ActiveSpan::request(export, attributes(), parent)))
    }

    /// Starts the span of a call to the Exa API within the current trace.
    pub(crate) fn for_call(attributes: impl FnOnce() -> CallAttributes) -> Self {
        Self(export().map(|export| ActiveSpan::call(export, attributes())))
    }

    /// Returns the trace context for requests made within this span.
    pub(crate) fn trace(&self) -> Option<TraceContext> {
        let context = self.0.as_ref()?.span.as_ref()?.span_context();
        let flags = context.trace_flags().to_u8();
        let parent = format!(
            "00-{}-{}-{flags:02x}",
            context.trace_id(),
            context.span_id()
        );
        TraceContext::parse(Some(&parent), Some(&context.trace_state().header()))
    }

    /// Sets the name of the requested prompt, which must exist.
    pub(crate) fn set_prompt_name(&mut self, name: &str) {
        let Some(active) = &mut self.0 else {
            return;
        };
        let label = KeyValue::new("gen_ai.prompt.name", name.to_owned());
        if let Some(span) = &mut active.span {
            span.update_name(format!("prompts/get {name}"));
            span.set_attribute(label.clone());
        }
        active.labels.push(label);
    }

    /// Ends the span.
    pub(crate) fn end(mut self, outcome: impl FnOnce() -> SpanOutcome) {
        if let Some(active) = self.0.take() {
            active.end(outcome());
        }
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        if let Some(active) = self.0.take() {
            active.end(SpanOutcome {
                code: None,
                error: Some("cancelled".into()),
            });
        }
    }
}

impl ActiveSpan {
    fn request(
        export: &'static Export,
        attributes: RequestAttributes,
        parent: Option<&TraceContext>,
    ) -> Self {
        let mut labels = vec![KeyValue::new("mcp.method.name", attributes.method)];
        let name = match attributes.tool {
            Some(tool) => {
                let name = format!("{} {tool}", attributes.method);
                labels.push(KeyValue::new("gen_ai.operation.name", "execute_tool"));
                labels.push(KeyValue::new("gen_ai.tool.name", tool));
                name
            }
            None => attributes.method.to_owned(),
        };
        if let Some(version) = attributes.version {
            labels.push(KeyValue::new("mcp.protocol.version", version));
        }
        if attributes.over_http {
            labels.push(KeyValue::new("network.protocol.name", "http"));
            labels.push(KeyValue::new("network.transport", "tcp"));
        } else {
            labels.push(KeyValue::new("network.transport", "pipe"));
        }
        let id = attributes
            .id
            .map(|id| KeyValue::new("jsonrpc.request.id", id));
        let span = SpanBuilder::from_name(name)
            .with_kind(SpanKind::Server)
            .with_attributes(labels.iter().cloned().chain(id));
        Self {
            span: start_span(export, span, parent, true),
            labels,
            duration: &export.instruments.requests,
            code: |code| KeyValue::new("rpc.response.status_code", code.to_string()),
            started: Instant::now(),
        }
    }

    fn call(export: &'static Export, attributes: CallAttributes) -> Self {
        let mut labels = vec![
            KeyValue::new("http.request.method", attributes.method),
            KeyValue::new("url.template", attributes.path),
        ];
        if let Ok(url) = Url::parse(&attributes.base_url) {
            let host = url.host_str().unwrap_or_default().to_owned();
            labels.push(KeyValue::new("server.address", host));
            let port = url.port_or_known_default().map(i64::from);
            labels.extend(port.map(|port| KeyValue::new("server.port", port)));
        }
        let operation = KeyValue::new("exa.operation", attributes.operation);
        let span = SpanBuilder::from_name(format!("{} {}", attributes.method, attributes.path))
            .with_kind(SpanKind::Client)
            .with_attributes(labels.iter().cloned().chain([operation]));
        Self {
            span: start_span(export, span, TraceContext::current().as_ref(), false),
            labels,
            duration: &export.instruments.calls,
            code: |status| KeyValue::new("http.response.status_code", status),
            started: Instant::now(),
        }
    }

    fn end(mut self, outcome: SpanOutcome) {
        let error = outcome.error;
        let attributes = [
            outcome.code.map(self.code),
            error.map(|error| KeyValue::new("error.type", error.into_owned())),
        ];
        let failed = attributes.iter().skip(1).any(Option::is_some);
        if let Some(span) = &mut self.span {
            span.set_attributes(attributes.iter().flatten().cloned());
            if failed {
                // Error messages may repeat client input.
                span.set_status(Status::error(""));
            }
            span.end();
        }
        self.labels.extend(attributes.into_iter().flatten());
        let seconds = self.started.elapsed().as_secs_f64();
        self.duration.record(seconds, &self.labels);
    }
}

/// Starts a span within a trace, or a new trace.
fn start_span(
    export: &Export,
    span: SpanBuilder,
    parent: Option<&TraceContext>,
    remote: bool,
) -> Option<sdk::Span> {
    let (_, tracer) = export.traces.as_ref()?;
    let parent = parent.and_then(|parent| span_context(parent, remote));
    let context = match parent {
        Some(parent) => Context::new().with_remote_span_context(parent),
        None => Context::new(),
    };
    Some(span.start_with_context(tracer, &context))
}

/// Converts a trace context to OpenTelemetry's type.
fn span_context(trace: &TraceContext, remote: bool) -> Option<SpanContext> {
    let mut headers = trace.clone().headers().map(|(_, value)| value);
    let (parent, state) = (headers.next()?, headers.next());
    let mut parts = parent.to_str().ok()?.split('-').skip(1);
    let trace_id = TraceId::from_hex(parts.next()?).ok()?;
    let span_id = SpanId::from_hex(parts.next()?).ok()?;
    let flags = u8::from_str_radix(parts.next()?, 16).ok()?;
    let flags = TraceFlags::new(flags) & TraceFlags::SAMPLED;
    let state = state.as_ref().and_then(|state| state.to_str().ok());
    let state = state.and_then(|state| TraceState::from_str(state).ok());
    let state = state.unwrap_or_default();
    Some(SpanContext::new(trace_id, span_id, flags, remote, state))
}

//! Spans of requests and of calls of Exa.

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

use super::super::{Asked, Called, Ended, Trace};
use super::{Export, export};

/// What is part of a trace, and is measured. One that is dropped before its end was given up.
pub(crate) struct Span(Option<Open>);

struct Open {
    span: Option<sdk::Span>,
    /// What the numbers are told apart by.
    labels: Vec<KeyValue>,
    duration: &'static Histogram<f64>,
    /// Under which name and as which type the code of the end is known.
    code: fn(i64) -> KeyValue,
    started: Instant,
}

impl Span {
    /// Begins the span of a request; what it is about is asked for only if someone wants to know.
    pub(crate) fn of_request(asked: impl FnOnce() -> Asked, parent: Option<&Trace>) -> Self {
        Self(export().map(|export| Open::request(export, asked(), parent)))
    }

    /// Begins the span of a call of Exa, within the trace that runs here.
    pub(crate) fn of_call(called: impl FnOnce() -> Called) -> Self {
        Self(export().map(|export| Open::call(export, called())))
    }

    /// The trace as it goes on from here, if this span is part of one.
    pub(crate) fn trace(&self) -> Option<Trace> {
        let context = self.0.as_ref()?.span.as_ref()?.span_context();
        let flags = context.trace_flags().to_u8();
        let parent = format!(
            "00-{}-{}-{flags:02x}",
            context.trace_id(),
            context.span_id()
        );
        Trace::read(Some(&parent), Some(&context.trace_state().header()))
    }

    /// The request was about a prompt that there is.
    pub(crate) fn name_prompt(&mut self, name: &str) {
        let Some(open) = &mut self.0 else {
            return;
        };
        let label = KeyValue::new("gen_ai.prompt.name", name.to_owned());
        if let Some(span) = &mut open.span {
            span.update_name(format!("prompts/get {name}"));
            span.set_attribute(label.clone());
        }
        open.labels.push(label);
    }

    /// Ends the span.
    pub(crate) fn end(mut self, ended: impl FnOnce() -> Ended) {
        if let Some(open) = self.0.take() {
            open.end(ended());
        }
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        if let Some(open) = self.0.take() {
            open.end(Ended {
                code: None,
                error: Some("cancelled".into()),
            });
        }
    }
}

impl Open {
    fn request(export: &'static Export, asked: Asked, parent: Option<&Trace>) -> Self {
        let mut labels = vec![KeyValue::new("mcp.method.name", asked.method)];
        let name = match asked.tool {
            Some(tool) => {
                let name = format!("{} {tool}", asked.method);
                labels.push(KeyValue::new("gen_ai.operation.name", "execute_tool"));
                labels.push(KeyValue::new("gen_ai.tool.name", tool));
                name
            }
            None => asked.method.to_owned(),
        };
        if let Some(version) = asked.version {
            labels.push(KeyValue::new("mcp.protocol.version", version));
        }
        if asked.over_http {
            labels.push(KeyValue::new("network.protocol.name", "http"));
            labels.push(KeyValue::new("network.transport", "tcp"));
        } else {
            labels.push(KeyValue::new("network.transport", "pipe"));
        }
        let id = asked.id.map(|id| KeyValue::new("jsonrpc.request.id", id));
        let span = SpanBuilder::from_name(name)
            .with_kind(SpanKind::Server)
            .with_attributes(labels.iter().cloned().chain(id));
        Self {
            span: begin(export, span, parent, true),
            labels,
            duration: &export.numbers.requests,
            code: |code| KeyValue::new("rpc.response.status_code", code.to_string()),
            started: Instant::now(),
        }
    }

    fn call(export: &'static Export, called: Called) -> Self {
        let mut labels = vec![
            KeyValue::new("http.request.method", called.method),
            KeyValue::new("url.template", called.path),
        ];
        if let Ok(url) = Url::parse(&called.base_url) {
            let host = url.host_str().unwrap_or_default().to_owned();
            labels.push(KeyValue::new("server.address", host));
            let port = url.port_or_known_default().map(i64::from);
            labels.extend(port.map(|port| KeyValue::new("server.port", port)));
        }
        let operation = KeyValue::new("exa.operation", called.operation);
        let span = SpanBuilder::from_name(format!("{} {}", called.method, called.path))
            .with_kind(SpanKind::Client)
            .with_attributes(labels.iter().cloned().chain([operation]));
        Self {
            span: begin(export, span, Trace::current().as_ref(), false),
            labels,
            duration: &export.numbers.calls,
            code: |status| KeyValue::new("http.response.status_code", status),
            started: Instant::now(),
        }
    }

    fn end(mut self, ended: Ended) {
        let error = ended.error;
        let told = [
            ended.code.map(self.code),
            error.map(|error| KeyValue::new("error.type", error.into_owned())),
        ];
        let failed = told.iter().skip(1).any(Option::is_some);
        if let Some(span) = &mut self.span {
            span.set_attributes(told.iter().flatten().cloned());
            if failed {
                // The words of an error may repeat what the client wrote.
                span.set_status(Status::error(""));
            }
            span.end();
        }
        self.labels.extend(told.into_iter().flatten());
        let seconds = self.started.elapsed().as_secs_f64();
        self.duration.record(seconds, &self.labels);
    }
}

/// Begins a span within a trace, or one that is a trace by itself.
fn begin(
    export: &Export,
    span: SpanBuilder,
    parent: Option<&Trace>,
    remote: bool,
) -> Option<sdk::Span> {
    let (_, tracer) = export.traces.as_ref()?;
    let parent = parent.and_then(|parent| context(parent, remote));
    let context = match parent {
        Some(parent) => Context::new().with_remote_span_context(parent),
        None => Context::new(),
    };
    Some(span.start_with_context(tracer, &context))
}

/// A trace as OpenTelemetry keeps it.
fn context(trace: &Trace, remote: bool) -> Option<SpanContext> {
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

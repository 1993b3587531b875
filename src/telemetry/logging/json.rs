//! Log messages as JSON: one object per line on standard error.

use std::fmt;
use std::io::Write;

use serde_json::{Map, Value, json};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use exa_mcp_model::time::{format_timestamp, now};

/// Writes events as JSON.
pub(super) struct JsonLayer;

/// The fields of an event or a span.
#[derive(Default)]
struct Fields(Map<String, Value>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0
            .insert(field.name().to_owned(), json!(format!("{value:?}")));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), json!(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name().to_owned(), json!(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.0.insert(field.name().to_owned(), json!(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.0.insert(field.name().to_owned(), json!(value));
    }
}

impl<S: Subscriber + for<'s> LookupSpan<'s>> Layer<S> for JsonLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(fields);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<Fields>()
        {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields::default();
        for span in context.event_scope(event).into_iter().flatten() {
            if let Some(own) = span.extensions().get::<Fields>() {
                let own = own.0.iter();
                fields
                    .0
                    .extend(own.map(|(name, value)| (name.clone(), value.clone())));
            }
        }
        event.record(&mut fields);
        let message = fields.0.shift_remove("message").unwrap_or_default();
        let milliseconds = i64::try_from(now()).unwrap_or_default();
        let line = json!({
            "timestamp": format_timestamp(milliseconds),
            "level": event.metadata().level().as_str().to_lowercase(),
            "message": message,
            "fields": fields.0,
        });
        let _ = writeln!(std::io::stderr(), "{line}");
    }
}

//! Log messages for the client whose call caused them, if it has set a log level.
//!
//! A call carries its own listener, so clients never see messages of other clients' calls. Until a client sets
//! a level, the call sites are disabled and cost nothing.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use serde_json::{Map, Value, json};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::subscriber::Interest;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, Filter};

/// The fields that are sent to clients. They contain neither queries nor results.
const CLIENT_FIELDS: [&str; 10] = [
    "operation",
    "status",
    "milliseconds",
    "request_id",
    "attempt",
    "wait_milliseconds",
    "task",
    "job",
    "tool",
    "method",
];

/// The maximum length of a value in characters.
const MAX_VALUE_CHARS: usize = 200;

/// The level of a listener that receives nothing.
const DISABLED: u8 = u8::MAX;

tokio::task_local! {
    static LISTENER: LogListener;
}

/// The severity of a message, as defined by MCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Severity {
    /// Debugging information.
    Debug,
    /// Normal operation.
    Info,
    /// Normal but significant events.
    Notice,
    /// A possible cause of failures.
    Warning,
    /// A failure.
    Error,
    /// A failed component.
    Critical,
    /// Immediate action is required.
    Alert,
    /// The system is unusable.
    Emergency,
}

/// A log message.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LogEntry {
    /// The severity.
    pub severity: Severity,
    /// The message text and its fields.
    pub data: Map<String, Value>,
}

/// Receives the log messages of calls. Clones share the level.
#[derive(Clone)]
pub(crate) struct LogListener {
    min_severity: Arc<AtomicU8>,
    send: Arc<dyn Fn(LogEntry) + Send + Sync>,
}

impl LogListener {
    /// Creates a listener that receives nothing until a level is set.
    pub(crate) fn new(send: impl Fn(LogEntry) + Send + Sync + 'static) -> Self {
        Self {
            min_severity: Arc::new(AtomicU8::new(DISABLED)),
            send: Arc::new(send),
        }
    }

    /// Sets the minimum severity.
    pub(crate) fn set_level(&self, min_severity: Severity) {
        self.min_severity
            .store(min_severity as u8, Ordering::Relaxed);
        raise_verbosity(verbosity(min_severity));
    }

    fn accepts(&self, severity: Severity) -> bool {
        severity as u8 >= self.min_severity.load(Ordering::Relaxed)
    }

    /// Runs a future whose messages go to this listener.
    pub(crate) fn scope<F: Future>(self, future: F) -> impl Future<Output = F::Output> {
        LISTENER.scope(self, future)
    }
}

/// Runs a future with the caller's listener, if there is one, for example in a spawned task.
pub(crate) fn inherit_listener<F>(future: F) -> impl Future<Output = F::Output> + Send
where
    F: Future + Send,
{
    let listener = LISTENER.try_with(Clone::clone).ok();
    async move {
        match listener {
            Some(listener) => LISTENER.scope(listener, future).await,
            None => future.await,
        }
    }
}

/// The highest verbosity of all listeners. It never decreases.
static MAX_VERBOSITY: AtomicU8 = AtomicU8::new(0);

fn verbosity(min_severity: Severity) -> u8 {
    match min_severity {
        Severity::Debug => 4,
        Severity::Info => 3,
        Severity::Notice | Severity::Warning => 2,
        Severity::Error => 1,
        _ => 0,
    }
}

fn filter(verbosity: u8) -> LevelFilter {
    match verbosity {
        0 => LevelFilter::OFF,
        1 => LevelFilter::ERROR,
        2 => LevelFilter::WARN,
        3 => LevelFilter::INFO,
        _ => LevelFilter::DEBUG,
    }
}

/// Enables call sites that were not needed before.
fn raise_verbosity(verbosity: u8) {
    if MAX_VERBOSITY.fetch_max(verbosity, Ordering::Relaxed) < verbosity {
        tracing::callsite::rebuild_interest_cache();
    }
}

/// Passes messages of this project's crates up to the highest verbosity of all listeners.
pub(super) struct ListenerFilter;

impl ListenerFilter {
    pub(super) fn allows(metadata: &Metadata<'_>) -> bool {
        let own = metadata.target().starts_with(super::OWN_CRATES);
        own && *metadata.level() <= Self::max_level()
    }

    /// Returns the highest verbosity of all listeners.
    pub(super) fn max_level() -> LevelFilter {
        filter(MAX_VERBOSITY.load(Ordering::Relaxed))
    }
}

impl<S: Subscriber> Filter<S> for ListenerFilter {
    fn enabled(&self, metadata: &Metadata<'_>, _context: &Context<'_, S>) -> bool {
        Self::allows(metadata)
    }

    fn callsite_enabled(&self, metadata: &'static Metadata<'static>) -> Interest {
        if Self::allows(metadata) {
            Interest::always()
        } else {
            Interest::never()
        }
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(Self::max_level())
    }
}

/// Sends messages to the listener of the call that caused them.
pub(super) struct ListenerLayer;

impl<S: Subscriber> Layer<S> for ListenerLayer {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        // Outside of a call there is no listener.
        let _ = LISTENER.try_with(|listener| {
            let severity = severity(event.metadata().level());
            if listener.accepts(severity) {
                let mut data = EventFields::default();
                event.record(&mut data);
                let data = data.0;
                (listener.send)(LogEntry { severity, data });
            }
        });
    }
}

fn severity(level: &Level) -> Severity {
    match *level {
        Level::ERROR => Severity::Error,
        Level::WARN => Severity::Warning,
        Level::INFO => Severity::Info,
        _ => Severity::Debug,
    }
}

/// Collects the message and the fields that clients may see.
#[derive(Default)]
struct EventFields(Map<String, Value>);

impl EventFields {
    fn insert(&mut self, field: &Field, value: impl FnOnce() -> Value) {
        let name = field.name();
        if name == "message" || CLIENT_FIELDS.contains(&name) {
            self.0.insert(name.to_owned(), value());
        }
    }
}

impl Visit for EventFields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.insert(field, || {
            value
                .chars()
                .take(MAX_VALUE_CHARS)
                .collect::<String>()
                .into()
        });
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.insert(field, || json!(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.insert(field, || json!(value));
    }

    fn record_u128(&mut self, field: &Field, value: u128) {
        self.insert(field, || json!(u64::try_from(value).unwrap_or(u64::MAX)));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.insert(field, || json!(value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.insert(field, || {
            let text = format!("{value:?}");
            text.chars()
                .take(MAX_VALUE_CHARS)
                .collect::<String>()
                .into()
        });
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Mutex;

    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    /// Returns the entries of a call that a listener with this level receives.
    async fn received_entries(
        min_severity: Option<Severity>,
        call: impl Future<Output = ()>,
    ) -> Vec<LogEntry> {
        let received: Arc<Mutex<Vec<LogEntry>>> = Arc::default();
        let sink = Arc::clone(&received);
        let listener = LogListener::new(move |entry| sink.lock().unwrap().push(entry));
        if let Some(min_severity) = min_severity {
            listener.set_level(min_severity);
        }
        let subscriber = tracing_subscriber::registry().with(ListenerLayer);
        let guard = tracing::subscriber::set_default(subscriber);
        listener.scope(call).await;
        drop(guard);
        let received = received.lock().unwrap();
        received.clone()
    }

    #[tokio::test]
    async fn every_level_is_a_threshold() {
        let levels = [
            (Severity::Debug, 4),
            (Severity::Info, 3),
            (Severity::Notice, 2),
            (Severity::Warning, 2),
            (Severity::Error, 1),
            (Severity::Critical, 0),
            (Severity::Alert, 0),
            (Severity::Emergency, 0),
        ];
        for (min_severity, expected) in levels {
            let call = async {
                tracing::error!("an error");
                tracing::warn!("a warning");
                tracing::info!("an information");
                tracing::debug!("a detail");
            };
            assert_eq!(
                received_entries(Some(min_severity), call).await.len(),
                expected,
                "{min_severity:?}"
            );
        }
    }

    #[tokio::test]
    async fn sends_only_known_fields() {
        let call = async {
            let query = "what the user asked";
            tracing::info!(
                operation = "search",
                milliseconds = 5_u128,
                query,
                "answered"
            );
        };
        let received = received_entries(Some(Severity::Info), call).await;
        let data = Value::Object(received.first().unwrap().data.clone());
        let expected = json!({"message": "answered", "operation": "search", "milliseconds": 5});
        assert_eq!(data, expected);
    }

    #[tokio::test]
    async fn receives_nothing_without_a_level_or_from_other_calls() {
        assert!(
            received_entries(None, async { tracing::error!("e") })
                .await
                .is_empty()
        );
        let call = async {
            let other = tokio::spawn(async { tracing::error!("of another") });
            other.await.unwrap();
            let own = tokio::spawn(inherit_listener(async { tracing::error!("own") }));
            own.await.unwrap();
        };
        let received = received_entries(Some(Severity::Debug), call).await;
        assert_eq!(received.len(), 1);
    }
}

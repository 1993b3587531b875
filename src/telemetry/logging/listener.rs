//! Log lines for whoever caused them: a client that asked to hear what its calls do.
//!
//! A call carries its listener with it, so nobody hears of the calls of others. As long as no client has
//! asked, the call sites stay switched off and cost nothing.

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

/// The fields that a client is told. What users ask and what Exa answers is in none of them.
const FIELDS: [&str; 10] = [
    "operation",
    "status",
    "milliseconds",
    "request_id",
    "attempt",
    "wait_milliseconds",
    "task",
    "work",
    "tool",
    "question",
];

/// The longest value that is told, in characters.
const LONGEST: usize = 200;

/// Nobody listens.
const NOBODY: u8 = u8::MAX;

tokio::task_local! {
    static LISTENER: Listener;
}

/// How severe a message is, in the words of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Severity {
    /// For finding errors in the program.
    Debug,
    /// What usually happens.
    Info,
    /// What happens seldom.
    Notice,
    /// What may lead to a failure.
    Warning,
    /// A failure.
    Error,
    /// A failure of a part of the program.
    Critical,
    /// Something must be done at once.
    Alert,
    /// Nothing works any more.
    Emergency,
}

/// One message.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    /// How severe it is.
    pub severity: Severity,
    /// The message and what belongs to it.
    pub data: Map<String, Value>,
}

/// Someone who hears what calls do. Clones share the level.
#[derive(Clone)]
pub(crate) struct Listener {
    least: Arc<AtomicU8>,
    tell: Arc<dyn Fn(Entry) + Send + Sync>,
}

impl Listener {
    /// Hears nothing until a level is set.
    pub(crate) fn new(tell: impl Fn(Entry) + Send + Sync + 'static) -> Self {
        Self {
            least: Arc::new(AtomicU8::new(NOBODY)),
            tell: Arc::new(tell),
        }
    }

    /// Hears messages that are at least this severe from now on.
    pub(crate) fn listen(&self, least: Severity) {
        self.least.store(least as u8, Ordering::Relaxed);
        want(verbosity(least));
    }

    fn hears(&self, severity: Severity) -> bool {
        severity as u8 >= self.least.load(Ordering::Relaxed)
    }

    /// Runs a future whose messages this listener hears.
    pub(crate) fn during<F: Future>(self, future: F) -> impl Future<Output = F::Output> {
        LISTENER.scope(self, future)
    }
}

/// Runs a future with the listener of whoever calls this, if there is one: for work that goes on by
/// itself.
pub(crate) fn inherited<F>(future: F) -> impl Future<Output = F::Output> + Send
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

/// The most that anybody listens to, as a number of [`LevelFilter`]; it only grows.
static WANTED: AtomicU8 = AtomicU8::new(0);

fn verbosity(least: Severity) -> u8 {
    match least {
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

/// Switches call sites on that were not needed before.
fn want(verbosity: u8) {
    if WANTED.fetch_max(verbosity, Ordering::Relaxed) < verbosity {
        tracing::callsite::rebuild_interest_cache();
    }
}

/// Lets through what a listener may want: our own messages, as far as anybody asked for them.
pub(super) struct Wanted;

impl Wanted {
    pub(super) fn allows(metadata: &Metadata<'_>) -> bool {
        let own = metadata.target().starts_with(super::OWN_CRATES);
        own && *metadata.level() <= Self::most()
    }

    /// The most that anybody asked for.
    pub(super) fn most() -> LevelFilter {
        filter(WANTED.load(Ordering::Relaxed))
    }
}

impl<S: Subscriber> Filter<S> for Wanted {
    fn enabled(&self, metadata: &Metadata<'_>, _context: &Context<'_, S>) -> bool {
        Self::allows(metadata)
    }

    fn callsite_enabled(&self, metadata: &'static Metadata<'static>) -> Interest {
        match Self::allows(metadata) {
            true => Interest::always(),
            false => Interest::never(),
        }
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(Self::most())
    }
}

/// Tells messages to the listener of the call that caused them.
pub(super) struct ToListener;

impl<S: Subscriber> Layer<S> for ToListener {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        // Outside of a call nobody listens.
        let _ = LISTENER.try_with(|listener| {
            let severity = severity(event.metadata().level());
            if listener.hears(severity) {
                let mut data = Data::default();
                event.record(&mut data);
                let data = data.0;
                (listener.tell)(Entry { severity, data });
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

/// Gathers the message and the fields that may be told.
#[derive(Default)]
struct Data(Map<String, Value>);

impl Data {
    fn put(&mut self, field: &Field, value: impl FnOnce() -> Value) {
        let name = field.name();
        if name == "message" || FIELDS.contains(&name) {
            self.0.insert(name.to_owned(), value());
        }
    }
}

impl Visit for Data {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, || {
            value.chars().take(LONGEST).collect::<String>().into()
        });
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, || json!(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, || json!(value));
    }

    fn record_u128(&mut self, field: &Field, value: u128) {
        self.put(field, || json!(u64::try_from(value).unwrap_or(u64::MAX)));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, || json!(value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, || {
            let text = format!("{value:?}");
            text.chars().take(LONGEST).collect::<String>().into()
        });
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Mutex;

    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    /// What a listener of this level hears of a call.
    async fn heard(least: Option<Severity>, call: impl Future<Output = ()>) -> Vec<Entry> {
        let heard: Arc<Mutex<Vec<Entry>>> = Arc::default();
        let keep = Arc::clone(&heard);
        let listener = Listener::new(move |entry| keep.lock().unwrap().push(entry));
        if let Some(least) = least {
            listener.listen(least);
        }
        let subscriber = tracing_subscriber::registry().with(ToListener);
        let guard = tracing::subscriber::set_default(subscriber);
        listener.during(call).await;
        drop(guard);
        let heard = heard.lock().unwrap();
        heard.clone()
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
        for (least, expected) in levels {
            let call = async {
                tracing::error!("an error");
                tracing::warn!("a warning");
                tracing::info!("an information");
                tracing::debug!("a detail");
            };
            assert_eq!(heard(Some(least), call).await.len(), expected, "{least:?}");
        }
    }

    #[tokio::test]
    async fn only_known_fields_are_told() {
        let call = async {
            let query = "what the user asked";
            tracing::info!(
                operation = "search",
                milliseconds = 5_u128,
                query,
                "answered"
            );
        };
        let heard = heard(Some(Severity::Info), call).await;
        let data = Value::Object(heard.first().unwrap().data.clone());
        let expected = json!({"message": "answered", "operation": "search", "milliseconds": 5});
        assert_eq!(data, expected);
    }

    #[tokio::test]
    async fn nobody_hears_before_a_level_is_set_or_the_calls_of_others() {
        assert!(heard(None, async { tracing::error!("e") }).await.is_empty());
        let call = async {
            let other = tokio::spawn(async { tracing::error!("of another") });
            other.await.unwrap();
            let own = tokio::spawn(inherited(async { tracing::error!("own") }));
            own.await.unwrap();
        };
        let heard = heard(Some(Severity::Debug), call).await;
        assert_eq!(heard.len(), 1);
    }
}

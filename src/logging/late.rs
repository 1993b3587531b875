//! A subscriber that is built when the first message asks for it.
//!
//! The registry of `tracing-subscriber` sets tables aside for thousands of threads. At the usual level
//! nothing is logged before the first answer, so the start does not pay for them.

use std::sync::OnceLock;

use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Event, Metadata, Subscriber};
use tracing_core::span::Current;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;

use super::listener::{ToListener, Wanted};

type Built = Box<dyn Subscriber + Send + Sync>;

/// Lets through what the operator or a client wants, and hands it to the subscriber behind.
pub(super) struct Late {
    /// What the operator wants.
    targets: Targets,
    /// The most of it.
    most: LevelFilter,
    built: OnceLock<Built>,
}

impl Late {
    /// Writes what `targets` let through, at most up to a level.
    pub(super) fn new(targets: Targets, most: LevelFilter) -> Self {
        Self {
            targets,
            most,
            built: OnceLock::new(),
        }
    }

    /// Whether anybody wants messages of this kind.
    fn wants(&self, metadata: &Metadata<'_>) -> bool {
        let (target, level) = (metadata.target(), metadata.level());
        self.targets.would_enable(target, level) || Wanted::allows(metadata)
    }

    fn behind(&self) -> &Built {
        self.built.get_or_init(|| {
            let lines = tracing_subscriber::fmt::layer()
                .with_writer(std::io::stderr)
                .with_ansi(false)
                .with_target(false);
            let subscriber = tracing_subscriber::registry()
                .with(lines.with_filter(self.targets.clone()))
                .with(ToListener.with_filter(Wanted));
            Box::new(subscriber)
        })
    }
}

impl Subscriber for Late {
    /// Never `always`: the filters behind take note of a message when they are asked about it.
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        match self.wants(metadata) {
            true => Interest::sometimes(),
            false => Interest::never(),
        }
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        self.wants(metadata) && self.behind().enabled(metadata)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.most.max(Wanted::most()))
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.behind().new_span(span)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        self.behind().record(span, values);
    }

    fn record_follows_from(&self, span: &Id, follows: &Id) {
        self.behind().record_follows_from(span, follows);
    }

    fn event_enabled(&self, event: &Event<'_>) -> bool {
        self.behind().event_enabled(event)
    }

    fn event(&self, event: &Event<'_>) {
        self.behind().event(event);
    }

    fn enter(&self, span: &Id) {
        self.behind().enter(span);
    }

    fn exit(&self, span: &Id) {
        self.behind().exit(span);
    }

    fn clone_span(&self, id: &Id) -> Id {
        self.behind().clone_span(id)
    }

    fn try_close(&self, id: Id) -> bool {
        self.behind().try_close(id)
    }

    fn current_span(&self) -> Current {
        // Before the first message there is no span.
        let behind = self.built.get();
        behind.map_or_else(Current::none, |behind| behind.current_span())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tracing::subscriber::with_default;

    use super::*;

    #[test]
    fn the_first_message_that_anybody_wants_builds_the_subscriber() {
        let most = LevelFilter::WARN;
        let late = Arc::new(Late::new(Targets::new().with_default(most), most));
        with_default(Arc::clone(&late), || {
            tracing::info!(target: "elsewhere", "nobody wants this");
            assert!(late.built.get().is_none());
            tracing::warn!(target: "elsewhere", "the operator wants this");
            assert!(late.built.get().is_some());
        });
    }
}

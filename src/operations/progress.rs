//! Progress of a call.

use std::fmt;
use std::sync::Arc;

/// One progress update of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct ProgressUpdate {
    /// The work done so far; never decreases.
    pub done: f64,
    /// The total work, if known.
    pub total: Option<f64>,
    /// A description of the progress.
    pub message: String,
    /// The message quotes the response itself, which is untrusted text.
    pub is_quoted: bool,
}

/// Sends progress updates to a listener, if there is one.
#[derive(Clone, Default)]
pub struct ProgressReporter(Option<Arc<dyn Fn(ProgressUpdate) + Send + Sync>>);

impl ProgressReporter {
    /// Creates a reporter that sends every update to `listener`.
    pub fn new(listener: impl Fn(ProgressUpdate) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(listener)))
    }

    /// Creates a reporter that discards all updates.
    pub fn disabled() -> Self {
        Self(None)
    }

    /// Returns whether there is a listener.
    pub fn is_enabled(&self) -> bool {
        self.0.is_some()
    }

    /// Returns a reporter for work that follows earlier progress: its updates start at `offset`.
    #[must_use]
    pub fn with_offset(&self, offset: f64) -> Self {
        if offset <= 0.0 || self.0.is_none() {
            return self.clone();
        }
        let inner = self.clone();
        Self::new(move |update| {
            inner.report(ProgressUpdate {
                done: update.done + offset,
                total: update.total.map(|total| total + offset),
                ..update
            });
        })
    }

    /// Sends an update.
    pub fn report(&self, update: ProgressUpdate) {
        if let Some(listener) = &self.0 {
            listener(update);
        }
    }
}

impl fmt::Debug for ProgressReporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ProgressReporter")
            .field(&self.is_enabled())
            .finish()
    }
}

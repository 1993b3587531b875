//! Progress of a call.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

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

/// Receives the responses that report the state of a job.
type StateListener = Arc<dyn Fn(&Value) + Send + Sync>;

/// Sends progress updates to a listener, if there is one.
#[derive(Clone, Default)]
pub struct ProgressReporter {
    listener: Option<Arc<dyn Fn(ProgressUpdate) + Send + Sync>>,
    state_listener: Option<StateListener>,
}

impl ProgressReporter {
    /// Creates a reporter that sends every update to `listener`.
    pub fn new(listener: impl Fn(ProgressUpdate) + Send + Sync + 'static) -> Self {
        Self {
            listener: Some(Arc::new(listener)),
            state_listener: None,
        }
    }

    /// Adds a listener for the responses that report the state of a job.
    #[must_use]
    pub(crate) fn with_state_listener(
        self,
        listener: impl Fn(&Value) + Send + Sync + 'static,
    ) -> Self {
        Self {
            state_listener: Some(Arc::new(listener)),
            ..self
        }
    }

    /// Sends a response that reports the state of a job.
    pub(crate) fn report_state(&self, response: &Value) {
        if let Some(listener) = &self.state_listener {
            listener(response);
        }
    }

    /// Creates a reporter that discards all updates.
    pub fn disabled() -> Self {
        Self::default()
    }

    /// Returns whether there is a listener.
    pub fn is_enabled(&self) -> bool {
        self.listener.is_some()
    }

    /// Returns a reporter for work that follows earlier progress: its updates start at `offset`.
    #[must_use]
    pub fn with_offset(&self, offset: f64) -> Self {
        if offset <= 0.0 || self.listener.is_none() {
            return self.clone();
        }
        let inner = self.clone();
        let shifted = Self::new(move |update| {
            inner.report(ProgressUpdate {
                done: update.done + offset,
                total: update.total.map(|total| total + offset),
                ..update
            });
        });
        Self {
            state_listener: self.state_listener.clone(),
            ..shifted
        }
    }

    /// Sends an update.
    pub fn report(&self, update: ProgressUpdate) {
        if let Some(listener) = &self.listener {
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

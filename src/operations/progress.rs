//! Telling how far a call is.

use std::fmt;
use std::sync::Arc;

/// How far a call is.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// What is done; never less than before.
    pub done: f64,
    /// What there is to do, where that is known.
    pub total: Option<f64>,
    /// The same in words.
    pub message: String,
    /// The words are a piece of the answer itself, which others wrote.
    pub is_quoted: bool,
}

/// Someone who wants to know how far a call is; most callers do not.
#[derive(Clone, Default)]
pub struct Progress(Option<Arc<dyn Fn(Step) + Send + Sync>>);

impl Progress {
    /// Tells every step to `listener`.
    pub fn to(listener: impl Fn(Step) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(listener)))
    }

    /// Tells nobody.
    pub fn none() -> Self {
        Self(None)
    }

    /// Whether somebody listens.
    pub fn is_wanted(&self) -> bool {
        self.0.is_some()
    }

    /// The same listener for work that follows what was already told: its steps begin at `start`.
    #[must_use]
    pub fn beyond(&self, start: f64) -> Self {
        if start <= 0.0 || self.0.is_none() {
            return self.clone();
        }
        let first = self.clone();
        Self::to(move |step| {
            first.tell(Step {
                done: step.done + start,
                total: step.total.map(|total| total + start),
                ..step
            });
        })
    }

    /// Tells a step.
    pub fn tell(&self, step: Step) {
        if let Some(listener) = &self.0 {
            listener(step);
        }
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Progress").field(&self.is_wanted()).finish()
    }
}

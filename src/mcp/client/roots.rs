//! The folders of a session's client, remembered for as long as the client would tell of changes.

use exa_mcp_model::lock;
use std::sync::{Arc, Mutex};

/// What is known of a client's folders. Clones share it.
#[derive(Clone, Default)]
pub(in super::super) struct KnownRoots {
    /// The client tells of changes, so what it said stays true until it does.
    tells_changes: bool,
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    /// Counts the changes.
    moment: u64,
    roots: Option<Vec<String>>,
}

impl KnownRoots {
    /// The same memory, for a client that does or does not tell of changes.
    pub(super) fn telling(&self, tells_changes: bool) -> Self {
        Self {
            tells_changes,
            inner: Arc::clone(&self.inner),
        }
    }

    /// What the client said, if it is still true.
    pub(super) fn known(&self) -> Option<Vec<String>> {
        lock(&self.inner)
            .roots
            .clone()
            .filter(|_| self.tells_changes)
    }

    /// When a question was asked.
    pub(super) fn moment(&self) -> u64 {
        lock(&self.inner).moment
    }

    /// Remembers an answer, unless the folders changed since the question.
    pub(super) fn learn(&self, asked: u64, roots: &[String]) {
        let mut inner = lock(&self.inner);
        if inner.moment == asked {
            inner.roots = Some(roots.to_vec());
        }
    }

    /// The client says that its folders changed.
    pub(in super::super) fn forget(&self) {
        let mut inner = lock(&self.inner);
        inner.moment += 1;
        inner.roots = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_from_before_a_change_is_not_remembered() {
        let known = KnownRoots::default().telling(true);
        let asked = known.moment();
        known.forget();
        known.learn(asked, &["file:///old".to_owned()]);
        assert_eq!(known.known(), None);
        known.learn(known.moment(), &["file:///new".to_owned()]);
        assert_eq!(known.known(), Some(vec!["file:///new".to_owned()]));
        known.forget();
        assert_eq!(known.known(), None);
    }

    #[test]
    fn who_does_not_tell_of_changes_is_asked_every_time() {
        let known = KnownRoots::default().telling(false);
        known.learn(known.moment(), &["file:///a".to_owned()]);
        assert_eq!(known.known(), None);
    }
}

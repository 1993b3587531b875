//! To whom state belongs.

use std::fmt;
use std::sync::Arc;

/// Someone who owns notes, results and whatever else is kept. Cheap to clone.
///
/// Everything that is kept is kept under an identity, and only the same identity finds it again.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity(Arc<str>);

impl Identity {
    /// Whoever started this process: the one user of a stdio server.
    pub fn local() -> Self {
        Self(Arc::from("local"))
    }

    /// A person whom an operator named. The prefix keeps a person called `local` apart from
    /// [`Identity::local`].
    pub fn user(name: &str) -> Self {
        Self(Arc::from(format!("user:{name}")))
    }

    /// The identity that a store knows by this name.
    pub(crate) fn kept(name: &str) -> Self {
        Self(Arc::from(name))
    }

    /// The name under which a store keeps what belongs to it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_can_pass_for_the_local_user() {
        assert_eq!(Identity::local(), Identity::local());
        assert_ne!(Identity::local(), Identity::user("local"));
        assert_ne!(Identity::user("ann"), Identity::user("anna"));
    }
}

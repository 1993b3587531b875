//! The owner of state.

use std::fmt;
use std::sync::Arc;

/// The owner of notes, results and other stored data. Cheap to clone.
///
/// All data is stored under an identity, and only the same identity can access it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity(Arc<str>);

impl Identity {
    /// Returns the user who started this process, the only user of a stdio server.
    pub fn local() -> Self {
        Self(Arc::from("local"))
    }

    /// Returns a named user. The prefix distinguishes a user called `local` from [`Identity::local`].
    pub fn user(name: &str) -> Self {
        Self(Arc::from(format!("user:{name}")))
    }

    /// Returns the holder of a token without a user name.
    pub fn token(id: &str) -> Self {
        Self(Arc::from(format!("token:{id}")))
    }

    /// Returns the holder of an Exa key, by a keyed hash of the key.
    pub fn key(hash: &str) -> Self {
        Self(Arc::from(format!("key:{hash}")))
    }

    /// Returns a caller without credentials; each one is distinct.
    pub fn anonymous(id: &str) -> Self {
        Self(Arc::from(format!("guest:{id}")))
    }

    /// Returns the name of a named user.
    pub fn user_name(&self) -> Option<&str> {
        self.0.strip_prefix("user:")
    }

    /// Returns whether the caller has no credentials.
    pub fn is_anonymous(&self) -> bool {
        self.0.starts_with("guest:")
    }

    /// Returns the server itself, whose data no caller can access.
    pub fn server() -> Self {
        Self(Arc::from("server"))
    }

    /// Restores an identity from its stored name.
    pub fn from_stored(name: &str) -> Self {
        Self(Arc::from(name))
    }

    /// Returns the name under which its data is stored.
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
    fn identities_are_distinct() {
        assert_ne!(Identity::local(), Identity::user("local"));
        assert_ne!(Identity::user("ann"), Identity::user("anna"));
    }
}

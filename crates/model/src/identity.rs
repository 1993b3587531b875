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

    /// Whoever holds a token that names nobody.
    pub fn token(id: &str) -> Self {
        Self(Arc::from(format!("token:{id}")))
    }

    /// Whoever holds an Exa key, by a keyed hash of it.
    pub fn key(hash: &str) -> Self {
        Self(Arc::from(format!("key:{hash}")))
    }

    /// Someone who showed neither; each guest is another one.
    pub fn anonymous(id: &str) -> Self {
        Self(Arc::from(format!("guest:{id}")))
    }

    /// The name of a person whom an operator named.
    pub fn user_name(&self) -> Option<&str> {
        self.0.strip_prefix("user:")
    }

    /// Whether it is someone who showed nothing.
    pub fn is_anonymous(&self) -> bool {
        self.0.starts_with("guest:")
    }

    /// The server itself; nobody can ask for what belongs to it.
    pub fn server() -> Self {
        Self(Arc::from("server"))
    }

    /// The identity that a store knows by this name.
    pub fn from_stored(name: &str) -> Self {
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
        assert_ne!(Identity::local(), Identity::user("local"));
        assert_ne!(Identity::user("ann"), Identity::user("anna"));
    }
}

//! Whether a call comes from the user of this machine or from someone elsewhere.
//!
//! What a client says of the machine it runs on (its roots, its files) counts only where that machine
//! is this one. Code that relies on such a statement takes a [`LocalUser`], which a request over HTTP
//! can never have.

use crate::Identity;

/// Proof that the caller is the user who started this process and talks to it over its standard streams
/// or its command line. Cheap to clone.
#[derive(Clone, Debug)]
pub struct LocalUser {
    identity: Identity,
}

impl LocalUser {
    /// The user who started this process. Only the stdio server and the command line may call this;
    /// a test guards the list of callers.
    pub fn of_this_process() -> Self {
        Self {
            identity: Identity::local(),
        }
    }
}

/// To whom a call belongs, and where its caller is. Cheap to clone.
#[derive(Clone, Debug)]
pub enum Owner {
    /// The user of this machine.
    Local(LocalUser),
    /// Anyone who calls over a network, loopback included: whatever identity the call runs under, nothing
    /// shows that its caller may read files of this machine.
    Remote(Identity),
}

impl Owner {
    /// The owner of something kept under an identity: local only where the process serves the local user.
    pub fn from_stored(identity: Identity, user: Option<&LocalUser>) -> Self {
        match user {
            Some(user) if user.identity == identity => Self::Local(user.clone()),
            _ => Self::Remote(identity),
        }
    }

    /// The identity under which state is kept.
    pub fn identity(&self) -> &Identity {
        match self {
            Self::Local(user) => &user.identity,
            Self::Remote(identity) => identity,
        }
    }

    /// The local user, if the call is theirs.
    pub fn local_user(&self) -> Option<&LocalUser> {
        match self {
            Self::Local(user) => Some(user),
            Self::Remote(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_local_user_of_a_local_process_is_local() {
        let user = LocalUser::of_this_process();
        let local = Owner::from_stored(Identity::local(), Some(&user));
        assert!(local.local_user().is_some());
        // The guest of a sandbox over HTTP shares the identity, but not the machine.
        let guest = Owner::from_stored(Identity::local(), None);
        assert!(guest.local_user().is_none());
        assert_eq!(guest.identity(), local.identity());
        let other = Owner::from_stored(Identity::user("ann"), Some(&user));
        assert!(other.local_user().is_none());
    }
}

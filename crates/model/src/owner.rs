//! Whether a call comes from the user of this machine or over a network.
//!
//! Information of a client about its machine (its roots, its files) is valid only if that is this machine. Code that
//! relies on it takes a [`LocalUser`], which a request over HTTP never has.

use crate::Identity;

/// Proof that the caller is the user who started this process and uses its standard streams or command line. Cheap
/// to clone.
#[derive(Clone, Debug)]
pub struct LocalUser {
    identity: Identity,
}

impl LocalUser {
    /// Returns the user who started this process. Only the stdio server and the command line may call this; a test
    /// checks the callers.
    pub fn of_this_process() -> Self {
        Self {
            identity: Identity::local(),
        }
    }
}

/// The owner of a call, and whether the caller is local. Cheap to clone.
#[derive(Clone, Debug)]
pub enum Owner {
    /// The user of this machine.
    Local(LocalUser),
    /// A caller over a network, including loopback. Regardless of the identity, nothing proves that the caller may
    /// read files of this machine.
    Remote(Identity),
}

impl Owner {
    /// Returns the owner of data stored under an identity: local only if the process serves the local user.
    pub fn from_stored(identity: Identity, user: Option<&LocalUser>) -> Self {
        match user {
            Some(user) if user.identity == identity => Self::Local(user.clone()),
            _ => Self::Remote(identity),
        }
    }

    /// Returns the identity under which data is stored.
    pub fn identity(&self) -> &Identity {
        match self {
            Self::Local(user) => &user.identity,
            Self::Remote(identity) => identity,
        }
    }

    /// Returns the local user, if the call is local.
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
        // A caller of a sandbox over HTTP shares the identity, but not the machine.
        let remote = Owner::from_stored(Identity::local(), None);
        assert!(remote.local_user().is_none());
        assert_eq!(remote.identity(), local.identity());
        let other = Owner::from_stored(Identity::user("ann"), Some(&user));
        assert!(other.local_user().is_none());
    }
}

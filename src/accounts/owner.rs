//! Whether a call comes from the user of this machine or from someone elsewhere.
//!
//! What a client says of the machine it runs on (its roots, its files) counts only where that machine
//! is this one. Code that relies on such a statement takes a [`LocalUser`], which a request over HTTP
//! can never have.

use super::Identity;

/// Proof that the caller is the user who started this process and talks to it over its standard streams
/// or its command line. Cheap to clone.
#[derive(Clone, Debug)]
pub struct LocalUser {
    identity: Identity,
}

impl LocalUser {
    /// The user who started this process. Only the stdio server and the command line may call this;
    /// a test guards the list of callers.
    pub(crate) fn of_this_process() -> Self {
        Self {
            identity: Identity::local(),
        }
    }

    /// The user of a test.
    #[cfg(test)]
    pub(crate) fn for_test() -> Self {
        Self::of_this_process()
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
    pub(crate) fn of_kept(identity: Identity, user: Option<&LocalUser>) -> Self {
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
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn only_the_local_user_of_a_local_process_is_local() {
        let user = LocalUser::for_test();
        let local = Owner::of_kept(Identity::local(), Some(&user));
        assert!(local.local_user().is_some());
        // The guest of a sandbox over HTTP shares the identity, but not the machine.
        let guest = Owner::of_kept(Identity::local(), None);
        assert!(guest.local_user().is_none());
        assert_eq!(guest.identity(), local.identity());
        let other = Owner::of_kept(Identity::user("ann"), Some(&user));
        assert!(other.local_user().is_none());
    }

    /// Collects the sources under a folder that contain a text, with `/` between the steps of a path.
    fn sources_with(text: &str, folder: &Path, base: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources_with(text, &path, base, found);
            } else if fs::read_to_string(&path).is_ok_and(|source| source.contains(text)) {
                let steps = path.strip_prefix(base).unwrap().components();
                let steps: Vec<_> = steps.map(|it| it.as_os_str().to_string_lossy()).collect();
                found.push(steps.join("/"));
            }
        }
    }

    #[test]
    fn only_standard_streams_and_the_command_line_vouch_for_the_local_user() {
        let base = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut found = Vec::new();
        let name = concat!("LocalUser::", "of_this_process");
        sources_with(name, &base, &base, &mut found);
        found.sort();
        assert_eq!(found, ["cli/call.rs", "protocol/serve.rs"]);
    }
}

//! Who holds which token.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use super::secret::Secret;
use super::throttle::Throttle;
use super::token::{Hashes, KNOWN_BY, Role, Token, TokenError, read};
use super::{Identity, now};
use crate::ids::NoRandomness;

/// The tokens of a server. Looking for one takes as long among many as among few.
pub struct Directory {
    secret: Secret,
    tokens: Vec<Arc<Token>>,
    places: HashMap<u64, Vec<Arc<Token>>>,
    throttle: Throttle,
}

/// Why a token does not let its holder in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denied {
    /// There is none, or not this one; the difference is nobody's business.
    Unknown,
    /// Its time is over.
    Expired,
    /// It does not allow this.
    NotAdmin,
    /// Too many were wrong from this address.
    Throttled(Duration),
}

/// Why there is no directory.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// A token cannot be used.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// There is nothing to key the hashes with.
    #[error(transparent)]
    Randomness(#[from] NoRandomness),
}

impl Directory {
    /// The tokens of the configuration; `named` keys their names in the store.
    pub fn new(
        admin: Option<&str>,
        users: Option<&str>,
        named: &Secret,
    ) -> Result<Self, DirectoryError> {
        let secret = Secret::random()?;
        let hashes = Hashes {
            known: &secret,
            named,
        };
        let tokens = read(admin, users, &hashes)?.into_iter().map(Arc::new);
        let tokens: Vec<Arc<Token>> = tokens.collect();
        let mut places: HashMap<u64, Vec<Arc<Token>>> = HashMap::with_capacity(tokens.len());
        for token in &tokens {
            let place = places.entry(token.digest.number()).or_default();
            place.push(Arc::clone(token));
        }
        Ok(Self {
            secret,
            tokens,
            places,
            throttle: Throttle::default(),
        })
    }

    /// The token that someone at an address shows.
    pub fn find(&self, shown: Option<&str>, address: IpAddr) -> Result<Arc<Token>, Denied> {
        let shown = shown.ok_or(Denied::Unknown)?;
        let digest = self.secret.digest(KNOWN_BY, shown);
        let admitted = self.throttle.admit(address, &digest);
        admitted.map_err(Denied::Throttled)?;
        let mut place = self.places.get(&digest.number()).into_iter().flatten();
        let Some(token) = place.find(|token| token.digest.is(&digest)) else {
            self.throttle.wrong(address);
            return Err(Denied::Unknown);
        };
        self.throttle.right(address, &digest);
        match token.is_expired(now()) {
            true => Err(Denied::Expired),
            false => Ok(Arc::clone(token)),
        }
    }

    /// All tokens, in the order of the configuration.
    pub fn tokens(&self) -> &[Arc<Token>] {
        &self.tokens
    }
}

impl Token {
    /// To whom belongs what its holder leaves behind. All tokens of a person are that person.
    pub fn owner(&self) -> Identity {
        match &self.user {
            Some(user) => Identity::user(user),
            None => Identity::token(&self.id),
        }
    }

    /// Refuses all but those who look after the server.
    pub fn admit_admin(&self) -> Result<(), Denied> {
        match self.role {
            Role::Admin => Ok(()),
            Role::User => Err(Denied::NotAdmin),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn directory(users: &str) -> Directory {
        Directory::new(Some("admin-secret"), Some(users), &Secret::chosen("s")).unwrap()
    }

    #[test]
    fn a_token_lets_its_holder_in() {
        let directory = directory("a:ann:2999-01-01,b::never,c:carl:2001-01-01");
        let found = |token| directory.find(token, HERE).map(|token| token.owner());
        assert_eq!(found(Some("a")), Ok(Identity::user("ann")));
        assert!(found(Some("b")).unwrap().as_str().starts_with("token:"));
        assert_eq!(found(Some("c")), Err(Denied::Expired));
        for wrong in [None, Some(""), Some("A"), Some("aa"), Some("a:ann")] {
            assert_eq!(found(wrong), Err(Denied::Unknown), "{wrong:?}");
        }
    }

    #[test]
    fn only_the_admin_looks_after_the_server() {
        let directory = directory("a");
        let admit = |token| directory.find(Some(token), HERE).unwrap().admit_admin();
        assert_eq!(admit("admin-secret"), Ok(()));
        assert_eq!(admit("a"), Err(Denied::NotAdmin));
    }

    #[test]
    fn guessing_is_slow_and_the_right_guess_does_not_help_then() {
        let directory = directory("a");
        for _ in 0..10 {
            assert_eq!(directory.find(Some("x"), HERE).err(), Some(Denied::Unknown));
        }
        let throttled =
            |token| matches!(directory.find(Some(token), HERE), Err(Denied::Throttled(_)));
        assert!(throttled("x") && throttled("a"));
        assert_eq!(directory.find(None, HERE).err(), Some(Denied::Unknown));
    }

    #[test]
    fn many_tokens_are_all_found() {
        let users: Vec<String> = (0..20_000).map(|n| format!("t{n}:u{n}")).collect();
        let directory = directory(&users.join(","));
        for n in (0..20_000).step_by(997) {
            let token = directory.find(Some(&format!("t{n}")), HERE).unwrap();
            assert_eq!(token.owner(), Identity::user(&format!("u{n}")));
        }
    }
}

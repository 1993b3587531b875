//! Who holds which token.

use std::cmp::Ordering;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use super::limits::TokenLimits;
use super::now;
use super::record::Record;
use super::secret::{Digest, Secret};
use super::throttle::Throttle;
use super::token::{Hashes, KNOWN_BY, Role, Source, Token, TokenError, read};
use exa_mcp_model::Identity;

/// The tokens of a server. Looking for one takes as long among many as among few.
pub struct Directory {
    secret: Secret,
    table: RwLock<Table>,
    /// The limits of tokens that have none of their own.
    usual: TokenLimits,
    throttle: Throttle,
}

#[derive(Default)]
struct Table {
    /// The ids, in the order in which they are listed.
    order: Vec<String>,
    tokens: HashMap<String, Arc<Token>>,
    places: HashMap<u64, Vec<(Digest, Arc<Token>)>>,
}

/// Why a token does not let its holder in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denied {
    /// There is none, or not this one; the difference is nobody's business.
    Unknown,
    /// Its time is over.
    Expired,
    /// It was taken back.
    Revoked,
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
}

impl Directory {
    /// The tokens of the configuration. The secret keys all hashes; it must stay the same as long as
    /// the store in which they are kept. Tokens without limits of their own get the usual ones.
    pub fn new(
        admin: Option<&str>,
        users: Option<&str>,
        secret: &Secret,
        usual: TokenLimits,
    ) -> Result<Self, DirectoryError> {
        let hashes = Hashes {
            known: secret,
            named: secret,
        };
        let mut table = Table::default();
        for token in read(admin, users, &hashes)? {
            let in_force = usual.clone();
            table.put(Token { in_force, ..token });
        }
        Ok(Self {
            secret: secret.clone(),
            table: RwLock::new(table),
            usual,
            throttle: Throttle::default(),
        })
    }

    /// What keys the hashes of this server.
    pub(super) fn secret(&self) -> &Secret {
        &self.secret
    }

    /// The token that someone at an address shows, if it lets them in.
    pub fn find(&self, shown: Option<&str>, address: IpAddr) -> Result<Arc<Token>, Denied> {
        let token = self.known(shown, address)?;
        token.admit(now()).map(|()| token)
    }

    /// The token that someone at an address shows, whether or not it lets them in.
    pub fn known(&self, shown: Option<&str>, address: IpAddr) -> Result<Arc<Token>, Denied> {
        let shown = shown.ok_or(Denied::Unknown)?;
        let digest = self.digest(shown);
        // Looked for first: whoever holds a token is let in, whatever others behind the same address guess.
        match self.table().find(&digest, now()) {
            Some(token) => Ok(token),
            None => {
                let counted = self.throttle.wrong(address);
                counted.map_err(Denied::Throttled)?;
                Err(Denied::Unknown)
            }
        }
    }

    /// Returns until when a token of this hash admits this owner, or why it does not; `None` is for ever.
    pub(super) fn validity(
        &self,
        digest: &Digest,
        owner: &Identity,
        now: i64,
    ) -> Result<Option<i64>, Denied> {
        let token = self.table().find(digest, now).ok_or(Denied::Unknown)?;
        token.admit(now)?;
        if token.owner() != *owner {
            return Err(Denied::Unknown);
        }
        let former = token.former.filter(|_| !token.digest.is(digest));
        let ends = [token.expires, former.map(|(_, until)| until)];
        Ok(ends.into_iter().flatten().min())
    }

    /// Returns those of these owners who have had tokens of which none admits them any more, and why.
    pub fn ended_owners(&self, owners: &HashSet<Identity>, now: i64) -> Vec<(Identity, Denied)> {
        if owners.is_empty() {
            return Vec::new();
        }
        let mut ended: HashMap<Identity, Denied> = HashMap::new();
        let mut admitted: HashSet<Identity> = HashSet::new();
        let users: HashSet<&str> = owners.iter().filter_map(Identity::user_name).collect();
        let table = self.table();
        let concerns = |user: &Option<String>| match user {
            Some(user) => users.contains(user.as_str()),
            None => true,
        };
        for token in table.tokens.values() {
            // Whoever had the token before is known no longer by it.
            for user in token.former_users.iter().filter(|user| concerns(user)) {
                let owner = token.owner_as(user.as_deref());
                ended.entry(owner).or_insert(Denied::Unknown);
            }
            if !concerns(&token.user) {
                continue;
            }
            let owner = token.owner();
            match token.admit(now) {
                Ok(()) => drop(admitted.insert(owner)),
                // A revocation is more than an end that was to be expected.
                Err(Denied::Revoked) => drop(ended.insert(owner, Denied::Revoked)),
                Err(why) => match ended.entry(owner) {
                    Entry::Occupied(known) if *known.get() == Denied::Revoked => {}
                    known => drop(known.insert_entry(why)),
                },
            }
        }
        ended.retain(|owner, _| owners.contains(owner) && !admitted.contains(owner));
        ended.into_iter().collect()
    }

    /// All tokens: those of the configuration in its order, then the others as they were made. Every
    /// server gives this order, whenever it heard of which.
    pub fn tokens(&self) -> Vec<Arc<Token>> {
        let mut tokens: Vec<Arc<Token>> = {
            let table = self.table();
            let ids = table.order.iter();
            ids.filter_map(|id| table.tokens.get(id).cloned()).collect()
        };
        tokens.sort_by(|one, other| match (one.source, other.source) {
            (Source::Environment, Source::Environment) => Ordering::Equal,
            (Source::Environment, Source::Admin) => Ordering::Less,
            (Source::Admin, Source::Environment) => Ordering::Greater,
            (Source::Admin, Source::Admin) => {
                (one.made_at(), &one.id).cmp(&(other.made_at(), &other.id))
            }
        });
        tokens
    }

    /// The token of this id.
    pub fn get(&self, id: &str) -> Option<Arc<Token>> {
        self.table().tokens.get(id).cloned()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.table().order.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The hash by which a token is known.
    pub(super) fn digest(&self, token: &str) -> Digest {
        self.secret.digest(KNOWN_BY, token)
    }

    /// Takes over what a store says of a token.
    pub(super) fn learn(&self, record: &Record) {
        let mut table = self.table_mut();
        let known = table.tokens.get(&record.id).cloned();
        let own = known.filter(|known| known.source == Source::Environment);
        let token = match (own, record.digest()) {
            (Some(own), _) => Token {
                revoked: record.revoked,
                limits: record.limits.clone(),
                ..(*own).clone()
            },
            (None, Some(digest)) => made(record, digest),
            // It was about a token that the environment does not name any more.
            (None, None) => return,
        };
        let in_force = token.limits.or(&self.usual);
        table.put(Token { in_force, ..token });
    }

    fn table(&self) -> RwLockReadGuard<'_, Table> {
        self.table.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn table_mut(&self) -> RwLockWriteGuard<'_, Table> {
        self.table.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A token that was made at run time.
fn made(record: &Record, digest: Digest) -> Token {
    let former = record.former.as_ref();
    Token {
        digest,
        former: former.and_then(|former| Some((Digest::read(&former.hash)?, former.until))),
        id: record.id.clone(),
        prefix: record.prefix.clone(),
        user: record.user.clone(),
        former_users: record.former_users.clone(),
        role: if record.admin {
            Role::Admin
        } else {
            Role::User
        },
        expires: record.expires,
        source: Source::Admin,
        created: record.created,
        revoked: record.revoked,
        limits: record.limits.clone(),
        in_force: TokenLimits::default(),
        calls: Arc::default(),
        changes: Arc::default(),
    }
}

impl Table {
    fn find(&self, digest: &Digest, now: i64) -> Option<Arc<Token>> {
        let mut place = self.places.get(&digest.number()).into_iter().flatten();
        let (_, token) = place.find(|(known, _)| known.is(digest))?;
        let is_former = |(former, until): &(Digest, i64)| former.is(digest) && *until > now;
        let right = token.digest.is(digest) || token.former.as_ref().is_some_and(is_former);
        right.then(|| Arc::clone(token))
    }

    /// Takes a token from a place.
    fn leave(&mut self, number: u64, id: &str) {
        if let Entry::Occupied(mut place) = self.places.entry(number) {
            place.get_mut().retain(|(_, token)| token.id != id);
            if place.get().is_empty() {
                place.remove();
            }
        }
    }

    /// Puts a token, in place of what it was before.
    fn put(&mut self, mut token: Token) {
        match self.tokens.get(&token.id).cloned() {
            Some(before) => {
                token.calls = Arc::clone(&before.calls);
                token.changes = Arc::clone(&before.changes);
                for digest in digests(&before) {
                    self.leave(digest.number(), &before.id);
                }
            }
            None => self.order.push(token.id.clone()),
        }
        let token = Arc::new(token);
        for digest in digests(&token) {
            let place = self.places.entry(digest.number()).or_default();
            place.push((digest, Arc::clone(&token)));
        }
        token.changes.send_replace(());
        self.tokens.insert(token.id.clone(), token);
    }
}

fn digests(token: &Token) -> impl Iterator<Item = Digest> {
    let former = token.former.map(|(digest, _)| digest);
    std::iter::once(token.digest).chain(former)
}

impl Token {
    /// To whom belongs what its holder leaves behind. All tokens of a person are that person.
    pub fn owner(&self) -> Identity {
        self.owner_as(self.user.as_deref())
    }

    /// The owner that its holder is while it belongs to this user.
    fn owner_as(&self, user: Option<&str>) -> Identity {
        match user {
            Some(user) => Identity::user(user),
            None => Identity::token(&self.id),
        }
    }

    /// When it was made, in milliseconds since 1970; 0 where nobody knows.
    pub fn made_at(&self) -> i64 {
        self.created.unwrap_or_default()
    }

    /// Whether it lets its holder in at this moment.
    pub fn admit(&self, now: i64) -> Result<(), Denied> {
        match (self.revoked.is_some(), self.is_expired(now)) {
            (true, _) => Err(Denied::Revoked),
            (false, true) => Err(Denied::Expired),
            (false, false) => Ok(()),
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
#[path = "directory_tests.rs"]
mod tests;

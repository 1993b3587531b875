//! The tokens of a server, found by their hashes.

use std::cmp::Ordering;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use super::limits::TokenLimits;
use super::now;
use super::secret::{Digest, Secret};
use super::throttle::Throttle;
use super::token::{TOKEN_HASH, Token, TokenError, TokenRole, TokenSource, parse_tokens};
use super::token_record::TokenRecord;
use exa_mcp_model::Identity;

/// The tokens of a server. Lookups take constant time.
pub struct TokenDirectory {
    secret: Secret,
    table: RwLock<Table>,
    /// The limits of tokens without their own.
    default_limits: TokenLimits,
    throttle: Throttle,
}

#[derive(Default)]
struct Table {
    /// The ids, in the order in which they were added.
    order: Vec<String>,
    tokens: HashMap<String, Arc<Token>>,
    buckets: HashMap<u64, Vec<(Digest, Arc<Token>)>>,
}

/// Why a request is not authenticated or not authorized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthError {
    /// The token is missing or unknown.
    Unknown,
    /// The token has expired.
    Expired,
    /// The token was revoked.
    Revoked,
    /// The token is not an admin token.
    NotAdmin,
    /// Too many wrong tokens came from this address. Holds the time to wait.
    Throttled(Duration),
}

/// An error of the configured tokens.
#[derive(Debug, thiserror::Error)]
pub enum TokenDirectoryError {
    /// A token is invalid.
    #[error(transparent)]
    Token(#[from] TokenError),
}

impl TokenDirectory {
    /// Creates a directory of the configured tokens. The secret keys all hashes and must not change during the
    /// lifetime of the store. Tokens without their own limits get the default ones.
    ///
    /// # Errors
    /// A token is malformed, or there is none.
    pub fn new(
        admin: Option<&str>,
        users: Option<&str>,
        secret: &Secret,
        default_limits: TokenLimits,
    ) -> Result<Self, TokenDirectoryError> {
        let mut table = Table::default();
        for token in parse_tokens(admin, users, secret)? {
            table.insert(Token {
                effective_limits: default_limits.clone(),
                ..token
            });
        }
        Ok(Self {
            secret: secret.clone(),
            table: RwLock::new(table),
            default_limits,
            throttle: Throttle::default(),
        })
    }

    /// Returns the secret that keys the hashes of this server.
    pub(super) fn secret(&self) -> &Secret {
        &self.secret
    }

    /// Returns the active token that a client presents.
    ///
    /// # Errors
    /// The token is unknown, expired or revoked.
    pub fn authenticate(
        &self,
        presented: Option<&str>,
        address: IpAddr,
    ) -> Result<Arc<Token>, AuthError> {
        let token = self.lookup(presented, address)?;
        token.check_active(now()).map(|()| token)
    }

    /// Returns the token that a client presents, even if it is expired or revoked.
    ///
    /// # Errors
    /// The token is unknown.
    pub fn lookup(
        &self,
        presented: Option<&str>,
        address: IpAddr,
    ) -> Result<Arc<Token>, AuthError> {
        let presented = presented.ok_or(AuthError::Unknown)?;
        let digest = self.digest(presented);
        // Only wrong tokens are throttled: guesses must not lock out a valid client behind the same address.
        match self.table().find(&digest, now()) {
            Some(token) => Ok(token),
            None => {
                let allowed = self.throttle.record_failure(address);
                allowed.map_err(AuthError::Throttled)?;
                Err(AuthError::Unknown)
            }
        }
    }

    /// Returns until when the token of this hash is valid for this owner; `None` is forever.
    pub(super) fn validity(
        &self,
        digest: &Digest,
        owner: &Identity,
        now: i64,
    ) -> Result<Option<i64>, AuthError> {
        let token = self.table().find(digest, now).ok_or(AuthError::Unknown)?;
        token.check_active(now)?;
        if token.owner() != *owner {
            return Err(AuthError::Unknown);
        }
        let previous = token.previous.filter(|_| !token.digest.is(digest));
        let ends = [token.expires, previous.map(|(_, until)| until)];
        Ok(ends.into_iter().flatten().min())
    }

    /// Returns which of these owners have lost access because none of their tokens is active, and why.
    pub fn owners_without_access(
        &self,
        owners: &HashSet<Identity>,
        now: i64,
    ) -> Vec<(Identity, AuthError)> {
        if owners.is_empty() {
            return Vec::new();
        }
        let mut without_access: HashMap<Identity, AuthError> = HashMap::new();
        let mut with_access: HashSet<Identity> = HashSet::new();
        let users: HashSet<&str> = owners.iter().filter_map(Identity::user_name).collect();
        let table = self.table();
        let is_relevant =
            |user: &Option<String>| user.as_deref().is_none_or(|user| users.contains(user));
        for token in table.tokens.values() {
            // A previous user of the token no longer has access through it.
            for user in token.previous_users.iter().filter(|user| is_relevant(user)) {
                let owner = token.owner_as(user.as_deref());
                without_access.entry(owner).or_insert(AuthError::Unknown);
            }
            if !is_relevant(&token.user) {
                continue;
            }
            let owner = token.owner();
            match token.check_active(now) {
                Ok(()) => drop(with_access.insert(owner)),
                // A revocation takes precedence over an expiry.
                Err(AuthError::Revoked) => drop(without_access.insert(owner, AuthError::Revoked)),
                Err(error) => match without_access.entry(owner) {
                    Entry::Occupied(known) if *known.get() == AuthError::Revoked => {}
                    entry => drop(entry.insert_entry(error)),
                },
            }
        }
        without_access.retain(|owner, _| owners.contains(owner) && !with_access.contains(owner));
        without_access.into_iter().collect()
    }

    /// Returns all tokens: those of the configuration in its order, then the others by creation time. The order is
    /// the same on every server.
    pub fn tokens(&self) -> Vec<Arc<Token>> {
        let mut tokens: Vec<Arc<Token>> = {
            let table = self.table();
            let ids = table.order.iter();
            ids.filter_map(|id| table.tokens.get(id).cloned()).collect()
        };
        tokens.sort_by(|one, other| match (one.source, other.source) {
            (TokenSource::Environment, TokenSource::Environment) => Ordering::Equal,
            (TokenSource::Environment, TokenSource::Admin) => Ordering::Less,
            (TokenSource::Admin, TokenSource::Environment) => Ordering::Greater,
            (TokenSource::Admin, TokenSource::Admin) => {
                (one.created_at(), &one.id).cmp(&(other.created_at(), &other.id))
            }
        });
        tokens
    }

    /// Returns the token of this id.
    pub fn get(&self, id: &str) -> Option<Arc<Token>> {
        self.table().tokens.get(id).cloned()
    }

    /// Returns the number of tokens.
    pub fn len(&self) -> usize {
        self.table().order.len()
    }

    /// Returns whether there are no tokens.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the hash that identifies a token.
    pub(super) fn digest(&self, token: &str) -> Digest {
        self.secret.digest(TOKEN_HASH, token)
    }

    /// Applies the stored record of a token.
    pub(super) fn apply(&self, record: &TokenRecord) {
        let mut table = self.table_mut();
        let known = table.tokens.get(&record.id).cloned();
        let configured = known.filter(|known| known.source == TokenSource::Environment);
        let token = match (configured, record.digest()) {
            (Some(configured), _) => Token {
                revoked: record.revoked,
                limits: record.limits.clone(),
                ..(*configured).clone()
            },
            (None, Some(digest)) => token_from_record(record, digest),
            // The record is about a token that was removed from the environment.
            (None, None) => return,
        };
        let effective_limits = token.limits.or(&self.default_limits);
        table.insert(Token {
            effective_limits,
            ..token
        });
    }

    fn table(&self) -> RwLockReadGuard<'_, Table> {
        self.table.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn table_mut(&self) -> RwLockWriteGuard<'_, Table> {
        self.table.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Builds a token that an admin created at run time.
fn token_from_record(record: &TokenRecord, digest: Digest) -> Token {
    let previous = record.previous.as_ref();
    Token {
        digest,
        previous: previous
            .and_then(|previous| Some((Digest::from_hex(&previous.hash)?, previous.until))),
        id: record.id.clone(),
        prefix: record.prefix.clone(),
        user: record.user.clone(),
        previous_users: record.previous_users.clone(),
        role: if record.admin {
            TokenRole::Admin
        } else {
            TokenRole::User
        },
        expires: record.expires,
        source: TokenSource::Admin,
        created: record.created,
        revoked: record.revoked,
        limits: record.limits.clone(),
        effective_limits: TokenLimits::default(),
        calls: Arc::default(),
        changes: Arc::default(),
    }
}

impl Table {
    fn find(&self, digest: &Digest, now: i64) -> Option<Arc<Token>> {
        let mut bucket = self.buckets.get(&digest.bucket()).into_iter().flatten();
        let (_, token) = bucket.find(|(known, _)| known.is(digest))?;
        let in_grace_period =
            |(previous, until): &(Digest, i64)| previous.is(digest) && *until > now;
        let is_valid =
            token.digest.is(digest) || token.previous.as_ref().is_some_and(in_grace_period);
        is_valid.then(|| Arc::clone(token))
    }

    /// Removes a token from a bucket.
    fn remove_from_bucket(&mut self, bucket: u64, id: &str) {
        if let Entry::Occupied(mut bucket) = self.buckets.entry(bucket) {
            bucket.get_mut().retain(|(_, token)| token.id != id);
            if bucket.get().is_empty() {
                bucket.remove();
            }
        }
    }

    /// Adds or replaces a token.
    fn insert(&mut self, mut token: Token) {
        match self.tokens.get(&token.id).cloned() {
            Some(before) => {
                token.calls = Arc::clone(&before.calls);
                token.changes = Arc::clone(&before.changes);
                for digest in digests(&before) {
                    self.remove_from_bucket(digest.bucket(), &before.id);
                }
            }
            None => self.order.push(token.id.clone()),
        }
        let token = Arc::new(token);
        for digest in digests(&token) {
            let bucket = self.buckets.entry(digest.bucket()).or_default();
            bucket.push((digest, Arc::clone(&token)));
        }
        token.changes.send_replace(());
        self.tokens.insert(token.id.clone(), token);
    }
}

fn digests(token: &Token) -> impl Iterator<Item = Digest> {
    let previous = token.previous.map(|(digest, _)| digest);
    std::iter::once(token.digest).chain(previous)
}

#[cfg(test)]
#[path = "token_directory_tests.rs"]
mod tests;

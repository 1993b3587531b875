//! Creates, rotates, changes and revokes tokens on all servers that share a store.
//!
//! A change is stored before it takes effect here, and reaches the other servers within a second or two. While the
//! store fails, each server continues with the tokens it knows.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::Mutex;

use super::limits::{LimitsError, TokenLimits};
use super::token::{TokenRole, TokenSource};
use super::token_record::{PreviousToken, TokenRecord};
use super::{Token, TokenDirectory, now};
use exa_mcp_model::ids::{self, RandomnessError};
use exa_mcp_model::{Identity, to_hex};
use exa_mcp_store::{
    Document, DocumentKey, DocumentQuery, ExpectedRevision, Store, StoreError, WriteOptions, format,
};

/// The prefix of generated tokens.
const PREFIX: &str = "exa_mcp_";

/// The number of random bytes of a token.
const RANDOM_BYTES: usize = 32;

/// How much of a token is displayed: the prefix and four characters to tell tokens apart.
const DISPLAYED: usize = PREFIX.len() + 4;

/// The collections of tokens and of their change feed.
const TOKENS: &str = "tokens";
const CHANGES: &str = "token_changes";

/// How long changes stay in the feed. A server that missed more reloads everything.
const CHANGE_RETENTION: Duration = Duration::from_secs(60 * 60);

/// How often the change feed is polled, and how often everything is reloaded in case a change was missed.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
const RELOAD_INTERVAL: Duration = Duration::from_secs(5 * 60);

/// How many tokens and how many changes are read at once.
const PAGE_SIZE: usize = 1_000;
const MAX_CHANGES: usize = 100;

/// Creates, rotates, changes and revokes the tokens of a server. Clones share everything.
#[derive(Clone)]
pub struct TokenService {
    store: Arc<dyn Store>,
    directory: Arc<TokenDirectory>,
    /// The sequence number of the last processed change. Held while tokens change.
    last_change: Arc<Mutex<u64>>,
}

/// The properties of a new token.
#[derive(Clone, Debug)]
pub struct NewToken {
    /// The user it belongs to.
    pub user: Option<String>,
    /// The role.
    pub role: TokenRole,
    /// When it expires, in milliseconds since 1970.
    pub expires: Option<i64>,
    /// The limits.
    pub limits: TokenLimits,
}

/// Changes of a token. Fields that are `None` stay as they are.
#[derive(Clone, Debug, Default)]
pub struct TokenUpdate {
    /// The new user.
    pub user: Option<Option<String>>,
    /// The new expiry.
    pub expires: Option<Option<i64>>,
    /// Changes of the limits, as a JSON object.
    pub limits: Option<Value>,
}

/// An error of [`TokenService`].
#[derive(Debug, thiserror::Error)]
pub enum TokenServiceError {
    /// The token does not exist.
    #[error("There is no token with this id")]
    Unknown,
    /// The token cannot be changed in this way.
    #[error("{0}")]
    Immutable(&'static str),
    /// The limits are invalid.
    #[error(transparent)]
    Limits(#[from] LimitsError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The operating system does not provide random numbers.
    #[error(transparent)]
    Randomness(#[from] RandomnessError),
}

const IN_ENVIRONMENT: &str = "This token is set in the environment of the server: it can be limited and revoked here, \
                              but change its text, user and expiry in USER_TOKENS";
const ENVIRONMENT_ADMIN: &str = "This is the admin token of the server's environment: change or remove \
                                 MCP_AUTH_TOKEN, then restart the server";
const IS_REVOKED: &str = "This token was revoked; create a new one";

impl TokenService {
    /// Loads the tokens of a store into the directory.
    pub(crate) async fn open(
        store: Arc<dyn Store>,
        directory: Arc<TokenDirectory>,
    ) -> Result<Self, StoreError> {
        let token_service = Self {
            store,
            directory,
            last_change: Arc::default(),
        };
        token_service.load_all().await?;
        Ok(token_service)
    }

    /// Applies the changes of other servers as they arrive.
    pub(crate) async fn follow_changes(self) {
        if !self.store.is_shared() {
            return;
        }
        let mut loaded_at = Instant::now();
        let mut has_warned = false;
        loop {
            tokio::time::sleep(POLL_INTERVAL).await;
            let reload = loaded_at.elapsed() >= RELOAD_INTERVAL;
            let result = if reload {
                self.load_all().await
            } else {
                self.load_changes().await
            };
            if reload && result.is_ok() {
                loaded_at = Instant::now();
            }
            match result {
                Ok(()) => has_warned = false,
                Err(error) if !has_warned => {
                    has_warned = true;
                    tracing::warn!(%error, "cannot read token changes; using the known tokens");
                }
                Err(_) => {}
            }
        }
    }

    /// Creates a token and returns its text, which is not stored anywhere.
    ///
    /// # Errors
    /// The store fails.
    pub async fn create(&self, new: NewToken) -> Result<(String, Arc<Token>), TokenServiceError> {
        let text = random_token()?;
        let record = TokenRecord {
            id: ids::random_id()?,
            hash: Some(self.directory.digest(&text).to_hex()),
            previous: None,
            prefix: display_prefix(&text),
            user: new.user,
            previous_users: Vec::new(),
            admin: new.role == TokenRole::Admin,
            created: Some(now()),
            expires: new.expires,
            revoked: None,
            limits: new.limits,
        };
        let _changing = self.last_change.lock().await;
        self.put(&record, ExpectedRevision::Absent).await?;
        let token = self.apply(&record).await?;
        Ok((text, token))
    }

    /// Gives a token a new text. The old one stays valid for the grace period.
    ///
    /// # Errors
    /// The token does not exist, is revoked or configured in the environment, or the store fails.
    pub async fn rotate(
        &self,
        id: &str,
        grace: Duration,
    ) -> Result<(String, Arc<Token>), TokenServiceError> {
        let text = random_token()?;
        let hash = self.directory.digest(&text).to_hex();
        let until = now().saturating_add(i64::try_from(grace.as_millis()).unwrap_or(i64::MAX));
        let token = self
            .change(id, |record| {
                let previous = record
                    .hash
                    .clone()
                    .ok_or(TokenServiceError::Immutable(IN_ENVIRONMENT))?;
                if record.revoked.is_some() {
                    return Err(TokenServiceError::Immutable(IS_REVOKED));
                }
                record.previous = (!grace.is_zero()).then_some(PreviousToken {
                    hash: previous,
                    until,
                });
                record.hash = Some(hash.clone());
                record.prefix = display_prefix(&text);
                Ok(())
            })
            .await?;
        Ok((text, token))
    }

    /// Revokes a token immediately and permanently.
    ///
    /// # Errors
    /// The token does not exist or is the admin token of the environment, or the store fails.
    pub async fn revoke(&self, id: &str) -> Result<Arc<Token>, TokenServiceError> {
        let known = self.directory.get(id);
        if known.is_some_and(|token| {
            token.source == TokenSource::Environment && token.role == TokenRole::Admin
        }) {
            return Err(TokenServiceError::Immutable(ENVIRONMENT_ADMIN));
        }
        let revoke = |record: &mut TokenRecord| {
            record.revoked.get_or_insert_with(now);
            record.previous = None;
            Ok(())
        };
        self.change(id, revoke).await
    }

    /// Changes a token.
    ///
    /// # Errors
    /// The token does not exist, the change is invalid, or the store fails.
    pub async fn update(
        &self,
        id: &str,
        update: TokenUpdate,
    ) -> Result<Arc<Token>, TokenServiceError> {
        self.change(id, |record| {
            let is_configured = record.hash.is_none();
            if is_configured && (update.user.is_some() || update.expires.is_some()) {
                return Err(TokenServiceError::Immutable(IN_ENVIRONMENT));
            }
            if let Some(limits) = &update.limits {
                record.limits = record.limits.with_changes(limits)?;
            }
            if let Some(user) = &update.user {
                record.assign_to(user.as_deref());
            }
            if let Some(expires) = update.expires {
                record.expires = expires;
            }
            Ok(())
        })
        .await
    }

    /// Changes the stored record of a token. Retried if another server changes it at the same time.
    async fn change(
        &self,
        id: &str,
        mut change: impl FnMut(&mut TokenRecord) -> Result<(), TokenServiceError>,
    ) -> Result<Arc<Token>, TokenServiceError> {
        let _changing = self.last_change.lock().await;
        loop {
            let document = self.store.get(document_key(TOKENS, id)).await?;
            let (mut record, expected) = match (&document, self.directory.get(id)) {
                (Some(document), _) => {
                    let record = decode(document).ok_or(TokenServiceError::Unknown)?;
                    (record, ExpectedRevision::Exact(document.revision))
                }
                (None, Some(token)) if token.source == TokenSource::Environment => {
                    let id = id.to_owned();
                    (
                        TokenRecord {
                            id,
                            ..TokenRecord::default()
                        },
                        ExpectedRevision::Absent,
                    )
                }
                (None, _) => return Err(TokenServiceError::Unknown),
            };
            change(&mut record)?;
            match self.put(&record, expected).await {
                Ok(()) => return self.apply(&record).await,
                Err(StoreError::Conflict) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    async fn put(
        &self,
        record: &TokenRecord,
        expected: ExpectedRevision,
    ) -> Result<(), StoreError> {
        let body = format::encode(record);
        let options = WriteOptions {
            expected,
            ..WriteOptions::default()
        };
        let put = self
            .store
            .put(document_key(TOKENS, &record.id), body, options);
        put.await.map(drop)
    }

    /// Applies a change here and publishes it to the other servers.
    async fn apply(&self, record: &TokenRecord) -> Result<Arc<Token>, TokenServiceError> {
        self.directory.apply(record);
        if self.store.is_shared() {
            let options = WriteOptions {
                time_to_live: Some(CHANGE_RETENTION),
                ..WriteOptions::default()
            };
            let change = document_key(CHANGES, &ids::random_id()?);
            if let Err(error) = self.store.put(change, record.id.clone(), options).await {
                tracing::warn!(%error, "token change stored, but not published; other servers apply it later");
            }
        }
        self.directory
            .get(&record.id)
            .ok_or(TokenServiceError::Unknown)
    }

    /// Applies the changes since the last call.
    async fn load_changes(&self) -> Result<(), StoreError> {
        let mut last_change = self.last_change.lock().await;
        let changes = self.store.list(query(CHANGES, None, MAX_CHANGES)).await?;
        let Some(newest) = changes.first().map(|change| change.sequence) else {
            return Ok(());
        };
        let new = changes
            .iter()
            .filter(|change| change.sequence > *last_change);
        let ids: HashSet<&str> = new.map(|change| &*change.body).collect();
        if changes.len() == MAX_CHANGES
            && changes.iter().all(|change| change.sequence > *last_change)
        {
            drop(last_change);
            return self.load_all().await;
        }
        for id in ids {
            let document = self.store.get(document_key(TOKENS, id)).await?;
            if let Some(record) = document.as_ref().and_then(decode) {
                self.directory.apply(&record);
            }
        }
        *last_change = newest;
        Ok(())
    }

    /// Loads all tokens.
    async fn load_all(&self) -> Result<(), StoreError> {
        let mut last_change = self.last_change.lock().await;
        // Read first, so that the next call finds changes that happen meanwhile.
        let changes = self.store.list(query(CHANGES, None, 1)).await?;
        let mut documents = Vec::new();
        loop {
            let before = documents
                .last()
                .map(|document: &Document| document.sequence);
            let page = self.store.list(query(TOKENS, before, PAGE_SIZE)).await?;
            let is_last = page.len() < PAGE_SIZE;
            documents.extend(page);
            if is_last {
                break;
            }
        }
        for record in documents.iter().rev().filter_map(decode) {
            self.directory.apply(&record);
        }
        *last_change = changes
            .first()
            .map_or(*last_change, |change| change.sequence);
        Ok(())
    }
}

fn random_token() -> Result<String, RandomnessError> {
    let mut bytes = [0; RANDOM_BYTES];
    ids::fill_random(&mut bytes)?;
    Ok(format!("{PREFIX}{}", to_hex(&bytes)))
}

fn display_prefix(token: &str) -> String {
    let prefix: String = token.chars().take(DISPLAYED).collect();
    format!("{prefix}...")
}

fn decode(document: &Document) -> Option<TokenRecord> {
    format::decode(&document.body)
}

fn document_key(collection: &'static str, id: &str) -> DocumentKey {
    DocumentKey {
        owner: Identity::server(),
        collection,
        id: id.to_owned(),
    }
}

fn query(collection: &'static str, before: Option<u64>, limit: usize) -> DocumentQuery {
    DocumentQuery {
        owner: Some(Identity::server()),
        collection,
        before,
        limit,
    }
}

#[cfg(test)]
#[path = "token_service_tests.rs"]
mod tests;

//! Tokens at run time: made, renewed, changed and taken back, on all servers that share a store.
//!
//! A change is in the store before it counts here, and the others hear of it within a second or two.
//! While the store fails, everybody goes on with the tokens that they know.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::Mutex;

use super::limits::{LimitsError, TokenLimits};
use super::record::{Former, Record};
use super::token::{Role, Source};
use super::{Directory, Token, now};
use exa_mcp_model::ids::{self, RandomnessError};
use exa_mcp_model::{Identity, to_hex};
use exa_mcp_store::{Document, Expected, Place, Query, Rules, Store, StoreError, format};

/// What every token begins with that is made here.
const PREFIX: &str = "exa_mcp_";

/// Random bytes of a token.
const RANDOM: usize = 32;

/// How much of a token is shown: what all begin with, and four letters by which to tell them apart.
const SHOWN: usize = PREFIX.len() + 4;

/// The collections of tokens and of their change feed.
const TOKENS: &str = "tokens";
const CHANGES: &str = "token_changes";

/// How long a change is told; a server that was out of touch for longer reads everything anew.
const TOLD_FOR: Duration = Duration::from_secs(60 * 60);

/// How often changes are looked for, and how often everything is read in case one was missed.
const LOOK: Duration = Duration::from_secs(1);
const READ_ALL: Duration = Duration::from_secs(5 * 60);

/// How many documents are read at once.
const PAGE: usize = 1_000;
const MOST_CHANGES: usize = 100;

/// Creates, rotates, changes and revokes the tokens of a server. Clones share everything.
#[derive(Clone)]
pub struct TokenService {
    store: Arc<dyn Store>,
    directory: Arc<Directory>,
    /// The number of the last change that was seen. Who holds it changes tokens; nobody else does.
    seen: Arc<Mutex<u64>>,
}

/// What a new token is to be.
#[derive(Clone, Debug)]
pub struct NewToken {
    /// Whose it is.
    pub user: Option<String>,
    /// What it allows.
    pub role: Role,
    /// When it ends, in milliseconds since 1970.
    pub expires: Option<i64>,
    /// Its limits.
    pub limits: TokenLimits,
}

/// What is to change about a token.
#[derive(Clone, Debug, Default)]
pub struct Amendment {
    /// Whose it is from now on.
    pub user: Option<Option<String>>,
    /// When it ends from now on.
    pub expires: Option<Option<i64>>,
    /// Changes of its limits, as a JSON object.
    pub limits: Option<Value>,
}

/// Why a token was not made or changed.
#[derive(Debug, thiserror::Error)]
pub enum TokenServiceError {
    /// There is no such token.
    #[error("There is no token of this id")]
    Unknown,
    /// This token cannot be changed so.
    #[error("{0}")]
    Fixed(&'static str),
    /// The limits cannot be used.
    #[error(transparent)]
    Limits(#[from] LimitsError),
    /// Nothing can be kept now.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// No token can be made now.
    #[error(transparent)]
    Randomness(#[from] RandomnessError),
}

const IN_ENVIRONMENT: &str = "This token is set in the environment of the server: it can be limited and revoked here, \
                              but its text, user and expiry are changed in USER_TOKENS";
const LAST_ADMIN: &str = "This is the admin token of the server's environment: change or remove MCP_AUTH_TOKEN, then \
                          restart the server";
const IS_REVOKED: &str = "This token was revoked; make a new one";

impl TokenService {
    /// Reads the tokens of a store into the directory.
    pub(crate) async fn open(
        store: Arc<dyn Store>,
        directory: Arc<Directory>,
    ) -> Result<Self, StoreError> {
        let token_service = Self {
            store,
            directory,
            seen: Arc::default(),
        };
        token_service.read_all().await?;
        Ok(token_service)
    }

    /// Learns what other servers change, for ever.
    pub(crate) async fn follow(self) {
        if !self.store.is_shared() {
            return;
        }
        let mut read = Instant::now();
        let mut fails = false;
        loop {
            tokio::time::sleep(LOOK).await;
            let all = read.elapsed() >= READ_ALL;
            let learnt = match all {
                true => self.read_all().await,
                false => self.catch_up().await,
            };
            if all && learnt.is_ok() {
                read = Instant::now();
            }
            match learnt {
                Ok(()) => fails = false,
                Err(error) if !fails => {
                    fails = true;
                    tracing::warn!(%error, "changes of tokens cannot be read; those that are known stay");
                }
                Err(_) => {}
            }
        }
    }

    /// Makes a token; gives its text, which is nowhere else, and what is known about it.
    pub async fn create(&self, new: NewToken) -> Result<(String, Arc<Token>), TokenServiceError> {
        let text = random_token()?;
        let record = Record {
            id: ids::random_id()?,
            hash: Some(self.directory.digest(&text).written()),
            former: None,
            prefix: shown(&text),
            user: new.user,
            former_users: Vec::new(),
            admin: new.role == Role::Admin,
            created: Some(now()),
            expires: new.expires,
            revoked: None,
            limits: new.limits,
        };
        let _turn = self.seen.lock().await;
        self.put(&record, Expected::Nothing).await?;
        let token = self.learn(&record).await?;
        Ok((text, token))
    }

    /// Gives a token another text; the former one may be used a while longer.
    pub async fn rotate(
        &self,
        id: &str,
        grace: Duration,
    ) -> Result<(String, Arc<Token>), TokenServiceError> {
        let text = random_token()?;
        let hash = self.directory.digest(&text).written();
        let until = now().saturating_add(i64::try_from(grace.as_millis()).unwrap_or(i64::MAX));
        let token = self
            .change(id, |record| {
                let former = record
                    .hash
                    .clone()
                    .ok_or(TokenServiceError::Fixed(IN_ENVIRONMENT))?;
                if record.revoked.is_some() {
                    return Err(TokenServiceError::Fixed(IS_REVOKED));
                }
                record.former = (!grace.is_zero()).then_some(Former {
                    hash: former,
                    until,
                });
                record.hash = Some(hash.clone());
                record.prefix = shown(&text);
                Ok(())
            })
            .await?;
        Ok((text, token))
    }

    /// Takes a token back, at once and for ever.
    pub async fn revoke(&self, id: &str) -> Result<Arc<Token>, TokenServiceError> {
        let known = self.directory.get(id);
        if known
            .is_some_and(|token| token.source == Source::Environment && token.role == Role::Admin)
        {
            return Err(TokenServiceError::Fixed(LAST_ADMIN));
        }
        let revoke = |record: &mut Record| {
            record.revoked.get_or_insert_with(now);
            record.former = None;
            Ok(())
        };
        self.change(id, revoke).await
    }

    /// Changes what is known about a token.
    pub async fn amend(
        &self,
        id: &str,
        amendment: Amendment,
    ) -> Result<Arc<Token>, TokenServiceError> {
        self.change(id, |record| {
            let of_environment = record.hash.is_none();
            if of_environment && (amendment.user.is_some() || amendment.expires.is_some()) {
                return Err(TokenServiceError::Fixed(IN_ENVIRONMENT));
            }
            if let Some(limits) = &amendment.limits {
                record.limits = record.limits.changed(limits)?;
            }
            if let Some(user) = &amendment.user {
                record.give_to(user.as_deref());
            }
            if let Some(expires) = amendment.expires {
                record.expires = expires;
            }
            Ok(())
        })
        .await
    }

    /// Changes a token as it is in the store; made again if another server was faster.
    async fn change(
        &self,
        id: &str,
        mut change: impl FnMut(&mut Record) -> Result<(), TokenServiceError>,
    ) -> Result<Arc<Token>, TokenServiceError> {
        let _turn = self.seen.lock().await;
        loop {
            let document = self.store.get(place(TOKENS, id)).await?;
            let (mut record, expected) = match (&document, self.directory.get(id)) {
                (Some(document), _) => {
                    let record = read(document).ok_or(TokenServiceError::Unknown)?;
                    (record, Expected::Revision(document.revision))
                }
                (None, Some(token)) if token.source == Source::Environment => {
                    let id = id.to_owned();
                    (
                        Record {
                            id,
                            ..Record::default()
                        },
                        Expected::Nothing,
                    )
                }
                (None, _) => return Err(TokenServiceError::Unknown),
            };
            change(&mut record)?;
            match self.put(&record, expected).await {
                Ok(()) => return self.learn(&record).await,
                Err(StoreError::Conflict) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    async fn put(&self, record: &Record, expected: Expected) -> Result<(), StoreError> {
        let body = format::encode(record);
        let rules = Rules {
            expected,
            ..Rules::default()
        };
        let put = self.store.put(place(TOKENS, &record.id), body, rules);
        put.await.map(drop)
    }

    /// A change counts here at once; the others are told.
    async fn learn(&self, record: &Record) -> Result<Arc<Token>, TokenServiceError> {
        self.directory.learn(record);
        if self.store.is_shared() {
            let rules = Rules {
                time_to_live: Some(TOLD_FOR),
                ..Rules::default()
            };
            let told = place(CHANGES, &ids::random_id()?);
            if let Err(error) = self.store.put(told, record.id.clone(), rules).await {
                tracing::warn!(%error, "a change of a token was kept, but other servers hear of it later");
            }
        }
        self.directory
            .get(&record.id)
            .ok_or(TokenServiceError::Unknown)
    }

    /// Learns what changed since the last look.
    async fn catch_up(&self) -> Result<(), StoreError> {
        let mut seen = self.seen.lock().await;
        let changes = self.store.list(query(CHANGES, None, MOST_CHANGES)).await?;
        let Some(newest) = changes.first().map(|change| change.number) else {
            return Ok(());
        };
        let news = changes.iter().filter(|change| change.number > *seen);
        let ids: HashSet<&str> = news.map(|change| &*change.body).collect();
        if changes.len() == MOST_CHANGES && changes.iter().all(|change| change.number > *seen) {
            drop(seen);
            return self.read_all().await;
        }
        for id in ids {
            let document = self.store.get(place(TOKENS, id)).await?;
            if let Some(record) = document.as_ref().and_then(read) {
                self.directory.learn(&record);
            }
        }
        *seen = newest;
        Ok(())
    }

    /// Reads all tokens.
    async fn read_all(&self) -> Result<(), StoreError> {
        let mut seen = self.seen.lock().await;
        // Looked at first: what changes meanwhile is found by the next look.
        let changes = self.store.list(query(CHANGES, None, 1)).await?;
        let mut documents = Vec::new();
        loop {
            let before = documents.last().map(|document: &Document| document.number);
            let page = self.store.list(query(TOKENS, before, PAGE)).await?;
            let is_last = page.len() < PAGE;
            documents.extend(page);
            if is_last {
                break;
            }
        }
        for record in documents.iter().rev().filter_map(read) {
            self.directory.learn(&record);
        }
        *seen = changes.first().map_or(*seen, |change| change.number);
        Ok(())
    }
}

fn random_token() -> Result<String, RandomnessError> {
    let mut bytes = [0; RANDOM];
    ids::fill_random(&mut bytes)?;
    Ok(format!("{PREFIX}{}", to_hex(&bytes)))
}

fn shown(token: &str) -> String {
    let shown: String = token.chars().take(SHOWN).collect();
    format!("{shown}...")
}

fn read(document: &Document) -> Option<Record> {
    format::decode(&document.body)
}

fn place(collection: &'static str, id: &str) -> Place {
    Place {
        owner: Identity::server(),
        collection,
        id: id.to_owned(),
    }
}

fn query(collection: &'static str, before: Option<u64>, limit: usize) -> Query {
    Query {
        owner: Some(Identity::server()),
        collection,
        before,
        limit,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use serde_json::json;

    use super::*;
    use crate::{Denied, Secret};
    use exa_mcp_store::SqliteStore;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    async fn server(path: &std::path::Path) -> TokenService {
        let store = Arc::new(SqliteStore::new(path.to_owned()));
        let usual = TokenLimits::default();
        let secret = Secret::chosen("s");
        let directory = Directory::new(Some("admin"), Some("a:ann"), &secret, usual).unwrap();
        TokenService::open(store, Arc::new(directory))
            .await
            .unwrap()
    }

    fn new() -> NewToken {
        NewToken {
            user: Some("bob".to_owned()),
            role: Role::User,
            expires: None,
            limits: TokenLimits::default(),
        }
    }

    #[tokio::test]
    async fn servers_that_share_a_store_share_tokens() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.db");
        let (one, two) = (server(&path).await, server(&path).await);
        let find = |server: &TokenService, token: &str| {
            let found = server.directory.find(Some(token), HERE);
            found.map(|token| token.id.clone())
        };
        let (text, token) = one.create(new()).await.unwrap();
        assert_eq!(find(&one, &text), Ok(token.id.clone()));
        assert_eq!(find(&two, &text), Err(Denied::Unknown));
        two.catch_up().await.unwrap();
        assert_eq!(find(&two, &text), Ok(token.id.clone()));
        let (renewed, _) = two.rotate(&token.id, Duration::ZERO).await.unwrap();
        one.catch_up().await.unwrap();
        assert_eq!(find(&one, &text), Err(Denied::Unknown));
        assert_eq!(find(&one, &renewed), Ok(token.id.clone()));
        for n in 1..=150 {
            let limits = Some(json!({"requestsPerMinute": n}));
            let amendment = Amendment {
                limits,
                ..Amendment::default()
            };
            one.amend(&token.id, amendment).await.unwrap();
        }
        one.revoke(&token.id).await.unwrap();
        two.catch_up().await.unwrap();
        assert_eq!(find(&two, &renewed), Err(Denied::Revoked));
        let known = two.directory.get(&token.id).unwrap();
        assert_eq!(known.limits.requests_per_minute, Some(150));
        assert_eq!(find(&server(&path).await, &renewed), Err(Denied::Revoked));
    }

    #[tokio::test]
    async fn servers_that_share_a_store_know_former_users() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.db");
        let (one, two) = (server(&path).await, server(&path).await);
        let (_, token) = one.create(new()).await.unwrap();
        let amendment = Amendment {
            user: Some(Some("ben".to_owned())),
            ..Amendment::default()
        };
        one.amend(&token.id, amendment).await.unwrap();
        two.catch_up().await.unwrap();
        let bob = Identity::user("bob");
        let owners = HashSet::from([bob.clone(), Identity::user("ben")]);
        for server in [one, two, server(&path).await] {
            let ended = server.directory.ended_owners(&owners, now());
            assert_eq!(ended, [(bob.clone(), Denied::Unknown)]);
        }
    }

    #[tokio::test]
    async fn tokens_of_the_environment_are_limited_and_revoked_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.db");
        let one = server(&path).await;
        let id = |token| one.directory.find(Some(token), HERE).unwrap().id.clone();
        let (admin, ann) = (id("admin"), id("a"));
        let fixed = |error| matches!(error, Some(TokenServiceError::Fixed(_)));
        assert!(fixed(one.revoke(&admin).await.err()));
        assert!(fixed(one.rotate(&ann, Duration::ZERO).await.err()));
        let amendment = Amendment {
            user: Some(None),
            ..Amendment::default()
        };
        assert!(fixed(one.amend(&ann, amendment).await.err()));
        one.revoke(&ann).await.unwrap();
        let again = server(&path).await;
        let found = again.directory.find(Some("a"), HERE);
        assert_eq!(found.err(), Some(Denied::Revoked));
        assert!(matches!(
            one.revoke("nobody").await.err(),
            Some(TokenServiceError::Unknown)
        ));
    }
}

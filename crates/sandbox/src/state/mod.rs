//! The state of the sandbox: a clock, one account per API key, the keys of the team, fault rules and the
//! request log.

mod account;
mod charges;
mod clock;
mod paging;
mod schedule;
mod table;

use std::collections::HashMap;

use exa_mcp_model::MicroDollars;
use serde_json::Value;

pub(crate) use account::Account;
pub(crate) use paging::{Order, Paging};
pub(crate) use schedule::ScheduledStep;
pub(crate) use table::{Resource, Table};

use crate::Options;
use crate::api_error::ApiError;
use crate::call::{ApiResult, BodyParser, Call};
use crate::handlers::Handler;
use crate::http::{FaultRules, RequestLog};
use crate::ids;
use crate::research;
use crate::rng::hash;
use crate::team_keys::TeamKeys;
use clock::Clock;

/// Maximum number of accounts; the least recently used one is dropped first.
const MAX_ACCOUNTS: usize = 1_000;

/// What a link without a key leads to.
#[derive(Clone, Debug)]
pub(crate) enum LinkTarget {
    /// The upload of an import.
    Upload(String),
    /// The results of a batch.
    Results { batch: String, expires: u64 },
}

/// Everything that changes while the sandbox runs.
pub(crate) struct SandboxState {
    pub(crate) clock: Clock,
    seed: u64,
    time_scale: f64,
    accounts: HashMap<String, Account>,
    /// API key and target of the links that are followed without a key, by token.
    pub(crate) links: HashMap<String, (String, LinkTarget)>,
    /// The API keys that the team manages.
    pub(crate) team_keys: TeamKeys,
    /// Whether the retired research API is served.
    with_research: bool,
    pub(crate) faults: FaultRules,
    pub(crate) log: RequestLog,
    /// Number of requests so far, from which request ids are derived.
    request_count: u64,
}

impl SandboxState {
    pub(crate) fn new(options: &Options) -> Self {
        SandboxState {
            clock: Clock::new(),
            seed: options.seed,
            time_scale: options.time_scale,
            accounts: HashMap::new(),
            links: HashMap::new(),
            team_keys: TeamKeys::default(),
            with_research: options.with_research,
            faults: FaultRules::default(),
            log: RequestLog::default(),
            request_count: 0,
        }
    }

    pub(crate) fn now(&self) -> u64 {
        self.clock.now()
    }

    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    pub(crate) fn new_request_id(&mut self) -> String {
        self.request_count += 1;
        let number = self.request_count.to_string();
        ids::request_id(hash(self.seed, &["request", &number]))
    }

    pub(crate) fn request_count(&self) -> u64 {
        self.request_count
    }

    pub(crate) fn set_request_count(&mut self, count: u64) {
        self.request_count = count;
    }

    /// Returns the account of a key, after running the steps that are due.
    pub(crate) fn account(&mut self, key: &str) -> &mut Account {
        let now = self.clock.now();
        if !self.accounts.contains_key(key) && self.accounts.len() >= MAX_ACCOUNTS {
            self.drop_least_recently_used();
        }
        let seed = hash(self.seed, &["account", key]);
        let (data_seed, scale) = (self.seed, self.time_scale);
        let account = self
            .accounts
            .entry(key.to_owned())
            .or_insert_with(|| Account::new(seed, data_seed, scale));
        account.advance(now);
        account
    }

    fn drop_least_recently_used(&mut self) {
        let oldest = self
            .accounts
            .iter()
            .min_by_key(|(_, account)| account.now())
            .map(|(key, _)| key.clone());
        if let Some(key) = oldest {
            self.accounts.remove(&key);
            self.links.retain(|_, (owner, _)| *owner != key);
        }
    }

    /// Rejects a key of the wrong kind, one that the team has deleted, or one whose budget is used up.
    pub(crate) fn check_key(&mut self, key: &str, for_team: bool) -> Result<(), ApiError> {
        let is_known = self.accounts.contains_key(key);
        self.team_keys.check_kind(key, for_team, is_known)?;
        let spent = match self.accounts.get(key) {
            Some(account) => account.charges.total(),
            None => MicroDollars::ZERO,
        };
        self.team_keys.check(key, spent)
    }

    /// Runs the handler of an operation.
    pub(crate) fn run(
        &mut self,
        key: &str,
        handler: Handler,
        call: &Call,
        parse_body: &BodyParser<'_>,
    ) -> ApiResult {
        let with_research = self.with_research;
        let account = match handler {
            Handler::Team(handle) => return handle(self, call),
            _ => self.account(key),
        };
        account.set_salt(call.salt.as_deref());
        let result = match handler {
            Handler::Account(handle) => handle(account, call),
            Handler::Nested(handle) => handle(account, call, parse_body),
            Handler::Retired(handle) if with_research => handle(account, call),
            Handler::Retired(_) | Handler::Team(_) => Err(research::retired()),
        };
        account.set_salt(None);
        for (token, target) in account.take_new_links() {
            self.links.insert(token, (key.to_owned(), target));
        }
        result
    }

    /// Returns the object counts of every account, without the keys.
    pub(crate) fn counts(&mut self) -> Vec<Value> {
        let now = self.clock.now();
        let counts = self.accounts.values_mut().map(|account| {
            account.advance(now);
            account.counts()
        });
        counts.collect()
    }

    /// Clears everything but the clock.
    pub(crate) fn reset(&mut self) {
        self.accounts.clear();
        self.links.clear();
        self.team_keys = TeamKeys::default();
        self.faults.clear();
        self.log.clear();
    }
}

//! The state of the sandbox: a clock, one account per API key, fault rules and the request log.

mod account;
mod clock;
mod paging;
mod schedule;
mod table;

use std::collections::HashMap;

use serde_json::Value;

pub(crate) use account::Account;
pub(crate) use paging::{Order, Paging};
pub(crate) use schedule::ScheduledStep;
pub(crate) use table::{Resource, Table};

use crate::Options;
use crate::call::{ApiResult, Call};
use crate::handlers::Handler;
use crate::http::{FaultRules, RequestLog};
use crate::ids;
use crate::rng::hash;
use clock::Clock;

/// Maximum number of accounts; the least recently used one is dropped first.
const MAX_ACCOUNTS: usize = 1_000;

/// Everything that changes while the sandbox runs.
pub(crate) struct SandboxState {
    pub(crate) clock: Clock,
    seed: u64,
    time_scale: f64,
    accounts: HashMap<String, Account>,
    /// API key and import id by upload token.
    pub(crate) uploads: HashMap<String, (String, String)>,
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
            uploads: HashMap::new(),
            faults: FaultRules::default(),
            log: RequestLog::default(),
            request_count: 0,
        }
    }

    pub(crate) fn now(&self) -> u64 {
        self.clock.now()
    }

    pub(crate) fn new_request_id(&mut self) -> String {
        self.request_count += 1;
        let number = self.request_count.to_string();
        ids::request_id(hash(self.seed, &["request", &number]))
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
            self.uploads.retain(|_, (owner, _)| *owner != key);
        }
    }

    /// Runs a handler on the account of a key.
    pub(crate) fn run(&mut self, key: &str, handler: Handler, call: &Call) -> ApiResult {
        let account = self.account(key);
        let result = handler(account, call);
        for (token, import) in account.take_new_uploads() {
            self.uploads.insert(token, (key.to_owned(), import));
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
        self.uploads.clear();
        self.faults.clear();
        self.log.clear();
    }
}

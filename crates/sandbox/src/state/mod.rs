//! Everything the sandbox remembers.

mod account;
mod clock;
mod paging;
mod schedule;
mod table;

use std::collections::HashMap;

use serde_json::Value;

pub(crate) use account::Account;
pub(crate) use paging::{Order, Paging};
pub(crate) use schedule::Step;
pub(crate) use table::Table;

use crate::Options;
use crate::behaviour::Behaviour;
use crate::call::{Call, Outcome};
use crate::http::{Log, Rules};
use crate::ids;
use crate::random::hash;
use clock::Clock;

/// Keys remembered at a time; the one unused for longest goes first.
const MOST_ACCOUNTS: usize = 1_000;

/// The whole state.
pub(crate) struct World {
    pub(crate) clock: Clock,
    seed: u64,
    time_scale: f64,
    accounts: HashMap<String, Account>,
    /// Upload token to key and import.
    pub(crate) uploads: HashMap<String, (String, String)>,
    pub(crate) faults: Rules,
    pub(crate) log: Log,
    /// Counts requests, so that every request gets an id of its own.
    requests: u64,
}

impl World {
    pub(crate) fn new(options: &Options) -> Self {
        World {
            clock: Clock::new(),
            seed: options.seed,
            time_scale: options.time_scale,
            accounts: HashMap::new(),
            uploads: HashMap::new(),
            faults: Rules::default(),
            log: Log::default(),
            requests: 0,
        }
    }

    pub(crate) fn now(&self) -> u64 {
        self.clock.now()
    }

    pub(crate) fn request_id(&mut self) -> String {
        self.requests += 1;
        ids::request_id(hash(self.seed, &["request", &self.requests.to_string()]))
    }

    /// The account of a key, brought up to the present moment.
    pub(crate) fn account(&mut self, key: &str) -> &mut Account {
        let now = self.clock.now();
        if !self.accounts.contains_key(key) && self.accounts.len() >= MOST_ACCOUNTS {
            self.forget_oldest();
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

    fn forget_oldest(&mut self) {
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

    /// Carries out a request in the name of a key.
    pub(crate) fn run(&mut self, key: &str, behaviour: Behaviour, call: &Call) -> Outcome {
        let account = self.account(key);
        let outcome = behaviour(account, call);
        let uploads = account.take_new_uploads();
        for (token, import) in uploads {
            self.uploads.insert(token, (key.to_owned(), import));
        }
        outcome
    }

    /// Counts of objects, one entry a key; keys themselves are not shown.
    pub(crate) fn counts(&mut self) -> Vec<Value> {
        let now = self.clock.now();
        let each = self.accounts.values_mut().map(|account| {
            account.advance(now);
            account.counts()
        });
        each.collect()
    }

    /// Forgets everything but the time.
    pub(crate) fn reset(&mut self) {
        self.accounts.clear();
        self.uploads.clear();
        self.faults.clear();
        self.log.clear();
    }
}

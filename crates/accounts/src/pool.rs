//! Everything about tokens that share the server's keys.

use std::net::IpAddr;
use std::sync::Arc;

use super::allowance::{Allowance, RateLimiter};
use super::audit::Audit;
use super::budget::{BudgetPolicy, Ledger};
use super::daily::ANONYMOUS;
use super::sweep::sweep;
use super::usage::{Meter, Usage};
use super::{Credential, Directory, Requester, Token, TokenService};
use exa_mcp_store::{Store, StoreError};

/// Everything about tokens that share the server's keys.
pub struct Pool {
    /// The tokens.
    pub directory: Arc<Directory>,
    /// Where their use is counted.
    pub usage: Usage,
    /// Creates and changes them.
    pub token_service: TokenService,
    /// What happened.
    pub audit: Audit,
    /// Days of use that are kept.
    pub days_kept: u64,
    /// What they spend.
    pub ledger: Arc<Ledger>,
    limiter: Arc<RateLimiter>,
}

/// Finds those who pay for work that goes on after a restart. Clones share everything.
#[derive(Clone)]
pub struct Payers(Arc<RateLimiter>);

impl Payers {
    /// What limits the token of this id; `None` if it is not known any more.
    pub fn allowance(&self, id: &str) -> Option<Allowance> {
        let token = self.0.directory.get(id)?;
        Some(Allowance::new(&self.0, &token, "recovery"))
    }

    /// Where the use of the token of this id is counted.
    pub fn meter(&self, id: &str) -> Option<Meter> {
        let token = self.0.directory.get(id)?;
        let user = token.user.as_deref().unwrap_or(ANONYMOUS);
        Some(self.0.usage.meter(&token.id, user))
    }
}

impl Pool {
    /// The tokens of the configuration and those of the store. Must be called inside a runtime.
    /// So many days of use are kept.
    pub async fn open(
        directory: Directory,
        store: Arc<dyn Store>,
        days_kept: u64,
        policy: BudgetPolicy,
    ) -> Result<Self, StoreError> {
        let directory = Arc::new(directory);
        let token_service = TokenService::open(Arc::clone(&store), Arc::clone(&directory)).await?;
        tokio::spawn(token_service.clone().follow());
        tokio::spawn(sweep(Arc::clone(&store), days_kept));
        let audit = Audit::new(Arc::clone(&store));
        let usage = Usage::new(Arc::clone(&store));
        let ledger = Ledger::new(Arc::clone(&store), policy);
        tokio::spawn(Arc::clone(&ledger).sweep());
        let limiter = Arc::new(RateLimiter {
            usage: usage.clone(),
            ledger: Arc::clone(&ledger),
            store: Arc::clone(&store),
            directory: Arc::clone(&directory),
            audit: audit.clone(),
            spare: Default::default(),
        });
        Ok(Self {
            directory,
            usage,
            ledger,
            days_kept,
            token_service,
            audit,
            limiter,
        })
    }

    /// Those who pay for work that goes on after a restart.
    pub fn payers(&self) -> Payers {
        Payers(Arc::clone(&self.limiter))
    }

    /// Whoever shows a token, at an address.
    pub fn requester(&self, token: &Arc<Token>, shown: &str, address: IpAddr) -> Requester {
        let user = token.user.as_deref().unwrap_or(ANONYMOUS);
        let limits = &token.in_force;
        let address = address.to_canonical().to_string();
        Requester {
            meter: Some(self.usage.meter(&token.id, user)),
            allowance: Some(Allowance::new(&self.limiter, token, &address)),
            allowed: limits.tool_list().map(Arc::from),
            read_only: limits.read_only.unwrap_or_default(),
            credential: Some(Credential::new(&self.directory, token, shown)),
            ..Requester::new(token.owner())
        }
    }

    /// Returns the id of an Exa API key. It stays the same as long as the secret does, and does not reveal
    /// the key.
    pub fn key_id(&self, key: &str) -> String {
        self.directory.secret().digest("key id", key).name()
    }
}

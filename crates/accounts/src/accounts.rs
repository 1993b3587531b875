//! The accounts of a server whose tokens share its Exa API keys.

use std::net::IpAddr;
use std::sync::Arc;

use super::allowance::{Allowance, RateLimiter};
use super::audit::AuditLog;
use super::budget::{BudgetLedger, BudgetPolicy};
use super::counter_retention::delete_expired_counters;
use super::daily::ANONYMOUS;
use super::usage::{UsageMeter, UsageRecorder};
use super::{Credential, Requester, Token, TokenDirectory, TokenRole, TokenService};
use exa_mcp_store::{Store, StoreError};

/// The tokens of a server with their limits, usage and budgets.
pub struct Accounts {
    /// The tokens.
    pub directory: Arc<TokenDirectory>,
    /// Records what the tokens use.
    pub usage: UsageRecorder,
    /// Creates and changes tokens.
    pub token_service: TokenService,
    /// The audit log.
    pub audit: AuditLog,
    /// How many days of usage are retained.
    pub retention_days: u64,
    /// What the tokens spend.
    pub ledger: Arc<BudgetLedger>,
    limiter: Arc<RateLimiter>,
}

/// Looks up who pays for work that continues after a restart. Clones share everything.
#[derive(Clone)]
pub struct PayerLookup(Arc<RateLimiter>);

impl PayerLookup {
    /// Returns the allowance of a token; `None` if the token no longer exists.
    pub fn allowance(&self, id: &str) -> Option<Allowance> {
        let token = self.0.directory.get(id)?;
        Some(Allowance::new(&self.0, &token, "recovery"))
    }

    /// Returns the usage meter of a token; `None` if the token no longer exists.
    pub fn meter(&self, id: &str) -> Option<UsageMeter> {
        let token = self.0.directory.get(id)?;
        let user = token.user.as_deref().unwrap_or(ANONYMOUS);
        Some(self.0.usage.meter(&token.id, user))
    }
}

impl Accounts {
    /// Loads the tokens of the store beside those of the configuration, and spawns the background tasks. Must be
    /// called inside a runtime.
    ///
    /// # Errors
    /// The store fails.
    pub async fn open(
        directory: TokenDirectory,
        store: Arc<dyn Store>,
        retention_days: u64,
        policy: BudgetPolicy,
    ) -> Result<Self, StoreError> {
        let directory = Arc::new(directory);
        let token_service = TokenService::open(Arc::clone(&store), Arc::clone(&directory)).await?;
        tokio::spawn(token_service.clone().follow_changes());
        tokio::spawn(delete_expired_counters(Arc::clone(&store), retention_days));
        let audit = AuditLog::new(Arc::clone(&store));
        let usage = UsageRecorder::new(Arc::clone(&store));
        let ledger = BudgetLedger::new(Arc::clone(&store), policy);
        tokio::spawn(Arc::clone(&ledger).recover());
        let limiter = Arc::new(RateLimiter {
            usage: usage.clone(),
            ledger: Arc::clone(&ledger),
            store: Arc::clone(&store),
            directory: Arc::clone(&directory),
            audit: audit.clone(),
            local_windows: Default::default(),
        });
        Ok(Self {
            directory,
            usage,
            ledger,
            retention_days,
            token_service,
            audit,
            limiter,
        })
    }

    /// Returns a lookup of who pays for work that continues after a restart.
    pub fn payer_lookup(&self) -> PayerLookup {
        PayerLookup(Arc::clone(&self.limiter))
    }

    /// Returns the requester that presented this token, as `presented`, from this address.
    pub fn requester(&self, token: &Arc<Token>, presented: &str, address: IpAddr) -> Requester {
        let user = token.user.as_deref().unwrap_or(ANONYMOUS);
        let limits = &token.effective_limits;
        let address = address.to_canonical().to_string();
        Requester {
            meter: Some(self.usage.meter(&token.id, user)),
            allowance: Some(Allowance::new(&self.limiter, token, &address)),
            allowed_tools: limits.tool_list().map(Arc::from),
            is_admin: token.role == TokenRole::Admin,
            read_only: limits.read_only.unwrap_or_default(),
            credential: Some(Credential::new(&self.directory, token, presented)),
            ..Requester::new(token.owner())
        }
    }

    /// Returns the id of an Exa API key. It does not reveal the key and stays the same as long as the secret does.
    pub fn key_id(&self, key: &str) -> String {
        self.directory.secret().digest("key id", key).short_hex()
    }
}

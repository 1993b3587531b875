//! Accounts of those who use the server: tokens, roles, limits, budgets, usage and the audit log.
//!
//! [`Pool`] opens everything that belongs to the tokens of a server: the [`Directory`] that knows them,
//! the [`TokenService`] that creates, rotates and revokes them, their [`usage::Usage`], the
//! [`audit::Audit`] log and the [`budget::Ledger`]. A request is identified by a [`Requester`]; its
//! [`Allowance`] counts requests and calls, and a [`budget::Account`] reserves money for each request to
//! Exa before it is sent. Where several servers share a store, they share all of this.
//!
//! Nothing here knows about MCP or about single operations of the Exa API.

mod allowance;
pub mod audit;
pub mod budget;
mod client_address;
mod credential;
pub mod daily;
mod directory;
mod key_page;
mod known_keys;
mod limits;
mod pool;
mod record;
mod requester;
mod secret;
mod secret_storage;
mod sweep;
mod throttle;
mod token;
mod token_service;
pub mod usage;

pub use allowance::{Allowance, Permit};
pub use client_address::ClientAddress;
pub use credential::Credential;
pub use directory::{Denied, Directory, DirectoryError};
pub use key_page::{KeyDesk, KeyPage, KeyPageError};
pub use known_keys::{KeyProof, KnownKeys};
pub use limits::{LimitsError, TokenLimits};
pub use pool::{Payers, Pool};
pub use requester::Requester;
pub use secret::{Digest, Secret};
pub use secret_storage::load_or_create_secret;
pub use token::{Role, Source, Token, TokenError, check_user, expiry};
pub use token_service::{Amendment, NewToken, TokenService, TokenServiceError};

/// Returns the current time in milliseconds since 1970.
#[must_use]
pub fn now() -> i64 {
    i64::try_from(exa_mcp_model::time::now()).unwrap_or(i64::MAX)
}

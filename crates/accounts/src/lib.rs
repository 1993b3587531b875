//! User accounts: tokens, roles, limits, budgets, usage and the audit log.
//!
//! [`Accounts`] opens everything that belongs to the tokens of a server: the [`TokenDirectory`] that authenticates
//! them, the [`TokenService`] that creates, rotates and revokes them, the [`usage::UsageRecorder`], the
//! [`audit::AuditLog`] and the [`budget::BudgetLedger`]. A [`Requester`] describes who makes a request. Its
//! [`Allowance`] limits requests and calls, and a [`budget::BudgetAccount`] reserves money for each request to Exa
//! before it is sent. Servers that share a store share all of this.
//!
//! This crate does not know about MCP or about individual operations of the Exa API.
//!
//! ```
//! use std::net::{IpAddr, Ipv4Addr};
//!
//! use exa_mcp_accounts::{AuthError, Secret, TokenDirectory, TokenLimits};
//!
//! let secret = Secret::from_passphrase("keyed hashes of tokens depend on this");
//! let users = "tok_ann:ann:2999-12-31,tok_bob:bob:2001-01-01";
//! let directory = TokenDirectory::new(None, Some(users), &secret, TokenLimits::default())?;
//!
//! let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
//! let token = directory.authenticate(Some("tok_ann"), address).map_err(|error| format!("{error:?}"))?;
//! assert_eq!(token.user.as_deref(), Some("ann"));
//!
//! let expired = directory.authenticate(Some("tok_bob"), address);
//! assert_eq!(expired.err(), Some(AuthError::Expired));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod accounts;
mod allowance;
pub mod audit;
pub mod budget;
mod client_address;
mod counter_retention;
mod credential;
pub mod daily;
mod key_page;
mod known_keys;
mod limits;
mod requester;
mod secret;
mod secret_storage;
mod throttle;
mod token;
mod token_directory;
mod token_record;
mod token_service;
pub mod usage;

pub use accounts::{Accounts, PayerLookup};
pub use allowance::{Allowance, CallPermit};
pub use client_address::ClientAddress;
pub use credential::Credential;
pub use key_page::{KeyPage, KeyPageError, KeyPrompt, KeyUse};
pub use known_keys::{KeyProof, KnownKeys};
pub use limits::{LimitsError, TokenLimits};
pub use requester::Requester;
pub use secret::{Digest, Secret};
pub use secret_storage::load_or_create_secret;
pub use token::{Token, TokenError, TokenRole, TokenSource, parse_expiry, validate_user};
pub use token_directory::{AuthError, TokenDirectory, TokenDirectoryError};
pub use token_service::{NewToken, TokenService, TokenServiceError, TokenUpdate};

/// Returns the current time in milliseconds since 1970.
#[must_use]
pub fn now() -> i64 {
    i64::try_from(exa_mcp_model::time::now()).unwrap_or(i64::MAX)
}

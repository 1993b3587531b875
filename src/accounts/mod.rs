//! Who is calling, with which tokens and keys, and how much.

mod allowance;
pub mod audit;
pub mod budget;
mod client_address;
mod credential;
pub mod daily;
mod directory;
mod kept;
mod key_page;
mod known_keys;
mod limits;
mod pool;
mod record;
mod registrar;
mod requester;
mod secret;
mod sweep;
mod throttle;
mod token;
pub mod usage;

pub use allowance::{Allowance, Permit};
pub use client_address::ClientAddress;
pub use credential::Credential;
pub use directory::{Denied, Directory, DirectoryError};
pub use kept::kept_secret;
pub use key_page::{KeyDesk, KeyPage, KeyPageError};
pub use known_keys::{KeyProof, KnownKeys};
pub use limits::{LimitsError, TokenLimits};
pub use pool::{Payers, Pool};
pub use registrar::{Amendment, NewToken, Registrar, RegistrarError};
pub use requester::Requester;
pub use secret::{Digest, Secret};
pub use token::{Role, Source, Token, TokenError, check_user, expiry, timestamp};

/// Milliseconds since 1970.
pub(crate) fn now() -> i64 {
    let now = exa_mcp_store::milliseconds(std::time::SystemTime::now());
    i64::try_from(now).unwrap_or(i64::MAX)
}

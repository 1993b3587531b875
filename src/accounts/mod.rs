//! Who is calling, with which tokens and keys, and how much.

mod allowance;
pub mod audit;
pub mod daily;
mod directory;
mod identity;
mod kept;
mod key_page;
mod keys;
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

pub use allowance::{Allowance, OverLimit, Permit};
pub use directory::{Denied, Directory, DirectoryError};
pub use identity::Identity;
pub use kept::kept_secret;
pub use key_page::{KeyDesk, KeyPage, KeyPageError};
pub use keys::{Holder, KeyPool, KeyState, Lease, NoKey};
pub use limits::{LimitsError, TokenLimits};
pub use pool::Pool;
pub use registrar::{Amendment, NewToken, Registrar, RegistrarError};
pub use requester::Requester;
pub use secret::{Digest, Secret};
pub use token::{Role, Source, Token, TokenError, check_user, expiry, timestamp};

/// Milliseconds since 1970.
pub(crate) fn now() -> i64 {
    let now = crate::store::milliseconds(std::time::SystemTime::now());
    i64::try_from(now).unwrap_or(i64::MAX)
}

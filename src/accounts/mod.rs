//! Who is calling, and with which keys.

mod identity;
mod key_page;
mod keys;

pub use identity::Identity;
pub use key_page::{KeyDesk, KeyPage, KeyPageError};
pub use keys::{KeyPool, KeyState, Lease, NoKey};

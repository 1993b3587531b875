//! Who is calling, and with which keys.

mod identity;
mod keys;

pub use identity::Identity;
pub use keys::{KeyPool, KeyState, Lease, NoKey};

//! Who is calling.

mod identity;

pub use identity::Identity;

//! Plain data that the layers share, defined once.
//!
//! Nothing here sends, stores or shows anything.

pub mod envelope;
mod identity;
pub mod ids;
mod owner;

pub use identity::Identity;
pub use owner::{LocalUser, Owner};

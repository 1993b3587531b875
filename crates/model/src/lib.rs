//! Plain data that the layers share, defined once.
//!
//! Nothing here sends, stores or shows anything.

mod call_stats;
mod identity;
pub mod ids;
mod money;
mod owner;

pub use call_stats::CallStats;
pub use identity::Identity;
pub use money::MicroDollars;
pub use owner::{LocalUser, Owner};

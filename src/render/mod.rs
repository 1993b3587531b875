//! The render room: how answers are shown.
//!
//! An answer of the API is taken apart (`Envelope`), looked at as the caller wishes (`View`), and
//! shown as Markdown or JSON that say the same. There is no network here and nothing of the protocol.

mod budget;
mod date;
mod envelope;
mod filter;
mod head;
mod inline;
mod json;
mod level;
mod markdown;
mod path;
mod shape;
mod show;
mod text;
mod view;
mod words;

pub(crate) use envelope::Envelope;
pub(crate) use filter::{Dropped, Filters};
pub(crate) use level::Level;
pub use show::Rendered;
pub(crate) use show::{Answer, Link, show};
pub use view::Format;
pub(crate) use view::{View, ViewError};

//! The HTTP room: everything the generated Exa clients need from hand-written code.
//!
//! A generated client holds a [`CallContext`] as its inner value and calls two functions here:
//! [`prepare`] before a request leaves, and [`send`] to exchange it for a response. The client decodes
//! the response; what it returns converts into an [`Answer`] or an [`ExaError`].
//!
//! The client passed to [`send`] must be the one from [`ExaHttp::http`]: it follows no redirects on
//! its own, so the API key cannot reach another host behind our back.

mod advice;
mod body;
mod client;
mod config;
mod context;
mod deadline;
mod error;
mod error_body;
mod guard;
mod key;
mod maybe;
mod public_address;
mod redirect;
mod response;
mod response_memory;
mod response_summary;
mod retry;
mod send;
mod stream;
mod text;
mod transport;
mod upload;

#[cfg(test)]
mod test_server;
#[cfg(test)]
mod tests;

pub use client::ExaHttp;
pub use config::{BASE_URL_VARIABLE, ConfigError, ExaConfig};
pub use context::{CallContext, prepare};
pub use error::{ExaError, ExaErrorKind, Quote};
pub use guard::{Attempt, AttemptGuard, BoxFuture, Unguarded};
pub use key::ApiKey;
pub use maybe::Maybe;
pub use response::Answer;
pub(crate) use response_memory::{keep_reserved, release_reserved};
pub use retry::RetryPolicy;
pub use send::send;
pub use stream::{Heard, Stream, StreamForm};
#[cfg(feature = "otel")]
pub(crate) use transport::cause;
pub use upload::{Upload, upload};

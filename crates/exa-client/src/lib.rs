//! HTTP client for the Exa API, and the runtime of the clients that are generated from its specs.
//!
//! A generated client holds a [`CallContext`] as its inner value and calls two functions of this crate:
//! [`prepare`] adds the key and headers to a request, and [`send`] sends it and reads the response. `send`
//! retries, follows redirects within the same origin, enforces time and size limits, assembles event streams,
//! and passes every attempt through an [`AttemptGuard`]. The client decodes the response; its result converts
//! into an [`ExaResponse`] or an [`ExaError`].
//!
//! A [`KeyPool`] spreads calls over several API keys and skips those that are cooling down after Exa rejected
//! them. [`split_arguments`] distributes flat arguments over path, query, headers and body. [`upload`] sends a
//! file to a pre-signed URL.
//!
//! Response types of generated clients are views of the JSON that was received: [`View`] reads JSON as such a type,
//! [`AsJson`] returns it, and [`List`] and [`Entries`] read lists and maps. In requests, [`Maybe`] distinguishes an absent
//! field from null.
//!
//! The client passed to [`send`] must be the one from [`ExaHttp::client`]: it does not follow redirects, so that
//! the key never reaches another host. A key has a [`KeyKind`], and is sent only to APIs that take that kind.
//!
//! # Example
//!
//! ```no_run
//! use std::{sync::Arc, time::Duration};
//!
//! use exa_mcp_exa_client::{
//!     ApiKey, CallContext, ExaConfig, ExaHttp, KeyKind, KeyPool, Unguarded, prepare, send,
//! };
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let http = ExaHttp::new(ExaConfig::default())?;
//! let keys = KeyPool::new([ApiKey::new("my-key")?]);
//! let lease = keys.lease("search", None, &[])?;
//! let timeout = Duration::from_secs(30);
//! let context = CallContext::new(http.clone(), lease.key().clone(), timeout, Arc::new(Unguarded));
//!
//! // A generated client does this in its hooks.
//! let url = format!("{}/search", http.base_url(KeyKind::Api, "https://api.exa.ai"));
//! let mut request = http.client()?.post(url).body(r#"{"query":"rust"}"#).build()?;
//! prepare(&context, &mut request)?;
//! let response = send(http.client()?, &context, request).await?;
//! println!("{}: {}", response.status(), response.text().await?);
//! # Ok(())
//! # }
//! ```

mod api_key;
mod arguments;
pub mod blocking;
mod body;
mod call;
mod circuit_breaker;
mod config;
mod context;
mod deadline;
mod error;
mod error_body;
mod error_messages;
mod exa_http;
mod guard;
mod key_affinity;
mod key_owner;
mod key_pool;
mod maybe;
mod preview;
mod public_address;
mod query_style;
mod raw_response;
mod redirect;
mod request_content;
mod response;
mod response_memory;
mod response_summary;
mod retry;
mod send;
mod stream;
mod text;
mod transport_error;
mod typed;
mod upload;

#[cfg(test)]
mod test_server;
#[cfg(test)]
mod tests;

pub use api_key::ApiKey;
pub use arguments::{ArgumentsError, RequestParts, split_arguments};
pub use call::{CallError, CallFuture, unknown_operation};
pub use circuit_breaker::{KeyCondition, KeyFault};
pub use config::{ConfigError, ExaConfig};
pub use context::{CallContext, KeyPlacement, add_missing_headers, prepare};
pub use error::{ExaError, ExaErrorKind, Quote};
pub use exa_http::ExaHttp;
pub use guard::{AttemptGuard, BoxFuture, RequestAttempt, Unguarded};
pub use key_owner::KeyOwner;
pub use key_pool::{KeyLease, KeyPool, KeyPoolError, KeyState};
pub use maybe::Maybe;
pub use preview::{RequestDescription, RequestPreview};
pub use query_style::QueryStyle;
pub use request_content::RequestContent;
pub use response::ExaResponse;
pub use response_memory::{hold_response_memory, release_response_memory};
pub use retry::RetryPolicy;
pub use send::send;
pub use stream::{ResumePoint, StreamKind, StreamOptions, StreamUpdate};
pub use transport_error::root_cause;
#[doc(hidden)]
pub use typed::macro_support;
pub use typed::{AsJson, Entries, EntriesIter, List, ListIter, View};
pub use upload::{UploadRequest, stored_file, upload};

pub use exa_mcp_model::KeyKind;

//! Sanitizing of untrusted text, token estimates, and name suggestions.
//!
//! - [`sanitize`] removes invisible characters and terminal escapes from text of the web, and marks it as
//!   untrusted.
//! - [`tokens`] estimates the number of tokens of a text.
//! - [`similar_names`] finds the name that was probably meant.
//! - [`surrogates`] repairs JSON with lone surrogates.
//!
//! Nothing here depends on Exa, MCP or HTTP.
//!
//! # Example
//!
//! ```
//! use exa_mcp_text::{sanitize, similar_names, tokens};
//!
//! assert_eq!(sanitize::clean("\u{1b}[31mred\u{1b}[0m zero\u{200b}width"), "red zerowidth");
//! assert_eq!(tokens::estimate("word"), 1);
//! let names = ["items.list", "items.get"];
//! assert_eq!(similar_names::closest_spelling("items.lsit", names), Some("items.list"));
//! ```

pub mod chars;
mod identifier;
pub mod sanitize;
pub mod similar_names;
pub mod similar_paths;
pub mod surrogates;
pub mod tokens;

pub use identifier::is_identifier;

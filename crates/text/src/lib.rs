//! Text from outside: made safe to show, and counted in tokens.
//!
//! [`sanitize`] removes what hides in text from the web. [`tokens`] estimates what a text costs a model.
//! [`similar_names`] finds the name that was probably meant. [`surrogates`] repairs halves of characters.
//! Nothing here knows about Exa, MCP or HTTP.

pub mod chars;
mod names;
pub mod sanitize;
pub mod similar_names;
pub mod surrogates;
pub mod tokens;

pub use names::is_identifier;

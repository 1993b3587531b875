//! An MCP server for the Exa API, generated from Exa's OpenAPI specs.
//!
//! A call passes each room once: [`transport`] → [`protocol`] → [`surface`] → [`operations`] →
//! `generated` (the clients made from the specs) → [`exa_mcp_exa_client`] (HTTP) → Exa.

pub mod accounts;
pub mod cli;
pub mod logging;
pub mod operations;
pub mod protocol;
pub mod render;
pub mod sdk;
pub mod settings;
pub mod spending;
pub mod surface;
pub mod telemetry;
pub mod transport;

// Generated code follows the generator's habits, not ours.
#[allow(
    clippy::all,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    dead_code,
    missing_docs,
    rustdoc::all,
    unreachable_pub
)]
#[rustfmt::skip]
#[path = "../generated/mod.rs"]
mod generated;

//! An MCP server for the Exa API, generated from Exa's OpenAPI specs.
//!
//! A call passes each layer once: [`transport`] → [`mcp`] → [`tools`] → [`operations`] →
//! [`exa_mcp_generated`] (the clients made from the specs) → [`exa_mcp_exa_client`] (HTTP) → Exa.

mod admin;
pub mod cli;
mod config;
mod http_response;
pub mod mcp;
pub mod operations;
pub mod render;
mod spending;
mod telemetry;
pub mod tools;
pub mod transport;

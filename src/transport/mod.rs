//! Transports: bytes on one side, MCP messages on the other.
//!
//! A transport frames and decodes messages, rejects invalid ones and passes the others to [`crate::mcp`].
//! It knows nothing about tools.

mod backlog;
mod compat;
pub(crate) mod connection;
mod handshake;
pub mod http;
mod line_reader;
mod line_writer;
mod message;
mod pending_requests;
pub(crate) mod stdio;
mod subscriptions;

pub(crate) use backlog::Backlog;

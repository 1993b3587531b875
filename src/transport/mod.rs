//! The transport room: bytes on one side, MCP messages on the other.
//!
//! A transport frames, decodes and answers what is no valid message; what is valid it hands to the
//! protocol room. It knows no tools.

mod backlog;
pub(crate) mod connection;
mod handshake;
pub mod http;
mod ledger;
mod lines;
mod message;
mod output;
mod shims;
pub(crate) mod stdio;
mod subscriptions;

pub(crate) use backlog::Backlog;

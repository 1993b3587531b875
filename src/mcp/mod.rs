//! The MCP server: negotiates versions and capabilities, lists tools, resources and prompts, and runs calls.
//!
//! One handler serves the protocol versions 2024-11-05 to 2025-11-25, which start with `initialize`, and 2026-07-28,
//! which is stateless: every request declares its version and capabilities.

mod call_limiter;
mod client;
mod client_log;
mod completion;
mod errors;
mod handler;
mod idle;
mod pagination;
mod progress;
mod prompts;
pub(crate) mod request;
mod resource_methods;
mod resources;
mod scope;
mod server;
mod skills;
mod subscriptions;
mod tasks;
mod tool_calls;
mod tools;
mod traced_handler;
mod version;

pub(crate) use client::set_shared_state_key;
pub(crate) use idle::ClientConnection;
pub use idle::PingPolicy;
pub use server::{HandlerFactory, McpServer};
pub use tools::{ParsedCall, PreparedCall, Tools};
pub(crate) use traced_handler::TracedHandler;

#[cfg(test)]
mod tests;

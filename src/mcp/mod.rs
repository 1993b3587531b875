//! The protocol room: what the server says of itself, which tools, resources and
//! prompts it lists, and how calls run.
//!
//! One handler serves the protocol versions 2024-11-05 to 2025-11-25, which begin with `initialize`,
//! and 2026-07-28, where every request introduces itself.

mod calls;
mod client;
mod completion;
mod handler;
mod log;
mod pages;
mod progress;
mod prompts;
pub(crate) mod request;
mod resources;
mod scope;
mod server;
mod subscriptions;
mod tasks;
mod tool_calls;
mod tools;
mod traced;
mod version;

pub(crate) use client::share_key;
pub use server::{Handlers, McpServer};
pub use tools::{ParsedCall, Prepared, Tools};
pub(crate) use traced::Traced;

#[cfg(test)]
mod tests;

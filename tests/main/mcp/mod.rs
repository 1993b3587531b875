//! The stdio MCP server as its clients see it.

mod answers;
mod client_powers;
mod commands;
mod completion;
mod eras;
mod failures;
mod imports;
mod lifecycle;
mod listing;
mod named;
mod notes;
mod operations;
mod prompts;
mod resources;
mod robustness;
mod selection;
mod streaming;
mod subscriptions;
mod tasks;
mod toolhost;
mod walk;

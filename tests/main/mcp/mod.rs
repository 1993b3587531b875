//! The stdio MCP server as its clients see it.

mod commands;
mod completion;
mod eras;
mod failures;
mod lifecycle;
mod listing;
mod named;
mod notes;
mod operations;
mod prompts;
mod resources;
mod robustness;
mod selection;
mod subscriptions;
mod toolhost;
mod walk;

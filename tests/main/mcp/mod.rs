//! The stdio MCP server.

mod cancellation_log;
mod client_capabilities;
mod commands;
mod completion;
mod errors;
mod idle_clients;
mod imports;
mod initialized;
mod lifecycle;
mod listing;
mod named;
mod notes;
mod operations;
mod prompts;
mod resources;
mod results;
mod robustness;
mod selection;
mod skills;
mod streaming;
mod subscriptions;
mod tasks;
mod toolhost;
mod versions;
mod walk;
mod webset_changes;

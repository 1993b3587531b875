//! The stdio MCP server as its clients see it.

mod failures;
mod listing;
mod named;
mod operations;
mod robustness;
mod selection;
mod toolhost;
mod walk;

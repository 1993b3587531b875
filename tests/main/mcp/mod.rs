//! The stdio MCP server as its clients see it.

mod commands;
mod eras;
mod failures;
mod lifecycle;
mod listing;
mod named;
mod operations;
mod robustness;
mod selection;
mod toolhost;
mod walk;

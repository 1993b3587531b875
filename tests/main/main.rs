//! Integration tests: the program and its library against a server that records requests, and
//! against the sandbox.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]

mod architecture;
mod command_line;
mod documentation;
mod http;
mod identifiers;
mod mcp;
mod prices;
mod registry;
mod round_trip;
mod support;
mod team;

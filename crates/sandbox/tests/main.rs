//! The sandbox as a client sees it: over a socket, with every successful JSON answer held against the
//! output schema of its operation.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod agent;
mod control;
mod every_operation;
mod faults;
mod refusals;
mod search;
mod search_monitors;
mod streams;
mod support;
mod surface;
mod websets;
mod websets_imports;
mod websets_monitors;
mod websets_parts;

//! Tests of the sandbox over a socket. Every successful JSON response is validated by the output schema
//! of its operation.
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
mod rejections;
mod search;
mod search_monitors;
mod spec_changes;
mod streams;
mod support;
mod websets;
mod websets_imports;
mod websets_monitors;
mod websets_parts;

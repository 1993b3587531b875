//! Tests of the sandbox over a socket. Every successful JSON response is validated by the output schema
//! of its operation.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod agent;
mod batches;
mod control;
mod errors;
mod every_operation;
mod faults;
mod journal;
mod rejections;
mod research;
mod search;
mod search_fields;
mod search_monitors;
mod spec_changes;
mod streams;
mod support;
mod team;
mod websets;
mod websets_fields;
mod websets_imports;
mod websets_monitors;
mod websets_parts;

//! The program with the feature `otel`: what arrives at a collector of OpenTelemetry, and what does not.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]

mod collector;
mod metrics;
mod settings;
mod traces;

#[allow(dead_code, unused_imports)]
#[path = "../main/support/mod.rs"]
mod support;

//! Runs the generator on the real specs, on changed specs and on invalid ones.

mod bad_input;
mod commands;
mod constructs;
mod data_design;
mod history;
mod hostile;
mod keys;
mod prices;
mod project;
mod removed_upstream;
mod spec_update;
mod support;
mod surface_slips;
mod tools;
#[cfg(feature = "update")]
mod update;

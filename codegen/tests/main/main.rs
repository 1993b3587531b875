//! The generator on the real specs, on changed ones and on broken ones.

mod bad_input;
mod data_design;
mod prices;
mod spec_update;

mod support;
mod taken_away;
mod tools;

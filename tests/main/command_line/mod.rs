//! The command line: what it takes, what it prints and how it ends.

mod delivery;
mod environment;
mod errors;
mod output;
mod sdk;
mod usage;

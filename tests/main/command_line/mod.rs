//! The command line: what it takes, what it prints and how it ends.

#[cfg(unix)]
mod configuration;
mod delivery;
mod environment;
mod errors;
mod output;
mod sdk;
mod usage;

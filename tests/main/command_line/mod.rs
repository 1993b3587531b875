//! The command line: what it takes, what it prints and how it ends.

#[cfg(unix)]
mod configuration;
mod delivery;
mod deployment;
mod environment;
mod errors;
mod output;
mod sdk;
mod secret_files;
mod usage;

//! The command line: arguments, output and exit codes.

mod agents;
mod batch;
mod batch_remote;
#[cfg(unix)]
mod configuration;
mod delivery;
mod deployment;
mod environment;
mod errors;
#[cfg(unix)]
mod install;
mod operation_commands;
mod output;
mod sdk;
mod secret_files;
#[cfg(target_os = "linux")]
mod terminal;
mod usage;

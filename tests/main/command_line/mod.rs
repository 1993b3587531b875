//! The command line: arguments, output and exit codes.

#[cfg(unix)]
mod configuration;
mod delivery;
mod deployment;
mod environment;
mod errors;
#[cfg(unix)]
mod install;
mod output;
mod sdk;
mod secret_files;
mod usage;

//! A call of an operation as the command line requests it.

use std::time::Duration;

use clap::Args;
use serde_json::Value;

use super::super::output::Format;
use exa_mcp_model::{CommandPlan, Operation};

/// How long `--wait` waits without a number, in seconds.
const LONGEST_WAIT: &str = "3600";

/// How a call is made.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Request options")]
pub(in super::super) struct RequestOptions {
    /// Wait for the end of the work that the call starts or reads, at most so many seconds [default: 3600]
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, require_equals = true, default_missing_value = LONGEST_WAIT)]
    pub(in super::super) wait: Option<u64>,
    /// Return at once, although the command waits by default
    #[arg(long, conflicts_with = "wait")]
    pub(in super::super) no_wait: bool,
    /// Read all pages of a list
    #[arg(long)]
    pub(in super::super) all: bool,
    /// Print the request that would be sent, without the key, and send nothing
    #[arg(long)]
    pub(in super::super) dry_run: bool,
    /// Print what the call costs at most, and send nothing
    #[arg(long)]
    pub(in super::super) cost: bool,
    /// Send the arguments as they are, without corrections and validation
    #[arg(long)]
    pub(in super::super) unchecked: bool,
}

/// How a response is printed.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Output options")]
pub(in super::super) struct OutputOptions {
    /// Fields to print of each result, comma-separated; dots lead into objects
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(in super::super) fields: Vec<String>,
    /// Output format
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(in super::super) format: Option<Format>,
}

/// A call of an operation.
#[derive(Debug, Clone)]
pub(in super::super) struct Request {
    /// The operation.
    pub(in super::super) operation: &'static Operation,
    /// Its arguments, not validated yet.
    pub(in super::super) arguments: Value,
    /// How it is made.
    pub(in super::super) options: RequestOptions,
    /// How the response is printed.
    pub(in super::super) output: OutputOptions,
    /// The command that is a view of the operation, if it was called by one.
    pub(in super::super) plan: Option<&'static CommandPlan>,
}

impl Request {
    /// Returns how long to wait for the end of a job.
    pub(super) fn wait(&self) -> Option<Duration> {
        let by_default = || {
            self.plan
                .filter(|plan| plan.wait)
                .and(LONGEST_WAIT.parse().ok())
        };
        let seconds = self.options.wait.or_else(by_default);
        seconds
            .filter(|_| !self.options.no_wait)
            .map(Duration::from_secs)
    }

    /// Returns whether all pages of a list are read.
    pub(super) fn reads_all(&self) -> bool {
        self.options.all || self.plan.is_some_and(|plan| plan.all)
    }
}

//! The agent APIs: runs, and the monitors that are still beta.

pub(crate) mod backtests;
mod cost;
pub(crate) mod monitors;
pub(crate) mod runs;
pub(crate) mod values;

pub(crate) use backtests::Backtest;
pub(crate) use monitors::{AgentMonitor, Idempotent};
pub(crate) use runs::AgentRun;

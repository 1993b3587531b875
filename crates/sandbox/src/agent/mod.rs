//! The agent APIs: runs, and the beta APIs for monitors and backtests.

pub(crate) mod backtests;
mod cost;
mod entities;
pub(crate) mod monitors;
pub(crate) mod run_events;
pub(crate) mod runs;

pub(crate) use backtests::Backtest;
pub(crate) use monitors::{AgentMonitor, IdempotentRequest};
pub(crate) use runs::AgentRun;

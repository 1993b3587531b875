//! The agent APIs: runs, and the beta APIs for monitors and backtests.

pub(crate) mod backtests;
mod cost;
mod entities;
pub(crate) mod monitors;
pub(crate) mod runs;

use serde_json::Value;

pub(crate) use backtests::Backtest;
pub(crate) use monitors::{AgentMonitor, IdempotentRequest};
pub(crate) use runs::AgentRun;

use crate::call::{ApiResponse, ApiResult};
use crate::json::set;

/// Returns a page of a list, with the `object` field that the agent APIs add.
fn list_response(mut page: Value) -> ApiResult {
    set(&mut page, "object", "list");
    ApiResponse::ok(page)
}

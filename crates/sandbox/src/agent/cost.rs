//! Usage and cost of an agent run by Exa's published prices.

use exa_mcp_model::MicroDollars;
use serde_json::{Value, json};

use crate::rng::Rng;

/// Prices in millionths of a dollar.
const COMPUTE_UNIT: u64 = 100_000;
const SEARCH: u64 = 5_000;

/// Maximum compute units of a metered run, in tenths of a unit; high enough that some runs reach
/// their cap.
const MAX_TENTHS: u64 = 800;

/// Returns `usage` and `costDollars` of a run after some of its stages.
pub(super) fn usage_and_cost(
    request: &Value,
    query: &str,
    effort: &str,
    stage: u64,
    stages: u64,
) -> (Value, Value) {
    let done = stage.min(stages);
    let fixed_price = match effort {
        "minimal" => Some(12_000),
        "low" => Some(25_000),
        "medium" => Some(100_000),
        "high" => Some(500_000),
        "xhigh" => Some(1_000_000),
        _ => None,
    };
    let tenths = Rng::new(0, &["compute", query, effort]).between(1, MAX_TENTHS);
    let tenths = tenths * done / stages.max(1);
    let (compute, search) = match fixed_price {
        // A fixed price is charged when the run starts.
        Some(price) => (if done > 0 { price } else { 0 }, 0),
        None => {
            let cap = cost_cap(request, effort);
            let search = (done * SEARCH).min(cap);
            (((tenths * COMPUTE_UNIT) / 10).min(cap - search), search)
        }
    };
    let units = dollars(tenths * 100_000);
    let usage = json!({ "agentComputeUnits": units, "searches": done, "emails": 0, "phoneNumbers": 0, "dataSources": {} });
    let cost = json!({ "total": dollars(compute + search), "agentCompute": dollars(compute), "search": dollars(search), "emails": 0, "phoneNumbers": 0, "dataSources": {} });
    (usage, cost)
}

/// Returns the maximum cost of a metered run.
fn cost_cap(request: &Value, effort: &str) -> u64 {
    let default = if matches!(effort, "ultra" | "max") {
        20.0
    } else {
        5.0
    };
    let given = request.pointer("/budget/maxCostDollars");
    let dollars = given.and_then(Value::as_f64).unwrap_or(default);
    // A cast from a float saturates at both ends.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let micro = (dollars * 1_000_000.0).floor() as u64;
    micro
}

fn dollars(micro: u64) -> f64 {
    MicroDollars::new(micro).dollars()
}

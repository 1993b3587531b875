//! What an agent run costs by Exa's published prices.

use serde_json::{Value, json};

use crate::random::Dice;

/// Prices in millionths of a dollar.
const COMPUTE_UNIT: u64 = 100_000;
const SEARCH: u64 = 5_000;

/// Compute units of a metered run, in tenths of a unit: from 0.1 to 80, so that some runs meet their cap.
const MOST_TENTHS: u64 = 800;

/// Usage and cost of a run after some of its stages, as the API shows them.
pub(super) fn bill(
    request: &Value,
    query: &str,
    effort: &str,
    done: u64,
    stages: u64,
) -> (Value, Value) {
    let done = done.min(stages);
    let fixed = match effort {
        "minimal" => Some(12_000),
        "low" => Some(25_000),
        "medium" => Some(100_000),
        "high" => Some(500_000),
        "xhigh" => Some(1_000_000),
        _ => None,
    };
    let tenths = Dice::new(0, &["compute", query, effort]).between(1, MOST_TENTHS);
    let tenths = tenths * done / stages.max(1);
    let (compute, search) = match fixed {
        // What is fixed is due as soon as the run has begun.
        Some(price) => (if done > 0 { price } else { 0 }, 0),
        None => {
            let cap = cap(request, effort);
            let search = (done * SEARCH).min(cap);
            (((tenths * COMPUTE_UNIT) / 10).min(cap - search), search)
        }
    };
    let usage = json!({ "agentComputeUnits": dollars(tenths * 100_000), "searches": done, "emails": 0, "phoneNumbers": 0, "dataSources": {} });
    let cost = json!({ "total": dollars(compute + search), "agentCompute": dollars(compute), "search": dollars(search), "emails": 0, "phoneNumbers": 0, "dataSources": {} });
    (usage, cost)
}

/// The most a metered run may cost.
fn cap(request: &Value, effort: &str) -> u64 {
    let usual = if matches!(effort, "ultra" | "max") {
        20.0
    } else {
        5.0
    };
    let given = request.pointer("/budget/maxCostDollars");
    let dollars = given.and_then(Value::as_f64).unwrap_or(usual);
    // A cast from a float saturates at both ends.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let micro = (dollars * 1_000_000.0).floor() as u64;
    micro
}

#[allow(clippy::cast_precision_loss)]
fn dollars(micro: u64) -> f64 {
    micro as f64 / 1_000_000.0
}

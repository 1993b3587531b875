//! What a call would send and cost, without making it.

use serde_json::{Map, Value, json};

use super::{Failure, call_failure};
use crate::operations::OperationExecutor;
use crate::operations::price::{cost_in_words, estimate};
use exa_mcp_model::Operation;

/// Returns the request that a call would send, without the key.
pub(in super::super) async fn dry_run(
    executor: &OperationExecutor,
    operation: &'static Operation,
    arguments: &Map<String, Value>,
) -> Result<Value, Failure> {
    let described = executor.preview(operation, arguments).await;
    let request = described.map_err(|error| call_failure(operation, &error))?;
    let headers: Map<String, Value> = request
        .headers
        .into_iter()
        .map(|(name, value)| (name, value.into()))
        .collect();
    Ok(json!({
        "dryRun": true,
        "operation": operation.name,
        "method": request.method,
        "url": request.url,
        "headers": headers,
        "body": request.body,
    }))
}

/// Returns what a call costs at most.
pub(super) fn cost(operation: &'static Operation, arguments: &Map<String, Value>) -> Value {
    let estimate = estimate(operation, arguments);
    let dollars = estimate.worst.dollars();
    let mut cost = json!({
        "operation": operation.name,
        "maxCostDollars": dollars,
        // Some prices are not published.
        "isComplete": !estimate.unpriced,
        "price": cost_in_words(operation),
    });
    if let (Some(recurring), Value::Object(cost)) = (estimate.recurring, &mut cost) {
        let recurring = json!({
            "period": recurring.period,
            "runsPerDay": recurring.runs_per_day,
            "maxDollarsPerRun": recurring.per_run.dollars(),
            "maxDollarsPerMonth": recurring.per_month.dollars(),
        });
        cost.insert("recurring".to_owned(), recurring);
    }
    cost
}

//! Checks values that a tool sends by itself.

use serde_json::{Map, Value};

use crate::model::Operation;
use crate::surface_check::{Report, value_problem};

/// Removes values whose argument does not exist or that do not fit its schema.
pub(super) fn check_presets(
    values: &mut Map<String, Value>,
    operation: &Operation,
    what: &str,
    report: &mut Report<'_>,
) {
    let owner = format!("`{}`", operation.name);
    values.retain(|path, value| {
        let problem = value_problem(&operation.input_schema, &owner, path, value);
        if let Some(problem) = &problem {
            report.omit(format!("{problem}; {what} omitted"));
        }
        problem.is_none()
    });
}

//! Checking the arguments of a call.

use serde_json::Value;

use super::{input_schema, validation};
use exa_mcp_model::Operation;

/// Corrects and checks the arguments of a call.
pub(super) fn checked(
    operation: &'static Operation,
    arguments: Value,
) -> Result<validation::Checked, validation::ValidationError> {
    let aliases: Vec<(&str, &str)> = operation
        .arguments
        .iter()
        .flat_map(|argument| argument.aliases.iter().map(|alias| (*alias, argument.name)))
        .collect();
    let subject = validation::Subject::new(input_schema(operation))
        .with_aliases(&aliases)
        .with_behavior(&operation.behavior);
    validation::check(&subject, arguments)
}

/// Returns the refusal of arguments in which only the API could see what is wrong.
pub(super) fn refused(
    operation: &'static Operation,
    problems: Vec<validation::Problem>,
) -> validation::ValidationError {
    validation::ValidationError {
        problems,
        example: Box::new(super::example(operation)),
        hints: operation.behavior.hints.clone(),
        missing: Vec::new(),
    }
}

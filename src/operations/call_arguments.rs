//! Validates the arguments of a call.

use serde_json::Value;

use super::{input_schema, validation};
use exa_mcp_model::Operation;

/// Corrects and validates the arguments of a call.
pub(super) fn validate(
    operation: &'static Operation,
    arguments: Value,
) -> Result<validation::ValidatedArguments, validation::ValidationError> {
    let aliases: Vec<(&str, &str)> = operation
        .arguments
        .iter()
        .flat_map(|argument| argument.aliases.iter().map(|alias| (*alias, argument.name)))
        .collect();
    let spec = validation::ArgumentSpec::new(input_schema(operation))
        .with_aliases(&aliases)
        .with_behavior(&operation.behavior)
        .with_open_values(&[]);
    validation::validate(&spec, arguments)
}

/// Returns the error for problems that were found after validation, when the request was built.
pub(super) fn validation_error(
    operation: &'static Operation,
    problems: Vec<validation::ArgumentProblem>,
) -> validation::ValidationError {
    validation::ValidationError {
        problems,
        example: Box::new(super::example(operation)),
        hints: operation.behavior.hints.clone(),
        missing: Vec::new(),
    }
}

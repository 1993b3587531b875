//! Validates the arguments of a call.

use serde_json::Value;

use super::{OperationError, input_schema, validation};
use exa_mcp_exa_client::CallError;
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

/// Converts the error of a request. Problems that were found when it was built are invalid arguments.
pub(super) fn call_error(operation: &'static Operation, error: CallError) -> OperationError {
    match error {
        CallError::Exa(error) => OperationError::Exa(Box::new(error)),
        CallError::Limit(exceeded) => OperationError::Limit(exceeded),
        CallError::Arguments(error) => {
            let problem = |message| validation::ArgumentProblem {
                path: error.argument.to_owned(),
                message,
            };
            let problems = error.problems.into_iter().map(problem).collect();
            OperationError::Arguments(Box::new(validation_error(operation, problems)))
        }
    }
}

/// Returns the error for problems that were found after validation, when the request was built.
fn validation_error(
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

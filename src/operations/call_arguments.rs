//! Checking the arguments of a call.

use serde_json::Value;

use super::{Operation, check, input_schema};

/// Mends and checks the arguments of a call.
pub(super) fn checked(
    operation: &'static Operation,
    arguments: Value,
) -> Result<check::Checked, check::Refused> {
    let aliases: Vec<(&str, &str)> = operation
        .arguments
        .iter()
        .flat_map(|argument| argument.aliases.iter().map(|alias| (*alias, argument.name)))
        .collect();
    let subject = check::Subject {
        operation: operation.name,
        input_schema: input_schema(operation),
        aliases: &aliases,
        beyond: &[],
    };
    check::check(&subject, arguments)
}

/// The refusal of arguments in which only the API could see what is wrong.
pub(super) fn refused(
    operation: &'static Operation,
    problems: Vec<check::Problem>,
) -> check::Refused {
    check::Refused {
        problems,
        example: Box::new(check::example(operation.name, input_schema(operation))),
        hints: check::hints(operation.name)
            .iter()
            .map(|hint| (*hint).to_owned())
            .collect(),
        missing: Vec::new(),
    }
}

//! Looks up operations by name.

use std::sync::{LazyLock, OnceLock};

use exa_mcp_text::similar_paths;
use serde_json::Value;

use super::validation::InputSchema;
use exa_mcp_generated::operations::OPERATIONS;
use exa_mcp_model::Operation;

/// Returns all operations, sorted by name.
pub fn all() -> &'static [Operation] {
    &OPERATIONS
}

/// Returns the operation with this name.
pub fn find(name: &str) -> Option<&'static Operation> {
    let index = OPERATIONS
        .binary_search_by(|operation| operation.name.cmp(name))
        .ok()?;
    OPERATIONS.get(index)
}

/// Returns the JSON Schema of an operation's arguments, which is parsed once.
///
/// The largest schema has about ten kilobytes; parsing it for every call would cost more than the call.
pub(crate) fn input_schema(operation: &'static Operation) -> &'static InputSchema {
    static SCHEMAS: LazyLock<Vec<OnceLock<InputSchema>>> =
        LazyLock::new(|| OPERATIONS.iter().map(|_| OnceLock::new()).collect());
    static EMPTY: InputSchema = InputSchema::new(Value::Null);
    let index = OPERATIONS.binary_search_by(|known| known.name.cmp(operation.name));
    let slot = index.ok().and_then(|index| SCHEMAS.get(index));
    slot.map_or(&EMPTY, |slot| {
        let parse = || serde_json::from_str(operation.input_schema).unwrap_or_default();
        slot.get_or_init(|| InputSchema::new(parse()))
    })
}

/// Returns the operation name most similar to `name`, if any is similar.
pub(crate) fn nearest(name: &str) -> Option<&'static str> {
    closest(name, OPERATIONS.iter().map(|operation| operation.name))
}

/// Returns the candidate most similar to `name`, if any is similar.
pub(crate) fn closest<'a>(
    name: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    similar_paths::most_similar_path(name, candidates)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_every_operation_by_name() {
        for operation in all() {
            let found = find(operation.name).map(|found| found.path);
            assert_eq!(found, Some(operation.path), "{}", operation.name);
        }
        assert!(find("no.such").is_none());
    }

    #[test]
    fn suggests_the_operation_for_a_misspelled_name() {
        assert_eq!(nearest("items_list"), Some("items.list"));
        assert_eq!(nearest("webset.create"), Some("websets.create"));
        assert_eq!(nearest("qqqqq"), None);
    }
}

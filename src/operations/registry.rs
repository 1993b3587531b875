//! Looking operations up by name.

use std::sync::{LazyLock, OnceLock};

use exa_mcp_text::similar_names;
use serde_json::Value;

use super::validation::InputSchema;
use exa_mcp_generated::operations::OPERATIONS;
use exa_mcp_model::Operation;

/// Names less similar than this are no help.
const SIMILAR: f64 = 0.7;

/// All operations, sorted by name.
pub fn all() -> &'static [Operation] {
    &OPERATIONS
}

/// The operation of this name.
pub fn find(name: &str) -> Option<&'static Operation> {
    let index = OPERATIONS
        .binary_search_by(|operation| operation.name.cmp(name))
        .ok()?;
    OPERATIONS.get(index)
}

/// The JSON Schema of an operation's arguments, read once and kept.
///
/// The largest is some ten kilobytes; reading it for every call would cost more than the call.
pub(crate) fn input_schema(operation: &'static Operation) -> &'static InputSchema {
    static SCHEMAS: LazyLock<Vec<OnceLock<InputSchema>>> =
        LazyLock::new(|| OPERATIONS.iter().map(|_| OnceLock::new()).collect());
    static NONE: InputSchema = InputSchema::new(Value::Null);
    let index = OPERATIONS.binary_search_by(|known| known.name.cmp(operation.name));
    let slot = index.ok().and_then(|index| SCHEMAS.get(index));
    slot.map_or(&NONE, |slot| {
        let read = || serde_json::from_str(operation.input_schema).unwrap_or_default();
        slot.get_or_init(|| InputSchema::new(read()))
    })
}

/// The name that was probably meant.
pub(crate) fn nearest(name: &str) -> Option<&'static str> {
    closest(name, OPERATIONS.iter().map(|operation| operation.name))
}

/// The candidate that resembles `name` most, if any does.
pub(crate) fn closest<'a>(
    name: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    similar_names::most_similar(name, candidates, SIMILAR)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_is_found_by_its_name() {
        for operation in all() {
            let found = find(operation.name).map(|found| found.path);
            assert_eq!(found, Some(operation.path), "{}", operation.name);
        }
        assert!(find("no.such").is_none());
    }

    #[test]
    fn a_slip_finds_its_operation() {
        assert_eq!(nearest("items_list"), Some("items.list"));
        assert_eq!(nearest("webset.create"), Some("websets.create"));
        assert_eq!(nearest("qqqqq"), None);
    }
}

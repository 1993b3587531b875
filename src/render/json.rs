//! Results as JSON.

use serde_json::Value;

use super::shape::Shaped;

/// A result as it stands in the list.
pub(super) fn result(result: &Shaped) -> String {
    result.value.to_string()
}

/// The whole envelope.
pub(super) fn text(envelope: &Value) -> String {
    envelope.to_string()
}

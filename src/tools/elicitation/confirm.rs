//! Confirmation of deletions, if the operator requires it and the client supports forms.

use serde_json::{Map, Value, json};

use super::super::error::ToolError;
use super::super::outcome::{ToolResult, as_object};
use crate::operations::interaction::{ClientHandle, FormRequest};
use exa_mcp_model::Operation;

/// Maximum characters shown of an argument.
const MAX_SHOWN_CHARS: usize = 100;

/// The field of the form.
const FIELD: &str = "confirm";

/// Succeeds if nothing is deleted, the client does not support forms, or the user agrees.
pub(super) async fn confirm_delete(
    client: &ClientHandle,
    operation: &'static Operation,
    arguments: &Map<String, Value>,
) -> ToolResult<()> {
    if operation.method != "DELETE" || !client.capabilities().forms {
        return Ok(());
    }
    let reason = match client.fill_form(form(operation, arguments)).await {
        Ok(content) if content.get(FIELD) == Some(&Value::Bool(true)) => return Ok(()),
        Ok(_) => "the user did not agree".to_owned(),
        Err(error) => error.to_string(),
    };
    Err(Box::new(ToolError::NotConfirmed {
        operation: operation.name,
        reason,
    }))
}

fn form(operation: &Operation, arguments: &Map<String, Value>) -> FormRequest {
    let shown = |value: &Value| -> String {
        let text = match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let plain = text.chars().filter(|c| !c.is_control());
        plain.take(MAX_SHOWN_CHARS).collect()
    };
    let targets: Vec<String> = arguments
        .iter()
        .map(|(name, value)| format!("{name} {}", shown(value)))
        .collect();
    let schema = json!({
        "type": "object",
        "properties": {
            FIELD: {"type": "boolean", "title": "Yes, delete it", "default": false},
        },
        "required": [FIELD],
    });
    // Stored tasks identify a form by its text, so a change of the text makes them ask again.
    FormRequest {
        message: format!(
            "`{}` will delete at Exa: {}. This cannot be undone. Go on?",
            operation.name,
            targets.join(", ")
        ),
        schema: as_object(schema),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn names_what_is_deleted() {
        let operation = crate::operations::find("items.delete").unwrap();
        let arguments = json!({"websetId": "ws_1", "itemId": "it\n_2"});
        let form = form(operation, arguments.as_object().unwrap());
        let expected = "`items.delete` will delete at Exa: websetId ws_1, itemId it_2.";
        assert!(form.message.starts_with(expected), "{}", form.message);
    }
}

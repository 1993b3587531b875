//! Deletions that the user agrees to first, where the operator wants that and the client can ask.

use serde_json::{Map, Value, json};

use super::super::outcome::as_object;
use super::super::{Call, Catalogue, Outcome};
use crate::operations::Operation;
use crate::operations::client::Form;

/// Characters of an argument that are shown.
const LONGEST_SHOWN: usize = 100;

/// The field of the form.
const FIELD: &str = "confirm";

impl Catalogue {
    /// Goes on if nothing is deleted, nobody can be asked, or the user agrees.
    pub(super) async fn confirm(
        &self,
        call: &Call,
        operation: &Operation,
        arguments: &Map<String, Value>,
    ) -> Result<(), Box<Outcome>> {
        let asks = self.manners.confirm_deletes
            && operation.method == "DELETE"
            && call.client.powers().forms;
        if !asks {
            return Ok(());
        }
        let refused = |why: &str| Err(Box::new(Outcome::not_confirmed(operation.name, why)));
        match call.client.fill(form(operation, arguments)).await {
            Ok(content) if content.get(FIELD) == Some(&Value::Bool(true)) => Ok(()),
            Ok(_) => refused("the user did not agree"),
            Err(why) => refused(&why.to_string()),
        }
    }
}

fn form(operation: &Operation, arguments: &Map<String, Value>) -> Form {
    let shown = |value: &Value| -> String {
        let text = match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let plain = text.chars().filter(|letter| !letter.is_control());
        plain.take(LONGEST_SHOWN).collect()
    };
    let told: Vec<String> = arguments
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
    Form {
        message: format!(
            "`{}` will delete at Exa: {}. This cannot be undone. Go on?",
            operation.name,
            told.join(", ")
        ),
        schema: as_object(schema),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn the_question_names_what_is_deleted() {
        let operation = crate::operations::find("items.delete").unwrap();
        let arguments = json!({"websetId": "ws_1", "itemId": "it\n_2"});
        let form = form(operation, arguments.as_object().unwrap());
        let expected = "`items.delete` will delete at Exa: websetId ws_1, itemId it_2.";
        assert!(form.message.starts_with(expected), "{}", form.message);
    }
}

//! The tool that keeps a note.

use serde_json::{Map, Value, json};

use super::notes::{Draft, LARGEST_NOTE, Note, NoteError};
use super::{Call, Catalogue, Outcome, Tool};
use crate::operations::validation;
use crate::render::{Level, Link};
use exa_mcp_text::tokens;

impl Catalogue {
    /// Keeps a note.
    pub(super) async fn create_note(
        &self,
        call: &Call,
        tool: &Tool,
        arguments: Map<String, Value>,
    ) -> Outcome {
        let name = &tool.definition.name;
        let subject = validation::Subject::new(tool.schema());
        let checked = match validation::check(&subject, arguments.into()) {
            Ok(checked) => checked,
            Err(refused) => return Outcome::refused(name, &refused),
        };
        // What a model writes down may come from a web page, with what pages hide in their text.
        let mut arguments = Value::Object(checked.arguments);
        exa_mcp_text::sanitize::clean_json(&mut arguments, LARGEST_NOTE);
        let draft: Draft = match serde_json::from_value(arguments) {
            Ok(draft) => draft,
            Err(error) => return Outcome::impossible(&error.to_string(), json!({})),
        };
        let Some(notes) = self.library.notes() else {
            return Outcome::internal("Notes are not enabled on this server.");
        };
        match self
            .library
            .add_note(call.owner.identity(), notes, draft)
            .await
        {
            Ok(note) => told(name, &note, &checked.corrections),
            Err(error) => failed(&error),
        }
    }
}

/// What the caller is told; the same in words, as data and as a link.
fn told(operation: &str, note: &Note, mended: &[String]) -> Outcome {
    let (title, uri) = (&note.draft.title, note.address().to_string());
    let mut text = format!("Kept the note `{}`: {title}\nRead it at {uri}", note.id);
    for mend in mended {
        text.push_str(&format!("\nMended: {mend}"));
    }
    let mut metadata = json!({
        "operation": operation,
        "totalResults": 1,
        "returned": 1,
        "tokenEstimate": tokens::estimate(&text),
        "contentLevel": Level::Full.name(),
    });
    if !mended.is_empty() {
        super::outcome::put(&mut metadata, "mended", json!(mended));
    }
    let result = json!({"id": note.id, "uri": uri, "title": title});
    Outcome {
        text,
        structured: super::outcome::as_object(json!({"metadata": metadata, "results": [result]})),
        links: vec![Link {
            uri,
            name: title.clone(),
            description: "The note".to_owned(),
            mime_type: super::library::PLAIN,
            size: Some(note.text().len()),
        }],
        is_error: false,
    }
}

fn failed(error: &NoteError) -> Outcome {
    let message = format!("The note was not kept: {error}.");
    match error.is_callers() {
        true => Outcome::impossible(&message, json!({})),
        false => Outcome::internal(&message),
    }
}

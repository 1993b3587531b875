//! Synthesized outputs: prose or an object after a schema, with the pages that back it.

use serde_json::{Value, json};

use crate::corpus::{Page, capital};
use crate::failure::Failure;
use crate::random::hash;
use crate::sample;

/// The object a JSON Schema asks for, or none when it asks for text.
pub(crate) fn structured(
    schema: Option<&Value>,
    seed: u64,
    query: &str,
) -> Result<Option<Value>, Failure> {
    let Some(schema) = schema.filter(|schema| !schema.is_null()) else {
        return Ok(None);
    };
    if schema.get("type").and_then(Value::as_str) == Some("text") {
        return Ok(None);
    }
    if let Err(error) = jsonschema::validator_for(schema) {
        let message = format!("outputSchema is not a JSON Schema: {error}");
        return Err(Failure::new(400, "INVALID_OUTPUT_SCHEMA", message));
    }
    // Only objects come back as objects; a schema for a list is met inside one.
    Ok(match sample::of(schema, hash(seed, &["output", query])) {
        Value::Object(object) => Some(Value::Object(object)),
        other => Some(json!({ "value": other })),
    })
}

/// Prose about a query from the pages found.
pub(super) fn prose(query: &str, pages: &[Page]) -> String {
    let mut text = format!(
        "{} — a made-up synthesis. ",
        capital(query.trim_end_matches(['?', '.']))
    );
    for (number, page) in pages.iter().take(3).enumerate() {
        if let Some((sentence, _)) = page.excerpts(query, 2).pop() {
            text.push_str(&format!("{sentence} [{}] ", number + 1));
        }
    }
    text.truncate(text.trim_end().len());
    text
}

/// Evidence for every top-level field of an object, or for `content` as a whole.
pub(crate) fn grounding(content: &Value, pages: &[Page]) -> Value {
    let fields: Vec<&str> = match content {
        Value::Object(object) => object.keys().map(String::as_str).collect(),
        _ => vec!["content"],
    };
    let entry = |(number, field): (usize, &str)| {
        let cited = pages
            .iter()
            .cycle()
            .skip(number % pages.len().max(1))
            .take(2.min(pages.len()));
        let citations: Vec<Value> = cited
            .map(|page| json!({ "url": page.url, "title": page.title }))
            .collect();
        json!({ "field": field, "citations": citations, "confidence": if number == 0 { "high" } else { "medium" } })
    };
    fields.into_iter().enumerate().map(entry).collect()
}

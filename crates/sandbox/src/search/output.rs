//! Synthesized outputs: prose or an object that matches a schema, with the pages that support it.

use serde_json::{Value, json};

use crate::api_error::ApiError;
use crate::corpus::{Page, capitalize};
use crate::json::text;
use crate::rng::hash;
use crate::sample;

/// Returns an object that matches a JSON Schema, or `None` if the schema requests text.
pub(crate) fn structured(
    schema: Option<&Value>,
    seed: u64,
    query: &str,
) -> Result<Option<Value>, ApiError> {
    let Some(schema) = schema.filter(|schema| !schema.is_null()) else {
        return Ok(None);
    };
    if text(schema, "type") == "text" {
        return Ok(None);
    }
    if let Err(error) = jsonschema::validator_for(schema) {
        let message = format!("outputSchema is not a JSON Schema: {error}");
        return Err(ApiError::new(400, "INVALID_JSON_SCHEMA", message));
    }
    // The output is always an object; other values are wrapped.
    Ok(
        match sample::generate(schema, hash(seed, &["output", query])) {
            Value::Object(object) => Some(Value::Object(object)),
            other => Some(json!({ "value": other })),
        },
    )
}

/// Returns prose about a query, with excerpts of the pages.
pub(super) fn prose(query: &str, pages: &[Page]) -> String {
    let mut text = format!(
        "{} — a made-up synthesis. ",
        capitalize(query.trim_end_matches(['?', '.']))
    );
    for (index, page) in pages.iter().take(3).enumerate() {
        if let Some((sentence, _)) = page.excerpts(query, 2).pop() {
            text.push_str(&format!("{sentence} [{}] ", index + 1));
        }
    }
    text.truncate(text.trim_end().len());
    text
}

/// Returns citations for every top-level field of an object, or for `content` as a whole.
pub(crate) fn grounding(content: &Value, pages: &[Page]) -> Value {
    let fields: Vec<&str> = match content {
        Value::Object(object) => object.keys().map(String::as_str).collect(),
        _ => vec!["content"],
    };
    let entry = |(index, field): (usize, &str)| {
        let cited = pages
            .iter()
            .cycle()
            .skip(index % pages.len().max(1))
            .take(2.min(pages.len()));
        let citations: Vec<Value> = cited
            .map(|page| json!({ "url": page.url, "title": page.title }))
            .collect();
        json!({ "field": field, "citations": citations, "confidence": if index == 0 { "high" } else { "medium" } })
    };
    fields.into_iter().enumerate().map(entry).collect()
}

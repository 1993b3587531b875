//! Media types of request bodies and responses.

use serde_json::{Map, Value, json};

use super::reader::{OperationReader, SpecBody};
use crate::body::{self, BodyFields};
use crate::error::Result;
use crate::load::escape;
use crate::model::BodyContent;
use crate::parameters::is_json;

impl OperationReader<'_> {
    /// Returns the request body in the media type that suits callers best.
    pub(super) fn body(&self) -> Result<SpecBody> {
        let Some(node) = self.node.get("requestBody") else {
            return Ok(SpecBody::None);
        };
        let (node, pointer) = self
            .document
            .resolve(node, &format!("{}/requestBody", self.pointer))?;
        let required = node.get("required") == Some(&Value::Bool(true));
        let content = node.get("content").and_then(Value::as_object);
        let Some((media, chosen)) = content.and_then(preferred) else {
            return Ok(SpecBody::None);
        };
        let pointer = format!("{pointer}/content/{}/schema", escape(media));
        let schema = chosen.get("schema").cloned().unwrap_or_else(|| json!({}));
        let fields = body::fields(self.document, &schema, &pointer)?;
        let content = self.body_content(media, fields.as_ref())?;
        if let (BodyContent::Form | BodyContent::Multipart(_), None) = (&content, &fields) {
            let construct = format!("a body of `{media}` that is not an object");
            return Err(self.document.unsupported(&pointer, "body", construct));
        }
        let is_single = matches!(content, BodyContent::Text(_) | BodyContent::Binary(_));
        let description = node.get("description").and_then(Value::as_str);
        Ok(match fields.filter(|_| !is_single) {
            Some(fields) => SpecBody::Fields {
                fields,
                required,
                schema,
                pointer,
                content,
            },
            None => SpecBody::Whole {
                required,
                schema: whole_schema(&content).unwrap_or(schema),
                pointer,
                description: description.map(str::to_owned),
                content,
            },
        })
    }

    fn body_content(&self, media: &str, fields: Option<&BodyFields>) -> Result<BodyContent> {
        let essence = essence(media);
        Ok(match essence.as_str() {
            "application/json" | "*/*" => BodyContent::Json(None),
            _ if is_json(media) => BodyContent::Json(Some(media.to_owned())),
            "application/x-www-form-urlencoded" => BodyContent::Form,
            essence if essence.starts_with("multipart/") => {
                let mut files = Vec::new();
                for (name, (schema, pointer)) in fields.iter().flat_map(|fields| &fields.known) {
                    if self.is_file(schema, pointer)? {
                        files.push(name.clone());
                    }
                }
                BodyContent::Multipart(files)
            }
            essence if is_text(essence) => BodyContent::Text(media.to_owned()),
            _ => BodyContent::Binary(media.to_owned()),
        })
    }

    /// Returns whether a field of a form is a file or a list of files.
    fn is_file(&self, schema: &Value, pointer: &str) -> Result<bool> {
        let (schema, pointer) = self.document.resolve(schema, pointer)?;
        if let Some(items) = schema.get("items") {
            return self.is_file(items, &format!("{pointer}/items"));
        }
        let is_binary = schema.get("format") == Some(&json!("binary"));
        let is_encoded = schema.get("contentEncoding").is_some();
        Ok(is_binary || (schema.get("contentMediaType").is_some() && !is_encoded))
    }
}

/// Returns the media type that is easiest to fill, with its node.
fn preferred(content: &Map<String, Value>) -> Option<(&String, &Value)> {
    let rank = |media: &str| match essence(media).as_str() {
        "application/json" => 0,
        _ if is_json(media) => 1,
        "application/x-www-form-urlencoded" => 2,
        essence if essence.starts_with("multipart/") => 3,
        essence if is_text(essence) => 4,
        _ => 5,
    };
    content.iter().min_by_key(|(media, _)| rank(media))
}

/// Returns the schema of a body that is one text, or base64.
fn whole_schema(content: &BodyContent) -> Option<Value> {
    match content {
        BodyContent::Text(media) => Some(json!({"type": "string", "contentMediaType": media})),
        BodyContent::Binary(media) => Some(json!({
            "type": "string", "contentEncoding": "base64", "contentMediaType": media})),
        BodyContent::Json(_) | BodyContent::Form | BodyContent::Multipart(_) => None,
    }
}

/// Returns the schema of a response that is not JSON, in the form in which callers get it.
pub(super) fn response_schema(media: &str, schema: Option<Value>) -> Value {
    match essence(media).as_str() {
        "text/event-stream" => json!({"type": "array", "items": {"type": "object", "properties": {
            "event": {"type": "string"}, "data": schema.unwrap_or_else(|| json!({}))}}}),
        essence if is_text(essence) => json!({"type": "string", "contentMediaType": essence}),
        _ => json!({"type": "object", "properties": {
            "contentType": {"type": "string"},
            "base64": {"type": "string", "contentEncoding": "base64"}}}),
    }
}

/// Returns whether a media type is that of server-sent events.
pub(super) fn is_event_stream(media: &str) -> bool {
    essence(media) == "text/event-stream"
}

/// Returns a media type without parameters, in lower case.
fn essence(media: &str) -> String {
    let essence = media.split(';').next().unwrap_or_default();
    essence.trim().to_ascii_lowercase()
}

fn is_text(essence: &str) -> bool {
    const TEXT: &[&str] = &[
        "csv",
        "xml",
        "yaml",
        "javascript",
        "x-ndjson",
        "jsonl",
        "x-yaml",
    ];
    let subtype = essence.split('/').next_back().unwrap_or_default();
    let suffix = subtype.rsplit('+').next().unwrap_or_default();
    essence.starts_with("text/") || TEXT.contains(&suffix)
}

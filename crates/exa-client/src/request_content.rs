//! Request bodies that are not JSON.

use base64::{Engine, engine::general_purpose};
use bytes::Bytes;
use serde_json::{Map, Value};

use super::{CallError, RequestParts, query_style::text};

/// A request body as it is sent.
#[derive(Clone, PartialEq, Eq)]
pub struct RequestContent {
    /// The `content-type` header.
    pub content_type: String,
    /// The body.
    pub bytes: Bytes,
}

impl RequestParts {
    /// Takes the body as `application/x-www-form-urlencoded`: lists repeat the key, objects are JSON.
    pub fn form_content(&mut self) -> Result<Option<RequestContent>, CallError> {
        let Some(fields) = self.take_fields()? else {
            return Ok(None);
        };
        let mut form = url::form_urlencoded::Serializer::new(String::new());
        for (name, entry) in entries(&fields) {
            form.append_pair(name, &text(entry));
        }
        Ok(Some(RequestContent {
            content_type: "application/x-www-form-urlencoded".to_owned(),
            bytes: form.finish().into(),
        }))
    }

    /// Takes the body as `multipart/form-data`. The fields in `files` are base64 and sent as files.
    pub fn multipart_content(
        &mut self,
        files: &[&str],
    ) -> Result<Option<RequestContent>, CallError> {
        let Some(fields) = self.take_fields()? else {
            return Ok(None);
        };
        let mut parts = Vec::new();
        for (name, entry) in entries(&fields) {
            let name_text = name.replace('"', "%22").replace(['\r', '\n'], " ");
            let disposition = format!("content-disposition: form-data; name=\"{name_text}\"");
            if files.contains(&name.as_str()) {
                let header = format!(
                    "{disposition}; filename=\"{name_text}\"\r\ncontent-type: application/octet-stream"
                );
                parts.push((header, self.decoded(name, entry)?));
            } else if entry.is_object() || entry.is_array() {
                let header = format!("{disposition}\r\ncontent-type: application/json");
                parts.push((header, text(entry).into_bytes()));
            } else {
                parts.push((disposition, text(entry).into_bytes()));
            }
        }
        Ok(Some(multipart(&parts)))
    }

    /// Takes the argument `body` as text of this media type.
    pub fn text_content(&mut self, media_type: &str) -> Result<Option<RequestContent>, CallError> {
        Ok(self.take_body().map(|body| RequestContent {
            content_type: media_type.to_owned(),
            bytes: text(&body).into(),
        }))
    }

    /// Takes the argument `body`, which is base64, as bytes of this media type.
    pub fn binary_content(
        &mut self,
        media_type: &str,
    ) -> Result<Option<RequestContent>, CallError> {
        let Some(body) = self.take_body() else {
            return Ok(None);
        };
        Ok(Some(RequestContent {
            content_type: media_type.to_owned(),
            bytes: self.decoded("body", &body)?.into(),
        }))
    }

    fn take_fields(&mut self) -> Result<Option<Map<String, Value>>, CallError> {
        match self.take_body() {
            None => Ok(None),
            Some(Value::Object(fields)) => Ok(Some(fields)),
            Some(other) => Err(self.wrong_type("body", "an object", &other)),
        }
    }

    fn decoded(&self, name: &str, value: &Value) -> Result<Vec<u8>, CallError> {
        let decoded = value.as_str().and_then(|text| {
            let compact: String = text.split_whitespace().collect();
            general_purpose::STANDARD.decode(compact).ok()
        });
        decoded.ok_or_else(|| self.problem(format!("`{name}` must be a file in base64")))
    }
}

/// Returns the fields, with one entry for each entry of a list. Nulls are left out.
fn entries(fields: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    let all = fields.iter().flat_map(|(name, value)| {
        let entries = match value {
            Value::Array(list) => list.as_slice(),
            single => std::slice::from_ref(single),
        };
        entries.iter().map(move |entry| (name, entry))
    });
    all.filter(|(_, entry)| !entry.is_null())
}

/// Joins parts, each with its headers, by a boundary that occurs in none of them.
fn multipart(parts: &[(String, Vec<u8>)]) -> RequestContent {
    let mut boundary = "exa-mcp-part".to_owned();
    let is_taken = |boundary: &str| {
        let boundary = boundary.as_bytes();
        let mut contents = parts.iter().map(|(_, content)| content);
        contents.any(|content| content.windows(boundary.len()).any(|it| it == boundary))
    };
    while is_taken(&boundary) {
        boundary.push(fastrand::alphanumeric());
    }
    let mut body = Vec::new();
    for (headers, content) in parts {
        body.extend_from_slice(format!("--{boundary}\r\n{headers}\r\n\r\n").as_bytes());
        body.extend_from_slice(content);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    RequestContent {
        content_type: format!("multipart/form-data; boundary={boundary}"),
        bytes: body.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_boundary_occurs_in_no_part() {
        let part = ("a: b".to_owned(), b"--exa-mcp-part".to_vec());
        let content = multipart(&[part]);
        let boundary = content.content_type.split("boundary=").nth(1);
        let boundary = boundary.unwrap_or_default();
        assert!(boundary.len() > "exa-mcp-part".len(), "{boundary}");
        let body = String::from_utf8_lossy(&content.bytes).into_owned();
        let expected = format!("--{boundary}\r\na: b\r\n\r\n--exa-mcp-part\r\n--{boundary}--\r\n");
        assert_eq!(body, expected);
    }
}

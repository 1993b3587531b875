//! Parses a document as served and rejects what is not a complete OpenAPI description.

use serde_json::Value;

use super::error::UpdateError;
use super::split::{count_operations, dangling_references, methods_of};
use crate::load;

/// A document of upstream.
#[derive(Debug)]
pub struct UpstreamDocument {
    /// Its content.
    pub root: Value,
    /// Whether the text ends in the middle of a line, which truncated texts do.
    ends_abruptly: bool,
}

impl UpstreamDocument {
    /// Parses YAML or JSON. `location` is the address or file, for messages.
    pub fn parse(location: &str, bytes: &[u8]) -> Result<Self, UpdateError> {
        let not_a_spec = |message: String| UpdateError::NotASpec {
            location: location.to_owned(),
            message,
        };
        let text = std::str::from_utf8(bytes)
            .map_err(|error| not_a_spec(format!("it is not UTF-8 text ({error})")))?;
        let text = text.trim_start_matches('\u{feff}');
        if text.trim().is_empty() {
            return Err(not_a_spec("it is empty".to_owned()));
        }
        if text.trim_start().starts_with('<') {
            return Err(not_a_spec(
                "it is an HTML or XML page; the document may have moved".to_owned(),
            ));
        }
        let root = parse_text(text).map_err(not_a_spec)?;
        check_kind(&root).map_err(not_a_spec)?;
        Ok(Self {
            // A complete JSON text ends with its last brace.
            ends_abruptly: !text.ends_with('\n') && !text.starts_with('{'),
            root,
        })
    }

    /// Fails if the document ends abruptly and something at its end is missing.
    ///
    /// Truncated YAML is often well-formed. `known_operations` is the number of operations in the
    /// specs that the document replaces.
    pub fn check_complete(
        &self,
        location: &str,
        known_operations: usize,
    ) -> Result<(), UpdateError> {
        match self.truncation_evidence(known_operations) {
            None => Ok(()),
            Some(evidence) => Err(UpdateError::Truncated {
                location: location.to_owned(),
                evidence,
            }),
        }
    }

    fn truncation_evidence(&self, known_operations: usize) -> Option<String> {
        if !self.ends_abruptly {
            return None;
        }
        if let Some(reference) = dangling_references(&self.root).into_iter().next() {
            return Some(format!(
                "its last line is incomplete and `$ref: {reference}` does not resolve"
            ));
        }
        let operations = count_operations(&self.root);
        if operations < known_operations {
            return Some(format!(
                "its last line is incomplete and it has {operations} operations, \
                 where the present specs have {known_operations}"
            ));
        }
        let last = last_operation(&self.root)?;
        let has_responses = last.get("responses").is_some_and(Value::is_object);
        (!has_responses).then(|| {
            "its last line is incomplete and its last operation has no responses".to_owned()
        })
    }
}

fn parse_text(text: &str) -> Result<Value, String> {
    if text.trim_start().starts_with('{') {
        // The JSON parser is faster; a flow mapping of YAML may look the same at its start.
        if let Ok(root) = serde_json::from_str(text) {
            return Ok(root);
        }
    }
    match load::parse("document", text) {
        Ok(document) => Ok(document.root),
        Err(crate::Error::Yaml { message, .. }) => Err(format!("invalid YAML: {message}")),
        Err(error) => Err(error.to_string()),
    }
}

fn check_kind(root: &Value) -> Result<(), String> {
    let Some(version) = root.get("openapi") else {
        return Err("it has no field `openapi`".to_owned());
    };
    if !version.as_str().is_some_and(|v| v.starts_with("3.")) {
        return Err(format!("`openapi` is {version}, expected a 3.x version"));
    }
    if count_operations(root) == 0 {
        return Err("it has no operations".to_owned());
    }
    Ok(())
}

fn last_operation(root: &Value) -> Option<&Value> {
    let (_, item) = root.get("paths")?.as_object()?.iter().next_back()?;
    methods_of(item).last().map(|(_, operation)| operation)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEC: &str = "\
openapi: 3.1.0
info: {title: T, version: '1'}
paths:
  /a:
    get:
      responses:
        '200': {description: ok}
  /b:
    get:
      operationId: b
      responses:
        '200': {description: ok}
components:
  schemas:
    A: {type: string}
";

    fn error(text: &str) -> String {
        let document = UpstreamDocument::parse("https://x/y", text.as_bytes());
        let result = document.and_then(|document| document.check_complete("https://x/y", 2));
        result.unwrap_err().to_string()
    }

    #[test]
    fn accepts_yaml_and_json() {
        let yaml = UpstreamDocument::parse("x", SPEC.as_bytes()).unwrap();
        yaml.check_complete("x", 5).unwrap();
        let json = UpstreamDocument::parse("x", yaml.root.to_string().as_bytes()).unwrap();
        json.check_complete("x", 5).unwrap();
        assert_eq!(json.root, yaml.root);
        // A complete document without a line break at its end is accepted.
        let bare = UpstreamDocument::parse("x", SPEC.trim_end().as_bytes()).unwrap();
        bare.check_complete("x", 2).unwrap();
    }

    #[test]
    fn rejects_what_is_not_a_spec() {
        for (text, part) in [
            ("", "empty"),
            ("<!DOCTYPE html><html></html>", "HTML"),
            ("just a sentence\n", "no field `openapi`"),
            ("swagger: '2.0'\n", "no field `openapi`"),
            ("openapi: 2.0.0\npaths: {}\n", "3.x"),
            ("openapi: 3.1.0\npaths: {}\n", "no operations"),
            (
                "{\"openapi\": \"3.1.0\", \"paths\": {\"/a\":",
                "invalid YAML",
            ),
            ("openapi: [\n", "invalid YAML"),
        ] {
            let error = error(text);
            assert!(error.contains(part), "{text}: {error}");
            assert!(error.contains("https://x/y"), "{error}");
        }
        let binary = UpstreamDocument::parse("x", &[0xff, 0xfe, 0]).unwrap_err();
        assert!(binary.to_string().contains("UTF-8"));
    }

    #[test]
    fn recognizes_truncated_documents_that_are_well_formed() {
        let at = |marker: &str| &SPEC[..SPEC.rfind(marker).unwrap()];
        assert!(error(&format!("{}op: b", at("operationId"))).contains("no responses"));
        let small = "openapi: 3.1.0\npaths:\n  /a:\n    get:\n      responses: {}";
        let document = UpstreamDocument::parse("x", small.as_bytes()).unwrap();
        document.check_complete("x", 1).unwrap();
        assert!(document.check_complete("x", 2).is_err());
        let dangling = SPEC.replace("{description: ok}", "{$ref: '#/components/responses/R'}");
        assert!(error(dangling.trim_end()).contains("#/components/responses/R"));
    }
}

//! Stage 1: loads the YAML files.

use std::path::Path;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::{Error, Result};

/// A YAML file as JSON, with its name for messages.
#[derive(Debug, Clone)]
pub struct Document {
    /// File name relative to `data-design/`.
    pub file: String,
    /// The content.
    pub root: Value,
}

/// Reads `file` from `dir`.
pub fn load(dir: &Path, file: &str) -> Result<Document> {
    parse(file, &read(dir, file)?)
}

/// Reads the overlay with our wording of a spec, such as `exa-search-wording.yaml`, if it exists.
pub fn load_wording(dir: &Path, spec: &str) -> Result<Option<Document>> {
    let Some(stem) = spec.strip_suffix("-spec.yaml") else {
        return Ok(None);
    };
    let file = format!("{stem}-wording.yaml");
    if dir.join(&file).exists() {
        load(dir, &file).map(Some)
    } else {
        Ok(None)
    }
}

/// Reads `file` from `dir` as a `T`. Errors contain the line.
pub fn load_as<T: DeserializeOwned>(dir: &Path, file: &str) -> Result<T> {
    parse_as(file, &read(dir, file)?)
}

/// Reads the text of `file` from `dir`.
pub fn load_text(dir: &Path, file: &str) -> Result<String> {
    read(dir, file)
}

fn read(dir: &Path, file: &str) -> Result<String> {
    let path = dir.join(file);
    std::fs::read_to_string(&path).map_err(|source| Error::Read { path, source })
}

/// Parses YAML (or JSON, which is YAML) text.
pub fn parse(file: &str, text: &str) -> Result<Document> {
    let root = parse_as(file, text)?;
    let file = file.to_owned();
    Ok(Document { file, root })
}

fn parse_as<T: DeserializeOwned>(file: &str, text: &str) -> Result<T> {
    // JSON is YAML, too, but much faster to read as JSON. YAML reports what is wrong with it.
    if text.trim_start().starts_with('{')
        && let Ok(value) = serde_json::from_str(text)
    {
        return Ok(value);
    }
    // Only `true` and `false` are booleans, so that an enum value `no` stays a string.
    let options = serde_saphyr::options! {
        strict_booleans: true,
        // The largest public specs exceed the defaults, which are meant for configuration files.
        budget: serde_saphyr::budget! {
            max_events: 20_000_000,
            max_nodes: 5_000_000,
            max_depth: 128,
            enforce_alias_anchor_ratio: false,
        },
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| Error::Yaml {
        file: file.to_owned(),
        message: error.to_string(),
    })
}

impl Document {
    /// Checks that the document is an OpenAPI 3 description with paths.
    pub fn require_openapi(&self) -> Result<()> {
        let version = self.root.get("openapi").and_then(Value::as_str);
        // 3.2 adds methods and media types to 3.1; operations that use them are left out.
        let supported = ["3.0.", "3.1.", "3.2."];
        let supported = version.is_some_and(|v| supported.iter().any(|it| v.starts_with(it)));
        if !supported {
            let found = version.unwrap_or("none");
            return Err(self.error(
                "/openapi",
                format!("`openapi` must be a version from 3.0 to 3.2, found {found}"),
            ));
        }
        match self.root.get("paths") {
            Some(Value::Object(_)) => Ok(()),
            _ => Err(self.error("/paths", "`paths` must be an object".to_owned())),
        }
    }

    /// Returns an error about a location in this document.
    pub fn error(&self, pointer: &str, message: String) -> Error {
        Error::Document {
            file: self.file.clone(),
            pointer: format!("#{pointer}"),
            message,
        }
    }

    /// Returns an error about a construct that no rule of `family` covers.
    pub fn unsupported(&self, pointer: &str, family: &'static str, construct: String) -> Error {
        Error::Unsupported {
            file: self.file.clone(),
            pointer: pointer.to_owned(),
            family,
            construct,
        }
    }
}

/// Escapes one segment of a JSON pointer.
pub fn escape(segment: &str) -> String {
    segment.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_1_1_boolean_words_stay_strings() {
        let document = parse("x.yaml", "enum: [yes, no, on, off, true]").unwrap();
        assert_eq!(
            document.root,
            serde_json::json!({"enum": ["yes", "no", "on", "off", true]})
        );
    }

    #[test]
    fn reads_unquoted_status_codes_and_dates_as_text() {
        let document = parse("x.yaml", "responses:\n  200: {description: 2026-04-03}").unwrap();
        assert_eq!(
            document.root,
            serde_json::json!({"responses": {"200": {"description": "2026-04-03"}}})
        );
    }

    #[test]
    fn numbers_stay_integer_or_float() {
        let document = parse("x.yaml", "{a: 50000000, b: 0.5, c: -1, d: '0', e: 1e3}").unwrap();
        assert_eq!(
            document.root,
            serde_json::json!({"a": 50_000_000, "b": 0.5, "c": -1, "d": "0", "e": 1e3})
        );
    }

    #[test]
    fn reads_large_documents_and_many_aliases() {
        let list = "- a\n".repeat(300_000);
        let root = parse("x.yaml", &list).unwrap().root;
        assert_eq!(root.as_array().unwrap().len(), 300_000);
        let aliases = format!("a: &a {{b: 1}}\nlist:\n{}", "- *a\n".repeat(1_000));
        let root = parse("x.yaml", &aliases).unwrap().root;
        assert_eq!(root["list"].as_array().unwrap().len(), 1_000);
    }

    #[test]
    fn reports_invalid_yaml_with_file_and_line() {
        let error = parse("exa.yaml", "a: 1\nb: [1, 2\nc: 3\n")
            .unwrap_err()
            .to_string();
        assert!(error.contains("exa.yaml"), "{error}");
        assert!(
            error.contains("line") || error.contains(":3") || error.contains("3:"),
            "{error}"
        );
    }

    #[test]
    fn rejects_duplicate_keys() {
        assert!(parse("x.yaml", "a: 1\na: 2\n").is_err());
    }
}

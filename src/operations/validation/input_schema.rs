//! A JSON Schema with its compiled validator.

use std::ops::Deref;
use std::sync::OnceLock;

use jsonschema::Validator;
use serde_json::{Value, json};

use super::messages;

/// The JSON Schema of arguments. It is compiled once, by the first validation.
#[derive(Debug)]
pub struct InputSchema {
    schema: Value,
    compiled: OnceLock<Result<Validator, String>>,
}

impl InputSchema {
    /// Wraps a schema without compiling it.
    pub const fn new(schema: Value) -> Self {
        Self {
            schema,
            compiled: OnceLock::new(),
        }
    }

    /// Returns the compiled validator, or why the schema is invalid.
    pub(super) fn validator(&self) -> Result<&Validator, &str> {
        let compiled = self.compiled.get_or_init(|| compile(&self.schema));
        compiled.as_ref().map_err(String::as_str)
    }
}

impl Deref for InputSchema {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.schema
    }
}

fn compile(schema: &Value) -> Result<Validator, String> {
    jsonschema::options()
        .should_validate_formats(true)
        // Every URI of this API is a web URL.
        .with_format("uri", messages::is_web_url)
        .build(schema)
        .map_err(|error| error.to_string())
}

/// Returns whether `text` is an RFC 3339 date-time.
pub(super) fn is_date_time(text: &str) -> bool {
    static VALIDATOR: OnceLock<Option<Validator>> = OnceLock::new();
    let validator =
        VALIDATOR.get_or_init(|| compile(&json!({"type": "string", "format": "date-time"})).ok());
    validator
        .as_ref()
        .is_some_and(|validator| validator.is_valid(&Value::from(text)))
}

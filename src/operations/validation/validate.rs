//! What arguments are held against: a schema, and its compiled form.

use std::ops::Deref;
use std::sync::OnceLock;

use jsonschema::Validator;
use serde_json::{Value, json};

use super::messages;

/// The form that arguments must have, as a JSON Schema. It is compiled by the first check, and kept for all others.
#[derive(Debug)]
pub struct InputSchema {
    schema: Value,
    compiled: OnceLock<Result<Validator, String>>,
}

impl InputSchema {
    /// A schema that is not compiled yet.
    pub const fn new(schema: Value) -> Self {
        Self {
            schema,
            compiled: OnceLock::new(),
        }
    }

    /// What tells whether arguments fit, or why the schema cannot be used.
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
        .offline()
        .should_validate_formats(true)
        // Every address of this API is one that a server must be able to open.
        .with_format("uri", messages::is_web_address)
        .build(schema)
        .map_err(|error| error.to_string())
}

/// Whether `text` is a date and time with its zone, as RFC 3339 writes it.
pub(super) fn is_date_time(text: &str) -> bool {
    static VALIDATOR: OnceLock<Option<Validator>> = OnceLock::new();
    let validator =
        VALIDATOR.get_or_init(|| compile(&json!({"type": "string", "format": "date-time"})).ok());
    validator
        .as_ref()
        .is_some_and(|validator| validator.is_valid(&Value::from(text)))
}

//! Compiled validators, kept so that a second call of an operation is cheap.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use jsonschema::Validator;
use serde_json::{Value, json};

use super::super::registry;
use super::words;

/// More operations than there can be: a table this long is being filled with nonsense.
const MAX_KEPT: usize = 512;

struct Kept {
    schema: Value,
    is_lasting: bool,
    validator: Arc<Validator>,
}

/// The validator of `schema`, compiled the first time that `operation` is checked.
pub(super) fn validator(operation: &str, schema: &Value) -> Result<Arc<Validator>, String> {
    static KEPT: OnceLock<RwLock<HashMap<String, Kept>>> = OnceLock::new();
    let kept = KEPT.get_or_init(RwLock::default);
    let known = kept.read().unwrap_or_else(PoisonError::into_inner);
    if let Some(entry) = known.get(operation)
        // A name alone does not say which schema it had: tests and overlays bring their own.
        && (entry.is_lasting && is_lasting(operation, schema) || entry.schema == *schema)
    {
        return Ok(Arc::clone(&entry.validator));
    }
    drop(known);
    let validator = Arc::new(compile(schema)?);
    let entry = Kept {
        schema: schema.clone(),
        is_lasting: is_lasting(operation, schema),
        validator: Arc::clone(&validator),
    };
    let mut kept = kept.write().unwrap_or_else(PoisonError::into_inner);
    if kept.len() >= MAX_KEPT {
        kept.clear();
    }
    kept.insert(operation.to_owned(), entry);
    Ok(validator)
}

/// Whether a schema is that of an operation of the API: there is one for each name, as long as the
/// process lives, and it need not be compared.
fn is_lasting(operation: &str, schema: &Value) -> bool {
    let known = registry::find(operation).map(registry::input_schema);
    known.is_some_and(|known| std::ptr::eq(known, schema))
}

fn compile(schema: &Value) -> Result<Validator, String> {
    jsonschema::options()
        .offline()
        .should_validate_formats(true)
        // Every address of this API is one that a server must be able to open.
        .with_format("uri", words::is_web_address)
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

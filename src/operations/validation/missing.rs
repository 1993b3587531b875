//! Missing required arguments, and the form fields that ask the user for them.

use serde_json::{Map, Value, json};

use super::ArgumentProblem;
use super::schema::Node;

/// The longest description in a form, in characters.
const MAX_DESCRIPTION: usize = 300;

/// String formats that a form supports.
const FORMATS: [&str; 4] = ["email", "uri", "date", "date-time"];

/// Names of arguments that a form must not ask for, because a model would read the input.
const SECRETS: [&str; 6] = [
    "secret",
    "password",
    "token",
    "apikey",
    "api_key",
    "credential",
];

/// Returns the names of the missing arguments, if nothing else is wrong.
pub(super) fn find(
    schema: &Value,
    arguments: &Map<String, Value>,
    problems: &[ArgumentProblem],
) -> Vec<String> {
    let required = Node::root(schema).required();
    let is_missing = |name: &str| required.contains(&name) && !arguments.contains_key(name);
    if !problems.iter().all(|problem| is_missing(&problem.path)) {
        return Vec::new();
    }
    problems
        .iter()
        .map(|problem| problem.path.clone())
        .collect()
}

/// Returns the form field for an argument; `None` for lists, objects and secrets, which a form cannot contain.
pub fn form_field(schema: &Value, name: &str) -> Option<Map<String, Value>> {
    field(name, &Node::root(schema).property(name)?)
}

/// Returns the form field for a string, number, enum or boolean.
fn field(name: &str, node: &Node<'_>) -> Option<Map<String, Value>> {
    let plain = name.to_lowercase();
    if SECRETS.iter().any(|secret| plain.contains(secret)) || !node.branches().is_empty() {
        return None;
    }
    let types: Vec<&str> = node.types();
    let mut types = types.into_iter().filter(|kind| *kind != "null");
    let kind = types.next().filter(|_| types.next().is_none())?;
    let copied: &[&str] = match kind {
        "string" => &["minLength", "maxLength"],
        "number" | "integer" => &["minimum", "maximum"],
        "boolean" => &[],
        _ => return None,
    };
    let mut field = Map::from_iter([
        ("type".to_owned(), json!(kind)),
        ("title".to_owned(), json!(name)),
    ]);
    let mut put = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            field.insert(name.to_owned(), value);
        }
    };
    let description = node.keyword("description").and_then(Value::as_str);
    put("description", description.map(|it| json!(shorten(it))));
    for keyword in copied {
        put(keyword, node.keyword(keyword).cloned());
    }
    let mut choices = node.choices();
    choices.retain(|choice| !choice.is_null());
    if !choices.is_empty() {
        if kind != "string" || !choices.iter().all(|choice| choice.is_string()) {
            return None;
        }
        put("enum", Some(json!(choices)));
    } else if kind == "string" {
        let format = node.keyword("format").and_then(Value::as_str);
        let format = format.filter(|format| FORMATS.contains(format));
        put("format", format.map(|format| json!(format)));
    }
    Some(field)
}

fn shorten(text: &str) -> String {
    match text.chars().nth(MAX_DESCRIPTION) {
        None => text.to_owned(),
        Some(_) => {
            let start: String = text.chars().take(MAX_DESCRIPTION).collect();
            format!("{start}…")
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::super::{ArgumentSpec, InputSchema, validate};
    use super::*;

    fn missing(schema: Value, given: Value) -> Vec<String> {
        let schema = InputSchema::new(schema);
        validate(&ArgumentSpec::new(&schema), given)
            .unwrap_err()
            .missing
    }

    fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "id": {"type": "string", "description": "Which one", "maxLength": 9},
                "mail": {"type": "string", "format": "email"},
                "kind": {"type": "string", "enum": ["a", "b"]},
                "count": {"type": ["integer", "null"], "minimum": 1},
                "list": {"type": "array", "items": {"type": "string"}},
                "clientSecret": {"type": "string"},
                "either": {"oneOf": [{"type": "string"}, {"type": "object"}]},
            },
            "required": ["id", "mail", "kind", "count", "list", "clientSecret", "either"],
        })
    }

    #[test]
    fn creates_form_fields_for_primitive_values_only() {
        let all = schema();
        let field = |name: &str| form_field(&all, name).map(Value::Object);
        let id =
            json!({"type": "string", "title": "id", "description": "Which one", "maxLength": 9});
        assert_eq!(field("id"), Some(id));
        assert_eq!(field("mail").unwrap()["format"], "email");
        assert_eq!(field("kind").unwrap()["enum"], json!(["a", "b"]));
        let count = json!({"type": "integer", "title": "count", "minimum": 1});
        assert_eq!(field("count"), Some(count));
        for unfit in ["list", "clientSecret", "either"] {
            assert_eq!(field(unfit), None, "{unfit}");
        }
    }

    #[test]
    fn reports_missing_arguments_only_if_nothing_else_is_wrong() {
        let mut schema = schema();
        schema["required"] = json!(["id", "mail"]);
        assert_eq!(missing(schema.clone(), json!({"id": "1"})), ["mail"]);
        let wrong = missing(schema, json!({"id": "1", "kind": "never"}));
        assert!(wrong.is_empty());
    }
}

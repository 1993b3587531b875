//! Arguments that must be there and are not: what a person could be asked for.

use serde_json::{Map, Value, json};

use super::Problem;
use super::schema::Node;

/// A text in a form is at most this long, in characters.
const LONGEST_TEXT: usize = 300;

/// Kinds of text that a form can ask for.
const FORMATS: [&str; 4] = ["email", "uri", "date", "date-time"];

/// Names of arguments that a form must not ask for: a model would read what is written into it.
const SECRETS: [&str; 6] = [
    "secret",
    "password",
    "token",
    "apikey",
    "api_key",
    "credential",
];

/// The names of the arguments that are missing, if nothing else is wrong.
pub(super) fn find(
    schema: &Value,
    arguments: &Map<String, Value>,
    problems: &[Problem],
) -> Vec<String> {
    let required = Node::top(schema).required();
    let is_missing = |name: &str| required.contains(&name) && !arguments.contains_key(name);
    match problems.iter().all(|problem| is_missing(&problem.place)) {
        true => problems
            .iter()
            .map(|problem| problem.place.clone())
            .collect(),
        false => Vec::new(),
    }
}

/// How a form asks for an argument; `None` for lists, objects and secrets, which do not fit into one.
pub fn form_field(schema: &Value, name: &str) -> Option<Map<String, Value>> {
    field(name, &Node::top(schema).property(name)?)
}

/// How a form asks for a value: one text, number, choice or decision.
fn field(name: &str, node: &Node<'_>) -> Option<Map<String, Value>> {
    let plain = name.to_lowercase();
    if SECRETS.iter().any(|secret| plain.contains(secret)) || !node.branches().is_empty() {
        return None;
    }
    let kinds: Vec<&str> = node.kinds();
    let mut kinds = kinds.into_iter().filter(|kind| *kind != "null");
    let kind = kinds.next().filter(|_| kinds.next().is_none())?;
    let kept: &[&str] = match kind {
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
    put("description", description.map(|it| json!(shortened(it))));
    for keyword in kept {
        put(keyword, node.keyword(keyword).cloned());
    }
    let choices = node.choices();
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

fn shortened(text: &str) -> String {
    match text.chars().nth(LONGEST_TEXT) {
        None => text.to_owned(),
        Some(_) => {
            let kept: String = text.chars().take(LONGEST_TEXT).collect();
            format!("{kept}…")
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::super::{InputSchema, Subject, check};
    use super::*;

    fn missing(schema: Value, given: Value) -> Vec<String> {
        let schema = InputSchema::new(schema);
        check(&Subject::new(&schema), given).unwrap_err().missing
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
    fn single_values_fit_into_a_form_and_others_do_not() {
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
    fn nothing_is_missing_where_something_else_is_wrong() {
        let mut schema = schema();
        schema["required"] = json!(["id", "mail"]);
        assert_eq!(missing(schema.clone(), json!({"id": "1"})), ["mail"]);
        let wrong = missing(schema, json!({"id": "1", "kind": "never"}));
        assert!(wrong.is_empty());
    }
}

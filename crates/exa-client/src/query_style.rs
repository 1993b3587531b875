//! Parameters that are not plain text: objects, lists of objects and values of any type.

use serde_json::{Map, Value};

use super::{CallError, RequestParts, arguments::scalar};

/// How an object or a list becomes pairs of the query string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueryStyle {
    /// `filter[team]=a`; lists repeat the key, and lists of objects have an index.
    DeepObject,
    /// Each property is a pair: `team=a&size=2`.
    Properties,
    /// Names and values alternate in one value: `filter=team,a,size,2`.
    Joined,
    /// The key is repeated for each entry; text and numbers as they are, all else as JSON.
    Repeated,
}

impl RequestParts {
    /// Takes an argument as pairs of the query string. Nulls are left out.
    pub fn query_pairs(
        &mut self,
        name: &str,
        wire: &str,
        style: QueryStyle,
    ) -> Result<Vec<(String, String)>, CallError> {
        let Some(value) = self.take(name) else {
            return Ok(Vec::new());
        };
        let mut pairs = Vec::new();
        match (style, &value) {
            (QueryStyle::DeepObject, value) => add_deep(wire, value, &mut pairs),
            (QueryStyle::Repeated, value) => add_repeated(wire, value, &mut pairs),
            (QueryStyle::Properties, Value::Object(fields)) => {
                for (key, value) in fields {
                    add_repeated(key, value, &mut pairs);
                }
            }
            (QueryStyle::Joined, Value::Object(fields)) => {
                pairs.push((wire.to_owned(), joined(fields, ",")));
            }
            (QueryStyle::Properties | QueryStyle::Joined, value) => {
                return Err(self.wrong_type(name, "an object", value));
            }
        }
        Ok(pairs)
    }

    /// Takes an object as text, as in a path or a header: `a,1,b,2`, or `a=1,b=2` if `explode`.
    pub fn object_text(&mut self, name: &str, explode: bool) -> Result<Option<String>, CallError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Object(fields)) => {
                Ok(Some(joined(&fields, if explode { "=" } else { "," })))
            }
            Some(other) => Err(self.wrong_type(name, "an object", &other)),
        }
    }

    /// Checks the text of a path parameter that is not plain.
    pub fn path_text(
        &self,
        name: &str,
        text: Result<Option<String>, CallError>,
    ) -> Result<String, CallError> {
        let text = self.required(name, text)?;
        self.check_path(name, text)
    }
}

fn add_deep(key: &str, value: &Value, pairs: &mut Vec<(String, String)>) {
    match value {
        Value::Null => {}
        Value::Object(fields) => {
            for (name, value) in fields {
                add_deep(&format!("{key}[{name}]"), value, pairs);
            }
        }
        Value::Array(list) => {
            for (index, entry) in list.iter().enumerate() {
                if scalar(entry).is_some() {
                    add_deep(key, entry, pairs);
                } else {
                    add_deep(&format!("{key}[{index}]"), entry, pairs);
                }
            }
        }
        value => pairs.push((key.to_owned(), text(value))),
    }
}

fn add_repeated(key: &str, value: &Value, pairs: &mut Vec<(String, String)>) {
    let entries = match value {
        Value::Array(list) => list.as_slice(),
        single => std::slice::from_ref(single),
    };
    let entries = entries.iter().filter(|entry| !entry.is_null());
    pairs.extend(entries.map(|entry| (key.to_owned(), text(entry))));
}

fn joined(fields: &Map<String, Value>, separator: &str) -> String {
    let fields = fields.iter().filter(|(_, value)| !value.is_null());
    let texts = fields.map(|(name, value)| format!("{name}{separator}{}", text(value)));
    texts.collect::<Vec<_>>().join(",")
}

/// Returns text, numbers and booleans as they are, and all else as JSON.
pub(super) fn text(value: &Value) -> String {
    scalar(value).unwrap_or_else(|| value.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pairs(add: fn(&str, &Value, &mut Vec<(String, String)>), value: Value) -> String {
        let mut pairs = Vec::new();
        add("m", &value, &mut pairs);
        let texts = pairs.iter().map(|(key, value)| format!("{key}={value}"));
        texts.collect::<Vec<_>>().join("&")
    }

    #[test]
    fn deep_objects_repeat_the_key_of_lists() {
        let value = json!({"team": "a b", "tags": ["x", 2], "none": null, "in": {"deep": true},
            "all": [{"k": 1}, {"k": 2}]});
        assert_eq!(
            pairs(add_deep, value),
            "m[team]=a b&m[tags]=x&m[tags]=2&m[in][deep]=true&m[all][0][k]=1&m[all][1][k]=2"
        );
    }

    #[test]
    fn lists_of_objects_are_json() {
        let value = json!([{"k": 1}, "x", null, 3]);
        assert_eq!(pairs(add_repeated, value), r#"m={"k":1}&m=x&m=3"#);
    }

    #[test]
    fn objects_become_text() {
        let value = json!({"a": 1, "b": "x", "c": null});
        let fields = value.as_object().cloned().unwrap_or_default();
        assert_eq!(joined(&fields, ","), "a,1,b,x");
        assert_eq!(joined(&fields, "="), "a=1,b=x");
    }
}

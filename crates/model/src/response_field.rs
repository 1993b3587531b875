//! Fields of responses that the server itself reads.

use serde_json::Value;

/// A field of responses and the places where it may be, from `surface.yaml`.
///
/// Without places, which upstream may have removed, it is never found.
#[derive(Debug, Clone, Copy)]
pub struct ResponseField {
    /// Dotted paths; the first one with a value of the requested type counts.
    paths: &'static [&'static str],
}

impl ResponseField {
    /// Creates a field that may be in these places.
    pub const fn new(paths: &'static [&'static str]) -> Self {
        Self { paths }
    }

    /// Returns the value of the field. An absent field and null are the same.
    pub fn get(self, response: &Value) -> Option<&Value> {
        self.find(response, |value| (!value.is_null()).then_some(value))
    }

    /// Returns the field if it is text.
    pub fn text(self, response: &Value) -> Option<&str> {
        self.find(response, Value::as_str)
    }

    /// Returns the field if it is a number.
    pub fn number(self, response: &Value) -> Option<f64> {
        self.find(response, Value::as_f64)
    }

    /// Returns the field if it is a list.
    pub fn list(self, response: &Value) -> Option<&Vec<Value>> {
        self.find(response, Value::as_array)
    }

    /// Returns the first place of which `read` makes something.
    fn find<'v, T>(self, response: &'v Value, read: fn(&'v Value) -> Option<T>) -> Option<T> {
        let mut paths = self.paths.iter();
        paths.find_map(|path| {
            let mut names = path.split('.');
            read(names.try_fold(response, |value, name| value.get(name))?)
        })
    }

    /// Removes the field from all of its places.
    pub fn remove(self, response: &mut Value) {
        for path in self.paths {
            let (parents, name) = path.rsplit_once('.').unwrap_or(("", path));
            let mut parents = parents.split('.').filter(|name| !name.is_empty());
            let parent = parents.try_fold(&mut *response, |value, name| value.get_mut(name));
            if let Some(Value::Object(fields)) = parent {
                fields.shift_remove(name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_place_with_a_value_counts() {
        let field = ResponseField::new(&["a.b", "c"]);
        assert_eq!(field.text(&json!({"a": {"b": "1"}, "c": "2"})), Some("1"));
        assert_eq!(field.text(&json!({"a": {"b": null}, "c": "2"})), Some("2"));
        assert_eq!(field.number(&json!({"a": 7, "c": 2})), Some(2.0));
        assert_eq!(field.list(&json!({"c": [1]})).map(Vec::len), Some(1));
        for other in [json!({"c": null}), json!([]), json!(null)] {
            assert_eq!(field.get(&other), None);
        }
        assert_eq!(ResponseField::new(&[]).get(&json!({"": 1})), None);
    }

    #[test]
    fn removes_the_field_and_nothing_else() {
        let mut response = json!({"a": {"b": 1, "x": 2}, "c": 3, "d": 4});
        ResponseField::new(&["a.b", "c", "e.f"]).remove(&mut response);
        assert_eq!(response, json!({"a": {"x": 2}, "d": 4}));
    }
}

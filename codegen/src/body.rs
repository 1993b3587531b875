//! A request body as flat arguments.

use serde_json::{Map, Value, json};

use crate::error::Result;
use crate::load::{Document, escape};

/// One body field: its schema and where it stands.
pub type Field = (Value, String);

/// The fields of an object schema, gathered from references, `allOf` and unions of objects.
#[derive(Debug, Default)]
pub struct Fields {
    /// Schema of every known field, in the order of the spec.
    pub known: Vec<(String, Field)>,
    /// The fields that must be there.
    pub required: Vec<String>,
    /// Says that other fields are refused.
    pub closed: bool,
}

/// Schemas nested deeper than this are taken whole.
const MAX_DEPTH: usize = 24;

/// The fields of `schema`, or `None` where the body is not (only) an object.
pub fn fields(document: &Document, schema: &Value, pointer: &str) -> Result<Option<Fields>> {
    gather(document, schema, pointer, 0)
}

fn gather(
    document: &Document,
    schema: &Value,
    pointer: &str,
    depth: usize,
) -> Result<Option<Fields>> {
    if depth > MAX_DEPTH {
        return Ok(None);
    }
    let Value::Object(map) = schema else {
        return Ok(None);
    };
    if !may_be_object(map) {
        return Ok(None);
    }
    let mut parts = Vec::new();
    if map.contains_key("$ref") {
        let (target, place) = document.resolve(schema, pointer)?;
        parts.push(gather(document, target, &place, depth + 1)?);
    }
    for (index, branch) in list(map, "allOf").iter().enumerate() {
        parts.push(gather(
            document,
            branch,
            &format!("{pointer}/allOf/{index}"),
            depth + 1,
        )?);
    }
    for keyword in ["oneOf", "anyOf"] {
        if map.contains_key(keyword) {
            parts.push(union(document, map, keyword, pointer, depth)?);
        }
    }
    let is_object = map.get("type").is_some_and(names_object) || map.contains_key("properties");
    if parts.is_empty() && !is_object {
        return Ok(None);
    }
    let mut all = own_fields(map, pointer);
    // Closed parts beside others would contradict them, so only a lone part closes the whole.
    let alone = parts.len() == 1 && all.known.is_empty();
    for part in parts {
        let Some(part) = part else { return Ok(None) };
        all.closed |= alone && part.closed;
        all.absorb(part);
    }
    Ok(Some(all))
}

fn own_fields(map: &Map<String, Value>, pointer: &str) -> Fields {
    let properties = map.get("properties").and_then(Value::as_object);
    let known = properties
        .into_iter()
        .flatten()
        .map(|(name, schema)| {
            let place = format!("{pointer}/properties/{}", escape(name));
            (name.clone(), (schema.clone(), place))
        })
        .collect();
    let shut = |key: &str| map.get(key) == Some(&Value::Bool(false));
    Fields {
        known,
        required: strings(map.get("required")),
        closed: shut("additionalProperties") || shut("unevaluatedProperties"),
    }
}

/// The fields of alternatives: all of them, and required only what every alternative requires.
fn union(
    document: &Document,
    map: &Map<String, Value>,
    keyword: &str,
    pointer: &str,
    depth: usize,
) -> Result<Option<Fields>> {
    let mut branches = Vec::new();
    for (index, branch) in list(map, keyword).iter().enumerate() {
        if branch.get("type") == Some(&json!("null")) {
            continue;
        }
        // A branch of nothing but `required` says which fields go together, not which exist.
        let only_required = branch
            .as_object()
            .is_some_and(|branch| branch.keys().all(|key| key == "required" || key == "not"));
        if only_required {
            branches.push(Fields {
                required: strings(branch.get("required")),
                ..Fields::default()
            });
            continue;
        }
        match gather(
            document,
            branch,
            &format!("{pointer}/{keyword}/{index}"),
            depth + 1,
        )? {
            Some(fields) => branches.push(fields),
            None => return Ok(None),
        }
    }
    let mut branches = branches.into_iter();
    let Some(mut all) = branches.next() else {
        return Ok(Some(Fields::default()));
    };
    for branch in branches {
        all.required.retain(|name| branch.required.contains(name));
        all.closed &= branch.closed;
        for (name, field) in branch.known {
            all.add(name, field, "anyOf");
        }
    }
    Ok(Some(all))
}

impl Fields {
    /// Takes in the fields of a schema that holds at the same time.
    fn absorb(&mut self, other: Fields) {
        for (name, field) in other.known {
            self.add(name, field, "allOf");
        }
        for name in other.required {
            if !self.required.contains(&name) {
                self.required.push(name);
            }
        }
    }

    /// Adds a field; two schemas of one name are combined.
    fn add(&mut self, name: String, (schema, place): Field, combine: &str) {
        let Some((_, (existing, _))) = self.known.iter_mut().find(|(known, _)| *known == name)
        else {
            self.known.push((name, (schema, place)));
            return;
        };
        if *existing == schema {
            return;
        }
        if let Some(Value::Array(alternatives)) = existing.get_mut(combine) {
            if !alternatives.contains(&schema) {
                alternatives.push(schema);
            }
            return;
        }
        let mut combined = Map::new();
        combined.insert(combine.to_owned(), json!([existing.clone(), schema]));
        *existing = Value::Object(combined);
    }
}

fn may_be_object(map: &Map<String, Value>) -> bool {
    map.get("type").is_none_or(names_object)
}

fn names_object(value: &Value) -> bool {
    match value {
        Value::String(name) => name == "object",
        Value::Array(list) => list.iter().any(names_object),
        _ => false,
    }
}

fn list<'a>(map: &'a Map<String, Value>, key: &str) -> &'a [Value] {
    map.get(key)
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
}

fn strings(value: Option<&Value>) -> Vec<String> {
    let list = value.and_then(Value::as_array);
    list.into_iter()
        .flatten()
        .filter_map(|v| Some(v.as_str()?.to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gathered(schema: Value) -> Option<(Value, Vec<String>)> {
        let document = Document {
            file: "spec.yaml".into(),
            root: json!({"components": {"schemas": {
                "Common": {"type": "object", "properties": {"limit": {"type": "integer"}}, "required": ["limit"]}}}}),
        };
        let fields = fields(&document, &schema, "/s").unwrap()?;
        let known: Map<String, Value> = fields
            .known
            .into_iter()
            .map(|(name, (schema, _))| (name, schema))
            .collect();
        Some((known.into(), fields.required))
    }

    #[test]
    fn all_of_and_references_are_put_together() {
        let schema = json!({"type": "object", "allOf": [
            {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
            {"$ref": "#/components/schemas/Common"}]});
        assert_eq!(
            gathered(schema).unwrap(),
            (
                json!({"query": {"type": "string"}, "limit": {"type": "integer"}}),
                vec!["query".to_owned(), "limit".to_owned()]
            )
        );
    }

    #[test]
    fn alternatives_require_only_what_all_require() {
        let schema = json!({"oneOf": [
            {"type": "object", "properties": {"a": {"const": 1}, "b": {}}, "required": ["a", "b"]},
            {"type": "object", "properties": {"a": {"const": 2}, "c": {}}, "required": ["a", "c"]},
            {"type": "null"}]});
        assert_eq!(
            gathered(schema).unwrap(),
            (
                json!({"a": {"anyOf": [{"const": 1}, {"const": 2}]}, "b": {}, "c": {}}),
                vec!["a".to_owned()]
            )
        );
    }

    #[test]
    fn a_union_of_required_lists_keeps_the_fields() {
        let schema = json!({"type": "object", "properties": {"a": {}, "b": {}},
            "anyOf": [{"required": ["a"]}, {"required": ["b"]}]});
        assert_eq!(
            gathered(schema).unwrap(),
            (json!({"a": {}, "b": {}}), vec![])
        );
    }

    #[test]
    fn a_body_that_is_no_object_has_no_fields() {
        assert!(gathered(json!({"type": "array", "items": {}})).is_none());
        assert!(gathered(json!({"oneOf": [{"type": "object"}, {"type": "string"}]})).is_none());
        assert!(gathered(json!({})).is_none());
        assert_eq!(
            gathered(json!({"type": "object"})).unwrap(),
            (json!({}), vec![])
        );
    }
}

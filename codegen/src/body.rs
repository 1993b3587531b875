//! The fields of a request body, which become flat arguments.

use serde_json::{Map, Value, json};

use crate::error::Result;
use crate::load::{Document, escape};

/// The schema of a body field and its JSON pointer.
pub type Field = (Value, String);

/// The fields of an object schema, collected from references, `allOf` and unions of objects.
#[derive(Debug, Default)]
pub struct BodyFields {
    /// Schema of every known field, in the order of the spec.
    pub known: Vec<(String, Field)>,
    /// The required fields.
    pub required: Vec<String>,
    /// Whether other fields are rejected.
    pub closed: bool,
}

/// Bodies with deeper nesting are passed as a whole.
const MAX_DEPTH: usize = 24;

/// Returns the fields of `schema`, or `None` if the body is not always an object.
pub fn fields(document: &Document, schema: &Value, pointer: &str) -> Result<Option<BodyFields>> {
    let source = Source {
        document,
        omitted: "readOnly",
    };
    collect_fields(source, schema, pointer, &mut Vec::new())
}

/// Like [`fields`], for a response.
pub fn response_fields(
    document: &Document,
    schema: &Value,
    pointer: &str,
) -> Result<Option<BodyFields>> {
    let source = Source {
        document,
        omitted: "writeOnly",
    };
    collect_fields(source, schema, pointer, &mut Vec::new())
}

/// A document and the flag of properties that are left out.
#[derive(Clone, Copy)]
struct Source<'a> {
    document: &'a Document,
    omitted: &'static str,
}

/// Returns whether the API only returns a property and never takes it.
pub fn is_read_only(document: &Document, property: &Value) -> bool {
    has_flag(document, property, "readOnly")
}

fn has_flag(document: &Document, property: &Value, flag: &str) -> bool {
    let flagged = |schema: &Value| schema.get(flag) == Some(&Value::Bool(true));
    let target = document
        .resolve(property, "")
        .ok()
        .map(|(target, _)| target);
    flagged(property) || target.is_some_and(flagged)
}

fn collect_fields(
    source: Source<'_>,
    schema: &Value,
    pointer: &str,
    parents: &mut Vec<String>,
) -> Result<Option<BodyFields>> {
    if parents.len() > MAX_DEPTH {
        return Ok(None);
    }
    // A schema that contains itself has no further fields.
    if parents.iter().any(|parent| parent == pointer) {
        return Ok(Some(BodyFields::default()));
    }
    parents.push(pointer.to_owned());
    let fields = collect_parts(source, schema, pointer, parents);
    parents.pop();
    fields
}

fn collect_parts(
    source: Source<'_>,
    schema: &Value,
    pointer: &str,
    parents: &mut Vec<String>,
) -> Result<Option<BodyFields>> {
    let Value::Object(map) = schema else {
        return Ok(None);
    };
    if !may_be_object(map) {
        return Ok(None);
    }
    let mut parts = Vec::new();
    if map.contains_key("$ref") {
        let (target, target_pointer) = source.document.resolve(schema, pointer)?;
        parts.push(collect_fields(source, target, &target_pointer, parents)?);
    }
    for (index, branch) in list(map, "allOf").iter().enumerate() {
        parts.push(collect_fields(
            source,
            branch,
            &format!("{pointer}/allOf/{index}"),
            parents,
        )?);
    }
    for keyword in ["oneOf", "anyOf"] {
        if map.contains_key(keyword) {
            parts.push(union_fields(source, map, keyword, pointer, parents)?);
        }
    }
    let is_object = map.get("type").is_some_and(includes_object) || map.contains_key("properties");
    if parts.is_empty() && !is_object {
        return Ok(None);
    }
    let mut all = own_fields(source, map, pointer);
    // A closed part next to others would contradict them, so only a single part closes the whole.
    let is_single = parts.len() == 1 && all.known.is_empty();
    for part in parts {
        let Some(part) = part else { return Ok(None) };
        all.closed |= is_single && part.closed;
        all.merge_all_of(part);
    }
    Ok(Some(all))
}

fn own_fields(source: Source<'_>, map: &Map<String, Value>, pointer: &str) -> BodyFields {
    let properties = map.get("properties").and_then(Value::as_object);
    let (omitted, sent): (Vec<_>, Vec<_>) = properties
        .into_iter()
        .flatten()
        .partition(|(_, schema)| has_flag(source.document, schema, source.omitted));
    let known = sent
        .into_iter()
        .map(|(name, schema)| {
            let field_pointer = format!("{pointer}/properties/{}", escape(name));
            (name.clone(), (schema.clone(), field_pointer))
        })
        .collect();
    let mut required = strings(map.get("required"));
    required.retain(|name| omitted.iter().all(|(known, _)| *known != name));
    let is_false = |key: &str| map.get(key) == Some(&Value::Bool(false));
    let has_patterns = map.contains_key("patternProperties");
    BodyFields {
        known,
        required,
        closed: (is_false("additionalProperties") || is_false("unevaluatedProperties"))
            && !has_patterns,
    }
}

/// Returns the fields of all alternatives. A field is required if every alternative requires it.
fn union_fields(
    source: Source<'_>,
    map: &Map<String, Value>,
    keyword: &str,
    pointer: &str,
    parents: &mut Vec<String>,
) -> Result<Option<BodyFields>> {
    let mut branches = Vec::new();
    for (index, branch) in list(map, keyword).iter().enumerate() {
        if branch.get("type") == Some(&json!("null")) {
            continue;
        }
        // A branch with only `required` lists fields that go together; it does not declare them.
        let only_required = branch
            .as_object()
            .is_some_and(|branch| branch.keys().all(|key| key == "required" || key == "not"));
        if only_required {
            branches.push(BodyFields {
                required: strings(branch.get("required")),
                ..BodyFields::default()
            });
            continue;
        }
        match collect_fields(
            source,
            branch,
            &format!("{pointer}/{keyword}/{index}"),
            parents,
        )? {
            Some(fields) => branches.push(fields),
            None => return Ok(None),
        }
    }
    let mut branches = branches.into_iter();
    let Some(mut all) = branches.next() else {
        return Ok(Some(BodyFields::default()));
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

impl BodyFields {
    /// Adds the fields of a schema that applies at the same time.
    fn merge_all_of(&mut self, other: BodyFields) {
        for (name, field) in other.known {
            self.add(name, field, "allOf");
        }
        for name in other.required {
            if !self.required.contains(&name) {
                self.required.push(name);
            }
        }
    }

    /// Adds a field. Two schemas for one name are combined with the keyword `combine`.
    fn add(&mut self, name: String, (schema, pointer): Field, combine: &str) {
        let Some((_, (existing, _))) = self.known.iter_mut().find(|(known, _)| *known == name)
        else {
            self.known.push((name, (schema, pointer)));
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
    map.get("type").is_none_or(includes_object)
}

fn includes_object(value: &Value) -> bool {
    match value {
        Value::String(name) => name == "object",
        Value::Array(list) => list.iter().any(includes_object),
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

    fn fields_of(schema: Value) -> Option<(Value, Vec<String>)> {
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
    fn merges_all_of_and_references() {
        let schema = json!({"type": "object", "allOf": [
            {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
            {"$ref": "#/components/schemas/Common"}]});
        assert_eq!(
            fields_of(schema).unwrap(),
            (
                json!({"query": {"type": "string"}, "limit": {"type": "integer"}}),
                vec!["query".to_owned(), "limit".to_owned()]
            )
        );
    }

    #[test]
    fn a_field_is_required_if_all_alternatives_require_it() {
        let schema = json!({"oneOf": [
            {"type": "object", "properties": {"a": {"const": 1}, "b": {}}, "required": ["a", "b"]},
            {"type": "object", "properties": {"a": {"const": 2}, "c": {}}, "required": ["a", "c"]},
            {"type": "null"}]});
        assert_eq!(
            fields_of(schema).unwrap(),
            (
                json!({"a": {"anyOf": [{"const": 1}, {"const": 2}]}, "b": {}, "c": {}}),
                vec!["a".to_owned()]
            )
        );
    }

    #[test]
    fn a_union_of_required_lists_does_not_remove_fields() {
        let schema = json!({"type": "object", "properties": {"a": {}, "b": {}},
            "anyOf": [{"required": ["a"]}, {"required": ["b"]}]});
        assert_eq!(
            fields_of(schema).unwrap(),
            (json!({"a": {}, "b": {}}), vec![])
        );
    }

    #[test]
    fn a_body_that_is_not_an_object_has_no_fields() {
        assert!(fields_of(json!({"type": "array", "items": {}})).is_none());
        assert!(fields_of(json!({"oneOf": [{"type": "object"}, {"type": "string"}]})).is_none());
        assert!(fields_of(json!({})).is_none());
        assert_eq!(
            fields_of(json!({"type": "object"})).unwrap(),
            (json!({}), vec![])
        );
    }
}

//! Finds the schema of a field by its dotted path.

use std::collections::BTreeSet;

use serde_json::Value;

/// What a schema says about the value at a path.
#[derive(Debug)]
pub(crate) enum Place<'a> {
    /// It is declared, once for each branch that has it.
    Declared(Vec<Field<'a>>),
    /// It is not declared, but the schema around it accepts anything.
    Open,
    /// It is not declared.
    Missing,
}

impl Place<'_> {
    /// Returns whether a value can be there.
    pub(crate) fn exists(&self) -> bool {
        !matches!(self, Self::Missing)
    }
}

/// A declared field.
#[derive(Debug, Clone)]
pub(crate) struct Field<'a> {
    /// Its schema.
    pub(crate) schema: &'a Value,
    /// The definition that declares it and its name there, such as `Webset.status`.
    pub(crate) label: Option<String>,
}

/// Returns what the schema says about a dotted path. `[]`, or a number as a part of the path, is an entry of a list.
pub(crate) fn locate<'a>(root: &'a Value, path: &str) -> Place<'a> {
    let mut fields = vec![Field {
        schema: root,
        label: None,
    }];
    let mut is_open = false;
    for part in steps(path) {
        let mut next = Vec::new();
        let mut next_is_open = is_open && fields.is_empty();
        for field in &fields {
            let mut walk = Walk {
                root,
                step: part,
                visited: BTreeSet::new(),
            };
            let (found, open) = walk.step(field.schema, None);
            next.extend(found);
            next_is_open |= open;
        }
        fields = next;
        is_open = next_is_open;
    }
    match (fields.is_empty(), is_open) {
        (false, _) => Place::Declared(fields),
        (true, true) => Place::Open,
        (true, false) => Place::Missing,
    }
}

/// Returns the schemas of the value at a dotted path, following references and all branches.
pub(crate) fn schemas_at<'a>(root: &'a Value, path: &str) -> Vec<&'a Value> {
    match locate(root, path) {
        Place::Declared(fields) => fields.into_iter().map(|field| field.schema).collect(),
        Place::Open | Place::Missing => Vec::new(),
    }
}

/// Returns whether a response with this schema can have the field. An unrestricted schema can.
pub(crate) fn has_property(schema: &Value, name: &str) -> bool {
    locate(schema, name).exists()
}

/// Returns the members of a closed set of values at the fields. `None` if other values are possible.
pub(crate) fn members(root: &Value, fields: &[Field<'_>]) -> Option<Vec<Value>> {
    let mut all = Vec::new();
    for field in fields {
        for member in schema_members(root, field.schema, &mut BTreeSet::new())? {
            if !all.contains(&member) {
                all.push(member);
            }
        }
    }
    Some(all)
}

/// Returns the values that the fields list, even if other texts are possible.
pub(crate) fn listed(root: &Value, fields: &[Field<'_>]) -> Vec<Value> {
    let mut all = Vec::new();
    let mut visited = BTreeSet::new();
    let mut pending: Vec<&Value> = fields.iter().map(|field| field.schema).collect();
    while let Some(schema) = pending.pop() {
        let values = schema.get("enum").and_then(Value::as_array);
        for value in values.into_iter().flatten().chain(schema.get("const")) {
            if !value.is_null() && !all.contains(value) {
                all.push(value.clone());
            }
        }
        pending.extend(target(root, schema, &mut visited));
        for keyword in ["allOf", "anyOf", "oneOf"] {
            let branches = schema.get(keyword).and_then(Value::as_array);
            pending.extend(branches.into_iter().flatten());
        }
    }
    all
}

fn schema_members(
    root: &Value,
    schema: &Value,
    visited: &mut BTreeSet<String>,
) -> Option<Vec<Value>> {
    if let Some(constant) = schema.get("const") {
        return Some(vec![constant.clone()]);
    }
    if let Some(Value::Array(values)) = schema.get("enum") {
        return Some(values.iter().filter(|it| !it.is_null()).cloned().collect());
    }
    if schema.get("type").and_then(Value::as_str) == Some("null") {
        return Some(Vec::new());
    }
    if let Some(target) = target(root, schema, visited) {
        return schema_members(root, target, visited);
    }
    for keyword in ["anyOf", "oneOf"] {
        if let Some(Value::Array(branches)) = schema.get(keyword) {
            let mut all = Vec::new();
            for branch in branches {
                all.extend(schema_members(root, branch, visited)?);
            }
            return Some(all);
        }
    }
    let parts = schema.get("allOf").and_then(Value::as_array);
    let mut parts = parts.into_iter().flatten();
    parts.find_map(|part| schema_members(root, part, visited))
}

/// Returns the target of a reference that was not followed before.
fn target<'a>(
    root: &'a Value,
    schema: &Value,
    visited: &mut BTreeSet<String>,
) -> Option<&'a Value> {
    let reference = schema.get("$ref")?.as_str()?;
    if !visited.insert(reference.to_owned()) {
        return None;
    }
    root.pointer(reference.trim_start_matches('#'))
}

/// Splits a path into names and `[]`.
fn steps(path: &str) -> Vec<&str> {
    let mut steps = Vec::new();
    for part in path.split('.').filter(|part| !part.is_empty()) {
        let name = part.trim_end_matches("[]");
        if !name.is_empty() {
            steps.push(name);
        }
        steps.extend(std::iter::repeat_n("[]", (part.len() - name.len()) / 2));
    }
    steps
}

/// One step from a schema to a part of its value.
struct Walk<'a, 'p> {
    root: &'a Value,
    step: &'p str,
    visited: BTreeSet<String>,
}

impl<'a> Walk<'a, '_> {
    /// Returns the schemas of the part, and whether the schema accepts any part of this name.
    fn step(&mut self, schema: &'a Value, definition: Option<&str>) -> (Vec<Field<'a>>, bool) {
        let Value::Object(map) = schema else {
            return (Vec::new(), *schema == Value::Bool(true));
        };
        let (mut found, mut is_open) = self.own(schema, definition);
        let name = map
            .get("$ref")
            .and_then(Value::as_str)
            .and_then(|reference| reference.rsplit('/').next());
        let list = |keyword: &str| map.get(keyword).and_then(Value::as_array);
        if map.contains_key("$ref") {
            let target = target(self.root, schema, &mut self.visited);
            let (fields, open) = target.map_or((Vec::new(), false), |it| self.step(it, name));
            found.extend(fields);
            is_open &= open;
        }
        for part in list("allOf").into_iter().flatten() {
            let (fields, open) = self.step(part, definition);
            found.extend(fields);
            is_open &= open;
        }
        for keyword in ["anyOf", "oneOf"] {
            let Some(branches) = list(keyword) else {
                continue;
            };
            let mut any_open = false;
            for branch in branches {
                let (fields, open) = self.step(branch, definition);
                found.extend(fields);
                any_open |= open;
            }
            is_open &= any_open;
        }
        (found, is_open)
    }

    /// Looks at the schema without its references and branches.
    fn own(&self, schema: &'a Value, definition: Option<&str>) -> (Vec<Field<'a>>, bool) {
        let is_entry = self.step == "[]" || self.step.parse::<usize>().is_ok();
        let types: Vec<&str> = match schema.get("type") {
            Some(Value::String(name)) => vec![name],
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let accepts = |name: &str| types.is_empty() || types.contains(&name);
        let field = |schema: &'a Value| {
            let step = self.step;
            vec![Field {
                schema,
                label: definition.map(|definition| format!("{definition}.{step}")),
            }]
        };
        let is_value = schema.get("enum").is_some() || schema.get("const").is_some();
        if is_entry && let Some(items) = schema.get("items") {
            return (field(items), false);
        }
        if is_entry && (self.step == "[]" || accepts("array") && !accepts("object")) {
            return (Vec::new(), accepts("array") && !is_value);
        }
        let properties = schema.get("properties").and_then(Value::as_object);
        if let Some(property) = properties.and_then(|properties| properties.get(self.step)) {
            return (field(property), false);
        }
        let values = schema.get("additionalProperties");
        if let Some(values) =
            values.filter(|values| values.as_object().is_some_and(|it| !it.is_empty()))
        {
            return (field(values), false);
        }
        let has_patterns = schema.get("patternProperties").is_some();
        let is_closed =
            properties.is_some_and(|it| !it.is_empty()) || values == Some(&Value::Bool(false));
        (
            Vec::new(),
            accepts("object") && !is_value && (has_patterns || !is_closed),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn tells_declared_open_and_missing_places_apart() {
        let root = json!({
            "type": "object",
            "properties": {
                "text": {"anyOf": [{"type": "boolean"}, {"type": "object", "properties": {"max": {"type": "integer"}}}]},
                "list": {"type": "array", "items": {"$ref": "#/$defs/Item"}},
                "free": {"type": "object"},
                "map": {"type": "object", "additionalProperties": {"type": "string"}},
                "any": {},
                "parts": {"allOf": [{"$ref": "#/$defs/Item"}, {"description": "more"}]},
                "loop": {"$ref": "#/$defs/Loop"},
            },
            "anyOf": [{"required": ["text"]}, {"required": ["list"]}],
            "$defs": {
                "Item": {"type": "object", "properties": {"id": {"type": "string"}}},
                "Loop": {"anyOf": [{"$ref": "#/$defs/Loop"}, {"$ref": "#/$defs/Item"}]},
            },
        });
        let cases = [
            ("text", 'd'),
            ("text.max", 'd'),
            ("text.min", 'm'),
            ("list[].id", 'd'),
            ("list.0.id", 'd'),
            ("list.id", 'm'),
            ("list[].name", 'm'),
            ("free.x.y", 'o'),
            ("map.x", 'd'),
            ("map.x.y", 'm'),
            ("any.x", 'o'),
            ("any[]", 'o'),
            ("parts.id", 'd'),
            ("parts.name", 'm'),
            ("loop.id", 'd'),
            ("loop.name", 'm'),
            ("gone", 'm'),
            ("text.max.deep", 'm'),
        ];
        for (path, expected) in cases {
            let found = match locate(&root, path) {
                Place::Declared(_) => 'd',
                Place::Open => 'o',
                Place::Missing => 'm',
            };
            assert_eq!(found, expected, "{path}");
        }
        let Place::Declared(fields) = locate(&root, "list[].id") else {
            panic!("not declared");
        };
        assert_eq!(fields[0].label.as_deref(), Some("Item.id"));
    }

    #[test]
    fn lists_the_members_of_closed_sets_only() {
        let root = json!({"properties": {
            "state": {"anyOf": [{"$ref": "#/$defs/State"}, {"type": "null"}]},
            "open": {"anyOf": [{"$ref": "#/$defs/State"}, {"type": "string"}]},
        }, "$defs": {"State": {"type": "string", "enum": ["a", "b"]}}});
        let members_at = |path: &str| match locate(&root, path) {
            Place::Declared(fields) => members(&root, &fields),
            Place::Open | Place::Missing => None,
        };
        assert_eq!(members_at("state"), Some(vec![json!("a"), json!("b")]));
        assert_eq!(members_at("open"), None);
    }
}

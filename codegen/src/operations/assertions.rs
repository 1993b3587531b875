//! What a request body demands as a whole, such as one of two fields.
//!
//! The fields of a body are arguments beside path, query and headers, so its demands are rewritten to ignore
//! the other arguments.

use serde_json::{Map, Value, json};

use crate::error::Result;
use crate::load::Document;
use crate::schemas::SchemaPublisher;

/// Keywords that restrict a whole object.
pub const ASSERTIONS: &[&str] = &[
    "allOf",
    "anyOf",
    "dependentRequired",
    "dependentSchemas",
    "else",
    "if",
    "maxProperties",
    "minProperties",
    "not",
    "oneOf",
    "patternProperties",
    "propertyNames",
    "then",
];

/// Annotations, which the arguments have already.
const ANNOTATIONS: &[&str] = &["description", "title", "examples", "default", "deprecated"];

/// Deeper nesting is not checked.
const MAX_DEPTH: usize = 24;

/// Rewrites the demands of one body.
pub(super) struct BodyAssertions<'a, 'd> {
    pub(super) document: &'d Document,
    pub(super) publisher: &'a mut SchemaPublisher<'d>,
    /// The arguments that are not fields of the body.
    pub(super) others: Vec<String>,
    /// The known fields of the body.
    pub(super) fields: Vec<String>,
    /// Other arguments that a call must have.
    pub(super) required_others: usize,
}

impl BodyAssertions<'_, '_> {
    /// Returns the demands of the body at `pointer`, each a schema.
    pub(super) fn collect(&mut self, schema: &Value, pointer: &str) -> Result<Vec<Value>> {
        let mut found = Vec::new();
        self.visit(schema, pointer, 0, &mut found)?;
        Ok(found)
    }

    fn visit(
        &mut self,
        schema: &Value,
        pointer: &str,
        depth: usize,
        found: &mut Vec<Value>,
    ) -> Result<()> {
        let Some(map) = schema.as_object().filter(|_| depth < MAX_DEPTH) else {
            return Ok(());
        };
        if map.contains_key("$ref") {
            let (target, target_pointer) = self.document.resolve(schema, pointer)?;
            let target = target.clone();
            self.visit(&target, &target_pointer, depth + 1, found)?;
        }
        for (index, part) in list(map, "allOf").iter().enumerate() {
            let part_pointer = format!("{pointer}/allOf/{index}");
            self.visit(part, &part_pointer, depth + 1, found)?;
        }
        for keyword in ["oneOf", "anyOf"] {
            let branches = list(map, keyword).iter().enumerate();
            let branches: Vec<_> = branches.filter(|(_, it)| !is_null(it)).collect();
            match branches.as_slice() {
                [] => {}
                [(index, branch)] => {
                    let branch_pointer = format!("{pointer}/{keyword}/{index}");
                    self.visit(branch, &branch_pointer, depth + 1, found)?;
                }
                several => {
                    let mut published = Vec::new();
                    for (index, branch) in several {
                        let branch_pointer = format!("{pointer}/{keyword}/{index}");
                        published.push(self.inline(branch, &branch_pointer, depth + 1)?);
                    }
                    found.push(json!({ *keyword: published }));
                }
            }
        }
        let own = self.own(map, pointer, depth)?;
        if !own.is_empty() {
            found.push(Value::Object(own));
        }
        Ok(())
    }

    /// Returns the other demands of one schema.
    fn own(
        &mut self,
        map: &Map<String, Value>,
        pointer: &str,
        depth: usize,
    ) -> Result<Map<String, Value>> {
        let mut own = Map::new();
        for keyword in ["not", "if", "then", "else"] {
            if let Some(schema) = map.get(keyword) {
                let schema = self.inline(schema, &format!("{pointer}/{keyword}"), depth + 1)?;
                own.insert(keyword.to_owned(), schema);
            }
        }
        if let Some(required) = map.get("dependentRequired") {
            own.insert("dependentRequired".to_owned(), required.clone());
        }
        let dependent = map.get("dependentSchemas").and_then(Value::as_object);
        for (name, schema) in dependent.into_iter().flatten() {
            let place = format!("{pointer}/dependentSchemas/{name}");
            let schema = self.inline(schema, &place, depth + 1)?;
            own.entry("dependentSchemas").or_insert_with(|| json!({}))[name] = schema;
        }
        self.add_counts(map, &mut own);
        self.add_names(map, pointer, &mut own)?;
        Ok(own)
    }

    /// Adds the limits of the number of fields. The other arguments count, too, so a limit may become looser.
    fn add_counts(&self, map: &Map<String, Value>, own: &mut Map<String, Value>) {
        let number = |key: &str| map.get(key).and_then(Value::as_u64);
        let others = self.others.len() as u64;
        match number("minProperties") {
            Some(1) if others > 0 => {
                let only_others = json!({"propertyNames": {"enum": self.others}});
                own.entry("not").or_insert(only_others);
            }
            Some(minimum) if minimum > 0 => {
                let minimum = minimum + self.required_others as u64;
                own.insert("minProperties".to_owned(), json!(minimum));
            }
            _ => {}
        }
        if let Some(maximum) = number("maxProperties") {
            own.insert("maxProperties".to_owned(), json!(maximum + others));
        }
    }

    /// Adds the rules for fields that are not listed.
    fn add_names(
        &mut self,
        map: &Map<String, Value>,
        pointer: &str,
        own: &mut Map<String, Value>,
    ) -> Result<()> {
        if let Some(names) = map
            .get("propertyNames")
            .filter(|it| **it != json!({"type": "string"}))
        {
            let names = self
                .publisher
                .publish(names, &format!("{pointer}/propertyNames"))?;
            let names = if self.others.is_empty() {
                names
            } else {
                json!({"anyOf": [{"enum": self.others}, names]})
            };
            own.insert("propertyNames".to_owned(), names);
        }
        let patterns = map.get("patternProperties").and_then(Value::as_object);
        let mut published = Map::new();
        for (pattern, schema) in patterns.into_iter().flatten() {
            let place = format!("{pointer}/patternProperties/{pattern}");
            published.insert(
                self.pattern(pattern),
                self.publisher.publish(schema, &place)?,
            );
        }
        let rest = map.get("additionalProperties");
        let has_schema = rest.is_some_and(|rest| rest.as_object().is_some_and(|it| !it.is_empty()));
        let is_closed = rest == Some(&Value::Bool(false)) && !published.is_empty();
        if let Some(rest) = rest.filter(|_| has_schema || is_closed) {
            let known = self.fields.iter().chain(&self.others);
            let known: Map<String, Value> = known.map(|it| (it.clone(), json!(true))).collect();
            let place = format!("{pointer}/additionalProperties");
            let rest = self.publisher.publish(rest, &place)?;
            own.insert("properties".to_owned(), Value::Object(known));
            own.insert("additionalProperties".to_owned(), rest);
        }
        if !published.is_empty() {
            own.insert("patternProperties".to_owned(), Value::Object(published));
        }
        Ok(())
    }

    /// Returns a pattern that matches no other argument.
    fn pattern(&self, pattern: &str) -> String {
        if self.others.is_empty() {
            return pattern.to_owned();
        }
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let escape = |c: char| {
            if is_word(c) {
                c.to_string()
            } else {
                format!("\\{c}")
            }
        };
        let names = self
            .others
            .iter()
            .map(|name| name.chars().map(escape).collect::<String>());
        let names = names.collect::<Vec<_>>().join("|");
        format!("^(?!(?:{names})$).*(?:{pattern})")
    }

    /// Publishes a schema of the whole body without references, open to the other arguments.
    fn inline(&mut self, schema: &Value, pointer: &str, depth: usize) -> Result<Value> {
        if depth > MAX_DEPTH {
            return Ok(json!({}));
        }
        let mut parts = Vec::new();
        let mut own = schema.clone();
        if let Value::Object(map) = &mut own {
            if map.contains_key("$ref") {
                let (target, target_pointer) = self.document.resolve(schema, pointer)?;
                let target = target.clone();
                parts.push(self.inline(&target, &target_pointer, depth + 1)?);
                map.shift_remove("$ref");
            }
            for part in map
                .shift_remove("allOf")
                .iter()
                .filter_map(Value::as_array)
                .flatten()
            {
                parts.push(self.inline(part, &format!("{pointer}/allOf"), depth + 1)?);
            }
            for keyword in ["oneOf", "anyOf"] {
                let Some(Value::Array(branches)) = map.shift_remove(keyword) else {
                    continue;
                };
                let mut inlined = Vec::new();
                for (index, branch) in branches.iter().enumerate() {
                    let branch_pointer = format!("{pointer}/{keyword}/{index}");
                    inlined.push(self.inline(branch, &branch_pointer, depth + 1)?);
                }
                parts.push(json!({ *keyword: inlined }));
            }
        }
        let mut published = self.publisher.publish(&own, pointer)?;
        self.open(&mut published);
        if published != json!({}) {
            parts.insert(0, published);
        }
        Ok(match <[Value; 1]>::try_from(parts) {
            Ok([single]) => single,
            Err(parts) if parts.is_empty() => json!({}),
            Err(parts) => json!({"allOf": parts}),
        })
    }

    /// Removes annotations, and lets a closed schema accept the other arguments.
    fn open(&self, schema: &mut Value) {
        let Value::Object(map) = schema else { return };
        map.retain(|key, _| !ANNOTATIONS.contains(&key.as_str()));
        let is_closed = ["additionalProperties", "unevaluatedProperties"]
            .iter()
            .any(|key| map.get(*key).is_some_and(|rest| *rest != Value::Bool(true)));
        if let Some(Value::Object(properties)) = map.get_mut("properties") {
            for property in properties.values_mut().filter_map(Value::as_object_mut) {
                property.retain(|key, _| !ANNOTATIONS.contains(&key.as_str()));
            }
        }
        if is_closed {
            let properties = map.entry("properties").or_insert_with(|| json!({}));
            for name in &self.others {
                if properties.get(name).is_none() {
                    properties[name] = json!(true);
                }
            }
        }
    }
}

/// Adds the demands of the body to the schema of the arguments.
///
/// They hold only if the body is sent: it is `required`, or one of its fields is given.
pub(super) fn add(schema: &mut Value, mut found: Vec<Value>, required: bool, others: &[String]) {
    found.retain(|assertion| *assertion != json!({}));
    let Value::Object(target) = schema else {
        return;
    };
    if found.is_empty() {
        return;
    }
    if !required {
        let no_body = json!({"propertyNames": {"enum": others}});
        let all = match <[Value; 1]>::try_from(found) {
            Ok([single]) => single,
            Err(several) => json!({"allOf": several}),
        };
        found = vec![json!({"anyOf": [no_body, all]})];
    }
    match found.as_slice() {
        [Value::Object(single)] if single.keys().all(|key| !target.contains_key(key)) => {
            target.extend(single.clone());
        }
        several => drop(target.insert("allOf".to_owned(), json!(several))),
    }
}

fn list<'a>(map: &'a Map<String, Value>, key: &str) -> &'a [Value] {
    let list = map.get(key).and_then(Value::as_array);
    list.map(Vec::as_slice).unwrap_or_default()
}

fn is_null(schema: &Value) -> bool {
    schema.get("type") == Some(&json!("null"))
}

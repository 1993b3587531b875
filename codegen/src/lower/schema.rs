//! Lowering of request schemas: from what the spec says to what Rust can hold without loss.

use std::collections::BTreeMap;

use heck::ToPascalCase;
use serde_json::{Map, Value, json};

use super::rules::{Rule, Rules};
use crate::body;
use crate::error::Result;
use crate::load::{Document, escape};
use crate::names;
use crate::references::local_pointer;

/// What is left out of the copy, by the rule that leaves it out.
const LEFT_OUT: &[(Rule, &[&str])] = &[
    (
        Rule::R01,
        &[
            "format",
            "pattern",
            "minLength",
            "maxLength",
            "minimum",
            "maximum",
            "multipleOf",
            "minItems",
            "maxItems",
            "uniqueItems",
        ],
    ),
    (Rule::R03, &["default"]),
    (Rule::R05, &["enum"]),
];

/// A lowered schema.
#[derive(Debug, Clone)]
pub struct Lowered {
    /// The 3.0 schema.
    pub schema: Value,
    /// Null is allowed beside it.
    pub nullable: bool,
}

/// The kind of value a lowered schema holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Text.
    Text,
    /// A number.
    Number,
    /// A truth value.
    Boolean,
    /// A list.
    List,
    /// An object.
    Object,
    /// Anything.
    Any,
}

/// The shape of a schema of `document`.
pub fn shape(document: &Document, schema: &Value, pointer: &str) -> Result<Shape> {
    let mut lowering = Lowering::new(document, Rules::default());
    let lowered = lowering.lower(schema, pointer, "Shape")?.schema;
    Ok(match lowered.get("type").and_then(Value::as_str) {
        Some("string") => Shape::Text,
        Some("number") => Shape::Number,
        Some("boolean") => Shape::Boolean,
        Some("array") => Shape::List,
        Some(_) => Shape::Object,
        None if lowered.get("$ref").is_some() => Shape::Object,
        None => Shape::Any,
    })
}

/// Lowers schemas of one document and gathers the named types they need.
pub struct Lowering<'a> {
    document: &'a Document,
    rules: Rules,
    names: BTreeMap<String, String>,
    taken: Vec<String>,
    inlining: Vec<String>,
    components: Map<String, Value>,
}

impl<'a> Lowering<'a> {
    /// A lowering without types.
    pub fn new(document: &'a Document, rules: Rules) -> Self {
        Self {
            document,
            rules,
            names: BTreeMap::new(),
            taken: Vec::new(),
            inlining: Vec::new(),
            components: Map::new(),
        }
    }

    /// The named types gathered so far.
    pub fn into_components(self) -> Map<String, Value> {
        self.components
    }

    /// A schema that takes any JSON.
    fn any() -> Lowered {
        Lowered {
            schema: json!({}),
            nullable: true,
        }
    }

    /// Lowers the schema at `pointer`; `hint` names the type if it needs one.
    pub fn lower(&mut self, schema: &Value, pointer: &str, hint: &str) -> Result<Lowered> {
        let Value::Object(map) = schema else {
            return match self.rules.has(Rule::D08) {
                true => Ok(Self::any()),
                false => Ok(Lowered {
                    schema: schema.clone(),
                    nullable: false,
                }),
            };
        };
        if let Some(Value::String(reference)) = map.get("$ref") {
            return self.lower_reference(map, reference, pointer, hint);
        }
        for keyword in ["oneOf", "anyOf"] {
            if map.contains_key(keyword) {
                return self.lower_union(map, keyword, pointer, hint);
            }
        }
        if map.contains_key("allOf") {
            return self.lower_all_of(schema, map, pointer, hint);
        }
        self.lower_plain(schema, map, pointer, hint)
    }

    fn lower_reference(
        &mut self,
        map: &Map<String, Value>,
        reference: &str,
        pointer: &str,
        hint: &str,
    ) -> Result<Lowered> {
        let structural = ["properties", "allOf", "oneOf", "anyOf", "items", "required"];
        if structural.iter().any(|key| map.contains_key(*key)) && self.rules.has(Rule::D07) {
            let mut siblings = map.clone();
            siblings.shift_remove("$ref");
            let parts = json!({"allOf": [{"$ref": reference}, siblings]});
            return self.lower(&parts, pointer, hint);
        }
        let (target, place) = self
            .document
            .resolve(&Value::Object(map.clone()), pointer)
            .map(|(target, place)| (target.clone(), place))?;
        if let Some(name) = self.names.get(&place) {
            return Ok(named(name));
        }
        let hint = match local_pointer(reference) {
            Some(local) => local.rsplit('/').next().unwrap_or(hint).to_owned(),
            None => hint.to_owned(),
        };
        // A schema that leads to itself without an object between has no Rust type.
        if self.inlining.contains(&place) {
            return Ok(Self::any());
        }
        self.inlining.push(place.clone());
        let lowered = self.lower(&target, &place, &hint);
        self.inlining.retain(|known| *known != place);
        lowered
    }

    fn lower_union(
        &mut self,
        map: &Map<String, Value>,
        keyword: &str,
        pointer: &str,
        hint: &str,
    ) -> Result<Lowered> {
        let branches = map
            .get(keyword)
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        let is_null = |branch: &Value| branch.get("type") == Some(&json!("null"));
        let keeps_null = self.rules.has(Rule::D05) && branches.iter().any(is_null);
        let real: Vec<(usize, &Value)> = branches
            .iter()
            .enumerate()
            .filter(|(_, branch)| !(keeps_null && is_null(branch)))
            .collect();
        match real.as_slice() {
            [(index, branch)] if !map.contains_key("properties") => {
                let place = format!("{pointer}/{keyword}/{index}");
                let mut lowered = self.lower(branch, &place, hint)?;
                lowered.nullable |= keeps_null;
                Ok(lowered)
            }
            _ if self.rules.has(Rule::R06) => Ok(Self::any()),
            _ => {
                let mut lowered = Vec::new();
                for (index, branch) in real {
                    let place = format!("{pointer}/{keyword}/{index}");
                    lowered.push(
                        self.lower(branch, &place, &format!("{hint}{index}"))?
                            .schema,
                    );
                }
                Ok(Lowered {
                    schema: json!({ keyword: lowered }),
                    nullable: false,
                })
            }
        }
    }

    fn lower_all_of(
        &mut self,
        schema: &Value,
        map: &Map<String, Value>,
        pointer: &str,
        hint: &str,
    ) -> Result<Lowered> {
        let parts = map
            .get("allOf")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        if !self.rules.has(Rule::R10) {
            let mut lowered = Vec::new();
            for (index, part) in parts.iter().enumerate() {
                let place = format!("{pointer}/allOf/{index}");
                lowered.push(self.lower(part, &place, &format!("{hint}{index}"))?.schema);
            }
            return Ok(Lowered {
                schema: json!({"allOf": lowered}),
                nullable: false,
            });
        }
        if let Some(fields) = body::fields(self.document, schema, pointer)? {
            return self.lower_object(fields, schema, pointer, hint);
        }
        // Parts that are no objects: they may refine one type, or nothing is known.
        let mut types = Vec::new();
        for (index, part) in parts.iter().enumerate() {
            let place = format!("{pointer}/allOf/{index}");
            let lowered = self.lower(part, &place, hint)?.schema;
            if lowered != json!({}) && !types.contains(&lowered) {
                types.push(lowered);
            }
        }
        match <[Value; 1]>::try_from(types) {
            Ok([schema]) => Ok(Lowered {
                schema,
                nullable: true,
            }),
            Err(_) => Ok(Self::any()),
        }
    }

    fn lower_plain(
        &mut self,
        schema: &Value,
        map: &Map<String, Value>,
        pointer: &str,
        hint: &str,
    ) -> Result<Lowered> {
        let Some((kind, nullable)) = self.kind(map, pointer)? else {
            return Ok(Self::any());
        };
        let mut out = match kind.as_str() {
            Some("object") => {
                return match body::fields(self.document, schema, pointer)? {
                    Some(fields) => {
                        let mut lowered = self.lower_object(fields, schema, pointer, hint)?;
                        lowered.nullable |= nullable;
                        Ok(lowered)
                    }
                    None => Ok(Self::any()),
                };
            }
            Some("array") => {
                let mut out = json!({"type": "array"});
                let items = map.get("items").cloned().unwrap_or_else(|| json!({}));
                let items =
                    self.lower(&items, &format!("{pointer}/items"), &format!("{hint}Item"))?;
                // A list may hold null; only the open schema says so without a wrapper type.
                out["items"] = match items.nullable {
                    true => json!({}),
                    false => items.schema,
                };
                out
            }
            Some("integer") if self.rules.has(Rule::R02) => json!({"type": "number"}),
            _ => json!({ "type": kind }),
        };
        for (rule, keys) in LEFT_OUT {
            if self.rules.has(*rule) {
                continue;
            }
            for key in *keys {
                if let (Some(value), Some(out)) = (map.get(*key), out.as_object_mut()) {
                    out.insert((*key).to_owned(), value.clone());
                }
            }
        }
        Ok(Lowered {
            schema: out,
            nullable,
        })
    }

    /// The one type of a schema and whether null goes with it; `None` is anything.
    fn kind(&self, map: &Map<String, Value>, pointer: &str) -> Result<Option<(Value, bool)>> {
        let flagged = map.get("nullable") == Some(&Value::Bool(true));
        let declared = match map.get("type") {
            Some(Value::Array(list)) => {
                let null = json!("null");
                let real: Vec<&Value> = list.iter().filter(|t| **t != null).collect();
                let has_null = real.len() != list.len();
                let kept = |rule| self.rules.has(rule);
                match real.as_slice() {
                    [single] if !has_null && kept(Rule::D02) => Some(((*single).clone(), flagged)),
                    [single] if has_null && kept(Rule::D03) => Some(((*single).clone(), true)),
                    [_, _, ..] if kept(Rule::D04) => return Ok(None),
                    [] => return Ok(None),
                    _ => Some((Value::Array(list.clone()), false)),
                }
            }
            Some(Value::String(name)) if name == "null" => return Ok(None),
            Some(single) => Some((single.clone(), flagged)),
            None => None,
        };
        let kind = match declared {
            Some(kind) => kind,
            None => match self.implied(map) {
                Some(kind) => (kind, flagged),
                None => return Ok(None),
            },
        };
        let known = ["string", "number", "integer", "boolean", "object", "array"];
        match kind.0.as_str() {
            Some(name) if !known.contains(&name) => {
                let construct = format!("`type: {name}`");
                Err(self.document.unsupported(pointer, "type", construct))
            }
            _ => Ok(Some(kind)),
        }
    }

    /// The type that a schema without `type` means.
    fn implied(&self, map: &Map<String, Value>) -> Option<Value> {
        if self.rules.has(Rule::N05) {
            if map.contains_key("properties") || map.contains_key("additionalProperties") {
                return Some(json!("object"));
            }
            if map.contains_key("items") {
                return Some(json!("array"));
            }
        }
        if !self.rules.has(Rule::D06) {
            return None;
        }
        let values: Vec<&Value> = match (map.get("const"), map.get("enum")) {
            (Some(value), _) => vec![value],
            (None, Some(Value::Array(list))) => list.iter().collect(),
            _ => return None,
        };
        let name = |value: &Value| match value {
            Value::String(_) => "string",
            Value::Number(_) => "number",
            Value::Bool(_) => "boolean",
            _ => "",
        };
        let first = name(values.first()?);
        (!first.is_empty() && values.iter().all(|value| name(value) == first)).then(|| json!(first))
    }

    /// An object with known fields becomes a named type, any other object a map.
    fn lower_object(
        &mut self,
        fields: body::Fields,
        schema: &Value,
        pointer: &str,
        hint: &str,
    ) -> Result<Lowered> {
        let flag = schema.get("nullable") == Some(&Value::Bool(true));
        if fields.known.is_empty() {
            return Ok(Lowered {
                schema: json!({"type": "object"}),
                nullable: flag,
            });
        }
        let hoist = self.rules.has(Rule::N06) || self.inlining.iter().any(|p| p == pointer);
        let name = names::type_name(hint, &mut self.taken);
        if hoist {
            // Known before its fields are lowered, so that a recursive type ends.
            self.names.insert(pointer.to_owned(), name.clone());
        }
        let mut properties = Map::new();
        let mut required = Vec::new();
        for (field, (schema, place)) in &fields.known {
            let hint = format!("{name}{}", escape(field).to_pascal_case());
            let mut lowered = self.lower(schema, place, &hint)?;
            let must = fields.required.contains(field) && !lowered.nullable;
            if must {
                required.push(field.clone());
            } else if self.rules.has(Rule::R09) && is_collection(&lowered.schema) {
                lowered.schema["nullable"] = json!(true);
            }
            properties.insert(field.clone(), lowered.schema);
        }
        let mut object = json!({"type": "object", "properties": properties});
        if !required.is_empty() {
            object["required"] = json!(required);
        }
        if self.rules.has(Rule::R08) {
            object["additionalProperties"] = json!({});
        }
        if !hoist {
            return Ok(Lowered {
                schema: object,
                nullable: flag,
            });
        }
        self.components.insert(name.clone(), object);
        Ok(Lowered {
            nullable: flag,
            ..named(&name)
        })
    }
}

fn named(name: &str) -> Lowered {
    Lowered {
        schema: json!({"$ref": format!("#/components/schemas/{name}")}),
        nullable: false,
    }
}

fn is_collection(schema: &Value) -> bool {
    matches!(
        schema.get("type").and_then(Value::as_str),
        Some("array" | "object")
    )
}

//! Lowers request schemas to schemas with a lossless Rust type.

use std::collections::BTreeMap;

use heck::ToPascalCase;
use serde_json::{Map, Value, json};

use super::rules::{LoweringRule, LoweringRules};
use crate::body;
use crate::error::Result;
use crate::load::{Document, escape};
use crate::names;
use crate::references::local_pointer;

/// Keywords that are omitted, by rule.
const OMITTED_KEYWORDS: &[(LoweringRule, &[&str])] = &[
    (
        LoweringRule::NoBounds,
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
    (LoweringRule::NoDefaults, &["default"]),
    (LoweringRule::OpenEnums, &["enum"]),
];

/// A lowered schema.
#[derive(Debug, Clone)]
pub struct LoweredSchema {
    /// The 3.0 schema.
    pub schema: Value,
    /// Whether null is also allowed.
    pub nullable: bool,
}

/// The kind of value that a lowered schema accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Text.
    Text,
    /// A number.
    Number,
    /// A boolean.
    Boolean,
    /// A list.
    List,
    /// An object.
    Object,
    /// Any value.
    Any,
}

/// Returns the shape of a schema of `document`.
pub fn shape(document: &Document, schema: &Value, pointer: &str) -> Result<Shape> {
    let mut lowerer = SchemaLowerer::new(document, LoweringRules::default());
    let lowered = lowerer.lower(schema, pointer, "Shape")?.schema;
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

/// Lowers schemas of one document and collects the named types they need.
pub struct SchemaLowerer<'a> {
    document: &'a Document,
    rules: LoweringRules,
    /// Type names by JSON pointer of the schema.
    names: BTreeMap<String, String>,
    /// All type names in use.
    taken: Vec<String>,
    /// JSON pointers of the references being resolved.
    inlining: Vec<String>,
    /// The named types.
    components: Map<String, Value>,
}

impl<'a> SchemaLowerer<'a> {
    /// Creates a lowerer without types.
    pub fn new(document: &'a Document, rules: LoweringRules) -> Self {
        Self {
            document,
            rules,
            names: BTreeMap::new(),
            taken: names::reserved_types(),
            inlining: Vec::new(),
            components: Map::new(),
        }
    }

    /// Returns the collected named types.
    pub fn into_components(self) -> Map<String, Value> {
        self.components
    }

    /// Returns a schema that accepts any JSON.
    fn any() -> LoweredSchema {
        LoweredSchema {
            schema: json!({}),
            nullable: true,
        }
    }

    /// Lowers the schema at `pointer`. `hint` is the base of the type name if it needs one.
    pub fn lower(&mut self, schema: &Value, pointer: &str, hint: &str) -> Result<LoweredSchema> {
        let Value::Object(map) = schema else {
            if self.rules.has(LoweringRule::BooleanSchema) {
                return Ok(Self::any());
            }
            return Ok(LoweredSchema {
                schema: schema.clone(),
                nullable: false,
            });
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
    ) -> Result<LoweredSchema> {
        let structural = ["properties", "allOf", "oneOf", "anyOf", "items", "required"];
        if structural.iter().any(|key| map.contains_key(*key))
            && self.rules.has(LoweringRule::ReferenceSiblings)
        {
            let mut siblings = map.clone();
            siblings.shift_remove("$ref");
            let parts = json!({"allOf": [{"$ref": reference}, siblings]});
            return self.lower(&parts, pointer, hint);
        }
        let (target, target_pointer) = self
            .document
            .resolve(&Value::Object(map.clone()), pointer)
            .map(|(target, pointer)| (target.clone(), pointer))?;
        if let Some(name) = self.names.get(&target_pointer) {
            return Ok(reference_to(name));
        }
        let hint = match local_pointer(reference) {
            Some(local) => local.rsplit('/').next().unwrap_or(hint).to_owned(),
            None => hint.to_owned(),
        };
        // A schema that refers to itself without an object in between has no Rust type.
        if self.inlining.contains(&target_pointer) {
            return Ok(Self::any());
        }
        self.inlining.push(target_pointer.clone());
        let lowered = self.lower(&target, &target_pointer, &hint);
        self.inlining.retain(|known| *known != target_pointer);
        lowered
    }

    fn lower_union(
        &mut self,
        map: &Map<String, Value>,
        keyword: &str,
        pointer: &str,
        hint: &str,
    ) -> Result<LoweredSchema> {
        let branches = map
            .get(keyword)
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        let is_null = |branch: &Value| branch.get("type") == Some(&json!("null"));
        let has_null = self.rules.has(LoweringRule::NullBranch) && branches.iter().any(is_null);
        let others: Vec<(usize, &Value)> = branches
            .iter()
            .enumerate()
            .filter(|(_, branch)| !(has_null && is_null(branch)))
            .collect();
        match others.as_slice() {
            [(index, branch)] if !map.contains_key("properties") => {
                let branch_pointer = format!("{pointer}/{keyword}/{index}");
                let mut lowered = self.lower(branch, &branch_pointer, hint)?;
                lowered.nullable |= has_null;
                Ok(lowered)
            }
            _ if self.rules.has(LoweringRule::OpenUnions) => Ok(Self::any()),
            _ => {
                let mut lowered = Vec::new();
                for (index, branch) in others {
                    let branch_pointer = format!("{pointer}/{keyword}/{index}");
                    lowered.push(
                        self.lower(branch, &branch_pointer, &format!("{hint}{index}"))?
                            .schema,
                    );
                }
                Ok(LoweredSchema {
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
    ) -> Result<LoweredSchema> {
        let parts = map
            .get("allOf")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        if !self.rules.has(LoweringRule::MergedAllOf) {
            let mut lowered = Vec::new();
            for (index, part) in parts.iter().enumerate() {
                let part_pointer = format!("{pointer}/allOf/{index}");
                lowered.push(
                    self.lower(part, &part_pointer, &format!("{hint}{index}"))?
                        .schema,
                );
            }
            return Ok(LoweredSchema {
                schema: json!({"allOf": lowered}),
                nullable: false,
            });
        }
        if let Some(fields) = body::fields(self.document, schema, pointer)? {
            return self.lower_object(fields, schema, pointer, hint);
        }
        // The parts are not objects. If they refine one type, use it.
        let mut types = Vec::new();
        for (index, part) in parts.iter().enumerate() {
            let part_pointer = format!("{pointer}/allOf/{index}");
            let lowered = self.lower(part, &part_pointer, hint)?.schema;
            if lowered != json!({}) && !types.contains(&lowered) {
                types.push(lowered);
            }
        }
        match <[Value; 1]>::try_from(types) {
            Ok([schema]) => Ok(LoweredSchema {
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
    ) -> Result<LoweredSchema> {
        let Some((kind, nullable)) = self.single_type(map, pointer)? else {
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
                // Nullable elements become any JSON, which needs no wrapper type.
                out["items"] = if items.nullable {
                    json!({})
                } else {
                    items.schema
                };
                out
            }
            Some("integer") if self.rules.has(LoweringRule::ExactNumbers) => {
                json!({"type": "number"})
            }
            _ => json!({ "type": kind }),
        };
        for (rule, keys) in OMITTED_KEYWORDS {
            if self.rules.has(*rule) {
                continue;
            }
            for key in *keys {
                if let (Some(value), Some(out)) = (map.get(*key), out.as_object_mut()) {
                    out.insert((*key).to_owned(), value.clone());
                }
            }
        }
        Ok(LoweredSchema {
            schema: out,
            nullable,
        })
    }

    /// Returns the single type of a schema and whether it is nullable, or `None` for any value.
    fn single_type(
        &self,
        map: &Map<String, Value>,
        pointer: &str,
    ) -> Result<Option<(Value, bool)>> {
        let nullable = map.get("nullable") == Some(&Value::Bool(true));
        let declared = match map.get("type") {
            Some(Value::Array(list)) => {
                let null = json!("null");
                let real: Vec<&Value> = list.iter().filter(|t| **t != null).collect();
                let has_null = real.len() != list.len();
                let enabled = |rule| self.rules.has(rule);
                match real.as_slice() {
                    [single] if !has_null && enabled(LoweringRule::SingleTypeList) => {
                        Some(((*single).clone(), nullable))
                    }
                    [single] if has_null && enabled(LoweringRule::NullableTypeList) => {
                        Some(((*single).clone(), true))
                    }
                    [_, _, ..] if enabled(LoweringRule::MultiTypeList) => return Ok(None),
                    [] => return Ok(None),
                    _ => Some((Value::Array(list.clone()), false)),
                }
            }
            Some(Value::String(name)) if name == "null" => return Ok(None),
            Some(single) => Some((single.clone(), nullable)),
            None => None,
        };
        let kind = match declared {
            Some(kind) => kind,
            None => match self.implied_type(map) {
                Some(kind) => (kind, nullable),
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

    /// Returns the type that a schema without `type` implies.
    fn implied_type(&self, map: &Map<String, Value>) -> Option<Value> {
        if self.rules.has(LoweringRule::ImpliedType) {
            if map.contains_key("properties") || map.contains_key("additionalProperties") {
                return Some(json!("object"));
            }
            if map.contains_key("items") {
                return Some(json!("array"));
            }
        }
        if !self.rules.has(LoweringRule::ConstType) {
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

    /// Lowers an object with known fields to a named type and any other object to a map.
    fn lower_object(
        &mut self,
        fields: body::BodyFields,
        schema: &Value,
        pointer: &str,
        hint: &str,
    ) -> Result<LoweredSchema> {
        let nullable = schema.get("nullable") == Some(&Value::Bool(true));
        if fields.known.is_empty() {
            return Ok(LoweredSchema {
                schema: json!({"type": "object"}),
                nullable,
            });
        }
        let is_named = self.rules.has(LoweringRule::NamedInlineObjects)
            || self.inlining.iter().any(|p| p == pointer);
        // An object that reaches itself through `allOf` has a name but is not complete yet.
        let own_name = self.names.get(pointer);
        if let Some(name) = own_name.filter(|name| !self.components.contains_key(*name)) {
            return Ok(LoweredSchema {
                nullable,
                ..reference_to(name)
            });
        }
        let name = names::type_name(hint, &mut self.taken);
        if is_named {
            // Registered before its fields are lowered, so that recursive types terminate.
            self.names.insert(pointer.to_owned(), name.clone());
        }
        let mut properties = Map::new();
        let mut required = Vec::new();
        let mut identifiers = vec!["extra".to_owned()];
        for (field, (schema, field_pointer)) in &fields.known {
            // A field without a Rust name of its own is passed with the unknown ones.
            let identifier = names::parameter_identifier(field);
            let has_name = !identifiers.contains(&identifier) && names::is_word(field);
            if !has_name && self.rules.has(LoweringRule::UniqueFields) {
                continue;
            }
            identifiers.push(identifier);
            let hint = format!("{name}{}", escape(field).to_pascal_case());
            let mut lowered = self.lower(schema, field_pointer, &hint)?;
            let is_required = fields.required.contains(field) && !lowered.nullable;
            if is_required {
                required.push(field.clone());
            } else if self.rules.has(LoweringRule::NullableCollections)
                && is_collection(&lowered.schema)
            {
                lowered.schema["nullable"] = json!(true);
            }
            properties.insert(field.clone(), lowered.schema);
        }
        let mut object = json!({"type": "object", "properties": properties});
        if !required.is_empty() {
            object["required"] = json!(required);
        }
        if self.rules.has(LoweringRule::OpenObjects) {
            object["additionalProperties"] = json!({});
        }
        if !is_named {
            return Ok(LoweredSchema {
                schema: object,
                nullable,
            });
        }
        self.components.insert(name.clone(), object);
        Ok(LoweredSchema {
            nullable,
            ..reference_to(&name)
        })
    }
}

fn reference_to(name: &str) -> LoweredSchema {
    LoweredSchema {
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

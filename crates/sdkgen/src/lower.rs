//! Lowers JSON Schema to the types of [`super::types`].
//!
//! Anything without a counterpart becomes [`Type::Unknown`], so that new schema features make types
//! weaker, never wrong.

use serde_json::{Map, Value};

use super::flatten::{fingerprint, flatten, merge, resolve, sole_reference};
use super::names::pascal;
use super::schema::{
    discriminant, has_properties, implied_type, is_plain_object, is_structural_beyond_required,
    label, literals, required,
};
use super::types::{Declarations, Doc, Field, Shape, Side, Type};

/// The nesting depth beyond which schemas become [`Type::Unknown`].
const MAX_DEPTH: usize = 64;

/// Lowers the parts of one schema document.
pub(super) struct Lowering<'a> {
    /// The document in which references are resolved.
    pub(super) root: &'a Value,
    pub(super) side: Side,
    pub(super) out: &'a mut Declarations,
    /// Names of definitions that outputs use too, and that get the suffix `Input` here.
    pub(super) shared: &'a [String],
    depth: usize,
}

impl<'a> Lowering<'a> {
    pub(super) fn new(
        root: &'a Value,
        side: Side,
        out: &'a mut Declarations,
        shared: &'a [String],
    ) -> Self {
        Self {
            root,
            side,
            out,
            shared,
            depth: 0,
        }
    }

    /// Returns the type of a schema; nested objects get names that start with `hint`.
    pub(super) fn lower(&mut self, schema: &Value, hint: &str) -> Type {
        if self.depth > MAX_DEPTH || !schema.is_object() {
            return Type::Unknown;
        }
        self.depth += 1;
        let lowered = match sole_reference(schema) {
            Some(target) => self.reference(target),
            None if schema.get("$ref").is_some() || schema.get("allOf").is_some() => {
                self.form(&flatten(self.root, schema), hint)
            }
            None => self.form(schema, hint),
        };
        self.depth -= 1;
        match schema.get("nullable") {
            Some(Value::Bool(true)) => Type::union(vec![lowered, Type::Null]),
            _ => lowered,
        }
    }

    fn reference(&mut self, target: &str) -> Type {
        let root = self.root;
        let Some((name, schema)) = resolve(root, target) else {
            return Type::Unknown;
        };
        let key = format!("{name}={}", fingerprint(root, schema));
        if let Some(index) = self.out.known(self.side, &key) {
            return Type::Named(index);
        }
        let mut wanted = pascal(&name);
        if self.side == Side::Input && self.shared.contains(&name) {
            wanted.push_str("Input");
        }
        let index = self.out.reserve(self.side, key, &wanted, Doc::of(schema));
        let name = self.out.get(index).map(|found| found.name.clone());
        let shape = self.shape(schema, &name.unwrap_or(wanted));
        self.out.fill(index, shape);
        Type::Named(index)
    }

    /// Returns the shape of a definition.
    fn shape(&mut self, schema: &Value, hint: &str) -> Shape {
        let flat = flatten(self.root, schema);
        let target = sole_reference(schema);
        match target {
            None if is_plain_object(&flat) && has_properties(&flat) => self.object(&flat, hint),
            _ => Shape::Alias(self.lower(schema, hint)),
        }
    }

    /// Returns the type of a schema without top-level references.
    fn form(&mut self, schema: &Value, hint: &str) -> Type {
        if let Some(value) = schema.get("const") {
            return literals(std::slice::from_ref(value), false);
        }
        if let Some(Value::Array(values)) = schema.get("enum") {
            return literals(values, self.side == Side::Output && values.len() > 1);
        }
        let branches = ["oneOf", "anyOf"]
            .iter()
            .find_map(|key| schema.get(*key)?.as_array());
        if let Some(branches) = branches
            && branches.iter().any(is_structural_beyond_required)
        {
            return self.branches(schema, branches, hint);
        }
        match schema.get("type") {
            Some(Value::Array(names)) => {
                let member = |name: &Value| self.of_type(name.as_str(), schema, hint);
                Type::union(names.iter().map(member).collect())
            }
            Some(Value::String(name)) => self.of_type(Some(name), schema, hint),
            _ => self.of_type(implied_type(schema), schema, hint),
        }
    }

    fn of_type(&mut self, name: Option<&str>, schema: &Value, hint: &str) -> Type {
        match name {
            Some("null") => Type::Null,
            Some("boolean") => Type::Boolean,
            Some("integer") => Type::Integer,
            Some("number") => Type::Number,
            Some("string") => Type::String,
            Some("array") => Type::List(Box::new(self.items(schema, hint))),
            Some("object") => self.map_or_object(schema, hint),
            _ => Type::Unknown,
        }
    }

    fn items(&mut self, schema: &Value, hint: &str) -> Type {
        let first = schema.get("prefixItems").and_then(Value::as_array);
        let mut members: Vec<Type> = first
            .into_iter()
            .flatten()
            .map(|item| self.lower(item, hint))
            .collect();
        match schema.get("items") {
            Some(Value::Bool(false)) => {}
            Some(items) => members.push(self.lower(items, hint)),
            None => members.push(Type::Unknown),
        }
        Type::union(members)
    }

    fn map_or_object(&mut self, schema: &Value, hint: &str) -> Type {
        let closed = schema.get("additionalProperties") == Some(&Value::Bool(false))
            && schema.get("patternProperties").is_none();
        let none_allowed = closed && self.side == Side::Input;
        if !has_properties(schema) && !none_allowed {
            return Type::Map(Box::new(self.values(schema, hint)));
        }
        // These keywords do not belong to the object itself.
        let mut own = schema.clone();
        if let Value::Object(own) = &mut own {
            own.retain(|key, _| key != "type" && key != "nullable");
        }
        let key = fingerprint(self.root, &own);
        if let Some(index) = self.out.known(self.side, &key) {
            return Type::Named(index);
        }
        let wanted = if self.out.names.has(hint) {
            format!("{hint}Object")
        } else {
            hint.to_owned()
        };
        let index = self.out.reserve(self.side, key, &wanted, Doc::of(schema));
        let name = self.out.get(index).map(|found| found.name.clone());
        let shape = self.object(schema, &name.unwrap_or_default());
        self.out.fill(index, shape);
        Type::Named(index)
    }

    /// Returns the value type of an object with arbitrary keys.
    fn values(&mut self, schema: &Value, hint: &str) -> Type {
        let hint = format!("{hint}Value");
        let patterns = schema.get("patternProperties").and_then(Value::as_object);
        let mut members: Vec<Type> = patterns
            .into_iter()
            .flat_map(Map::values)
            .map(|value| self.lower(value, &hint))
            .collect();
        match schema.get("additionalProperties") {
            Some(Value::Bool(false)) => {}
            Some(values) => members.push(self.lower(values, &hint)),
            None => members.push(Type::Unknown),
        }
        Type::union(members)
    }

    fn object(&mut self, schema: &Value, name: &str) -> Shape {
        let more = |key| !matches!(schema.get(key), None | Some(Value::Bool(false)));
        Shape::Object {
            fields: self.fields(schema, name),
            open: self.side == Side::Output
                || more("additionalProperties")
                || more("patternProperties"),
        }
    }

    /// Returns the fields of an object, including those listed only in `required`.
    pub(super) fn fields(&mut self, schema: &Value, name: &str) -> Vec<Field> {
        let required = required(schema);
        let properties = schema.get("properties").and_then(Value::as_object);
        let mut fields: Vec<Field> = properties
            .into_iter()
            .flatten()
            .filter(|(_, value)| **value != Value::Bool(false))
            .map(|(field, value)| Field {
                name: field.clone(),
                doc: Doc::of(value),
                required: required.contains(&field.as_str()),
                value: self.lower(value, &format!("{name}{}", pascal(field))),
            })
            .collect();
        for missing in required {
            if !fields.iter().any(|field| field.name == missing) {
                fields.push(Field {
                    name: missing.to_owned(),
                    doc: Doc::default(),
                    required: true,
                    value: Type::Unknown,
                });
            }
        }
        fields
    }

    /// Returns the type of a choice; keywords next to it apply to every branch.
    fn branches(&mut self, schema: &Value, branches: &[Value], hint: &str) -> Type {
        let mut base = schema.as_object().cloned().unwrap_or_default();
        base.retain(|key, _| key != "oneOf" && key != "anyOf");
        let has_common_fields = has_properties(schema);
        let flat: Vec<Value> = branches.iter().map(|b| flatten(self.root, b)).collect();
        let discriminant = discriminant(&flat);
        let mut members = Vec::new();
        for (branch, flat) in branches.iter().zip(flat) {
            let hint = format!("{hint}{}", label(&flat, discriminant.as_deref()));
            members.push(if has_common_fields {
                let mut whole = base.clone();
                if let Value::Object(part) = flat {
                    merge(&mut whole, part);
                }
                self.lower(&Value::Object(whole), &hint)
            } else {
                self.lower(branch, &hint)
            });
        }
        Type::union(members)
    }
}

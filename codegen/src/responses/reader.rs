//! Reads the schemas of responses.

use std::collections::{BTreeMap, VecDeque};

use heck::ToPascalCase;
use serde_json::{Map, Value};

use super::{Definition, Field, ResponseTypes, Shape};
use crate::body::{self, BodyFields};
use crate::load::{Document, escape};
use crate::model::Operation;
use crate::names;
use crate::parameters::is_json;
use crate::references::local_pointer;

/// Enums with more values are read as text.
const MAX_ENUM_VALUES: usize = 200;

/// Names that the generated module uses itself.
const RESERVED: [&str; 3] = ["Entries", "List", "Value"];

/// A schema with its JSON pointer.
pub(super) type Located = (Value, String);

/// A named type whose parts are not read yet. Reading them later bounds the depth of the recursion.
enum Pending {
    Object(String, BodyFields),
    Union(String, super::union::TaggedUnion),
}

/// Reads schemas and collects named types.
pub(super) struct ResponseReader<'a> {
    pub(super) document: &'a Document,
    types: ResponseTypes,
    /// The names of components, by JSON pointer.
    components: BTreeMap<String, String>,
    /// Named types by JSON pointer.
    named: BTreeMap<String, Shape>,
    taken: Vec<String>,
    pending: VecDeque<Pending>,
    /// JSON pointers of the references being resolved.
    inlining: Vec<String>,
}

impl<'a> ResponseReader<'a> {
    pub(super) fn new(document: &'a Document) -> Self {
        let mut taken = names::reserved_types();
        taken.extend(RESERVED.map(str::to_owned));
        let schemas = document.root.pointer("/components/schemas");
        let schemas = schemas.and_then(Value::as_object).into_iter().flatten();
        let components = schemas.map(|(name, _)| {
            let pointer = format!("/components/schemas/{}", escape(name));
            (pointer, type_name(name, &mut taken))
        });
        Self {
            document,
            components: components.collect(),
            types: ResponseTypes::default(),
            named: BTreeMap::new(),
            taken,
            pending: VecDeque::new(),
            inlining: Vec::new(),
        }
    }

    /// Adds the response of an operation.
    pub(super) fn add(&mut self, operation: &Operation) {
        if operation.response_type.is_some() {
            return;
        }
        let hint = format!("{}_response", operation.function).to_pascal_case();
        let schemas = self.json_schemas(operation);
        let shape = match schemas.as_slice() {
            [] => return,
            [(schema, pointer)] => self.read(schema, pointer, &hint),
            _ => {
                let pointer = format!("{}/responses", operation.pointer);
                self.read_union(schemas, &Map::new(), &pointer, &hint)
            }
        };
        let name = match shape {
            Shape::Any => None,
            Shape::Object(name) => Some(name),
            other => {
                let name = type_name(&hint, &mut self.taken);
                self.define(&name, None, Definition::Value(other));
                Some(name)
            }
        };
        if let Some(name) = name {
            let function = operation.function.clone();
            self.types.by_function.insert(function, name);
        }
        self.read_pending();
    }

    pub(super) fn finish(self) -> ResponseTypes {
        self.types
    }

    /// Returns the different JSON schemas of an operation's successful responses.
    fn json_schemas(&self, operation: &Operation) -> Vec<Located> {
        let pointer = format!("{}/responses", operation.pointer);
        let responses = self.document.root.pointer(&pointer);
        let responses = responses.and_then(Value::as_object);
        let mut found: Vec<Located> = Vec::new();
        for (code, response) in responses.into_iter().flatten() {
            if !code.starts_with('2') {
                continue;
            }
            let pointer = format!("{pointer}/{}", escape(code));
            let Ok((response, pointer)) = self.document.resolve(response, &pointer) else {
                continue;
            };
            let content = response.get("content").and_then(Value::as_object);
            let json = content.and_then(|all| all.iter().find(|(media, _)| is_json(media)));
            let Some((media, schema)) = json.and_then(|(m, it)| Some((m, it.get("schema")?)))
            else {
                continue;
            };
            if found.iter().all(|(known, _)| known != schema) {
                let pointer = format!("{pointer}/content/{}/schema", escape(media));
                found.push((schema.clone(), pointer));
            }
        }
        found
    }

    fn define(&mut self, name: &str, doc: Option<String>, definition: Definition) {
        let definition = (doc, definition);
        self.types.definitions.insert(name.to_owned(), definition);
    }

    /// Returns a name for the type at `pointer`.
    fn new_name(&mut self, pointer: &str, hint: &str) -> String {
        match self.components.get(pointer) {
            Some(name) => name.clone(),
            None => type_name(hint, &mut self.taken),
        }
    }

    /// Returns how a value with the schema at `pointer` is read. `hint` is the base of the type's name if it
    /// needs one.
    pub(super) fn read(&mut self, schema: &Value, pointer: &str, hint: &str) -> Shape {
        let Value::Object(map) = schema else {
            return Shape::Any;
        };
        if let Some(shape) = self.named.get(pointer) {
            return shape.clone();
        }
        let has_structure = ["properties", "allOf", "oneOf", "anyOf"];
        let has_structure = has_structure.iter().any(|key| map.contains_key(*key));
        if map.contains_key("$ref") && !has_structure {
            return self.read_reference(schema, map, pointer, hint);
        }
        for keyword in ["oneOf", "anyOf"] {
            if let Some(Value::Array(branches)) = map.get(keyword) {
                let located = branches.iter().enumerate().map(|(index, branch)| {
                    (branch.clone(), format!("{pointer}/{keyword}/{index}"))
                });
                return self.read_union(located.collect(), map, pointer, hint);
            }
        }
        if map.contains_key("allOf") || map.contains_key("$ref") {
            return self.read_all_of(schema, map, pointer, hint);
        }
        self.read_plain(schema, map, pointer, hint)
    }

    fn read_reference(
        &mut self,
        schema: &Value,
        map: &Map<String, Value>,
        pointer: &str,
        hint: &str,
    ) -> Shape {
        let Ok((target, target_pointer)) = self.document.resolve(schema, pointer) else {
            return Shape::Any;
        };
        // A schema that refers to itself without an object in between has no type.
        if self.inlining.contains(&target_pointer) {
            return Shape::Any;
        }
        let reference = map.get("$ref").and_then(Value::as_str);
        let hint = reference
            .and_then(local_pointer)
            .and_then(|local| Some(local.rsplit('/').next()?.to_owned()))
            .unwrap_or_else(|| hint.to_owned());
        self.inlining.push(target_pointer.clone());
        let shape = self.read(target, &target_pointer, &hint);
        self.inlining.pop();
        shape
    }

    /// Reads alternatives: by their tag, as one object with all fields, as their common type, or as any JSON.
    fn read_union(
        &mut self,
        branches: Vec<Located>,
        map: &Map<String, Value>,
        pointer: &str,
        hint: &str,
    ) -> Shape {
        let branches: Vec<Located> = branches
            .into_iter()
            .filter(|(branch, _)| branch.get("type").and_then(Value::as_str) != Some("null"))
            .collect();
        let has_fields = map.contains_key("properties") || map.contains_key("allOf");
        if let ([(branch, branch_pointer)], false) = (branches.as_slice(), has_fields) {
            return self.read(branch, branch_pointer, hint);
        }
        if !has_fields && let Some(union) = self.tagged_union(&branches, map) {
            let name = self.new_name(pointer, hint);
            let shape = Shape::Union(name.clone());
            self.named.insert(pointer.to_owned(), shape.clone());
            self.pending.push_back(Pending::Union(name, union));
            return shape;
        }
        let schemas = branches.iter().map(|(branch, _)| branch.clone());
        let mut whole = map.clone();
        whole.remove("oneOf");
        whole.insert("anyOf".to_owned(), schemas.collect());
        let whole = Value::Object(whole);
        if let Some(shape) = self.read_object(&whole, pointer, hint) {
            return shape;
        }
        let mut shapes = Vec::new();
        for (branch, branch_pointer) in &branches {
            let shape = self.read(branch, branch_pointer, hint);
            if !shapes.contains(&shape) {
                shapes.push(shape);
            }
        }
        common_shape(shapes)
    }

    fn read_all_of(
        &mut self,
        schema: &Value,
        map: &Map<String, Value>,
        pointer: &str,
        hint: &str,
    ) -> Shape {
        if let Some(shape) = self.read_object(schema, pointer, hint) {
            return shape;
        }
        let parts = map.get("allOf").and_then(Value::as_array);
        let mut shapes = Vec::new();
        for (index, part) in parts.into_iter().flatten().enumerate() {
            let shape = self.read(part, &format!("{pointer}/allOf/{index}"), hint);
            if shape != Shape::Any && !shapes.contains(&shape) {
                shapes.push(shape);
            }
        }
        common_shape(shapes)
    }

    /// Reads an object with known fields.
    fn read_object(&mut self, schema: &Value, pointer: &str, hint: &str) -> Option<Shape> {
        let fields = body::response_fields(self.document, schema, pointer).ok()??;
        if fields.known.is_empty() {
            return None;
        }
        let name = self.new_name(pointer, hint);
        let shape = Shape::Object(name.clone());
        self.named.insert(pointer.to_owned(), shape.clone());
        self.define(&name, doc(schema), Definition::Object(Vec::new()));
        self.pending.push_back(Pending::Object(name, fields));
        Some(shape)
    }

    fn read_plain(
        &mut self,
        schema: &Value,
        map: &Map<String, Value>,
        pointer: &str,
        hint: &str,
    ) -> Shape {
        match kind(map) {
            Some("string") => self.read_text(map, pointer, hint),
            Some("integer") => Shape::Integer,
            Some("number") => Shape::Number,
            Some("boolean") => Shape::Boolean,
            Some("array") => {
                let hint = format!("{hint}Item");
                let items = map.get("items").unwrap_or(&Value::Null);
                let item = self.read(items, &format!("{pointer}/items"), &hint);
                Shape::List(Box::new(item))
            }
            Some("object") => {
                if let Some(shape) = self.read_object(schema, pointer, hint) {
                    return shape;
                }
                let values = map.get("additionalProperties").unwrap_or(&Value::Null);
                let pointer = format!("{pointer}/additionalProperties");
                let value = self.read(values, &pointer, &format!("{hint}Value"));
                Shape::Entries(Box::new(value))
            }
            _ => Shape::Any,
        }
    }

    fn read_text(&mut self, map: &Map<String, Value>, pointer: &str, hint: &str) -> Shape {
        let values = map.get("enum").and_then(Value::as_array);
        let mut variants: Vec<(String, String)> = Vec::new();
        let mut taken = vec!["Other".to_owned(), "Self".to_owned()];
        for value in values.into_iter().flatten().filter_map(Value::as_str) {
            if variants.iter().all(|(_, known)| known != value) {
                variants.push((variant_name(value, &mut taken), value.to_owned()));
            }
        }
        if !(2..=MAX_ENUM_VALUES).contains(&variants.len()) {
            return Shape::Text;
        }
        let name = self.new_name(pointer, hint);
        let doc = doc(&Value::Object(map.clone()));
        self.define(&name, doc, Definition::Enum(variants));
        let shape = Shape::Enum(name);
        self.named.insert(pointer.to_owned(), shape.clone());
        shape
    }

    pub(super) fn read_pending(&mut self) {
        while let Some(pending) = self.pending.pop_front() {
            match pending {
                Pending::Object(name, fields) => {
                    let fields = self.fields(&name, fields);
                    if let Some((_, definition)) = self.types.definitions.get_mut(&name) {
                        *definition = Definition::Object(fields);
                    }
                }
                Pending::Union(name, union) => {
                    let definition = self.read_tagged(&name, union);
                    self.define(&name, None, definition);
                }
            }
        }
    }

    fn fields(&mut self, owner: &str, fields: BodyFields) -> Vec<Field> {
        let mut taken = Vec::new();
        let fields = fields.known.into_iter().map(|(name, (schema, pointer))| {
            let hint = format!("{owner}{}", ascii(&name).to_pascal_case());
            Field {
                identifier: names::function_name(&ascii(&name), &mut taken),
                shape: self.read(&schema, &pointer, &hint),
                doc: doc(&schema),
                name,
            }
        });
        fields.collect()
    }
}

/// Returns the one shape that reads all of them.
fn common_shape(shapes: Vec<Shape>) -> Shape {
    let is_text = |shape: &Shape| matches!(shape, Shape::Text | Shape::Enum(_));
    let is_number = |shape: &Shape| matches!(shape, Shape::Integer | Shape::Number);
    match shapes.as_slice() {
        [] => Shape::Any,
        [shape] => shape.clone(),
        all if all.iter().all(is_text) => Shape::Text,
        all if all.iter().all(is_number) => Shape::Number,
        _ => Shape::Any,
    }
}

/// Returns the only type of a schema, or the one that it implies.
fn kind(map: &Map<String, Value>) -> Option<&str> {
    match map.get("type") {
        Some(Value::String(name)) => return Some(name),
        Some(Value::Array(list)) => {
            let mut names = list.iter().filter_map(Value::as_str);
            let mut names = names.by_ref().filter(|name| *name != "null");
            let first = names.next();
            return first.filter(|_| names.next().is_none());
        }
        _ => {}
    }
    if map.contains_key("properties") || map.contains_key("additionalProperties") {
        return Some("object");
    }
    if map.contains_key("items") {
        return Some("array");
    }
    let values = match (map.get("const"), map.get("enum")) {
        (Some(value), _) => std::slice::from_ref(value),
        (None, Some(Value::Array(values))) => values,
        _ => return None,
    };
    let is = |check: fn(&Value) -> bool| {
        let mut values = values.iter().filter(|value| !value.is_null()).peekable();
        values.peek().is_some() && values.all(check)
    };
    if is(Value::is_string) {
        Some("string")
    } else if is(Value::is_number) {
        Some("number")
    } else {
        is(Value::is_boolean).then_some("boolean")
    }
}

/// Returns the first sentence of a description, in one line.
fn doc(schema: &Value) -> Option<String> {
    let text = schema.get("description")?.as_str()?;
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let sentence = text
        .split_once(". ")
        .map_or(text.as_str(), |(first, _)| first);
    let sentence = sentence.trim_end_matches('.');
    (!sentence.is_empty()).then(|| format!("{sentence}."))
}

/// Returns a name with only ASCII letters, digits and separators.
pub(super) fn ascii(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    name.chars().map(plain).collect()
}

/// Returns a type name that is not in `taken`, and adds it.
fn type_name(name: &str, taken: &mut Vec<String>) -> String {
    names::type_name(&ascii(name), taken)
}

/// Returns the name of the variant for a value that is not in `taken`, and adds it.
pub(super) fn variant_name(value: &str, taken: &mut Vec<String>) -> String {
    let pascal = ascii(value).to_pascal_case();
    let pascal = match pascal.chars().next() {
        Some(first) if first.is_ascii_alphabetic() => pascal,
        _ => format!("Value{pascal}"),
    };
    names::type_name(&pascal, taken)
}

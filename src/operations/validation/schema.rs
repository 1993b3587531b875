//! A view of one node of a JSON Schema, together with everything it refers to.

use serde_json::{Map, Value};

/// References nested deeper than this are cyclic.
const MAX_REFERENCES: usize = 16;

/// A node of a schema.
///
/// `$ref` may stand beside other keywords, so a node consists of several schemas; a keyword is looked up in all of
/// them, nearest first. A schema or null (`anyOf: [T, {type: null}]`) is the node of that schema, which then also
/// accepts null.
#[derive(Clone)]
pub(super) struct Node<'s> {
    root: &'s Value,
    parts: Vec<&'s Value>,
    is_nullable: bool,
}

impl<'s> Node<'s> {
    /// Returns the root node of a schema.
    pub(super) fn root(root: &'s Value) -> Self {
        Self::new(root, root)
    }

    /// Returns the node of `schema`, which is a part of `root`.
    pub(super) fn new(root: &'s Value, schema: &'s Value) -> Self {
        let mut node = Self {
            root,
            parts: Vec::new(),
            is_nullable: false,
        };
        node.gather(schema, 0);
        node
    }

    fn gather(&mut self, schema: &'s Value, depth: usize) {
        if depth > MAX_REFERENCES {
            return;
        }
        self.parts.push(schema);
        let target = schema
            .get("$ref")
            .and_then(Value::as_str)
            .and_then(|reference| reference.strip_prefix('#'))
            .and_then(|pointer| self.root.pointer(pointer));
        if let Some(target) = target {
            self.gather(target, depth + 1);
        }
        for part in list(schema, "allOf") {
            self.gather(part, depth + 1);
        }
        if let Some(part) = schema_or_null(schema) {
            self.is_nullable = true;
            self.gather(part, depth + 1);
        }
    }

    /// Returns the value of a keyword, from the nearest schema that has it.
    pub(super) fn keyword(&self, name: &str) -> Option<&'s Value> {
        self.parts.iter().find_map(|part| part.get(name))
    }

    /// Returns the value of a numeric keyword.
    pub(super) fn number(&self, name: &str) -> Option<f64> {
        self.keyword(name)?.as_f64()
    }

    /// Returns the accepted types; empty means any.
    pub(super) fn types(&self) -> Vec<&'s str> {
        let mut types: Vec<&str> = match self.keyword("type") {
            Some(Value::String(kind)) => vec![kind],
            Some(Value::Array(types)) => types.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        if self.is_nullable && !types.is_empty() && !types.contains(&"null") {
            types.push("null");
        }
        types
    }

    /// Returns whether this type is explicitly accepted.
    pub(super) fn accepts_type(&self, kind: &str) -> bool {
        self.types().contains(&kind)
    }

    /// Returns whether the type of `value` is accepted, whatever its content.
    pub(super) fn accepts(&self, value: &Value) -> bool {
        let types = self.types();
        types.is_empty() || types.iter().any(|kind| is_type(value, kind))
    }

    /// Like [`Node::accepts`], but at least one variant of a union must accept it too.
    pub(super) fn fits(&self, value: &Value) -> bool {
        if self.is_nullable && value.is_null() {
            return true;
        }
        let branches = self.branches();
        self.accepts(value)
            && (branches.is_empty() || branches.iter().any(|branch| branch.fits(value)))
    }

    /// Returns the allowed values of an enum or a constant.
    pub(super) fn choices(&self) -> Vec<&'s Value> {
        if let Some(only) = self.keyword("const") {
            return vec![only];
        }
        self.parts
            .iter()
            .map(|part| list(part, "enum"))
            .find(|choices| !choices.is_empty())
            .map(|choices| choices.iter().collect())
            .unwrap_or_default()
    }

    /// Returns the listed values of a union that accepts any other text too.
    pub(super) fn open_choices(&self) -> Vec<&'s Value> {
        let branches = self.branches();
        let is_open = |branch: &Self| branch.accepts_type("string") && branch.choices().is_empty();
        if !branches.iter().any(is_open) {
            return Vec::new();
        }
        branches.iter().flat_map(Self::choices).collect()
    }

    /// Returns whether null is allowed.
    pub(super) fn allows_null(&self) -> bool {
        if self.is_nullable {
            return true;
        }
        let choices = self.choices();
        self.fits(&Value::Null) && (choices.is_empty() || choices.contains(&&Value::Null))
    }

    /// Returns the names of the declared properties.
    pub(super) fn names(&self) -> Vec<&'s str> {
        let maps = self.parts.iter().filter_map(|part| properties(part));
        maps.flat_map(Map::keys).map(String::as_str).collect()
    }

    /// Returns a declared property.
    pub(super) fn property(&self, name: &str) -> Option<Node<'s>> {
        let mut maps = self.parts.iter().filter_map(|part| properties(part));
        let schema = maps.find_map(|map| map.get(name))?;
        Some(Node::new(self.root, schema))
    }

    /// Returns the names of the required properties.
    pub(super) fn required(&self) -> Vec<&'s str> {
        let lists = self.parts.iter().map(|part| list(part, "required"));
        lists.flatten().filter_map(Value::as_str).collect()
    }

    /// Returns the schema of the entries of a list.
    pub(super) fn items(&self) -> Option<Node<'s>> {
        let schema = self.keyword("items")?;
        Some(Node::new(self.root, schema))
    }

    /// Returns the schema of the values of a map.
    pub(super) fn additional(&self) -> Option<Node<'s>> {
        let schema = self.keyword("additionalProperties")?;
        schema.is_object().then(|| Node::new(self.root, schema))
    }

    /// Returns whether the object is a map with arbitrary names, so that no name can be misspelled.
    pub(super) fn is_map(&self) -> bool {
        !matches!(
            self.keyword("additionalProperties"),
            None | Some(Value::Bool(false))
        )
    }

    /// Returns whether unknown names are rejected.
    pub(super) fn is_closed(&self) -> bool {
        self.keyword("additionalProperties") == Some(&Value::Bool(false))
    }

    /// Returns the variants of a union, in the order of the schema.
    pub(super) fn branches(&self) -> Vec<Node<'s>> {
        let unions = self
            .parts
            .iter()
            .filter(|part| schema_or_null(part).is_none());
        let unions = unions.flat_map(|part| {
            let variants = list(part, "oneOf");
            if variants.is_empty() {
                list(part, "anyOf")
            } else {
                variants
            }
        });
        unions
            .map(|variant| Node::new(self.root, variant))
            .collect()
    }
}

/// Returns the property that discriminates the variants of a union: required and an enum in each.
pub(super) fn tag<'s>(branches: &[Node<'s>]) -> Option<&'s str> {
    let (first, _) = branches.split_first()?;
    first.required().into_iter().find(|name| {
        branches.iter().all(|branch| {
            let property = branch.property(name);
            branch.required().contains(name)
                && property.is_some_and(|property| !property.choices().is_empty())
        })
    })
}

/// Returns whether `value` has the JSON Schema type `kind`.
pub(super) fn is_type(value: &Value, kind: &str) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "number" => value.is_number(),
        "integer" => {
            value.is_i64()
                || value.is_u64()
                || value.as_f64().is_some_and(|number| number.fract() == 0.0)
        }
        _ => false,
    }
}

/// Returns the schema of a union with null.
fn schema_or_null(schema: &Value) -> Option<&Value> {
    let is_null = |variant: &Value| variant.get("type").is_some_and(|kind| kind == "null");
    let variants = ["anyOf", "oneOf"].map(|keyword| list(schema, keyword));
    variants.into_iter().find_map(|variants| match variants {
        [other, null] | [null, other] if is_null(null) && !is_null(other) => Some(other),
        _ => None,
    })
}

fn properties(schema: &Value) -> Option<&Map<String, Value>> {
    schema.get("properties")?.as_object()
}

fn list<'v>(schema: &'v Value, keyword: &str) -> &'v [Value] {
    schema
        .get(keyword)
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
}

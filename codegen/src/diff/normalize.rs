//! Normalizes schemas, so that different spellings of the same schema compare equal.
//!
//! A [`NormalizedSchema`] consists of a null flag and the branches of a union. A schema without a
//! union has one branch; a list of types has one branch per type. References and `allOf` are resolved
//! one level deep; nested schemas are normalized when the comparison reaches them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::keyword_groups::{is_documentation, is_handled};
use super::wrappers::{allows_null, unwrap_schema};
use super::{branches, merge};

/// A property of an object and the definition that declares it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Property {
    pub(super) schema: Value,
    pub(super) origin: Option<String>,
}

/// One alternative of a schema, for values of one JSON type or of any type.
#[derive(Debug, Clone, Default)]
pub(super) struct Branch {
    /// The definition that this branch refers to, if the schema adds nothing to it.
    pub(super) reference: Option<String>,
    /// The JSON type, if the schema requires one.
    pub(super) kind: Option<String>,
    /// The values of `enum`; `const` is an `enum` of one value.
    pub(super) values: Option<Vec<Value>>,
    pub(super) properties: BTreeMap<String, Property>,
    pub(super) required: BTreeSet<String>,
    /// All other keywords that restrict values.
    pub(super) constraints: BTreeMap<String, Value>,
    /// The documentation where the branch is used.
    pub(super) docs: BTreeMap<String, Value>,
    /// The documentation in the definition that it refers to.
    pub(super) definition_docs: BTreeMap<String, Value>,
}

impl Branch {
    /// Returns whether the branch accepts only `null`.
    pub(super) fn is_null(&self) -> bool {
        self.kind.as_deref() == Some("null")
    }

    /// Returns whether both accept the same values, without resolving nested schemas.
    pub(super) fn same_content(&self, other: &Self) -> bool {
        self.kind == other.kind
            && self.values == other.values
            && self.required == other.required
            && self.constraints == other.constraints
            && self.properties.len() == other.properties.len()
            && self.properties.iter().all(|(name, mine)| {
                let theirs = other.properties.get(name);
                theirs.is_some_and(|theirs| theirs.schema == mine.schema)
            })
    }

    /// Returns all documentation of the branch; the place of use takes precedence.
    pub(super) fn all_docs(&self) -> BTreeMap<String, Value> {
        let mut docs = self.docs.clone();
        merge::add_inner_docs(&mut docs, &self.definition_docs);
        docs
    }
}

/// A schema in normalized form.
#[derive(Debug, Clone, Default)]
pub(super) struct NormalizedSchema {
    pub(super) nullable: bool,
    pub(super) branches: Vec<Branch>,
    /// The documentation of the schema itself.
    pub(super) docs: BTreeMap<String, Value>,
}

impl NormalizedSchema {
    /// Returns the only branch, or `None` for a union.
    pub(super) fn single(&self) -> Option<&Branch> {
        match self.branches.as_slice() {
            [branch] => Some(branch),
            _ => None,
        }
    }

    /// Returns the documentation of the schema, completed with that of its only branch.
    pub(super) fn all_docs(&self) -> BTreeMap<String, Value> {
        let mut docs = self.docs.clone();
        if let Some(branch) = self.single() {
            merge::add_inner_docs(&mut docs, &branch.all_docs());
        }
        docs
    }
}

/// Resolves references within one schema document.
#[derive(Clone, Copy)]
pub(super) struct Resolver<'a> {
    root: &'a Value,
}

impl<'a> Resolver<'a> {
    pub(super) const fn new(root: &'a Value) -> Self {
        Self { root }
    }

    /// Returns the schema that a reference such as `#/$defs/Webset` points at.
    pub(super) fn target(&self, reference: &str) -> Option<&'a Value> {
        self.root.pointer(reference.strip_prefix('#')?)
    }

    /// Normalizes a schema.
    pub(super) fn normalize(&self, schema: &Value) -> NormalizedSchema {
        let unwrapped = unwrap_schema(schema);
        let mut bare = unwrapped.core.clone();
        if let Value::Object(keywords) = &mut bare {
            keywords.retain(|key, _| !is_documentation(key));
        }
        let mut branches = self.branches(&bare, &mut Vec::new());
        if unwrapped.nullable {
            branches.push(of_type("null"));
        }
        branches::collect(unwrapped.docs, branches)
    }

    /// Returns the branches of a schema. `trail` holds the references being resolved; a reference that
    /// leads back to itself yields no branch.
    fn branches(&self, schema: &Value, trail: &mut Vec<String>) -> Vec<Branch> {
        let Value::Object(keywords) = schema else {
            return vec![boolean_schema(schema)];
        };
        let mut found = own_branches(keywords);
        if let Some(Value::String(reference)) = keywords.get("$ref") {
            if trail.contains(reference) {
                return Vec::new();
            }
            let target_branches = self.reference_branches(reference, trail);
            // A type next to a reference repeats that of the definition, or is out of date.
            if target_branches.iter().all(|branch| branch.kind.is_some()) {
                let mut untyped = keywords.clone();
                untyped.remove("type");
                found = own_branches(&untyped);
            }
            found = merge::intersect(found, target_branches);
        }
        for part in list(keywords, "allOf") {
            found = merge::intersect(found, self.branches(part, trail));
        }
        for union in ["oneOf", "anyOf"] {
            let mut options = Vec::new();
            for option in list(keywords, union) {
                options.extend(self.branches(option, trail));
            }
            found = merge::intersect(found, options);
        }
        if allows_null(schema) {
            found.push(of_type("null"));
        }
        found
    }

    /// Returns the branches of a definition, marked with their origin.
    fn reference_branches(&self, reference: &str, trail: &mut Vec<String>) -> Vec<Branch> {
        let Some(target) = self.target(reference) else {
            // Without a target only the name can be compared.
            return vec![Branch {
                constraints: BTreeMap::from([("$ref".to_owned(), json!(reference))]),
                ..Branch::default()
            }];
        };
        trail.push(reference.to_owned());
        let mut found = self.branches(target, trail);
        trail.pop();
        let is_single = found.iter().filter(|branch| !branch.is_null()).count() == 1;
        for branch in &mut found {
            if is_single && !branch.is_null() {
                branch.reference = Some(reference.to_owned());
            }
            for property in branch.properties.values_mut() {
                property.origin.get_or_insert_with(|| reference.to_owned());
            }
            branch.definition_docs = branch.all_docs();
            branch.docs.clear();
        }
        found
    }
}

/// Returns the elements of a keyword that holds a list.
pub(super) fn list<'a>(keywords: &'a Map<String, Value>, key: &str) -> &'a [Value] {
    match keywords.get(key) {
        Some(Value::Array(elements)) => elements,
        _ => &[],
    }
}

/// Returns the documentation keywords of a schema, without empty ones such as `deprecated: false`.
pub(super) fn documentation(keywords: &Map<String, Value>) -> BTreeMap<String, Value> {
    let is_empty = |key: &str, value: &Value| {
        key != "default" && (value == &json!(false) || value == &json!("") || value.is_null())
    };
    keywords
        .iter()
        .filter(|(key, value)| is_documentation(key) && !is_empty(key, value))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// Returns the branch of a boolean schema: `true` accepts everything, `false` nothing.
fn boolean_schema(schema: &Value) -> Branch {
    let mut branch = Branch::default();
    if schema == &Value::Bool(false) {
        branch.constraints.insert("not".to_owned(), json!({}));
    }
    branch
}

fn of_type(kind: &str) -> Branch {
    Branch {
        kind: Some(kind.to_owned()),
        ..Branch::default()
    }
}

/// Returns what a schema itself requires, one branch per type.
fn own_branches(keywords: &Map<String, Value>) -> Vec<Branch> {
    let mut template = own_content(keywords);
    let kinds = branches::required_types(keywords, template.values.as_deref());
    let branches: Vec<Branch> = kinds
        .iter()
        .filter_map(|kind| branches::restrict(&template, kind))
        .collect();
    if branches.is_empty() {
        // No listed value has the required type; keep both as they are.
        template.kind = kinds.into_iter().next();
        vec![template]
    } else {
        branches
    }
}

fn own_content(keywords: &Map<String, Value>) -> Branch {
    let values = match (keywords.get("const"), keywords.get("enum")) {
        (Some(value), _) => Some(vec![value.clone()]),
        (None, Some(Value::Array(values))) => Some(values.clone()),
        _ => None,
    };
    let property = |(name, schema): (&String, &Value)| {
        let schema = schema.clone();
        let origin = None;
        (name.clone(), Property { schema, origin })
    };
    let properties = keywords.get("properties").and_then(Value::as_object);
    Branch {
        values,
        properties: properties
            .map(|found| found.iter().map(property).collect())
            .unwrap_or_default(),
        required: list(keywords, "required")
            .iter()
            .filter_map(|name| name.as_str().map(str::to_owned))
            .collect(),
        constraints: keywords
            .iter()
            .filter(|(key, _)| !is_handled(key) && !is_documentation(key))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect(),
        docs: documentation(keywords),
        ..Branch::default()
    }
}

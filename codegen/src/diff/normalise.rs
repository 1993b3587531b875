//! One common form for schemas, so that two ways of writing the same thing compare equal.
//!
//! A schema becomes a [`Site`]: whether it allows `null`, and the branches of its union. A schema
//! without a union has one branch, and a list of types has one branch for each. References and
//! `allOf` are resolved one level deep; nested schemas stay as written until they are visited.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::reference::{allows_null, peel};
use super::vocabulary::{is_documentation, is_resolved};
use super::{fold, merge};

/// A property of an object and the definition it was declared in.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Property {
    pub(super) schema: Value,
    pub(super) origin: Option<String>,
}

/// One alternative of a schema: values of one JSON type, or of any.
#[derive(Debug, Clone, Default)]
pub(super) struct Branch {
    /// The definition that is this branch, when nothing is added to it.
    pub(super) reference: Option<String>,
    /// The JSON type, if one is demanded.
    pub(super) kind: Option<String>,
    /// The values of `enum`; `const` is an `enum` of one value.
    pub(super) values: Option<Vec<Value>>,
    pub(super) properties: BTreeMap<String, Property>,
    pub(super) required: BTreeSet<String>,
    /// All further keywords that accept or refuse values.
    pub(super) rest: BTreeMap<String, Value>,
    /// What is written about this branch where it is used.
    pub(super) docs: BTreeMap<String, Value>,
    /// What the definition it refers to says about itself.
    pub(super) definition_docs: BTreeMap<String, Value>,
}

impl Branch {
    /// A branch that holds `null` and nothing else.
    pub(super) fn is_null(&self) -> bool {
        self.kind.as_deref() == Some("null")
    }

    /// Whether both accept the same values, as far as can be seen without resolving more.
    pub(super) fn same_content(&self, other: &Self) -> bool {
        self.kind == other.kind
            && self.values == other.values
            && self.required == other.required
            && self.rest == other.rest
            && self.properties.len() == other.properties.len()
            && self.properties.iter().all(|(name, mine)| {
                let theirs = other.properties.get(name);
                theirs.is_some_and(|theirs| theirs.schema == mine.schema)
            })
    }

    /// Everything written about the branch, the place of use first.
    pub(super) fn all_docs(&self) -> BTreeMap<String, Value> {
        let mut docs = self.docs.clone();
        merge::underlay(&mut docs, &self.definition_docs);
        docs
    }
}

/// A schema in the common form.
#[derive(Debug, Clone, Default)]
pub(super) struct Site {
    pub(super) nullable: bool,
    pub(super) branches: Vec<Branch>,
    /// What is written at this place itself.
    pub(super) docs: BTreeMap<String, Value>,
}

impl Site {
    /// The only branch, unless this is a union.
    pub(super) fn single(&self) -> Option<&Branch> {
        match self.branches.as_slice() {
            [branch] => Some(branch),
            _ => None,
        }
    }

    /// What a reader learns here: the words at this place, else those of the only branch.
    pub(super) fn all_docs(&self) -> BTreeMap<String, Value> {
        let mut docs = self.docs.clone();
        if let Some(branch) = self.single() {
            merge::underlay(&mut docs, &branch.all_docs());
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

    /// The schema that a reference such as `#/$defs/Webset` points at.
    pub(super) fn target(&self, reference: &str) -> Option<&'a Value> {
        self.root.pointer(reference.strip_prefix('#')?)
    }

    /// Brings a schema to the common form.
    pub(super) fn site(&self, schema: &Value) -> Site {
        let peeled = peel(schema);
        let mut bare = peeled.core.clone();
        if let Value::Object(keywords) = &mut bare {
            keywords.retain(|key, _| !is_documentation(key));
        }
        let mut branches = self.branches(&bare, &mut Vec::new());
        if peeled.nullable {
            branches.push(of_kind("null"));
        }
        fold::site(peeled.docs, branches)
    }

    /// The branches of a schema. `trail` holds the references being resolved; one that leads back
    /// to itself adds nothing and yields no branch.
    fn branches(&self, schema: &Value, trail: &mut Vec<String>) -> Vec<Branch> {
        let Value::Object(keywords) = schema else {
            return vec![trivial(schema)];
        };
        let mut found = own_branches(keywords);
        if let Some(Value::String(reference)) = keywords.get("$ref") {
            if trail.contains(reference) {
                return Vec::new();
            }
            let referred = self.referred(reference, trail);
            // A type next to a reference repeats that of the definition, or is out of date.
            if referred.iter().all(|branch| branch.kind.is_some()) {
                let mut untyped = keywords.clone();
                untyped.remove("type");
                found = own_branches(&untyped);
            }
            found = merge::product(found, referred);
        }
        for part in list(keywords, "allOf") {
            found = merge::product(found, self.branches(part, trail));
        }
        for union in ["oneOf", "anyOf"] {
            let mut options = Vec::new();
            for option in list(keywords, union) {
                options.extend(self.branches(option, trail));
            }
            found = merge::product(found, options);
        }
        if allows_null(schema) {
            found.push(of_kind("null"));
        }
        found
    }

    /// The branches of a definition, marked with where they come from.
    fn referred(&self, reference: &str, trail: &mut Vec<String>) -> Vec<Branch> {
        let Some(target) = self.target(reference) else {
            // The name is all there is to compare.
            return vec![Branch {
                rest: BTreeMap::from([("$ref".to_owned(), json!(reference))]),
                ..Branch::default()
            }];
        };
        trail.push(reference.to_owned());
        let mut found = self.branches(target, trail);
        trail.pop();
        let alone = found.iter().filter(|branch| !branch.is_null()).count() == 1;
        for branch in &mut found {
            if alone && !branch.is_null() {
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

/// The elements of a keyword that holds a list.
pub(super) fn list<'a>(keywords: &'a Map<String, Value>, key: &str) -> &'a [Value] {
    match keywords.get(key) {
        Some(Value::Array(elements)) => elements,
        _ => &[],
    }
}

/// What a schema says to people, without what says nothing, such as `deprecated: false`.
pub(super) fn documentation(keywords: &Map<String, Value>) -> BTreeMap<String, Value> {
    let silent = |key: &str, value: &Value| {
        key != "default" && (value == &json!(false) || value == &json!("") || value.is_null())
    };
    keywords
        .iter()
        .filter(|(key, value)| is_documentation(key) && !silent(key, value))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// `true` accepts everything, `false` nothing.
fn trivial(schema: &Value) -> Branch {
    let mut branch = Branch::default();
    if schema == &Value::Bool(false) {
        branch.rest.insert("not".to_owned(), json!({}));
    }
    branch
}

fn of_kind(kind: &str) -> Branch {
    Branch {
        kind: Some(kind.to_owned()),
        ..Branch::default()
    }
}

/// What a schema demands by itself, one branch for each of its types.
fn own_branches(keywords: &Map<String, Value>) -> Vec<Branch> {
    let mut template = own_content(keywords);
    let kinds = fold::kinds(keywords, template.values.as_deref());
    let branches: Vec<Branch> = kinds
        .iter()
        .filter_map(|kind| fold::restricted(&template, kind))
        .collect();
    if branches.is_empty() {
        // None of the values has the demanded type; both are shown as they are.
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
        rest: keywords
            .iter()
            .filter(|(key, _)| !is_resolved(key) && !is_documentation(key))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect(),
        docs: documentation(keywords),
        ..Branch::default()
    }
}

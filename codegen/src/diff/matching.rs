//! Matches the branches of two versions of a union, and provides keys for comparing schemas.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::keyword_groups::is_documentation;
use super::normalize::{Branch, NormalizedSchema, Resolver};
use super::schema_path::definition_name;
use super::wrappers::unwrap_schema;

/// The branches of two versions of a union, matched to each other.
#[derive(Default)]
pub(super) struct BranchPairs<'a> {
    pub(super) matched: Vec<(&'a Branch, &'a Branch)>,
    pub(super) removed: Vec<&'a Branch>,
    pub(super) added: Vec<&'a Branch>,
}

/// How well two branches match: common discriminator values, same definition name, same content,
/// number of common property names. Compared in this order.
type Score = (usize, bool, bool, usize);

/// A branch with the facts used to match it.
struct Candidate<'a> {
    branch: &'a Branch,
    /// The allowed values of its properties that have an enum.
    fixed: BTreeMap<&'a str, Vec<Value>>,
    content: String,
}

/// Matches the branches of two schemas, best matches first. Two schemas without unions always match.
pub(super) fn pair_branches<'a>(
    old: &'a NormalizedSchema,
    new: &'a NormalizedSchema,
    old_resolver: Resolver<'_>,
    new_resolver: Resolver<'_>,
) -> BranchPairs<'a> {
    if let (Some(before), Some(after)) = (old.single(), new.single()) {
        return BranchPairs {
            matched: vec![(before, after)],
            ..BranchPairs::default()
        };
    }
    let before = candidates(old, old_resolver);
    let after = candidates(new, new_resolver);
    let discriminators = discriminators(&before, &after);
    let mut scores: Vec<(Score, usize, usize)> = Vec::new();
    for (left, mine) in before.iter().enumerate() {
        for (right, theirs) in after.iter().enumerate() {
            scores.extend(score(mine, theirs, &discriminators).map(|score| (score, left, right)));
        }
    }
    // Best score first; ties are decided by the order in the schema.
    scores.sort_by(|one, two| two.0.cmp(&one.0).then((one.1, one.2).cmp(&(two.1, two.2))));
    let mut partners = BTreeMap::new();
    let mut taken = BTreeSet::new();
    for (_, left, right) in scores {
        if !partners.contains_key(&left) && taken.insert(right) {
            partners.insert(left, right);
        }
    }
    let mut pairs = BranchPairs::default();
    for (left, branch) in old.branches.iter().enumerate() {
        match partners
            .get(&left)
            .and_then(|right| new.branches.get(*right))
        {
            Some(other) => pairs.matched.push((branch, other)),
            None => pairs.removed.push(branch),
        }
    }
    let is_added = |(right, _): &(usize, &Branch)| !taken.contains(right);
    let added = new.branches.iter().enumerate().filter(is_added);
    pairs.added = added.map(|(_, branch)| branch).collect();
    pairs
}

fn candidates<'a>(schema: &'a NormalizedSchema, resolver: Resolver<'_>) -> Vec<Candidate<'a>> {
    let candidate = |branch| Candidate {
        branch,
        fixed: fixed_values(branch, resolver),
        content: content_key(branch),
    };
    schema.branches.iter().map(candidate).collect()
}

/// Returns the properties whose values distinguish the branches of one version.
fn discriminators<'a>(before: &[Candidate<'a>], after: &[Candidate<'a>]) -> BTreeSet<&'a str> {
    let mut names = BTreeSet::new();
    for version in [before, after] {
        let mut seen: BTreeMap<&str, &Vec<Value>> = BTreeMap::new();
        for (name, values) in version.iter().flat_map(|candidate| &candidate.fixed) {
            if seen
                .insert(name, values)
                .is_some_and(|other| other != values)
            {
                names.insert(*name);
            }
        }
    }
    names
}

/// Scores two branches, or returns `None` if they cannot be versions of each other.
fn score(
    old: &Candidate<'_>,
    new: &Candidate<'_>,
    discriminators: &BTreeSet<&str>,
) -> Option<Score> {
    let mut agreeing = 0;
    let mut contradicting = false;
    for name in discriminators {
        if let (Some(mine), Some(theirs)) = (old.fixed.get(name), new.fixed.get(name)) {
            if mine.iter().any(|value| theirs.contains(value)) {
                agreeing += 1;
            } else {
                contradicting = true;
            }
        }
    }
    let same_name = old.branch.reference.is_some() && old.branch.reference == new.branch.reference;
    if contradicting && !same_name {
        return None;
    }
    let same_content = old.content == new.content;
    if agreeing == 0 && !same_name && !same_content && !same_json_type(old.branch, new.branch) {
        return None;
    }
    let names = |branch: &Branch| -> BTreeSet<String> {
        let required = branch.required.iter().map(|name| format!("{name}!"));
        branch.properties.keys().cloned().chain(required).collect()
    };
    let common = names(old.branch).intersection(&names(new.branch)).count();
    Some((agreeing, same_name, same_content, common))
}

/// Returns the properties of a branch that have an enum, with their values.
fn fixed_values<'a>(branch: &'a Branch, resolver: Resolver<'_>) -> BTreeMap<&'a str, Vec<Value>> {
    let mut found = BTreeMap::new();
    for (name, property) in &branch.properties {
        let schema = resolver.normalize(&property.schema);
        if let Some(values) = schema.single().and_then(|single| single.values.clone()) {
            found.insert(name.as_str(), values);
        }
    }
    found
}

/// Returns whether two branches have the same JSON type. Integers count as numbers.
pub(super) fn same_json_type(left: &Branch, right: &Branch) -> bool {
    let json_type = |branch: &Branch| match branch.kind.as_deref() {
        Some("integer") => Some("number".to_owned()),
        kind => kind.map(str::to_owned),
    };
    json_type(left) == json_type(right)
}

/// Returns whether neither version has another branch of this type, so the path needs no label.
pub(super) fn is_only_branch_of_its_type(
    branch: &Branch,
    old: &NormalizedSchema,
    new: &NormalizedSchema,
) -> bool {
    let count = |schema: &NormalizedSchema| {
        let same_type = |other: &&Branch| same_json_type(other, branch);
        schema.branches.iter().filter(same_type).count()
    };
    count(old) <= 1 && count(new) <= 1
}

/// Returns whether another branch accepts everything that this branch accepts, because it restricts
/// nothing but the type or only requires fewer properties.
pub(super) fn is_covered(branch: &Branch, by: &NormalizedSchema) -> bool {
    by.branches.iter().any(|other| {
        let unrestricted = other.values.is_none()
            && other.constraints.is_empty()
            && other.properties.is_empty()
            && other.required.is_empty();
        let wider_number = other.kind.as_deref() == Some("number") && same_json_type(other, branch);
        let requires_less = other.kind == branch.kind
            && other.values == branch.values
            && other.constraints == branch.constraints
            && other.required.is_subset(&branch.required)
            && other.properties.len() == branch.properties.len()
            && other.properties.iter().all(|(name, property)| {
                let own = branch.properties.get(name);
                own.is_some_and(|own| own.schema == property.schema)
            });
        requires_less
            || unrestricted && (other.kind.is_none() || other.kind == branch.kind || wider_number)
    })
}

/// Returns a short name for a branch: its definition, a discriminator value, its title or its type.
pub(super) fn branch_label(
    branch: &Branch,
    schema: &NormalizedSchema,
    resolver: Resolver<'_>,
) -> String {
    if let Some(reference) = &branch.reference {
        return definition_name(reference).to_owned();
    }
    let all: Vec<_> = schema
        .branches
        .iter()
        .map(|other| fixed_values(other, resolver))
        .collect();
    for (name, values) in fixed_values(branch, resolver) {
        let sharing = |other: &&BTreeMap<&str, Vec<Value>>| other.get(name) == Some(&values);
        if let ([value], 1) = (values.as_slice(), all.iter().filter(sharing).count()) {
            return match value.as_str() {
                Some(text) => format!("{name}={text}"),
                None => format!("{name}={value}"),
            };
        }
    }
    let title = branch.docs.get("title").and_then(Value::as_str);
    let kind = branch.kind.as_deref().unwrap_or("any");
    title.unwrap_or(kind).to_owned()
}

/// Returns the constraints of a branch as comparable text.
pub(super) fn content_key(branch: &Branch) -> String {
    let properties: Vec<String> = branch
        .properties
        .iter()
        .map(|(name, property)| format!("{name:?}:{}", schema_key(&property.schema)))
        .collect();
    let constraints: Vec<String> = branch
        .constraints
        .iter()
        .map(|(key, value)| format!("{key}:{}", schema_key(value)))
        .collect();
    format!(
        "{:?} {:?} {:?} {properties:?} {constraints:?}",
        branch.kind, branch.values, branch.required
    )
}

/// Returns a schema as comparable text, without documentation and with sorted keywords.
pub(super) fn schema_key(schema: &Value) -> String {
    without_docs(schema).to_string()
}

fn without_docs(schema: &Value) -> Value {
    match schema {
        Value::Array(elements) => elements.iter().map(without_docs).collect(),
        Value::Object(_) if !std::ptr::eq(unwrap_schema(schema).core, schema) => {
            let unwrapped = unwrap_schema(schema);
            let core = without_docs(unwrapped.core);
            if unwrapped.nullable {
                json!({"anyOf": [core, {"type": "null"}]})
            } else {
                core
            }
        }
        Value::Object(keywords) => {
            let sorted: BTreeMap<&String, &Value> = keywords.iter().collect();
            let mut bare = Map::new();
            for (key, value) in sorted {
                match key.as_str() {
                    "default" | "enum" | "const" => bare.insert(key.clone(), value.clone()),
                    key if is_documentation(key) => None,
                    "properties" | "patternProperties" => {
                        bare.insert(key.clone(), properties_without_docs(value))
                    }
                    "type" => bare.insert(key.clone(), single_type(value)),
                    _ => bare.insert(key.clone(), without_docs(value)),
                };
            }
            Value::Object(bare)
        }
        other => other.clone(),
    }
}

/// Strips the documentation of properties. Their names are not keywords: one may be `description`.
fn properties_without_docs(properties: &Value) -> Value {
    let Some(properties) = properties.as_object() else {
        return properties.clone();
    };
    let sorted: BTreeMap<&String, &Value> = properties.iter().collect();
    let bare = |(name, schema): (&String, &Value)| (name.clone(), without_docs(schema));
    Value::Object(sorted.into_iter().map(bare).collect())
}

/// Unwraps a list of one type.
fn single_type(kinds: &Value) -> Value {
    match kinds.as_array().map(Vec::as_slice) {
        Some([only]) => only.clone(),
        _ => kinds.clone(),
    }
}

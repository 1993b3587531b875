//! Which branch of a union became which, and which argument was renamed to which.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::normalise::{Branch, Resolver, Site};
use super::reference::peel;
use super::spot::definition_name;
use super::vocabulary::is_documentation;

/// The branches of two versions of a union, matched with each other.
#[derive(Default)]
pub(super) struct Pairing<'a> {
    pub(super) pairs: Vec<(&'a Branch, &'a Branch)>,
    pub(super) removed: Vec<&'a Branch>,
    pub(super) added: Vec<&'a Branch>,
}

/// How well two branches fit: by discriminating values, by name, by content, by common names.
/// Earlier parts decide before later ones.
type Score = (usize, bool, bool, usize);

/// A branch with what is needed to recognise it.
struct Candidate<'a> {
    branch: &'a Branch,
    /// The fixed values of its properties.
    fixed: BTreeMap<&'a str, Vec<Value>>,
    content: String,
}

/// Matches branches, the best fitting first. Two schemas without unions are always versions of
/// each other.
pub(super) fn pair<'a>(
    old: &'a Site,
    new: &'a Site,
    old_resolver: Resolver<'_>,
    new_resolver: Resolver<'_>,
) -> Pairing<'a> {
    if let (Some(before), Some(after)) = (old.single(), new.single()) {
        return Pairing {
            pairs: vec![(before, after)],
            ..Pairing::default()
        };
    }
    let before = candidates(old, old_resolver);
    let after = candidates(new, new_resolver);
    let telling = telling(&before, &after);
    let mut fits: Vec<(Score, usize, usize)> = Vec::new();
    for (left, mine) in before.iter().enumerate() {
        for (right, theirs) in after.iter().enumerate() {
            fits.extend(score(mine, theirs, &telling).map(|score| (score, left, right)));
        }
    }
    // The best score comes first; among equals the order in the schema decides.
    fits.sort_by(|one, two| two.0.cmp(&one.0).then((one.1, one.2).cmp(&(two.1, two.2))));
    let mut matched = BTreeMap::new();
    let mut taken = BTreeSet::new();
    for (_, left, right) in fits {
        if !matched.contains_key(&left) && taken.insert(right) {
            matched.insert(left, right);
        }
    }
    let mut pairing = Pairing::default();
    for (left, branch) in old.branches.iter().enumerate() {
        match matched
            .get(&left)
            .and_then(|right| new.branches.get(*right))
        {
            Some(other) => pairing.pairs.push((branch, other)),
            None => pairing.removed.push(branch),
        }
    }
    let is_added = |(right, _): &(usize, &Branch)| !taken.contains(right);
    let added = new.branches.iter().enumerate().filter(is_added);
    pairing.added = added.map(|(_, branch)| branch).collect();
    pairing
}

fn candidates<'a>(site: &'a Site, resolver: Resolver<'_>) -> Vec<Candidate<'a>> {
    let candidate = |branch| Candidate {
        branch,
        fixed: fixed(branch, resolver),
        content: content(branch),
    };
    site.branches.iter().map(candidate).collect()
}

/// The properties whose values tell the branches of one side apart.
fn telling<'a>(before: &[Candidate<'a>], after: &[Candidate<'a>]) -> BTreeSet<&'a str> {
    let mut names = BTreeSet::new();
    for side in [before, after] {
        let mut seen: BTreeMap<&str, &Vec<Value>> = BTreeMap::new();
        for (name, values) in side.iter().flat_map(|candidate| &candidate.fixed) {
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

/// How well two branches fit, if they can be versions of each other at all.
fn score(old: &Candidate<'_>, new: &Candidate<'_>, telling: &BTreeSet<&str>) -> Option<Score> {
    let mut agreeing = 0;
    let mut contradicting = false;
    for name in telling {
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
    if agreeing == 0 && !same_name && !same_content && !same_family(old.branch, new.branch) {
        return None;
    }
    let names = |branch: &Branch| -> BTreeSet<String> {
        let required = branch.required.iter().map(|name| format!("{name}!"));
        branch.properties.keys().cloned().chain(required).collect()
    };
    let common = names(old.branch).intersection(&names(new.branch)).count();
    Some((agreeing, same_name, same_content, common))
}

/// The properties of a branch that can only have certain values, and these values.
fn fixed<'a>(branch: &'a Branch, resolver: Resolver<'_>) -> BTreeMap<&'a str, Vec<Value>> {
    let mut found = BTreeMap::new();
    for (name, property) in &branch.properties {
        let site = resolver.site(&property.schema);
        if let Some(values) = site.single().and_then(|single| single.values.clone()) {
            found.insert(name.as_str(), values);
        }
    }
    found
}

/// Whether two branches have the same JSON type; integers and numbers are of one family.
pub(super) fn same_family(left: &Branch, right: &Branch) -> bool {
    let family = |branch: &Branch| match branch.kind.as_deref() {
        Some("integer") => Some("number".to_owned()),
        kind => kind.map(str::to_owned),
    };
    family(left) == family(right)
}

/// Whether a branch of its type stands alone on both sides, so that the place needs no label.
pub(super) fn is_only_one_of_its_kind(branch: &Branch, old: &Site, new: &Site) -> bool {
    let count = |site: &Site| {
        let alike = |other: &&Branch| same_family(other, branch);
        site.branches.iter().filter(alike).count()
    };
    count(old) <= 1 && count(new) <= 1
}

/// Whether some branch of a site accepts all that this branch accepts, because it demands
/// nothing but the same type.
pub(super) fn covered(branch: &Branch, by: &Site) -> bool {
    by.branches.iter().any(|other| {
        let free = other.values.is_none()
            && other.rest.is_empty()
            && other.properties.is_empty()
            && other.required.is_empty();
        let whole = other.kind.as_deref() == Some("number") && same_family(other, branch);
        free && (other.kind.is_none() || other.kind == branch.kind || whole)
    })
}

/// A short name for a branch of a site: its definition, the value that only it has in some
/// property, its title or its type.
pub(super) fn label(branch: &Branch, site: &Site, resolver: Resolver<'_>) -> String {
    if let Some(reference) = &branch.reference {
        return definition_name(reference).to_owned();
    }
    let all: Vec<_> = site
        .branches
        .iter()
        .map(|other| fixed(other, resolver))
        .collect();
    for (name, values) in fixed(branch, resolver) {
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

/// The demands of a branch as comparable text.
pub(super) fn content(branch: &Branch) -> String {
    let properties: Vec<String> = branch
        .properties
        .iter()
        .map(|(name, property)| format!("{name:?}:{}", fingerprint(&property.schema)))
        .collect();
    let rest: Vec<String> = branch
        .rest
        .iter()
        .map(|(key, value)| format!("{key}:{}", fingerprint(value)))
        .collect();
    format!(
        "{:?} {:?} {:?} {properties:?} {rest:?}",
        branch.kind, branch.values, branch.required
    )
}

/// A schema as comparable text: without descriptions, and in one order of keywords.
pub(super) fn fingerprint(schema: &Value) -> String {
    without_docs(schema).to_string()
}

fn without_docs(schema: &Value) -> Value {
    match schema {
        Value::Array(elements) => elements.iter().map(without_docs).collect(),
        Value::Object(_) if !std::ptr::eq(peel(schema).core, schema) => {
            let peeled = peel(schema);
            let core = without_docs(peeled.core);
            if peeled.nullable {
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
                    "properties" | "patternProperties" => bare.insert(key.clone(), named(value)),
                    "type" => bare.insert(key.clone(), one_type(value)),
                    _ => bare.insert(key.clone(), without_docs(value)),
                };
            }
            Value::Object(bare)
        }
        other => other.clone(),
    }
}

/// The keys here are names of properties, one of which may well be `description`.
fn named(properties: &Value) -> Value {
    let Some(properties) = properties.as_object() else {
        return properties.clone();
    };
    let sorted: BTreeMap<&String, &Value> = properties.iter().collect();
    let bare = |(name, schema): (&String, &Value)| (name.clone(), without_docs(schema));
    Value::Object(sorted.into_iter().map(bare).collect())
}

/// A list of one type is that type.
fn one_type(kinds: &Value) -> Value {
    match kinds.as_array().map(Vec::as_slice) {
        Some([only]) => only.clone(),
        _ => kinds.clone(),
    }
}

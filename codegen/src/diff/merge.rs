//! Merging the parts of `allOf`, and of keywords that stand next to a reference or a union.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::matching::content;
use super::normalise::{Branch, Property};
use super::vocabulary::{LOWER, UPPER};

/// More combinations than this are not worked out; no schema people write comes near.
const MOST: usize = 1024;

/// The branches of two schemas that must both hold. No branches mean no demands.
pub(super) fn product(left: Vec<Branch>, right: Vec<Branch>) -> Vec<Branch> {
    if right.is_empty() {
        return left;
    }
    if left.is_empty() {
        return right;
    }
    if left.len().saturating_mul(right.len()) > MOST {
        return opaque(left, &right);
    }
    let mut merged = Vec::new();
    for first in &left {
        merged.extend(right.iter().filter_map(|second| both(first, second)));
    }
    if merged.is_empty() {
        // The parts contradict each other, and there is nothing to merge.
        return opaque(left, &right);
    }
    merged
}

/// Keeps what cannot be merged as a keyword of its own, so that a change in it is still seen.
fn opaque(mut left: Vec<Branch>, right: &[Branch]) -> Vec<Branch> {
    let parts: Vec<String> = right.iter().map(content).collect();
    let unresolved = json!(parts);
    for branch in &mut left {
        branch.rest.insert("allOf".to_owned(), unresolved.clone());
    }
    left
}

/// One branch that demands what both demand, unless no value can satisfy both types.
fn both(left: &Branch, right: &Branch) -> Option<Branch> {
    let mut result = left.clone();
    result.kind = common_kind(left.kind.as_deref(), right.kind.as_deref())?;
    result.values = match (&left.values, &right.values) {
        (Some(mine), Some(theirs)) => {
            let common = mine.iter().filter(|value| theirs.contains(value));
            Some(common.cloned().collect())
        }
        (mine, theirs) => mine.clone().or_else(|| theirs.clone()),
    };
    result.required.extend(right.required.iter().cloned());
    for (name, theirs) in &right.properties {
        let merged = match left.properties.get(name) {
            Some(mine) => both_properties(mine, theirs),
            None => theirs.clone(),
        };
        result.properties.insert(name.clone(), merged);
    }
    for (key, theirs) in &right.rest {
        let merged = match left.rest.get(key) {
            Some(mine) => both_keywords(key, mine, theirs),
            None => theirs.clone(),
        };
        result.rest.insert(key.clone(), merged);
    }
    underlay(&mut result.docs, &right.docs);
    underlay(&mut result.definition_docs, &right.definition_docs);
    result.reference = merged_reference(&result, left, right);
    Some(result)
}

/// Adds words from further inside. A description that another one covers is kept apart, so that
/// a change in it is still seen.
pub(super) fn underlay(docs: &mut BTreeMap<String, Value>, inner: &BTreeMap<String, Value>) {
    for (key, text) in inner {
        match docs.get(key) {
            None => {
                docs.insert(key.clone(), text.clone());
            }
            Some(outer) if key == "description" && outer != text => {
                docs.entry("further description".to_owned())
                    .or_insert_with(|| text.clone());
            }
            Some(_) => {}
        }
    }
}

/// A definition that the other part adds nothing to is still that definition.
fn merged_reference(result: &Branch, left: &Branch, right: &Branch) -> Option<String> {
    [right, left]
        .into_iter()
        .find(|part| part.reference.is_some() && result.same_content(part))
        .and_then(|part| part.reference.clone())
}

/// The type both sides allow: `None` when there is none, `Some(None)` when any is allowed.
fn common_kind(left: Option<&str>, right: Option<&str>) -> Option<Option<String>> {
    match (left, right) {
        (None, kind) | (kind, None) => Some(kind.map(str::to_owned)),
        (Some(mine), Some(theirs)) if mine == theirs => Some(Some(mine.to_owned())),
        (Some("integer" | "number"), Some("integer" | "number")) => {
            Some(Some("integer".to_owned()))
        }
        _ => None,
    }
}

/// A property that two parts declare alike keeps its origin; one that they add to has none.
fn both_properties(left: &Property, right: &Property) -> Property {
    let alike = left.schema == right.schema;
    let origin = left.origin.clone().or_else(|| right.origin.clone());
    Property {
        schema: all_of(&left.schema, &right.schema),
        origin: origin.filter(|_| alike),
    }
}

fn both_keywords(key: &str, left: &Value, right: &Value) -> Value {
    if left == right {
        return left.clone();
    }
    match key {
        "items" | "additionalProperties" => all_of(left, right),
        _ if LOWER.contains(&key) => further(left, right, f64::gt),
        _ if UPPER.contains(&key) => further(left, right, f64::lt),
        "uniqueItems" => json!(true),
        _ => json!([left, right]),
    }
}

/// The value that accepts less.
fn further(left: &Value, right: &Value, stricter: fn(&f64, &f64) -> bool) -> Value {
    match (left.as_f64(), right.as_f64()) {
        (Some(mine), Some(theirs)) if stricter(&theirs, &mine) => right.clone(),
        _ => left.clone(),
    }
}

/// A schema that demands both. Nested lists are flattened and nothing is listed twice, which
/// keeps recursive definitions from growing on every visit.
fn all_of(left: &Value, right: &Value) -> Value {
    let nothing = json!(false);
    if left == &nothing || right == &nothing {
        return nothing;
    }
    let mut parts: Vec<Value> = Vec::new();
    for side in [left, right] {
        let nested = side
            .as_object()
            .filter(|keywords| keywords.len() == 1)
            .and_then(|keywords| keywords.get("allOf")?.as_array());
        let side = nested.map_or(std::slice::from_ref(side), Vec::as_slice);
        for part in side {
            if part != &json!(true) && !parts.contains(part) {
                parts.push(part.clone());
            }
        }
    }
    match parts.as_slice() {
        [] => json!(true),
        [only] => only.clone(),
        _ => json!({ "allOf": parts }),
    }
}

//! Merges the parts of `allOf`, and keywords next to a reference or a union.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::keyword_groups::{LOWER_BOUNDS, UPPER_BOUNDS};
use super::matching::content_key;
use super::normalize::{Branch, Property};

/// Limit on branch combinations, far above what real schemas need.
const MAX_COMBINATIONS: usize = 1024;

/// Returns the branches of values that satisfy both schemas. An empty list restricts nothing.
pub(super) fn intersect(left: Vec<Branch>, right: Vec<Branch>) -> Vec<Branch> {
    if right.is_empty() {
        return left;
    }
    if left.is_empty() {
        return right;
    }
    if left.len().saturating_mul(right.len()) > MAX_COMBINATIONS {
        return with_unmerged(left, &right);
    }
    let mut merged = Vec::new();
    for first in &left {
        merged.extend(
            right
                .iter()
                .filter_map(|second| intersect_branches(first, second)),
        );
    }
    if merged.is_empty() {
        // The parts contradict each other, so there is nothing to merge.
        return with_unmerged(left, &right);
    }
    merged
}

/// Retains parts that cannot be merged as a separate keyword, so that changes in them are reported.
fn with_unmerged(mut left: Vec<Branch>, right: &[Branch]) -> Vec<Branch> {
    let parts: Vec<String> = right.iter().map(content_key).collect();
    let unresolved = json!(parts);
    for branch in &mut left {
        branch
            .constraints
            .insert("allOf".to_owned(), unresolved.clone());
    }
    left
}

/// Returns a branch with the constraints of both, or `None` if their types contradict each other.
fn intersect_branches(left: &Branch, right: &Branch) -> Option<Branch> {
    let mut result = left.clone();
    result.kind = common_type(left.kind.as_deref(), right.kind.as_deref())?;
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
            Some(mine) => intersect_properties(mine, theirs),
            None => theirs.clone(),
        };
        result.properties.insert(name.clone(), merged);
    }
    for (key, theirs) in &right.constraints {
        let merged = match left.constraints.get(key) {
            Some(mine) => intersect_keywords(key, mine, theirs),
            None => theirs.clone(),
        };
        result.constraints.insert(key.clone(), merged);
    }
    add_inner_docs(&mut result.docs, &right.docs);
    add_inner_docs(&mut result.definition_docs, &right.definition_docs);
    result.reference = merged_reference(&result, left, right);
    Some(result)
}

/// Adds the documentation of an inner schema. A description that the outer one hides is stored under
/// its own key, so that changes in it are reported.
pub(super) fn add_inner_docs(docs: &mut BTreeMap<String, Value>, inner: &BTreeMap<String, Value>) {
    for (key, text) in inner {
        match docs.get(key) {
            None => {
                docs.insert(key.clone(), text.clone());
            }
            Some(outer) if key == "description" && outer != text => {
                docs.entry("inner description".to_owned())
                    .or_insert_with(|| text.clone());
            }
            Some(_) => {}
        }
    }
}

/// Returns the definition that the result still equals, if the other part adds nothing to it.
fn merged_reference(result: &Branch, left: &Branch, right: &Branch) -> Option<String> {
    [right, left]
        .into_iter()
        .find(|part| part.reference.is_some() && result.same_content(part))
        .and_then(|part| part.reference.clone())
}

/// Returns the type that both allow: `None` if there is none, `Some(None)` if any type is allowed.
fn common_type(left: Option<&str>, right: Option<&str>) -> Option<Option<String>> {
    match (left, right) {
        (None, kind) | (kind, None) => Some(kind.map(str::to_owned)),
        (Some(mine), Some(theirs)) if mine == theirs => Some(Some(mine.to_owned())),
        (Some("integer" | "number"), Some("integer" | "number")) => {
            Some(Some("integer".to_owned()))
        }
        _ => None,
    }
}

/// Merges two declarations of a property. The origin remains only if both are identical.
fn intersect_properties(left: &Property, right: &Property) -> Property {
    let alike = left.schema == right.schema;
    let origin = left.origin.clone().or_else(|| right.origin.clone());
    Property {
        schema: all_of(&left.schema, &right.schema),
        origin: origin.filter(|_| alike),
    }
}

fn intersect_keywords(key: &str, left: &Value, right: &Value) -> Value {
    if left == right {
        return left.clone();
    }
    match key {
        "items" | "additionalProperties" => all_of(left, right),
        _ if LOWER_BOUNDS.contains(&key) => stricter_bound(left, right, f64::gt),
        _ if UPPER_BOUNDS.contains(&key) => stricter_bound(left, right, f64::lt),
        "uniqueItems" => json!(true),
        _ => json!([left, right]),
    }
}

/// Returns the stricter of two bounds.
fn stricter_bound(left: &Value, right: &Value, stricter: fn(&f64, &f64) -> bool) -> Value {
    match (left.as_f64(), right.as_f64()) {
        (Some(mine), Some(theirs)) if stricter(&theirs, &mine) => right.clone(),
        _ => left.clone(),
    }
}

/// Combines two schemas with `allOf`. Nested lists are flattened and duplicates dropped, so that
/// recursive definitions do not grow on every visit.
fn all_of(left: &Value, right: &Value) -> Value {
    let nothing = json!(false);
    if left == &nothing || right == &nothing {
        return nothing;
    }
    let mut parts: Vec<Value> = Vec::new();
    for schema in [left, right] {
        let nested = schema
            .as_object()
            .filter(|keywords| keywords.len() == 1)
            .and_then(|keywords| keywords.get("allOf")?.as_array());
        let schemas = nested.map_or(std::slice::from_ref(schema), Vec::as_slice);
        for part in schemas {
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

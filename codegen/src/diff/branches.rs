//! Splits schemas into one branch per JSON type and collects branches into a normalized schema.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::keyword_groups::applies_to;
use super::normalize::{Branch, NormalizedSchema, Property};

/// Returns the types that a schema requires. A schema without `type` that lists values, properties
/// or items gets the type they imply.
pub(super) fn required_types(
    keywords: &Map<String, Value>,
    values: Option<&[Value]>,
) -> Vec<String> {
    match keywords.get("type") {
        Some(Value::String(kind)) => return vec![kind.clone()],
        Some(Value::Array(kinds)) => {
            let named = kinds.iter().filter_map(Value::as_str).map(str::to_owned);
            return named.collect();
        }
        _ => {}
    }
    if let Some(values) = values {
        let kinds: BTreeSet<&str> = values.iter().map(json_type).collect();
        return kinds.into_iter().map(str::to_owned).collect();
    }
    if keywords.contains_key("properties") {
        vec!["object".to_owned()]
    } else if keywords.contains_key("items") {
        vec!["array".to_owned()]
    } else {
        Vec::new()
    }
}

/// Restricts a branch to one type, with only the values and keywords that apply to it. Returns
/// `None` if no listed value has that type.
pub(super) fn restrict(branch: &Branch, kind: &str) -> Option<Branch> {
    let mut result = branch.clone();
    result.kind = Some(kind.to_owned());
    if let Some(values) = &mut result.values {
        values.retain(|value| has_type(value, kind));
        if values.is_empty() {
            return None;
        }
    }
    result.constraints.retain(|key, _| applies_to(key, kind));
    if kind != "object" {
        result.properties.clear();
        result.required.clear();
    }
    Some(result)
}

/// Collects branches into a schema: `null` becomes a flag, enum values of one type become one list,
/// and duplicates are dropped.
pub(super) fn collect(docs: BTreeMap<String, Value>, found: Vec<Branch>) -> NormalizedSchema {
    let nullable = found.iter().any(Branch::is_null);
    let mut branches: Vec<Branch> = Vec::new();
    for branch in found {
        if branch.is_null() {
            continue;
        }
        let branch = clean_up(branch);
        if branches.iter().any(|known| known.same_content(&branch)) {
            continue;
        }
        match branches
            .iter_mut()
            .find(|known| are_enum_parts(known, &branch))
        {
            Some(known) => merge_enum(known, branch),
            None => branches.push(branch),
        }
    }
    match (branches.is_empty(), nullable) {
        (false, _) => {}
        (true, true) => branches.push(Branch {
            kind: Some("null".to_owned()),
            ..Branch::default()
        }),
        (true, false) => branches.push(Branch::default()),
    }
    let nullable = nullable && !branches.iter().any(Branch::is_null);
    NormalizedSchema {
        nullable,
        branches,
        docs,
    }
}

/// Drops keywords that do not apply to the type, which may be known only after merging, and declares
/// every required property.
fn clean_up(mut branch: Branch) -> Branch {
    if let Some(kind) = branch.kind.clone() {
        branch.constraints.retain(|key, _| applies_to(key, &kind));
    }
    for name in branch.required.clone() {
        branch.properties.entry(name).or_insert(Property {
            schema: json!(true),
            origin: None,
        });
    }
    branch
}

/// Returns whether both branches only list values of one type and so form one enum.
fn are_enum_parts(left: &Branch, right: &Branch) -> bool {
    let plain = |branch: &Branch| {
        branch.values.is_some() && branch.reference.is_none() && branch.constraints.is_empty()
    };
    plain(left) && plain(right) && left.kind == right.kind && left.kind.as_deref() != Some("object")
}

fn merge_enum(known: &mut Branch, more: Branch) {
    const NOTES: &str = "value descriptions";
    let note = |branch: &Branch| -> Option<String> {
        let text = branch.docs.get("description")?.as_str()?.to_owned();
        let value = branch.values.as_ref()?.first()?;
        Some(format!("{}: {text}", value.to_string().trim_matches('"')))
    };
    let first = match known.docs.get(NOTES).and_then(Value::as_str) {
        Some(notes) => Some(notes.to_owned()),
        None => note(known),
    };
    let notes: Vec<String> = [first, note(&more)].into_iter().flatten().collect();
    known.docs.clear();
    if !notes.is_empty() {
        known.docs.insert(NOTES.to_owned(), json!(notes.join("; ")));
    }
    if let Some(values) = &mut known.values {
        for value in more.values.unwrap_or_default() {
            if !values.contains(&value) {
                values.push(value);
            }
        }
    }
}

fn has_type(value: &Value, kind: &str) -> bool {
    let own = json_type(value);
    own == kind || (own == "integer" && kind == "number")
}

fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

//! The parts of the common form that concern types: telling them, splitting by them and
//! gathering branches that belong together.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::normalise::{Branch, Property, Site};
use super::vocabulary::concerns;

/// The types a schema demands. A schema that lists values or properties but forgets its type is
/// read as if it had named it.
pub(super) fn kinds(keywords: &Map<String, Value>, values: Option<&[Value]>) -> Vec<String> {
    match keywords.get("type") {
        Some(Value::String(kind)) => return vec![kind.clone()],
        Some(Value::Array(kinds)) => {
            let named = kinds.iter().filter_map(Value::as_str).map(str::to_owned);
            return named.collect();
        }
        _ => {}
    }
    if let Some(values) = values {
        let kinds: BTreeSet<&str> = values.iter().map(kind_of).collect();
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

/// A branch restricted to one type: only the values and keywords that concern it remain. There
/// is none when the listed values leave nothing of that type.
pub(super) fn restricted(branch: &Branch, kind: &str) -> Option<Branch> {
    let mut result = branch.clone();
    result.kind = Some(kind.to_owned());
    if let Some(values) = &mut result.values {
        values.retain(|value| has_kind(value, kind));
        if values.is_empty() {
            return None;
        }
    }
    result.rest.retain(|key, _| concerns(key, kind));
    if kind != "object" {
        result.properties.clear();
        result.required.clear();
    }
    Some(result)
}

/// Turns the branches found into a site: `null` becomes a flag, plain values of one type are one
/// list, and what is there twice is there once.
pub(super) fn site(docs: BTreeMap<String, Value>, found: Vec<Branch>) -> Site {
    let nullable = found.iter().any(Branch::is_null);
    let mut branches: Vec<Branch> = Vec::new();
    for branch in found {
        if branch.is_null() {
            continue;
        }
        let branch = tidied(branch);
        if branches.iter().any(|known| known.same_content(&branch)) {
            continue;
        }
        match branches.iter_mut().find(|known| foldable(known, &branch)) {
            Some(known) => gather(known, branch),
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
    Site {
        nullable,
        branches,
        docs,
    }
}

/// Drops what does not concern the type, which may be known only after merging, and gives every
/// required name a property.
fn tidied(mut branch: Branch) -> Branch {
    if let Some(kind) = branch.kind.clone() {
        branch.rest.retain(|key, _| concerns(key, &kind));
    }
    for name in branch.required.clone() {
        branch.properties.entry(name).or_insert(Property {
            schema: json!(true),
            origin: None,
        });
    }
    branch
}

/// Two branches that only list values of one type are one list written in two parts.
fn foldable(left: &Branch, right: &Branch) -> bool {
    let plain = |branch: &Branch| {
        branch.values.is_some() && branch.reference.is_none() && branch.rest.is_empty()
    };
    plain(left) && plain(right) && left.kind == right.kind && left.kind.as_deref() != Some("object")
}

fn gather(known: &mut Branch, more: Branch) {
    const NOTES: &str = "descriptions of values";
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

fn has_kind(value: &Value, kind: &str) -> bool {
    let own = kind_of(value);
    own == kind || (own == "integer" && kind == "number")
}

fn kind_of(value: &Value) -> &'static str {
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

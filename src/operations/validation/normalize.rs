//! Normalizes the arguments as a whole: unwraps them and resolves aliases.

use serde_json::{Map, Value};

use super::messages::{ArgumentPath, given_with_type};
use super::schema::Node;
use super::{ArgumentProblem, ArgumentSpec, names, synonyms};

/// Names of objects in which models sometimes wrap all arguments.
const WRAPPERS: &[&str] = &["args", "params", "arguments", "body", "parameters"];
/// The most nested wrappers that are removed.
const MAX_WRAPPERS: usize = 3;

/// Returns the arguments as an object, without wrappers.
pub(super) fn unwrap(
    spec: &ArgumentSpec<'_>,
    arguments: Value,
    notes: &mut Vec<String>,
) -> Result<Map<String, Value>, ArgumentProblem> {
    let mut map = match arguments {
        Value::Object(map) => map,
        Value::Null => Map::new(),
        Value::String(text) => match serde_json::from_str(&text) {
            Ok(Value::Object(map)) => {
                notes.push("`arguments`: read the JSON text as an object".to_owned());
                map
            }
            _ => return Err(not_an_object(&Value::String(text))),
        },
        other => return Err(not_an_object(&other)),
    };
    let known = Node::root(spec.input_schema).names();
    for _ in 0..MAX_WRAPPERS {
        match unwrap_once(&map, &known) {
            Some((wrapper, inner)) => {
                notes.push(format!("`{wrapper}`: took the arguments out of it"));
                map = inner;
            }
            None => break,
        }
    }
    Ok(map)
}

fn not_an_object(value: &Value) -> ArgumentProblem {
    let path = ArgumentPath::default();
    ArgumentProblem {
        path: path.to_string(),
        message: format!(
            "the arguments must be an object; got {}",
            given_with_type(value)
        ),
    }
}

fn unwrap_once(map: &Map<String, Value>, known: &[&str]) -> Option<(String, Map<String, Value>)> {
    let (name, value) = map.iter().next().filter(|_| map.len() == 1)?;
    if !WRAPPERS.contains(&name.as_str()) || known.contains(&name.as_str()) {
        return None;
    }
    let inner = match value {
        Value::Object(inner) => inner.clone(),
        Value::String(text) => serde_json::from_str(text).ok()?,
        _ => return None,
    };
    Some((name.clone(), inner))
}

/// Replaces aliases by the names of their arguments. An alias with another value than its argument is a problem:
/// there is no telling which was meant.
pub(super) fn aliases(
    spec: &ArgumentSpec<'_>,
    map: &mut Map<String, Value>,
    notes: &mut Vec<String>,
) -> Vec<ArgumentProblem> {
    let root = Node::root(spec.input_schema);
    let (known, required) = (root.names(), root.required());
    let given: Vec<String> = map.keys().cloned().collect();
    let mut problems = Vec::new();
    for alias in given.iter().filter(|it| !known.contains(&it.as_str())) {
        let name = meant(spec, alias, &known).or_else(|| {
            let is_known = names::variant(alias, known.iter().copied()).is_some();
            let is_extra = spec.extra_names.contains(&alias.as_str());
            // A required argument comes first; a name that is handled elsewhere can only stand for one of those.
            let others = known.iter().chain(spec.extra_names).filter(|_| !is_extra);
            let names = required.iter().chain(others).copied();
            let is_given = |name: &str| map.contains_key(name);
            // A second name for an argument that is given is not meant for another argument.
            let given = known.iter().copied().filter(|name| is_given(name));
            let second = synonyms::meant(alias, given, |_| !is_extra);
            let free = || synonyms::meant(alias, names, |name| !is_given(name));
            second.or_else(free).filter(|_| !is_known)
        });
        let Some(name) = name else {
            continue;
        };
        // A null alias counts as not given.
        if map.get(alias).is_some_and(Value::is_null) {
            notes.push(format!("`{alias}`: left out, because null is not allowed"));
            map.shift_remove(alias);
            continue;
        }
        notes.push(format!("`{alias}`: read as `{name}`"));
        if map.get(name).is_some_and(Value::is_null) {
            map.shift_remove(name);
        }
        let Some(other) = map.get(name) else {
            names::replace(map, alias, name);
            continue;
        };
        if map.get(alias) != Some(other) {
            problems.push(ArgumentProblem {
                path: name.to_owned(),
                message: format!("`{name}` and `{alias}` mean the same argument but differ"),
            });
        }
        map.shift_remove(alias);
    }
    problems
}

/// Returns the argument that an alias stands for; a different spelling of a known argument is not an alias.
fn meant<'a>(spec: &ArgumentSpec<'a>, given: &str, known: &[&str]) -> Option<&'a str> {
    let exact = spec.aliases.iter().find(|(alias, _)| *alias == given);
    let spelt = || {
        let other = names::variant(given, known.iter().copied()).is_some();
        let aliases = spec.aliases.iter().map(|(alias, _)| *alias);
        let alias = names::variant(given, aliases).filter(|_| !other)?;
        spec.aliases.iter().find(|(name, _)| *name == alias)
    };
    exact.or_else(spelt).map(|(_, argument)| *argument)
}

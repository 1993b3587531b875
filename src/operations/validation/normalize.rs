//! The arguments as a whole: unpacked, and called by their own names.

use serde_json::{Map, Value};

use super::messages::{Place, given_kind};
use super::schema::Node;
use super::{Problem, Subject, names};

/// Names under which all arguments are sometimes sent once more.
const WRAPPERS: &[&str] = &["args", "params", "arguments", "body", "parameters"];
/// A wrapper around a wrapper happens; more are no slip.
const MAX_WRAPPERS: usize = 3;

/// The object of the arguments, out of whatever it was packed in.
pub(super) fn open(
    subject: &Subject<'_>,
    arguments: Value,
    notes: &mut Vec<String>,
) -> Result<Map<String, Value>, Problem> {
    let mut map = match arguments {
        Value::Object(map) => map,
        Value::Null => Map::new(),
        Value::String(text) => match serde_json::from_str(&text) {
            Ok(Value::Object(map)) => {
                notes.push("`arguments`: read the JSON text as an object".to_owned());
                map
            }
            _ => return Err(no_object(&Value::String(text))),
        },
        other => return Err(no_object(&other)),
    };
    let known = Node::top(subject.input_schema).names();
    for _ in 0..MAX_WRAPPERS {
        match unwrapped(&map, &known) {
            Some((wrapper, inner)) => {
                notes.push(format!("`{wrapper}`: took the arguments out of it"));
                map = inner;
            }
            None => break,
        }
    }
    Ok(map)
}

fn no_object(value: &Value) -> Problem {
    let place = Place::default();
    Problem {
        place: place.to_string(),
        text: format!("the arguments must be an object; got {}", given_kind(value)),
    }
}

fn unwrapped(map: &Map<String, Value>, known: &[&str]) -> Option<(String, Map<String, Value>)> {
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

/// Gives arguments that were called by an alias their own names. Two names for one argument with
/// different values are a problem: nothing says which was meant.
pub(super) fn aliases(
    subject: &Subject<'_>,
    map: &mut Map<String, Value>,
    notes: &mut Vec<String>,
) -> Vec<Problem> {
    let known = Node::top(subject.input_schema).names();
    let given: Vec<String> = map.keys().cloned().collect();
    let mut problems = Vec::new();
    for alias in given.iter().filter(|it| !known.contains(&it.as_str())) {
        let Some(name) = meant(subject, alias, &known) else {
            continue;
        };
        // Nothing under another name is still nothing.
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
            problems.push(Problem {
                place: name.to_owned(),
                text: format!("`{name}` and `{alias}` mean the same argument but differ"),
            });
        }
        map.shift_remove(alias);
    }
    problems
}

/// The argument that an alias means; a different spelling of a known argument is no alias.
fn meant<'a>(subject: &Subject<'a>, given: &str, known: &[&str]) -> Option<&'a str> {
    let exact = subject.aliases.iter().find(|(alias, _)| *alias == given);
    let spelt = || {
        let other = names::variant(given, known.iter().copied()).is_some();
        let aliases = subject.aliases.iter().map(|(alias, _)| *alias);
        let alias = names::variant(given, aliases).filter(|_| !other)?;
        subject.aliases.iter().find(|(name, _)| *name == alias)
    };
    exact.or_else(spelt).map(|(_, argument)| *argument)
}

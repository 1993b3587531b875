//! Misspelt names and enum values.

use exa_mcp_text::similar_names::{self, MIN_SIMILARITY};
pub(super) use exa_mcp_text::similar_names::{closest_spelling, normalize};
use serde_json::{Map, Value};

use super::messages::ArgumentPath;

/// Returns the only candidate that differs from `given` just in case and separators.
pub(super) fn variant<'c>(
    given: &str,
    candidates: impl IntoIterator<Item = &'c str>,
) -> Option<&'c str> {
    let wanted = normalize(given);
    if wanted.is_empty() {
        return None;
    }
    let mut found = candidates
        .into_iter()
        .filter(|candidate| normalize(candidate) == wanted);
    let first = found.next()?;
    found.all(|other| other == first).then_some(first)
}

/// Returns the candidate that was probably meant, if any is similar enough.
pub(super) fn nearest<'c>(
    given: &str,
    candidates: impl IntoIterator<Item = &'c str>,
) -> Option<&'c str> {
    similar_names::most_similar(given, candidates, MIN_SIMILARITY)
}

/// Corrects misspelled names; never overwrites the value of a correctly spelt one.
pub(super) fn rename(
    map: &mut Map<String, Value>,
    known: &[&str],
    path: &ArgumentPath,
    notes: &mut Vec<String>,
) {
    // Of two misspellings of one name, the one with a value counts.
    let next_misspelled = |map: &Map<String, Value>| {
        let (empty, filled): (Vec<_>, Vec<_>) = map.iter().partition(|(_, it)| it.is_null());
        filled.into_iter().chain(empty).find_map(|(name, _)| {
            if known.contains(&name.as_str()) {
                return None;
            }
            let right = variant(name, known.iter().copied())?;
            let is_free = map.get(right).is_none_or(Value::is_null);
            is_free.then(|| (name.clone(), right.to_owned()))
        })
    };
    while let Some((given, right)) = next_misspelled(map) {
        notes.push(format!("`{}`: read as `{right}`", path.property(&given)));
        map.shift_remove(&right);
        replace(map, &given, &right);
    }
}

/// Renames the entry `given` to `right` without changing its position.
pub(super) fn replace(map: &mut Map<String, Value>, given: &str, right: &str) {
    *map = std::mem::take(map)
        .into_iter()
        .map(|(name, value)| {
            let name = if name == given {
                right.to_owned()
            } else {
                name
            };
            (name, value)
        })
        .collect();
}

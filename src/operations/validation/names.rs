//! Names and listed values that were meant but not spelt.

use exa_mcp_text::similar_names::{self, MIN_SIMILARITY};
pub(super) use exa_mcp_text::similar_names::{closest_spelling, normalize};
use serde_json::{Map, Value};

use super::messages::Place;

/// The only candidate that differs from `given` by nothing but capitals and separators.
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

/// The candidate that was probably meant, if any is near enough to say so.
pub(super) fn nearest<'c>(
    given: &str,
    candidates: impl IntoIterator<Item = &'c str>,
) -> Option<&'c str> {
    similar_names::most_similar(given, candidates, MIN_SIMILARITY)
}

/// Gives slightly wrong names their right form; a name that was given rightly is never replaced.
pub(super) fn rename(
    map: &mut Map<String, Value>,
    known: &[&str],
    place: &Place,
    notes: &mut Vec<String>,
) {
    // Of two misspellings of one name, the one that holds something is meant.
    let slip = |map: &Map<String, Value>| {
        let (empty, filled): (Vec<_>, Vec<_>) = map.iter().partition(|(_, it)| it.is_null());
        filled.into_iter().chain(empty).find_map(|(name, _)| {
            if known.contains(&name.as_str()) {
                return None;
            }
            let right = variant(name, known.iter().copied())?;
            (!map.contains_key(right)).then(|| (name.clone(), right.to_owned()))
        })
    };
    while let Some((given, right)) = slip(map) {
        notes.push(format!("`{}`: read as `{right}`", place.property(&given)));
        replace(map, &given, &right);
    }
}

/// Gives the entry `given` the name `right` and leaves it where it is.
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

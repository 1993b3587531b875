//! Names and listed values that were meant but not spelt.

use serde_json::{Map, Value};

use super::messages::Place;

/// Below this similarity a suggestion would mislead.
const SIMILAR: f64 = 0.8;
/// Typing errors that two otherwise equal names may have.
const TYPING_ERRORS: usize = 2;
/// No name is longer; comparing whole documents with names would only take time.
const MAX_NAME: usize = 64;

/// `candidates`, unless `given` is too long to be one of them.
fn comparable<'c>(
    given: &str,
    candidates: impl IntoIterator<Item = &'c str>,
) -> impl Iterator<Item = &'c str> {
    let short = given.len() <= MAX_NAME;
    candidates.into_iter().take_while(move |_| short)
}

/// What is left of a name without capitals and separators.
pub(super) fn plain(name: &str) -> String {
    name.chars()
        .filter(|character| !matches!(character, '_' | '-' | ' ' | '.'))
        .flat_map(char::to_lowercase)
        .collect()
}

/// The only candidate that differs from `given` by nothing but capitals and separators.
pub(super) fn variant<'c>(
    given: &str,
    candidates: impl IntoIterator<Item = &'c str>,
) -> Option<&'c str> {
    let wanted = plain(given);
    if wanted.is_empty() {
        return None;
    }
    let mut found = candidates
        .into_iter()
        .filter(|candidate| plain(candidate) == wanted);
    let first = found.next()?;
    found.all(|other| other == first).then_some(first)
}

/// The candidate that was probably meant, if any is near enough to say so.
pub(super) fn nearest<'c>(
    given: &str,
    candidates: impl IntoIterator<Item = &'c str>,
) -> Option<&'c str> {
    let wanted = plain(given);
    comparable(given, candidates)
        .map(|candidate| (strsim::jaro_winkler(&wanted, &plain(candidate)), candidate))
        .filter(|(similarity, _)| *similarity >= SIMILAR)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

/// The candidate that `given` misspells: only a letter or two apart.
pub(super) fn misspelt<'c>(
    given: &str,
    candidates: impl IntoIterator<Item = &'c str>,
) -> Option<&'c str> {
    let wanted = plain(given);
    comparable(given, candidates)
        .map(|candidate| (strsim::osa_distance(&wanted, &plain(candidate)), candidate))
        // In a short name two letters are most of the name.
        .filter(|(distance, candidate)| {
            *distance <= TYPING_ERRORS.min(candidate.len().min(wanted.len()) / 3)
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
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

//! Finds the name that was probably meant.

/// No name is longer; comparing whole documents with names would only take time.
const MAX_NAME: usize = 64;

/// The least similarity at which one name suggests another.
pub const MIN_SIMILARITY: f64 = 0.8;

/// Returns a name without capitals and separators.
pub fn normalize(name: &str) -> String {
    name.chars()
        .filter(|character| !matches!(character, '_' | '-' | ' ' | '.'))
        .flat_map(char::to_lowercase)
        .collect()
}

/// Returns the candidates that resemble `given` at least this much, the most similar first.
///
/// Similarity runs from 0 to 1; capitals and separators do not count.
pub fn find_similar<'c>(
    given: &str,
    candidates: impl IntoIterator<Item = &'c str>,
    least: f64,
) -> Vec<&'c str> {
    if given.len() > MAX_NAME {
        return Vec::new();
    }
    let wanted = normalize(given);
    let mut found: Vec<(f64, &str)> = candidates
        .into_iter()
        .map(|candidate| {
            (
                strsim::jaro_winkler(&wanted, &normalize(candidate)),
                candidate,
            )
        })
        .filter(|(similarity, _)| *similarity >= least)
        .collect();
    found.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    found.into_iter().map(|(_, candidate)| candidate).collect()
}

/// Returns the candidate that resembles `given` most, if any resembles it at least this much.
pub fn most_similar<'c>(
    given: &str,
    candidates: impl IntoIterator<Item = &'c str>,
    least: f64,
) -> Option<&'c str> {
    find_similar(given, candidates, least).into_iter().next()
}

/// Returns the candidate that differs from `given` by at most two typing errors.
pub fn closest_spelling<'c>(
    given: &str,
    candidates: impl IntoIterator<Item = &'c str>,
) -> Option<&'c str> {
    const TYPING_ERRORS: usize = 2;
    if given.len() > MAX_NAME {
        return None;
    }
    let wanted = normalize(given);
    candidates
        .into_iter()
        .map(|candidate| {
            (
                strsim::osa_distance(&wanted, &normalize(candidate)),
                candidate,
            )
        })
        // In a short name two letters are most of the name.
        .filter(|(distance, candidate)| {
            *distance <= TYPING_ERRORS.min(candidate.len().min(wanted.len()) / 3)
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 3] = ["items.list", "items.get", "websets.create"];

    #[test]
    fn capitals_and_separators_do_not_count() {
        assert_eq!(
            most_similar("Items_List", NAMES, MIN_SIMILARITY),
            Some("items.list")
        );
        assert_eq!(normalize("max_Tokens-2"), "maxtokens2");
    }

    #[test]
    fn the_most_similar_name_comes_first() {
        assert_eq!(
            find_similar("items.lst", NAMES, 0.7),
            ["items.list", "items.get"]
        );
        assert_eq!(most_similar("qqqqq", NAMES, 0.7), None);
    }

    #[test]
    fn long_texts_are_not_compared() {
        assert_eq!(most_similar(&"items.list".repeat(7), NAMES, 0.0), None);
        assert_eq!(closest_spelling(&"items.list".repeat(7), NAMES), None);
    }

    #[test]
    fn two_letters_may_be_wrong_but_not_in_a_short_name() {
        assert_eq!(
            closest_spelling("webstes.create", NAMES),
            Some("websets.create")
        );
        assert_eq!(closest_spelling("ab", ["cd"]), None);
    }
}

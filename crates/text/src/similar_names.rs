//! Finds the name that was probably meant.

/// Longer texts are not compared, because they are not names.
const MAX_LENGTH: usize = 64;

/// The default minimum similarity for a suggestion.
pub const MIN_SIMILARITY: f64 = 0.8;

/// Returns a name in lower case and without separators.
pub fn normalize(name: &str) -> String {
    name.chars()
        .filter(|character| !matches!(character, '_' | '-' | ' ' | '.'))
        .flat_map(char::to_lowercase)
        .collect()
}

/// Returns the candidates with at least this similarity to `given`, the most similar first.
///
/// Similarity ranges from 0 to 1 and ignores case and separators.
pub fn find_similar<'c>(
    given: &str,
    candidates: impl IntoIterator<Item = &'c str>,
    min_similarity: f64,
) -> Vec<&'c str> {
    if given.len() > MAX_LENGTH {
        return Vec::new();
    }
    let given = normalize(given);
    let mut found: Vec<(f64, &str)> = candidates
        .into_iter()
        .map(|candidate| {
            (
                strsim::jaro_winkler(&given, &normalize(candidate)),
                candidate,
            )
        })
        .filter(|(similarity, _)| *similarity >= min_similarity)
        .collect();
    found.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    found.into_iter().map(|(_, candidate)| candidate).collect()
}

/// Returns the most similar candidate, if it has at least this similarity.
pub fn most_similar<'c>(
    given: &str,
    candidates: impl IntoIterator<Item = &'c str>,
    min_similarity: f64,
) -> Option<&'c str> {
    find_similar(given, candidates, min_similarity)
        .into_iter()
        .next()
}

/// Returns the candidate that differs from `given` by at most two typos.
pub fn closest_spelling<'c>(
    given: &str,
    candidates: impl IntoIterator<Item = &'c str>,
) -> Option<&'c str> {
    const MAX_TYPOS: usize = 2;
    if given.len() > MAX_LENGTH {
        return None;
    }
    let given = normalize(given);
    candidates
        .into_iter()
        .map(|candidate| {
            (
                strsim::osa_distance(&given, &normalize(candidate)),
                candidate,
            )
        })
        // Two letters would be most of a short name.
        .filter(|(distance, candidate)| {
            *distance <= MAX_TYPOS.min(candidate.len().min(given.len()) / 3)
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 3] = ["items.list", "items.get", "websets.create"];

    #[test]
    fn ignores_case_and_separators() {
        assert_eq!(
            most_similar("Items_List", NAMES, MIN_SIMILARITY),
            Some("items.list")
        );
        assert_eq!(normalize("max_Tokens-2"), "maxtokens2");
    }

    #[test]
    fn sorts_by_similarity() {
        assert_eq!(
            find_similar("items.lst", NAMES, 0.7),
            ["items.list", "items.get"]
        );
        assert_eq!(most_similar("qqqqq", NAMES, 0.7), None);
    }

    #[test]
    fn ignores_long_texts() {
        assert_eq!(most_similar(&"items.list".repeat(7), NAMES, 0.0), None);
        assert_eq!(closest_spelling(&"items.list".repeat(7), NAMES), None);
    }

    #[test]
    fn allows_two_typos_except_in_short_names() {
        assert_eq!(
            closest_spelling("webstes.create", NAMES),
            Some("websets.create")
        );
        assert_eq!(closest_spelling("ab", ["cd"]), None);
    }
}

//! Finds the dotted or joined name, such as `items.list`, that was probably meant.

use crate::similar_names;

/// The least share of common words, and the least similarity of spelling, of a name that is suggested.
const MIN_COMMON: f64 = 0.5;
const MIN_SIMILARITY: f64 = 0.7;

/// Words that undo something. A name with one of them is suggested only for a name with one of them.
const DESTRUCTIVE: [&str; 6] = ["delete", "cancel", "remove", "stop", "destroy", "disable"];

/// Verbs with the same meaning.
const VERBS: [&[&str]; 5] = [
    &["create", "add", "new", "make", "start", "insert"],
    &[
        "get", "read", "fetch", "show", "retrieve", "check", "view", "find",
    ],
    &["list", "all"],
    &["update", "edit", "patch", "change", "modify"],
    &["delete", "remove", "destroy"],
];

/// Returns the candidate whose words are most like those of `given`: whole words count more than letters, and of equal
/// ones the end of a name counts more than its beginning.
pub fn most_similar_path<'c>(
    given: &str,
    candidates: impl IntoIterator<Item = &'c str>,
) -> Option<&'c str> {
    let wanted = words(given);
    let is_destructive = |words: &[String]| {
        let mut words = words.iter();
        words.any(|word| DESTRUCTIVE.contains(&word.as_str()))
    };
    let may_destroy = is_destructive(&wanted);
    let candidates: Vec<(&str, Vec<String>)> = candidates
        .into_iter()
        .map(|candidate| (candidate, words(candidate)))
        .filter(|(_, words)| may_destroy || !is_destructive(words))
        .collect();
    let mut best: Option<(f64, &str)> = None;
    for (candidate, words) in &candidates {
        let score = common(&wanted, words);
        if score >= MIN_COMMON && best.is_none_or(|(least, _)| score > least) {
            best = Some((score, *candidate));
        }
    }
    let names = candidates.iter().map(|(candidate, _)| *candidate);
    let closest = similar_names::most_similar(given, names, MIN_SIMILARITY);
    match best {
        // A typo in one word leaves fewer whole words in common than another name may have.
        Some((score, candidate)) if score >= 1.0 || closest.is_none() => Some(candidate),
        Some((_, candidate)) => {
            let letters = |name: &str| strsim::jaro_winkler(given, name);
            let near =
                closest.filter(|near| letters(near) > 0.93 && letters(near) > letters(candidate));
            near.or(Some(candidate))
        }
        None => closest,
    }
}

/// Returns the share of words that two names have in common, and a little more if they end alike.
fn common(one: &[String], other: &[String]) -> f64 {
    let shared = one.iter().filter(|word| other.contains(word)).count();
    let total = one.len() + other.len();
    if shared == 0 || total == 0 {
        return 0.0;
    }
    let share = 2.0 * shared as f64 / total as f64;
    let is_suffix = one.ends_with(other) || other.ends_with(one);
    let bonus = if is_suffix && one != other { 0.1 } else { 0.0 };
    share.min(1.0) + bonus
}

/// Splits a name into words in lower case and in the singular, with one word for verbs of the same meaning.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut is_open = false;
    let mut was_lower = false;
    for c in name.chars() {
        if !c.is_alphanumeric() {
            is_open = false;
            continue;
        }
        if c.is_uppercase() && was_lower {
            is_open = false;
        }
        was_lower = c.is_lowercase();
        if !is_open {
            words.push(String::new());
            is_open = true;
        }
        if let Some(word) = words.last_mut() {
            word.extend(c.to_lowercase());
        }
    }
    words.into_iter().map(normal_word).collect()
}

fn normal_word(word: String) -> String {
    let group = VERBS.iter().find(|group| group.contains(&word.as_str()));
    if let Some(first) = group.and_then(|group| group.first()) {
        return (*first).to_owned();
    }
    for (ending, stem_end) in [("ches", "ch"), ("ies", "y"), ("s", "")] {
        if let Some(stem) = word.strip_suffix(ending)
            && stem.len() > 2
            && !stem.ends_with('s')
        {
            return format!("{stem}{stem_end}");
        }
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 12] = [
        "answer",
        "search",
        "items.list",
        "items.delete",
        "items.get",
        "websets.list",
        "websets.create",
        "websets.delete",
        "searches.create",
        "searches.cancel",
        "searches.get",
        "enrichments.create",
    ];

    fn meant(given: &str) -> Option<&'static str> {
        most_similar_path(given, NAMES)
    }

    #[test]
    fn compares_whole_words_in_any_order() {
        for (given, expected) in [
            ("webset.items.list", "items.list"),
            ("search.answer", "answer"),
            ("create_search", "searches.create"),
            ("createWebset", "websets.create"),
            ("list_items", "items.list"),
            ("add_enrichment", "enrichments.create"),
            ("websets.items.get", "items.get"),
        ] {
            assert_eq!(meant(given), Some(expected), "{given}");
        }
    }

    #[test]
    fn compares_letters_where_words_differ() {
        assert_eq!(meant("serch"), Some("search"));
        assert_eq!(meant("webstes.create"), Some("websets.create"));
        assert_eq!(meant("qqqqq"), None);
    }

    #[test]
    fn suggests_a_deletion_only_for_a_deletion() {
        assert_eq!(meant("delete_webset"), Some("websets.delete"));
        assert_eq!(meant("remove_items"), Some("items.delete"));
        for harmless in ["items.dele", "search.canc", "item.show", "webset.open"] {
            let meant = meant(harmless).unwrap_or_default();
            assert!(
                !meant.ends_with("delete") && !meant.ends_with("cancel"),
                "{meant}"
            );
        }
    }
}

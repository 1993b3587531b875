//! Names that are valid in file systems and in both languages.

use std::collections::BTreeSet;

/// Hands out names that are not in use.
#[derive(Debug, Default, Clone)]
pub(super) struct NameAllocator(BTreeSet<String>);

impl NameAllocator {
    /// Creates an allocator that never hands out these names.
    pub(super) fn reserving(names: &[&str]) -> Self {
        Self(names.iter().map(|name| (*name).to_owned()).collect())
    }

    /// Returns `name`, or `name2`, `name3` … if it is in use, and marks it as used.
    pub(super) fn claim(&mut self, name: &str) -> String {
        let numbered = (2usize..).map(|number| format!("{name}{number}"));
        let free = std::iter::once(name.to_owned())
            .chain(numbered)
            .find(|candidate| !self.0.contains(candidate))
            .unwrap_or_default();
        self.0.insert(free.clone());
        free
    }

    /// Returns whether a name is in use.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains(name)
    }

    /// Makes a name available again.
    pub(super) fn release(&mut self, name: &str) {
        self.0.remove(name);
    }
}

/// Splits a name into words at everything but ASCII letters and digits, and before capitals.
fn words(name: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    for character in name.chars() {
        let small_before = word
            .chars()
            .last()
            .is_some_and(|last| !last.is_ascii_uppercase());
        let cut = !character.is_ascii_alphanumeric();
        if (cut || (character.is_ascii_uppercase() && small_before)) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if !cut {
            word.push(character);
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

fn capitalize(word: &str) -> String {
    let mut characters = word.chars();
    characters
        .next()
        .map(|first| first.to_ascii_uppercase())
        .into_iter()
        .chain(characters)
        .collect()
}

/// Adds a prefix to a name that is not an identifier.
fn identifier(name: String, prefix: &str) -> String {
    match name.chars().next() {
        Some(first) if !first.is_ascii_digit() => name,
        _ => format!("{prefix}{name}"),
    }
}

/// `LikeThis`, for types.
pub(super) fn pascal(name: &str) -> String {
    let joined = words(name).iter().map(|word| capitalize(word)).collect();
    identifier(joined, "T")
}

/// `likeThis`, for methods in TypeScript.
pub(super) fn camel(name: &str) -> String {
    let words = words(name);
    let first = words.iter().take(1).map(|word| word.to_ascii_lowercase());
    let others = words.iter().skip(1).map(|word| capitalize(word));
    identifier(first.chain(others).collect(), "x")
}

/// `like_this`, for methods in Python and for files.
pub(super) fn snake(name: &str) -> String {
    let joined = words(name).join("_").to_ascii_lowercase();
    identifier(joined, "x")
}

/// Words that are not valid names in Python, not even of attributes.
const PYTHON_KEYWORDS: [&str; 35] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue",
    "def", "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import",
    "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while",
    "with", "yield",
];

/// Returns whether a word is a Python keyword.
pub(super) fn is_python_keyword(word: &str) -> bool {
    PYTHON_KEYWORDS.contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_names_into_words() {
        assert_eq!(pascal("list_attempts"), "ListAttempts");
        assert_eq!(pascal("WebsetItem"), "WebsetItem");
        assert_eq!(pascal("webset.search.created"), "WebsetSearchCreated");
        assert_eq!(camel("search_monitors"), "searchMonitors");
        assert_eq!(snake("searchMonitors"), "search_monitors");
        assert_eq!(snake("APIKeys"), "apikeys");
    }

    #[test]
    fn turns_any_name_into_an_identifier() {
        assert_eq!(snake("../../etc/passwd"), "etc_passwd");
        assert_eq!(snake("…"), "x");
        assert_eq!(pascal("3d"), "T3d");
        assert_eq!(camel("3d"), "x3d");
    }

    #[test]
    fn hands_out_each_name_once() {
        let mut names = NameAllocator::reserving(&["Any"]);
        assert_eq!(names.claim("Any"), "Any2");
        assert_eq!(names.claim("Any"), "Any3");
        names.release("Any2");
        assert_eq!(names.claim("Any"), "Any2");
    }
}

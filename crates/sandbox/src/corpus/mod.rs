//! The synthetic web: pages, companies and people. Everything is derived from the seed and the
//! request. Hosts end in `.example` unless a request names its own, so that no text is attributed to
//! a real site.

pub(crate) mod entity;
pub(crate) mod page;
pub(crate) mod page_query;
mod page_text;
mod sentences;
pub(crate) mod value;
mod vocabulary;

pub(crate) use page::Page;
pub(crate) use page_query::{PageQuery, host_of};

/// Converts a text to a part of a URL: `Solid-state batteries!` becomes `solid-state-batteries`.
pub(crate) fn slug(text: &str, max_words: usize) -> String {
    words_of(text)
        .into_iter()
        .take(max_words)
        .collect::<Vec<_>>()
        .join("-")
}

/// Returns the words of a text in lower case.
pub(crate) fn words_of(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

/// Returns the text with its first letter in upper case.
pub(crate) fn capitalize(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(chars).collect()
    })
}

/// Returns the first characters of a text.
pub(crate) fn truncate(text: &str, max_chars: usize) -> String {
    if text.len() <= max_chars {
        return text.to_owned();
    }
    text.chars().take(max_chars).collect()
}

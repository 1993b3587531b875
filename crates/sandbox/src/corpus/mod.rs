//! The made-up web: pages, companies and people. All of it follows from the seed and the question;
//! hosts end in `.example` unless a request names its own, so that no real site is put words into
//! its mouth.

pub(crate) mod entity;
pub(crate) mod find;
pub(crate) mod page;
mod sentences;
mod text;
pub(crate) mod value;
mod words;

pub(crate) use find::{Find, host_of};
pub(crate) use page::Page;

/// A text as part of an address: `Solid-state batteries!` becomes `solid-state-batteries`.
pub(crate) fn slug(text: &str, most_words: usize) -> String {
    words_of(text)
        .into_iter()
        .take(most_words)
        .collect::<Vec<_>>()
        .join("-")
}

/// The lower-case words of a text.
pub(crate) fn words_of(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

/// The text with a capital first letter.
pub(crate) fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(chars).collect()
    })
}

/// The beginning of a text, cut between characters.
pub(crate) fn start_of(text: &str, most_chars: usize) -> String {
    text.chars().take(most_chars).collect()
}

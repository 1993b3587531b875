//! Single values, for enrichments and watched fields.

use serde_json::Value;

use super::page::person_name;
use super::vocabulary::{LANGUAGES, PLACES, SENTENCES};
use super::{capitalize, host_of, slug, words_of};
use crate::rng::Rng;
use crate::time::{DAY, iso_day};

/// Returns a value in a format of the websets API, for the entity at a URL.
pub(crate) fn of_format(
    rng: &mut Rng,
    format: &str,
    topic: &str,
    url: &str,
    options: &[String],
) -> String {
    match format {
        "date" => iso_day(rng.between(17_500, 20_600) * DAY),
        "number" => rng.between(1, 5_000).to_string(),
        "email" => format!("contact@{}", host_of(url)),
        // 555-0100 to 555-0199 are reserved for fiction.
        "phone" => format!("+1-202-555-01{:02}", rng.below(100)),
        "url" => format!("https://{}/{}", host_of(url), slug(topic, 4)),
        "options" => {
            let labels: Vec<&str> = options.iter().map(String::as_str).collect();
            rng.choose(&labels).to_owned()
        }
        _ => sentence(rng, topic),
    }
}

/// Guesses the format of an enrichment from its description.
pub(crate) fn format_for(description: &str) -> &'static str {
    let words = words_of(description);
    let mentions = |keywords: &[&str]| words.iter().any(|word| keywords.contains(&word.as_str()));
    if mentions(&["email", "mail", "emails"]) {
        "email"
    } else if mentions(&["phone", "telephone"]) {
        "phone"
    } else if mentions(&["url", "website", "link", "linkedin"]) {
        "url"
    } else if mentions(&["date", "when", "founded", "year"]) {
        "date"
    } else if mentions(&[
        "number",
        "count",
        "many",
        "headcount",
        "employees",
        "amount",
    ]) {
        "number"
    } else {
        "text"
    }
}

/// Returns a text for a schema property of this name.
pub(crate) fn text_for(rng: &mut Rng, name: &str) -> String {
    let words = words_of(name);
    let mentions = |suffixes: &[&str]| {
        words
            .iter()
            .any(|word| suffixes.iter().any(|suffix| word.ends_with(suffix)))
    };
    if mentions(&["url", "link", "website"]) {
        format!("https://field-notes.example/{}", rng.below(10_000))
    } else if mentions(&["email"]) {
        "contact@field-notes.example".to_owned()
    } else if mentions(&["date", "createdat", "updatedat", "day"]) {
        iso_day(rng.between(19_000, 20_600) * DAY)
    } else if mentions(&["location", "city", "country", "place"]) {
        rng.choose(PLACES).to_owned()
    } else if mentions(&["language"]) {
        rng.choose(LANGUAGES).to_owned()
    } else if mentions(&["name", "title", "author", "company"]) {
        capitalize(&person_name(rng))
    } else {
        sentence(
            rng,
            if name.is_empty() {
                "this subject"
            } else {
                name
            },
        )
    }
}

/// Returns a sentence about a topic.
pub(crate) fn sentence(rng: &mut Rng, topic: &str) -> String {
    rng.choose(SENTENCES)
        .replace("{}", topic.trim_end_matches(['.', '?', '!']))
}

/// Returns a value of a watched field's type.
pub(crate) fn of_type(rng: &mut Rng, value_type: &str, topic: &str, url: &str) -> Value {
    match value_type {
        "number" => rng.between(1, 5_000).into(),
        "boolean" => rng.one_in(2).into(),
        "string" => sentence(rng, topic).into(),
        other => of_format(rng, other, topic, url, &[]).into(),
    }
}

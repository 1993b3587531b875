//! Single values: what an enrichment or a watched field holds.

use serde_json::Value;

use super::words::{LANGUAGES, PLACES, SENTENCES};
use super::{capital, host_of, slug, words_of};
use crate::random::Dice;
use crate::time::{DAY, iso_day};

/// A value in a format the websets API knows, about the thing at an address.
pub(crate) fn of_format(
    dice: &mut Dice,
    format: &str,
    topic: &str,
    url: &str,
    options: &[String],
) -> String {
    match format {
        "date" => iso_day(dice.between(17_500, 20_600) * DAY),
        "number" => dice.between(1, 5_000).to_string(),
        "email" => format!("contact@{}", host_of(url)),
        // 555-0100 to 555-0199 are kept free for fiction.
        "phone" => format!("+1-202-555-01{:02}", dice.below(100)),
        "url" => format!("https://{}/{}", host_of(url), slug(topic, 4)),
        "options" => {
            let labels: Vec<&str> = options.iter().map(String::as_str).collect();
            dice.word(&labels).to_owned()
        }
        _ => sentence(dice, topic),
    }
}

/// The format an enrichment gets when the request names none.
pub(crate) fn format_for(description: &str) -> &'static str {
    let words = words_of(description);
    let mentions = |stems: &[&str]| words.iter().any(|word| stems.contains(&word.as_str()));
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

/// A text for a schema's property of this name.
pub(crate) fn text_for(dice: &mut Dice, name: &str) -> String {
    let words = words_of(name);
    let is = |stems: &[&str]| {
        words
            .iter()
            .any(|word| stems.iter().any(|stem| word.ends_with(stem)))
    };
    if is(&["url", "link", "website"]) {
        format!("https://field-notes.example/{}", dice.below(10_000))
    } else if is(&["email"]) {
        "contact@field-notes.example".to_owned()
    } else if is(&["date", "createdat", "updatedat", "day"]) {
        iso_day(dice.between(19_000, 20_600) * DAY)
    } else if is(&["location", "city", "country", "place"]) {
        dice.word(PLACES).to_owned()
    } else if is(&["language"]) {
        dice.word(LANGUAGES).to_owned()
    } else if is(&["name", "title", "author", "company"]) {
        capital(&super::page::person(dice))
    } else {
        sentence(
            dice,
            if name.is_empty() {
                "this subject"
            } else {
                name
            },
        )
    }
}

/// A sentence about a topic.
pub(crate) fn sentence(dice: &mut Dice, topic: &str) -> String {
    dice.word(SENTENCES)
        .replace("{}", topic.trim_end_matches(['.', '?', '!']))
}

/// A value of a watched field's type.
pub(crate) fn of_type(dice: &mut Dice, kind: &str, topic: &str, url: &str) -> Value {
    match kind {
        "number" => dice.between(1, 5_000).into(),
        "boolean" => dice.once_in(2).into(),
        "string" => sentence(dice, topic).into(),
        other => of_format(dice, other, topic, url, &[]).into(),
    }
}

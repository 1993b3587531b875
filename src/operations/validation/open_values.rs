//! Enum values that the spec does not list. Exa may have learned them since, so a plausible one is sent.

use serde_json::Value;

use super::messages::{self, ArgumentPath, given};
use super::names;
use super::schema::Node;
use exa_mcp_text::similar_names;

/// Longer texts are no enum values.
const MAX_LENGTH: usize = 64;

/// The least similarity of two words of which one is the other misspelled or inflected.
const SAME_WORD: f64 = 0.85;

/// The enums of a schema that accept further values.
#[derive(Debug, Clone, Copy, Default)]
pub(super) enum OpenValues<'a> {
    /// None: all values are ours.
    #[default]
    None,
    /// All except those of these arguments.
    Except(&'a [&'a str]),
}

impl OpenValues<'_> {
    /// Returns the note for a value beyond an enum; `None` if the value is not accepted.
    pub(super) fn note(
        self,
        choices: &[&Value],
        path: &ArgumentPath,
        value: &Value,
    ) -> Option<String> {
        let Self::Except(closed) = self else {
            return None;
        };
        let path = path.to_string();
        let argument = path.split(['.', '[']).next().unwrap_or_default();
        if closed.contains(&argument) || !is_plausible(choices, value) {
            return None;
        }
        let known = messages::one_of(choices.iter().copied());
        let shown = given(value);
        Some(format!(
            "`{path}`: {shown} is not a known value ({known}); it was sent as it is"
        ))
    }
}

/// Returns a note about a text that is probably a misspelled listed value, where the API accepts any text.
pub(super) fn likely_mistake(
    node: &Node<'_>,
    value: &Value,
    path: &ArgumentPath,
) -> Option<String> {
    let text = value.as_str()?;
    let choices = node.open_choices();
    let known: Vec<&str> = choices.iter().filter_map(|it| it.as_str()).collect();
    if known.contains(&text) {
        return None;
    }
    let meant = known.into_iter().find(|known| is_misspelled(text, known))?;
    let shown = given(value);
    Some(format!(
        "`{path}`: {shown} is not a known value; did you mean `{meant}`? It was sent as it is"
    ))
}

/// Returns whether a value can be a new one: it looks like the known ones and is none of them misspelled.
fn is_plausible(choices: &[&Value], value: &Value) -> bool {
    match value {
        Value::String(text) => {
            let known: Vec<&str> = choices.iter().filter_map(|it| it.as_str()).collect();
            looks_like(&known, text) && !known.iter().any(|known| is_misspelled(text, known))
        }
        Value::Number(_) => choices.iter().any(|choice| choice.is_number()),
        _ => false,
    }
}

/// Returns whether a text has the form of the known values. A sentence, a number or an address was meant as
/// something else.
fn looks_like(known: &[&str], text: &str) -> bool {
    let has_letter = |text: &str| text.chars().any(char::is_alphabetic);
    let allowed = |c: char| {
        c.is_alphanumeric() || "-_.:/+".contains(c) || known.iter().any(|k| k.contains(c))
    };
    !known.is_empty()
        && text.chars().count() <= MAX_LENGTH
        && text.trim() == text
        && text.chars().all(allowed)
        && !text.contains("://")
        && (has_letter(text) || known.iter().any(|known| !has_letter(known)) && !text.is_empty())
}

/// Returns whether `given` is probably `known` with a mistake in it, rather than something new.
fn is_misspelled(given: &str, known: &str) -> bool {
    let digits = |text: &str| -> String { text.chars().filter(char::is_ascii_digit).collect() };
    // Another number is another version, and a prefix is a variation, unless it repeats the first letter.
    if digits(given) != digits(known) {
        return false;
    }
    let (lower, lower_known) = (given.to_lowercase(), known.to_lowercase());
    if let Some(prefix) = lower.strip_suffix(&lower_known)
        && !lower_known.starts_with(prefix)
    {
        return false;
    }
    if names::closest_spelling(given, [known]).is_some() {
        return true;
    }
    let (words, known) = (words(&lower), words(&lower_known));
    let is_same = |(word, known): (&&str, &&str)| {
        similar_names::most_similar(word, [*known], SAME_WORD).is_some()
    };
    words.len() == known.len() && words.iter().zip(&known).all(is_same)
}

fn words(text: &str) -> Vec<&str> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect()
}

/// Returns the values of the enum at a dotted path of a schema.
pub fn values_at<'s>(schema: &'s Value, path: &str) -> Vec<&'s Value> {
    let mut nodes = vec![Node::root(schema)];
    for name in path.split('.') {
        let with_branches = nodes.iter().flat_map(|node| {
            let branches = node.branches();
            branches.into_iter().chain([node.clone()])
        });
        nodes = with_branches.filter_map(|it| it.property(name)).collect();
    }
    nodes.iter().flat_map(Node::choices).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn accepts(choices: &Value, value: Value) -> bool {
        let choices: Vec<&Value> = choices.as_array().into_iter().flatten().collect();
        is_plausible(&choices, &value)
    }

    #[test]
    fn new_values_are_plausible() {
        let types = json!([
            "auto",
            "fast",
            "deep",
            "deep-reasoning",
            "high",
            "exa-2",
            "v1"
        ]);
        for new in [
            "ultra",
            "turbo",
            "deep-max",
            "xhigh",
            "exa-3",
            "v2",
            "quantum",
            "neural_v2",
            "Ünique",
        ] {
            assert!(accepts(&types, json!(new)), "{new}");
        }
        let spaced = json!(["research paper", "company"]);
        assert!(accepts(&spaced, json!("case study")));
        assert!(accepts(&json!([7, 30]), json!(14)));
        assert!(accepts(&json!(["1", "2"]), json!("3")));
    }

    #[test]
    fn mistakes_are_not() {
        let types = json!([
            "auto",
            "fast",
            "deep",
            "deep-reasoning",
            "company",
            "override"
        ]);
        for wrong in [
            "deeep",
            "ddeep",
            "fasst",
            "companies",
            "compnay",
            "ovveride",
            "deep-reasonning",
            "",
            " auto",
            "a new value",
            "https://x",
            "{\"a\":1}",
            "5",
            "ultra\n",
        ] {
            assert!(!accepts(&types, json!(wrong)), "{wrong}");
        }
        assert!(!accepts(&types, json!("x".repeat(65))));
        for other in [json!(5), json!(true), json!(null), json!([]), json!({})] {
            assert!(!accepts(&types, other.clone()), "{other}");
        }
        assert!(!accepts(&json!([true]), json!(false)));
    }

    #[test]
    fn finds_enums_in_variants() {
        let schema = json!({"properties": {"a": {"oneOf": [
            {"type": "boolean"},
            {"properties": {"b": {"enum": ["x"]}}}]}}});
        assert_eq!(values_at(&schema, "a.b"), [&json!("x")]);
        assert!(values_at(&schema, "a.c").is_empty());
    }
}

//! Parses suggestions of a model and limits them to valid enrichments.

use serde_json::{Map, Value, json};

/// The formats of an enrichment.
pub(super) const FORMATS: [&str; 7] =
    ["text", "date", "number", "options", "email", "phone", "url"];

/// Maximum characters of a description, of a label, and of a reason.
const MAX_DESCRIPTION_CHARS: usize = 500;
const MAX_LABEL_CHARS: usize = 100;
const MAX_REASON_CHARS: usize = 300;

/// Maximum labels of a suggestion.
const MAX_LABELS: usize = 30;

/// The maximum text that is searched for suggestions, in bytes.
const MAX_TEXT_BYTES: usize = 128 * 1024;

/// A suggested enrichment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Suggestion {
    pub(super) description: String,
    pub(super) format: &'static str,
    pub(super) options: Vec<String>,
    pub(super) why: String,
}

impl Suggestion {
    /// Returns the arguments of `enrichments.create`, with the reason beside them.
    pub(super) fn to_json(&self) -> Value {
        let mut value = json!({"description": self.description, "format": self.format});
        if let Value::Object(map) = &mut value {
            if !self.options.is_empty() {
                let labels = self.options.iter().map(|label| json!({"label": label}));
                map.insert("options".to_owned(), labels.collect());
            }
            map.insert("why".to_owned(), json!(self.why));
        }
        value
    }

    /// Returns the suggestion as a line of text.
    pub(super) fn line(&self) -> String {
        let format = if self.options.is_empty() {
            self.format.to_owned()
        } else {
            format!("{}: {}", self.format, self.options.join(", "))
        };
        format!("{} ({format}). {}", self.description, self.why)
            .trim_end()
            .to_owned()
    }

    /// Parses a suggestion; `None` if it is not usable.
    fn parse(value: &Value) -> Option<Self> {
        let value = value.as_object()?;
        let description = text(value, "description", MAX_DESCRIPTION_CHARS)?;
        let options = labels(value.get("options"));
        let named = text(value, "format", MAX_LABEL_CHARS).unwrap_or_default();
        let named = FORMATS
            .into_iter()
            .find(|it| it.eq_ignore_ascii_case(&named));
        let format = match named {
            Some("options") | None if !options.is_empty() => "options",
            // Without labels there is nothing to choose from.
            Some("options") | None => "text",
            Some(format) => format,
        };
        Some(Self {
            description,
            format,
            options: if format == "options" {
                options
            } else {
                Vec::new()
            },
            why: text(value, "why", MAX_REASON_CHARS).unwrap_or_default(),
        })
    }

    /// Returns whether the description is the same apart from punctuation and case.
    fn has_description(&self, description: &str) -> bool {
        let plain = |text: &str| -> String {
            let letters = text.chars().filter(|c| c.is_alphanumeric());
            letters.flat_map(char::to_lowercase).collect()
        };
        plain(&self.description) == plain(description)
    }
}

/// Parses the inputs of tool calls: one list, or one suggestion per call.
pub(super) fn from_inputs(inputs: &[Map<String, Value>]) -> Vec<Suggestion> {
    let inputs = inputs.iter().map(|input| Value::Object(input.clone()));
    inputs.flat_map(|input| from_value(&input)).collect()
}

/// Parses the first JSON in a text that has suggestions.
pub(super) fn from_text(text: &str) -> Vec<Suggestion> {
    let Some(text) = Some(text).filter(|text| text.len() <= MAX_TEXT_BYTES) else {
        return Vec::new();
    };
    let starts = text
        .char_indices()
        .filter(|(_, it)| ['[', '{'].contains(it));
    // Bounds the work for a text full of brackets.
    for (start, _) in starts.take(50) {
        let rest = text.get(start..).unwrap_or_default();
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        if let Some(Ok(value)) = values.next() {
            let found = from_value(&value);
            if !found.is_empty() {
                return found;
            }
        }
    }
    Vec::new()
}

fn from_value(value: &Value) -> Vec<Suggestion> {
    let list = match value {
        Value::Array(list) => list.as_slice(),
        Value::Object(map) => match map.get("suggestions").or_else(|| map.get("enrichments")) {
            Some(Value::Array(list)) => list.as_slice(),
            _ => std::slice::from_ref(value),
        },
        _ => return Vec::new(),
    };
    list.iter().filter_map(Suggestion::parse).collect()
}

/// Returns at most `count` distinct suggestions that do not exist already.
pub(super) fn select(
    suggestions: Vec<Suggestion>,
    existing: &[String],
    count: usize,
) -> Vec<Suggestion> {
    let mut chosen: Vec<Suggestion> = Vec::new();
    for suggestion in suggestions {
        let known = existing
            .iter()
            .any(|column| suggestion.has_description(column))
            || chosen
                .iter()
                .any(|it| it.has_description(&suggestion.description));
        if !known && chosen.len() < count {
            chosen.push(suggestion);
        }
    }
    chosen
}

/// Returns a field as one sanitized line.
fn text(map: &Map<String, Value>, name: &str, max: usize) -> Option<String> {
    single_line(map.get(name)?.as_str()?, max)
}

/// Returns a text as one sanitized line.
pub(super) fn single_line(text: &str, max: usize) -> Option<String> {
    let mut value = json!(text);
    exa_mcp_text::sanitize::clean_json(&mut value, max.saturating_mul(4));
    let words: Vec<&str> = value.as_str()?.split_whitespace().collect();
    let line: String = words.join(" ").chars().take(max).collect();
    (!line.is_empty()).then_some(line)
}

fn labels(options: Option<&Value>) -> Vec<String> {
    let mut labels: Vec<String> = Vec::new();
    for option in options.and_then(Value::as_array).into_iter().flatten() {
        let label = option.as_str().or_else(|| option.get("label")?.as_str());
        let label = label.and_then(|label| single_line(label, MAX_LABEL_CHARS));
        if let Some(label) = label.filter(|label| !labels.contains(label)) {
            labels.push(label);
        }
    }
    labels.truncate(MAX_LABELS);
    labels
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn parses_lists_and_single_suggestions() {
        let one = json!({"description": "Founding year", "format": "number", "why": "w"});
        let list = from_inputs(&[map(json!({"suggestions": [one, {"format": "text"}, 7]}))]);
        assert_eq!(list.len(), 1);
        assert_eq!(list[0].to_json(), one);
        let each = from_inputs(&[map(one.clone()), map(json!({"description": "CEO"}))]);
        assert_eq!(each.len(), 2);
        assert_eq!(each[1].format, "text");
    }

    #[test]
    fn finds_json_in_text() {
        for text in [
            r#"[{"description": "CEO", "format": "text"}]"#,
            "Here you are:\n```json\n{\"suggestions\": [{\"description\": \"CEO\"}]}\n```\nGood luck!",
            r#"I thought {hard} about [this]: {"enrichments": [{"description": "CEO"}]}"#,
        ] {
            let found = from_text(text);
            assert_eq!(found.len(), 1, "{text}");
            assert_eq!(found[0].description, "CEO");
        }
        for text in ["", "no idea", "[1, 2", "{}", &"[".repeat(200_000)] {
            assert!(from_text(text).is_empty());
        }
    }

    #[test]
    fn the_format_options_needs_labels() {
        let parse = |value: Value| Suggestion::parse(&value).unwrap();
        let chosen =
            parse(json!({"description": "Stage", "options": ["A", {"label": "B"}, "A", 5]}));
        assert_eq!((chosen.format, chosen.options.len()), ("options", 2));
        assert_eq!(
            chosen.to_json()["options"],
            json!([{"label": "A"}, {"label": "B"}])
        );
        assert_eq!(
            parse(json!({"description": "S", "format": "options"})).format,
            "text"
        );
        assert_eq!(
            parse(json!({"description": "S", "format": "Email"})).format,
            "email"
        );
        assert_eq!(
            parse(json!({"description": "S", "format": "magic"})).format,
            "text"
        );
    }

    #[test]
    fn sanitizes_and_truncates_texts() {
        let hidden =
            json!({"description": "C\u{202e}EO\n\n name\u{200b}", "why": "x".repeat(9_999)});
        let parsed = Suggestion::parse(&hidden).unwrap();
        assert_eq!(parsed.description, "CEO name");
        assert_eq!(parsed.why.chars().count(), MAX_REASON_CHARS);
        assert_eq!(Suggestion::parse(&json!({"description": " \n "})), None);
    }

    #[test]
    fn removes_duplicates() {
        let one = |text: &str| Suggestion::parse(&json!({"description": text})).unwrap();
        let all = vec![
            one("CEO"),
            one("ceo!"),
            one("Founding year"),
            one("Size"),
            one("City"),
        ];
        let chosen = select(all, &["founding  YEAR".to_owned()], 2);
        let names: Vec<&str> = chosen.iter().map(|it| it.description.as_str()).collect();
        assert_eq!(names, ["CEO", "Size"]);
    }
}

//! Suggestions as a model writes them. Whatever it writes is held against what an enrichment may be.

use serde_json::{Map, Value, json};

/// The formats of an enrichment.
pub(super) const FORMATS: [&str; 7] =
    ["text", "date", "number", "options", "email", "phone", "url"];

/// Characters of a description, of a label, and of a reason.
const LONGEST_DESCRIPTION: usize = 500;
const LONGEST_LABEL: usize = 100;
const LONGEST_REASON: usize = 300;

/// Labels that one suggestion may have.
const MOST_LABELS: usize = 30;

/// The largest text in which suggestions are looked for, in bytes.
const LARGEST_TEXT: usize = 128 * 1024;

/// A column that would be useful.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Suggestion {
    pub(super) description: String,
    pub(super) format: &'static str,
    pub(super) options: Vec<String>,
    pub(super) why: String,
}

impl Suggestion {
    /// In the form that `enrichments.create` takes, with the reason beside it.
    pub(super) fn json(&self) -> Value {
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

    /// The same in words.
    pub(super) fn line(&self) -> String {
        let format = match self.options.is_empty() {
            true => self.format.to_owned(),
            false => format!("{}: {}", self.format, self.options.join(", ")),
        };
        format!("{} ({format}). {}", self.description, self.why)
            .trim_end()
            .to_owned()
    }

    /// Reads one suggestion; `None` if it is not usable.
    fn read(value: &Value) -> Option<Self> {
        let value = value.as_object()?;
        let description = text(value, "description", LONGEST_DESCRIPTION)?;
        let options = labels(value.get("options"));
        let told = text(value, "format", LONGEST_LABEL).unwrap_or_default();
        let told = FORMATS
            .into_iter()
            .find(|it| it.eq_ignore_ascii_case(&told));
        let format = match told {
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
            why: text(value, "why", LONGEST_REASON).unwrap_or_default(),
        })
    }

    /// Whether both ask for the same thing.
    fn is_like(&self, description: &str) -> bool {
        let plain = |text: &str| -> String {
            let letters = text.chars().filter(|letter| letter.is_alphanumeric());
            letters.flat_map(char::to_lowercase).collect()
        };
        plain(&self.description) == plain(description)
    }
}

/// The suggestions in the inputs of tool calls: one list, or one suggestion a call.
pub(super) fn from_inputs(inputs: &[Map<String, Value>]) -> Vec<Suggestion> {
    let inputs = inputs.iter().map(|input| Value::Object(input.clone()));
    inputs.flat_map(|input| from_value(&input)).collect()
}

/// The suggestions in a text: the first JSON in it that has any.
pub(super) fn from_text(text: &str) -> Vec<Suggestion> {
    let Some(text) = Some(text).filter(|text| text.len() <= LARGEST_TEXT) else {
        return Vec::new();
    };
    let starts = text
        .char_indices()
        .filter(|(_, it)| ['[', '{'].contains(it));
    // A text of brackets alone must not take for ever.
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
    list.iter().filter_map(Suggestion::read).collect()
}

/// At most `count` suggestions, none twice and none that is there already.
pub(super) fn choose(
    suggestions: Vec<Suggestion>,
    existing: &[String],
    count: usize,
) -> Vec<Suggestion> {
    let mut chosen: Vec<Suggestion> = Vec::new();
    for suggestion in suggestions {
        let known = existing.iter().any(|column| suggestion.is_like(column))
            || chosen.iter().any(|it| it.is_like(&suggestion.description));
        if !known && chosen.len() < count {
            chosen.push(suggestion);
        }
    }
    chosen
}

/// A text on one line, without what pages hide in texts.
fn text(map: &Map<String, Value>, name: &str, longest: usize) -> Option<String> {
    line(map.get(name)?.as_str()?, longest)
}

/// The same of any text.
pub(super) fn line(text: &str, longest: usize) -> Option<String> {
    let mut value = json!(text);
    exa_mcp_text::sanitize::clean_json(&mut value, longest.saturating_mul(4));
    let words: Vec<&str> = value.as_str()?.split_whitespace().collect();
    let line: String = words.join(" ").chars().take(longest).collect();
    (!line.is_empty()).then_some(line)
}

fn labels(options: Option<&Value>) -> Vec<String> {
    let mut labels: Vec<String> = Vec::new();
    for option in options.and_then(Value::as_array).into_iter().flatten() {
        let label = option.as_str().or_else(|| option.get("label")?.as_str());
        let label = label.and_then(|label| line(label, LONGEST_LABEL));
        if let Some(label) = label.filter(|label| !labels.contains(label)) {
            labels.push(label);
        }
    }
    labels.truncate(MOST_LABELS);
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
    fn tool_calls_hold_a_list_or_one_each() {
        let one = json!({"description": "Founding year", "format": "number", "why": "w"});
        let list = from_inputs(&[map(json!({"suggestions": [one, {"format": "text"}, 7]}))]);
        assert_eq!(list.len(), 1);
        assert_eq!(list[0].json(), one);
        let each = from_inputs(&[map(one.clone()), map(json!({"description": "CEO"}))]);
        assert_eq!(each.len(), 2);
        assert_eq!(each[1].format, "text");
    }

    #[test]
    fn json_is_found_in_a_text() {
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
    fn labels_make_a_choice_and_a_choice_needs_labels() {
        let read = |value: Value| Suggestion::read(&value).unwrap();
        let chosen =
            read(json!({"description": "Stage", "options": ["A", {"label": "B"}, "A", 5]}));
        assert_eq!((chosen.format, chosen.options.len()), ("options", 2));
        assert_eq!(
            chosen.json()["options"],
            json!([{"label": "A"}, {"label": "B"}])
        );
        assert_eq!(
            read(json!({"description": "S", "format": "options"})).format,
            "text"
        );
        assert_eq!(
            read(json!({"description": "S", "format": "Email"})).format,
            "email"
        );
        assert_eq!(
            read(json!({"description": "S", "format": "magic"})).format,
            "text"
        );
    }

    #[test]
    fn texts_are_cleaned_and_cut() {
        let hidden =
            json!({"description": "C\u{202e}EO\n\n name\u{200b}", "why": "x".repeat(9_999)});
        let read = Suggestion::read(&hidden).unwrap();
        assert_eq!(read.description, "CEO name");
        assert_eq!(read.why.chars().count(), LONGEST_REASON);
        assert_eq!(Suggestion::read(&json!({"description": " \n "})), None);
    }

    #[test]
    fn nothing_is_suggested_twice() {
        let one = |text: &str| Suggestion::read(&json!({"description": text})).unwrap();
        let all = vec![
            one("CEO"),
            one("ceo!"),
            one("Founding year"),
            one("Size"),
            one("City"),
        ];
        let chosen = choose(all, &["founding  YEAR".to_owned()], 2);
        let names: Vec<&str> = chosen.iter().map(|it| it.description.as_str()).collect();
        assert_eq!(names, ["CEO", "Size"]);
    }
}

//! Constraints of the API that a JSON Schema cannot express.

use exa_mcp_model::ArgumentCheck;
use serde_json::{Map, Value};

use super::duration::{self, Duration};
use super::messages::{self, ArgumentPath, given};
use super::{ArgumentProblem, cron, time_zones};

/// The most labels of an enrichment with options.
const MAX_OPTIONS: usize = 150;

/// The arguments that may hold the content of an import, and those that are computed from it.
const CONTENTS: [&str; 2] = ["csvContent", "filePath"];
const COUNTED: [&str; 2] = ["size", "count"];

/// Schemes of addresses that have no authority.
const OPAQUE_SCHEMES: [&str; 4] = ["javascript", "data", "file", "mailto"];

/// Returns whether a text is an address rather than an id.
fn has_scheme(text: &str) -> bool {
    let scheme = text.split_once(':').map(|(scheme, _)| scheme.trim());
    let is_opaque = |scheme: &str| {
        OPAQUE_SCHEMES
            .iter()
            .any(|it| it.eq_ignore_ascii_case(scheme))
    };
    text.contains("://") || scheme.is_some_and(is_opaque)
}

/// Applies `checks`. Corrects the case of time zones and the units of durations.
pub(super) fn apply(
    checks: &[ArgumentCheck],
    arguments: &mut Map<String, Value>,
    notes: &mut Vec<String>,
) -> Vec<ArgumentProblem> {
    let mut checker = DomainChecker {
        notes,
        problems: Vec::new(),
    };
    let mut whole = Value::Object(std::mem::take(arguments));
    for check in checks {
        checker.apply(check, &mut whole);
    }
    if let Value::Object(map) = whole {
        *arguments = map;
    }
    checker.problems
}

/// Calls `rule` for every value at a dotted path; `[]` behind a name stands for the entries of a list.
fn for_each_value(
    value: &mut Value,
    pattern: &str,
    path: ArgumentPath,
    rule: &mut dyn FnMut(&mut Value, &ArgumentPath),
) {
    if pattern.is_empty() {
        return rule(value, &path);
    }
    let (step, rest) = pattern.split_once('.').unwrap_or((pattern, ""));
    let name = step.strip_suffix("[]").unwrap_or(step);
    let path = path.property(name);
    match value.get_mut(name) {
        Some(Value::Array(list)) if step != name => {
            for (index, entry) in list.iter_mut().enumerate() {
                for_each_value(entry, rest, path.entry(index), rule);
            }
        }
        Some(inner) if step == name => for_each_value(inner, rest, path, rule),
        _ => {}
    }
}

struct DomainChecker<'n> {
    notes: &'n mut Vec<String>,
    problems: Vec<ArgumentProblem>,
}

impl DomainChecker<'_> {
    fn apply(&mut self, check: &ArgumentCheck, arguments: &mut Value) {
        let top = ArgumentPath::default();
        match check {
            ArgumentCheck::EnrichmentOptions { argument } => {
                for_each_value(arguments, argument, top, &mut |value, path| {
                    self.enrichment(value, path);
                });
            }
            ArgumentCheck::Schedule { argument } => {
                for_each_value(arguments, argument, top, &mut |value, path| {
                    self.schedule(value, path);
                })
            }
            ArgumentCheck::Duration {
                argument,
                at_least,
                units,
                expected,
            } => for_each_value(arguments, argument, top, &mut |value, path| {
                let min = duration::minutes(at_least).unwrap_or_default();
                self.duration(value, path, min, units, expected);
            }),
            ArgumentCheck::Count { argument } => {
                for_each_value(arguments, argument, top, &mut |value, path| {
                    self.count(value, path);
                })
            }
            ArgumentCheck::ImportContent => {
                if let Value::Object(arguments) = arguments {
                    self.content(arguments);
                }
            }
            ArgumentCheck::WebAddress { argument, or_id } => {
                for_each_value(arguments, argument, top, &mut |value, path| {
                    self.url(value, path, *or_id);
                })
            }
        }
    }

    fn add(&mut self, path: &ArgumentPath, rule: &str) {
        self.problems.push(ArgumentProblem {
            path: path.to_string(),
            message: format!("`{path}` {rule}"),
        });
    }

    fn correct(&mut self, path: &ArgumentPath, value: &mut Value, right: String) {
        self.notes
            .push(format!("`{path}`: read {value} as \"{right}\""));
        *value = Value::String(right);
    }

    fn enrichment(&mut self, enrichment: &Value, path: &ArgumentPath) {
        let inner = path.property("options");
        let chooses = enrichment.get("format").is_some_and(|it| it == "options");
        let options = enrichment.get("options").and_then(Value::as_array);
        let options = options.map(Vec::as_slice);
        let expected = format!(
            "must hold 1 to {MAX_OPTIONS} labels when the format is `options`, e.g. [{{\"label\":\"yes\"}},{{\"label\":\"no\"}}]"
        );
        match options {
            None if chooses => self.add(&inner, &format!("{expected}; got none")),
            None => {}
            Some([]) if !chooses => {}
            Some(_) if !chooses => self.notes.push(format!(
                "`{inner}` only has an effect when the format is `options`"
            )),
            Some(options) if options.is_empty() || options.len() > MAX_OPTIONS => {
                self.add(&inner, &format!("{expected}; got {}", options.len()));
            }
            Some(options) => {
                for (index, option) in options.iter().enumerate() {
                    let label = option.get("label").and_then(Value::as_str);
                    if label.is_some_and(|label| label.trim().is_empty()) {
                        let path = inner.entry(index).property("label");
                        self.add(&path, "must not be empty");
                    }
                }
            }
        }
    }

    fn schedule(&mut self, schedule: &mut Value, path: &ArgumentPath) {
        if let Some(Value::String(expression)) = schedule.get("cron")
            && let Some(error) = cron::error(expression)
        {
            self.add(&path.property("cron"), &error);
        }
        if let Some(value) = schedule.get_mut("timezone") {
            self.time_zone(value, &path.property("timezone"));
        }
    }

    fn time_zone(&mut self, value: &mut Value, path: &ArgumentPath) {
        let Some(name) = value.as_str() else {
            return;
        };
        match time_zones::find(name) {
            Some(zone) if zone == name => {}
            Some(zone) => self.correct(path, value, zone.to_owned()),
            None => {
                let hint = time_zones::suggest(name)
                    .map_or(String::new(), |zone| format!("; did you mean `{zone}`?"));
                let rule = format!(
                    "must be the IANA name of a time zone such as `Europe/Berlin` or `Etc/UTC`; got {}{hint}",
                    given(value)
                );
                self.add(path, &rule);
            }
        }
    }

    fn duration(
        &mut self,
        value: &mut Value,
        path: &ArgumentPath,
        min: u64,
        units: &str,
        expected: &str,
    ) {
        let Some(text) = value.as_str() else {
            return;
        };
        let duration = Duration::parse(text)
            .and_then(|it| it.in_units(units))
            .filter(|it| it.minutes().is_some_and(|minutes| minutes >= min));
        match duration.map(|it| it.to_string()) {
            Some(right) if right == text => {}
            Some(right) => self.correct(path, value, right),
            None => {
                let hint = duration::from_word(text)
                    .map_or(String::new(), |it| format!("; did you mean `{it}`?"));
                self.add(path, &format!("{expected}; got {}{hint}", given(value)));
            }
        }
    }

    fn count(&mut self, value: &Value, path: &ArgumentPath) {
        let number = value.as_f64();
        if number.is_some_and(|number| number < 1.0 || number.fract() != 0.0) {
            let rule = format!("must be a whole number of at least 1; got {}", given(value));
            self.add(path, &rule);
        }
    }

    fn content(&mut self, arguments: &mut Map<String, Value>) {
        let given = CONTENTS.map(|name| arguments.contains_key(name));
        match given {
            [true, true] => {
                let rule = "and `filePath` cannot be combined; give one of them";
                self.add(&ArgumentPath::default().property("csvContent"), rule);
            }
            [false, false] => {
                for name in COUNTED
                    .iter()
                    .filter(|name| !arguments.contains_key(**name))
                {
                    let rule = "is required, unless `csvContent` or `filePath` is given";
                    self.add(&ArgumentPath::default().property(name), rule);
                }
                if !arguments.contains_key("format") {
                    let note = "`format`: added \"csv\", the only possible value";
                    self.notes.push(note.to_owned());
                    arguments.insert("format".to_owned(), "csv".into());
                }
            }
            _ => {}
        }
    }

    fn url(&mut self, value: &Value, path: &ArgumentPath, or_id: bool) {
        let is_accepted = |text: &str| messages::is_web_url(text) || or_id && !has_scheme(text);
        if value.as_str().is_some_and(|text| !is_accepted(text)) {
            self.add(path, &super::constraints::invalid_url(value));
        }
    }
}

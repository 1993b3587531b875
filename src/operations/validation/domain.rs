//! What the API demands but no schema can express.

use exa_mcp_model::ArgumentCheck;
use serde_json::{Map, Value};

use super::duration::{self, Duration};
use super::messages::{self, Place, given};
use super::{Problem, cron, zones};

/// Labels that an enrichment may choose from.
const MAX_OPTIONS: usize = 150;

/// Where the content of an import may stand, and what is counted in it.
const CONTENTS: [&str; 2] = ["csvContent", "filePath"];
const COUNTED: [&str; 2] = ["size", "count"];

/// Applies `checks`; the case of a time zone and words for units are corrected.
pub(super) fn apply(
    checks: &[ArgumentCheck],
    arguments: &mut Map<String, Value>,
    notes: &mut Vec<String>,
) -> Vec<Problem> {
    let mut rules = Rules {
        notes,
        problems: Vec::new(),
    };
    let mut whole = Value::Object(std::mem::take(arguments));
    for check in checks {
        rules.apply(check, &mut whole);
    }
    if let Value::Object(map) = whole {
        *arguments = map;
    }
    rules.problems
}

/// Calls `rule` for every value at a dotted path; `[]` behind a name stands for the entries of a list.
fn visit(value: &mut Value, path: &str, place: Place, rule: &mut dyn FnMut(&mut Value, &Place)) {
    if path.is_empty() {
        return rule(value, &place);
    }
    let (step, rest) = path.split_once('.').unwrap_or((path, ""));
    let name = step.strip_suffix("[]").unwrap_or(step);
    let place = place.property(name);
    match value.get_mut(name) {
        Some(Value::Array(list)) if step != name => {
            for (index, entry) in list.iter_mut().enumerate() {
                visit(entry, rest, place.entry(index), rule);
            }
        }
        Some(inner) if step == name => visit(inner, rest, place, rule),
        _ => {}
    }
}

struct Rules<'n> {
    notes: &'n mut Vec<String>,
    problems: Vec<Problem>,
}

impl Rules<'_> {
    fn apply(&mut self, check: &ArgumentCheck, arguments: &mut Value) {
        let top = Place::default();
        match check {
            ArgumentCheck::EnrichmentOptions { argument } => {
                visit(arguments, argument, top, &mut |value, place| {
                    self.enrichment(value, place);
                });
            }
            ArgumentCheck::Schedule { argument } => {
                visit(arguments, argument, top, &mut |value, place| {
                    self.schedule(value, place);
                })
            }
            ArgumentCheck::Duration {
                argument,
                at_least,
                units,
                expected,
            } => visit(arguments, argument, top, &mut |value, place| {
                let least = duration::minutes(at_least).unwrap_or_default();
                self.duration(value, place, least, units, expected);
            }),
            ArgumentCheck::Count { argument } => {
                visit(arguments, argument, top, &mut |value, place| {
                    self.count(value, place);
                })
            }
            ArgumentCheck::ImportContent => {
                if let Value::Object(arguments) = arguments {
                    self.content(arguments);
                }
            }
            ArgumentCheck::WebAddress { argument } => {
                visit(arguments, argument, top, &mut |value, place| {
                    self.address(value, place);
                })
            }
        }
    }

    fn add(&mut self, place: &Place, rule: &str) {
        self.problems.push(Problem {
            place: place.to_string(),
            text: format!("`{place}` {rule}"),
        });
    }

    fn correct(&mut self, place: &Place, value: &mut Value, right: String) {
        self.notes
            .push(format!("`{place}`: read {value} as \"{right}\""));
        *value = Value::String(right);
    }

    fn enrichment(&mut self, enrichment: &Value, place: &Place) {
        let inner = place.property("options");
        let chooses = enrichment.get("format").is_some_and(|it| it == "options");
        let options = enrichment.get("options").and_then(Value::as_array);
        let options = options.map(Vec::as_slice);
        let wish = format!(
            "must hold 1 to {MAX_OPTIONS} labels when the format is `options`, e.g. [{{\"label\":\"yes\"}},{{\"label\":\"no\"}}]"
        );
        match options {
            None if chooses => self.add(&inner, &format!("{wish}; got none")),
            None => {}
            Some([]) if !chooses => {}
            Some(_) if !chooses => self.notes.push(format!(
                "`{inner}` only has an effect when the format is `options`"
            )),
            Some(options) if options.is_empty() || options.len() > MAX_OPTIONS => {
                self.add(&inner, &format!("{wish}; got {}", options.len()));
            }
            Some(options) => {
                for (index, option) in options.iter().enumerate() {
                    let label = option.get("label").and_then(Value::as_str);
                    if label.is_some_and(|label| label.trim().is_empty()) {
                        let place = inner.entry(index).property("label");
                        self.add(&place, "must not be empty");
                    }
                }
            }
        }
    }

    fn schedule(&mut self, schedule: &mut Value, place: &Place) {
        if let Some(Value::String(expression)) = schedule.get("cron")
            && let Some(complaint) = cron::complaint(expression)
        {
            self.add(&place.property("cron"), &complaint);
        }
        if let Some(value) = schedule.get_mut("timezone") {
            self.time_zone(value, &place.property("timezone"));
        }
    }

    fn time_zone(&mut self, value: &mut Value, place: &Place) {
        let Some(name) = value.as_str() else {
            return;
        };
        match zones::find(name) {
            Some(zone) if zone == name => {}
            Some(zone) => self.correct(place, value, zone.to_owned()),
            None => {
                let hint = zones::suggest(name)
                    .map_or(String::new(), |zone| format!("; did you mean `{zone}`?"));
                let rule = format!(
                    "must be the IANA name of a time zone such as `Europe/Berlin` or `Etc/UTC`; got {}{hint}",
                    given(value)
                );
                self.add(place, &rule);
            }
        }
    }

    fn duration(
        &mut self,
        value: &mut Value,
        place: &Place,
        least: u64,
        units: &str,
        expected: &str,
    ) {
        let Some(text) = value.as_str() else {
            return;
        };
        let duration = Duration::read(text)
            .and_then(|it| it.in_units(units))
            .filter(|it| it.minutes().is_some_and(|minutes| minutes >= least));
        match duration.map(|it| it.to_string()) {
            Some(right) if right == text => {}
            Some(right) => self.correct(place, value, right),
            None => {
                let hint = duration::of_word(text)
                    .map_or(String::new(), |it| format!("; did you mean `{it}`?"));
                self.add(place, &format!("{expected}; got {}{hint}", given(value)));
            }
        }
    }

    fn count(&mut self, value: &Value, place: &Place) {
        let number = value.as_f64();
        if number.is_some_and(|number| number < 1.0 || number.fract() != 0.0) {
            let rule = format!("must be a whole number of at least 1; got {}", given(value));
            self.add(place, &rule);
        }
    }

    fn content(&mut self, arguments: &mut Map<String, Value>) {
        let given = CONTENTS.map(|name| arguments.contains_key(name));
        match given {
            [true, true] => {
                let rule = "and `filePath` are two contents for one import; give one of them";
                self.add(&Place::default().property("csvContent"), rule);
            }
            [false, false] => {
                for name in COUNTED
                    .iter()
                    .filter(|name| !arguments.contains_key(**name))
                {
                    let rule = "is required, unless `csvContent` or `filePath` is given";
                    self.add(&Place::default().property(name), rule);
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

    fn address(&mut self, value: &Value, place: &Place) {
        if value
            .as_str()
            .is_some_and(|url| !messages::is_web_address(url))
        {
            self.add(place, &super::rules::address(value));
        }
    }
}

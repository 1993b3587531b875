//! What the API demands but no schema says, by operation.

use serde_json::{Map, Value};

use super::span::{self, Span};
use super::words::{self, Place, given};
use super::{Problem, cron, zones};

/// Labels that an enrichment may choose from.
const MAX_OPTIONS: usize = 150;

/// Where the content of an import may stand, and what is counted in it.
const CONTENTS: [&str; 2] = ["csvContent", "filePath"];
const COUNTED: [&str; 2] = ["size", "count"];

/// Checks what only applies to `operation`; capitals of a time zone and words for units are mended.
pub(super) fn check(
    operation: &str,
    arguments: &mut Map<String, Value>,
    notes: &mut Vec<String>,
) -> Vec<Problem> {
    let top = Place::default();
    let mut rules = Rules {
        notes,
        problems: Vec::new(),
    };
    match operation {
        "enrichments.create" | "enrichments.update" => rules.enrichment(arguments, &top),
        "websets.create" => rules.enrichments(arguments),
        "monitors.create" | "monitors.update" => rules.cadence(arguments),
        "agent.monitors.create" => rules.agent_cadence(arguments),
        "search_monitors.create" | "search_monitors.update" => rules.trigger(arguments),
        "searches.create" => rules.count(arguments),
        "imports.create" => rules.content(arguments),
        "find_similar" => rules.address(arguments),
        _ => {}
    }
    rules.problems
}

struct Rules<'n> {
    notes: &'n mut Vec<String>,
    problems: Vec<Problem>,
}

impl Rules<'_> {
    fn add(&mut self, place: &Place, rule: &str) {
        self.problems.push(Problem {
            place: place.to_string(),
            text: format!("`{place}` {rule}"),
        });
    }

    fn mend(&mut self, place: &Place, value: &mut Value, right: String) {
        self.notes
            .push(format!("`{place}`: read {value} as \"{right}\""));
        *value = Value::String(right);
    }

    fn enrichments(&mut self, arguments: &Map<String, Value>) {
        let list = arguments.get("enrichments").and_then(Value::as_array);
        let place = Place::default().property("enrichments");
        for (index, entry) in list.into_iter().flatten().enumerate() {
            if let Some(enrichment) = entry.as_object() {
                self.enrichment(enrichment, &place.entry(index));
            }
        }
    }

    fn enrichment(&mut self, enrichment: &Map<String, Value>, place: &Place) {
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

    fn cadence(&mut self, arguments: &mut Map<String, Value>) {
        let place = Place::default().property("cadence");
        let Some(Value::Object(cadence)) = arguments.get_mut("cadence") else {
            return;
        };
        if let Some(Value::String(expression)) = cadence.get("cron")
            && let Some(complaint) = cron::complaint(expression)
        {
            self.add(&place.property("cron"), &complaint);
        }
        if let Some(value) = cadence.get_mut("timezone") {
            self.time_zone(value, &place.property("timezone"));
        }
    }

    fn time_zone(&mut self, value: &mut Value, place: &Place) {
        let Some(name) = value.as_str() else {
            return;
        };
        match zones::find(name) {
            Some(zone) if zone == name => {}
            Some(zone) => self.mend(place, value, zone.to_owned()),
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

    fn agent_cadence(&mut self, arguments: &mut Map<String, Value>) {
        let place = Place::default().property("cadence");
        if let Some(value) = arguments.get_mut("cadence") {
            let wish = "must be a number and `h` or `d`, at least `6h`, such as `12h` or `7d`";
            let read = |text: &str| {
                Span::read(text)
                    .filter(|span| !span.is_in_minutes())
                    .and_then(Span::without_weeks)
            };
            self.span(value, &place, 6 * 60, wish, read);
        }
    }

    fn trigger(&mut self, arguments: &mut Map<String, Value>) {
        let place = Place::default().property("trigger").property("period");
        let trigger = arguments.get_mut("trigger").and_then(Value::as_object_mut);
        if let Some(value) = trigger.and_then(|trigger| trigger.get_mut("period")) {
            let wish = "must be one number and one unit, at least `1h`, such as `6h`, `1d` or `7d`";
            self.span(value, &place, 60, wish, Span::read);
        }
    }

    fn span(
        &mut self,
        value: &mut Value,
        place: &Place,
        least: u64,
        wish: &str,
        read: impl Fn(&str) -> Option<Span>,
    ) {
        let Some(text) = value.as_str() else {
            return;
        };
        let span = read(text).filter(|span| span.minutes().is_some_and(|it| it >= least));
        match span.map(|span| span.to_string()) {
            Some(right) if right == text => {}
            Some(right) => self.mend(place, value, right),
            None => {
                let hint = span::of_word(text)
                    .map_or(String::new(), |span| format!("; did you mean `{span}`?"));
                self.add(place, &format!("{wish}; got {}{hint}", given(value)));
            }
        }
    }

    fn count(&mut self, arguments: &Map<String, Value>) {
        let number = arguments.get("count").and_then(Value::as_f64);
        if number.is_some_and(|number| number < 1.0 || number.fract() != 0.0) {
            let shown = arguments.get("count").map(given).unwrap_or_default();
            let rule = format!("must be a whole number of at least 1; got {shown}");
            self.add(&Place::default().property("count"), &rule);
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

    fn address(&mut self, arguments: &Map<String, Value>) {
        let Some(value) = arguments.get("url") else {
            return;
        };
        if value
            .as_str()
            .is_some_and(|url| !words::is_web_address(url))
        {
            let rule = super::rules::address(value);
            self.add(&Place::default().property("url"), &rule);
        }
    }
}

//! Property tests with random arguments.

use serde_json::{Map, Number, Value};

use super::super::schema::Node;
use super::{InputSchema, run, run_with, schemas};

const ROUNDS: usize = 60;

const LETTERS: &[&str] = &["a", "b", "Z", "7", "_", "-", "é", "京"];
/// How many of the letters, from the first, occur in ids.
const ID_LETTERS: usize = 6;

/// A small random number generator (xorshift) with a fixed seed, so that failures are reproducible.
struct Rng(u64);

impl Rng {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }

    fn pick<'v, T>(&mut self, list: &'v [T]) -> &'v T {
        &list[self.below(list.len())]
    }

    fn text(&mut self, letters: &[&str], least: usize, most: usize) -> String {
        let length = least + self.below((most - least).min(12) + 1);
        (0..length).map(|_| *self.pick(letters)).collect()
    }

    /// Returns arbitrary JSON, including names and values that occur in schemas.
    fn any(&mut self, names: &[String], depth: usize) -> Value {
        const TEXTS: &[&str] = &[
            "",
            "5",
            "true",
            "null",
            "company",
            "Research Paper",
            "a, b",
            "{\"type\":\"custom\"}",
            "[1,2]",
            "[",
            "2026-01-05",
            "0 9 * * 1",
            "https://exa.ai",
            "\u{0}\u{1F600}",
            "options",
        ];
        match self.below(if depth > 4 { 7 } else { 10 }) {
            0 => Value::Null,
            1 => Value::Bool(self.below(2) == 0),
            2 => Value::from(self.below(1000) as i64 - 500),
            3 => Value::from(*self.pick(&[0.5, 5.0, -1e300, 1e17, f64::MIN_POSITIVE])),
            4 => Value::from(*self.pick(&[u64::MAX, u64::MAX / 2])),
            5 | 6 => Value::from(*self.pick(TEXTS)),
            7 => (0..self.below(4))
                .map(|_| self.any(names, depth + 1))
                .collect(),
            _ => {
                let mut map = Map::new();
                for _ in 0..self.below(6) {
                    let name = self.name(names);
                    map.insert(name, self.any(names, depth + 1));
                }
                Value::Object(map)
            }
        }
    }

    fn name(&mut self, names: &[String]) -> String {
        let name = self.pick(names);
        match self.below(6) {
            0 => name.to_uppercase(),
            1 => name.chars().rev().collect(),
            2 => format!("{name}_"),
            3 => (*self.pick(&["args", "body", "id", "params"])).to_owned(),
            _ => name.clone(),
        }
    }

    /// Returns a value that matches `node`; `name` is the name of the field.
    fn valid(&mut self, node: &Node<'_>, name: &str) -> Value {
        let choices = node.choices();
        if !choices.is_empty() {
            return (*self.pick(&choices)).clone();
        }
        let branches = node.branches();
        let is_variant = |branch: &Node<'_>| {
            !branch.names().is_empty()
                || !branch.types().is_empty()
                || !branch.branches().is_empty()
                || !branch.choices().is_empty()
        };
        if branches.iter().any(is_variant) {
            let branch = self.below(branches.len());
            return self.valid(&branches[branch], name);
        }
        match node.types().get(self.below(node.types().len())).copied() {
            Some("object") => self.object(node),
            Some("array") => self.array(node, name),
            Some(kind @ ("integer" | "number")) => self.number(node, kind == "integer"),
            Some("boolean") => Value::Bool(self.below(2) == 0),
            Some("null") => Value::Null,
            Some(_) => Value::from(self.string(node, name)),
            None => self.any(&["free".to_owned()], 3),
        }
    }

    fn object(&mut self, node: &Node<'_>) -> Value {
        // Of several names of which one is required, exactly one is given.
        let branches = node.branches();
        let plain = branches.iter().filter(|branch| branch.names().is_empty());
        let alternatives: Vec<&str> = plain.flat_map(Node::required).collect();
        let mut required = node.required();
        if !alternatives.is_empty() {
            required.push(*self.pick(&alternatives));
        }
        let mut map = Map::new();
        for name in node.names() {
            let least = node.number("minProperties").unwrap_or(0.0) as usize;
            let is_excluded = alternatives.contains(&name) || has_partners(node, name);
            let is_wanted = map.len() < least || self.below(3) == 0;
            if required.contains(&name) || (is_wanted && !is_excluded) {
                let property = node.property(name).unwrap();
                map.insert(name.to_owned(), self.valid(&property, name));
            }
        }
        if let Some(entry) = node.additional() {
            map.insert("own_Name".to_owned(), self.valid(&entry, ""));
        } else if !node.is_closed() && self.below(4) == 0 {
            map.insert("zzzzzzzzzz".to_owned(), self.any(&["q".to_owned()], 2));
        }
        Value::Object(map)
    }

    fn array(&mut self, node: &Node<'_>, name: &str) -> Value {
        let least = node.number("minItems").unwrap_or(0.0) as usize;
        let most = node.number("maxItems").unwrap_or(4.0) as usize;
        let length = least + self.below((most - least).min(3) + 1);
        let items = node.items().unwrap();
        (0..length).map(|_| self.valid(&items, name)).collect()
    }

    fn number(&mut self, node: &Node<'_>, whole: bool) -> Value {
        let above = node.number("exclusiveMinimum").map(|it| it + 1.0);
        let least = node.number("minimum").or(above).unwrap_or(-1000.0);
        let most = node.number("maximum").unwrap_or(least + 2000.0);
        let number = least + self.below((most - least) as usize + 1) as f64;
        if whole || self.below(2) == 0 {
            return Value::from(number as i64);
        }
        Value::Number(Number::from_f64(number).unwrap())
    }

    fn string(&mut self, node: &Node<'_>, name: &str) -> String {
        let fixed: &[&str] = match (name, node.keyword("format").and_then(Value::as_str)) {
            (_, Some("date-time")) => &["2026-01-31T00:00:00Z", "2026-02-01t10:00:00.5+02:00"],
            (_, Some("uri")) | ("url" | "urls", _) => &["https://exa.ai", "http://a.b/c?d=e,f"],
            ("cron", _) => &["0 9 * * 1", "*/5 * * * mon"],
            ("timezone", _) => &["Etc/UTC", "America/Argentina/Buenos_Aires"],
            ("cadence" | "period", _) => &["6h", "7d"],
            ("label", _) => &["yes", "no"],
            _ => &[],
        };
        if !fixed.is_empty() {
            return (*self.pick(fixed)).to_owned();
        }
        let least = node.number("minLength").unwrap_or(0.0) as usize;
        let most = node.number("maxLength").unwrap_or(1000.0) as usize;
        // All patterns of the API accept these; the random test fails on one that does not.
        let letters = if node.keyword("pattern").is_some() {
            &LETTERS[..ID_LETTERS]
        } else {
            LETTERS
        };
        self.text(letters, least, most)
    }
}

/// Returns whether other properties must stand beside this one.
fn has_partners(node: &Node<'_>, name: &str) -> bool {
    let partners = node.keyword("dependentRequired");
    partners.is_some_and(|partners| partners.get(name).is_some())
}

/// Collects the names that occur anywhere in a schema.
fn names(schema: &Value, found: &mut Vec<String>) {
    match schema {
        Value::Object(map) => {
            if let Some(Value::Object(properties)) = map.get("properties") {
                found.extend(properties.keys().cloned());
            }
            map.values().for_each(|inner| names(inner, found));
        }
        Value::Array(list) => list.iter().for_each(|inner| names(inner, found)),
        _ => {}
    }
}

/// Returns whether a note is a remark about an accepted argument.
fn is_remark(note: &str) -> bool {
    note.contains("it was sent as it is") || note.contains("only has an effect")
}

#[test]
fn does_not_change_valid_arguments() {
    let mut rng = Rng(0x5eed);
    for (operation, schema) in schemas() {
        let validator = schema.validator().unwrap();
        for _ in 0..ROUNDS {
            let mut value = rng.valid(&Node::root(schema), "");
            if value["format"] == "options" && value.get("options").is_none() {
                value["format"] = "text".into();
            }
            if operation == "websets.create" {
                value.as_object_mut().unwrap().shift_remove("enrichments");
            }
            if operation == "searches.create" {
                value["count"] = 3.into();
            }
            if operation == "imports.create" {
                value.as_object_mut().unwrap().shift_remove("filePath");
                value["csvContent"] = "name\nExa".into();
            }
            assert!(validator.is_valid(&value), "{operation}: {value}");
            let checked = run(operation, value.clone());
            let checked = checked.unwrap_or_else(|it| panic!("{operation}: {value}: {it}"));
            let notes: Vec<_> = checked
                .corrections
                .iter()
                .filter(|it| !is_remark(it))
                .collect();
            assert!(notes.is_empty(), "{operation}: {value}: {notes:?}");
            assert_eq!(Value::Object(checked.arguments), value, "{operation}");
        }
    }
}

#[test]
fn corrected_arguments_are_valid_and_stable() {
    let mut rng = Rng(0xfeed);
    let mut accepted = 0;
    for (operation, schema) in schemas() {
        let mut known = vec!["x".to_owned()];
        names(schema, &mut known);
        let validator = schema.validator().unwrap();
        for round in 0..ROUNDS * 4 {
            // Half of them are valid except for one argument.
            let value = if round % 2 == 0 {
                rng.any(&known, 0)
            } else {
                let mut value = rng.valid(&Node::root(schema), "");
                let name = rng.name(&known);
                value[name] = rng.any(&known, 2);
                value
            };
            let Ok(checked) = run(operation, value.clone()) else {
                continue;
            };
            accepted += 1;
            let arguments = Value::Object(checked.arguments);
            // A value that Exa may have added is sent although the schema does not list it.
            let has_new_value = checked
                .corrections
                .iter()
                .any(|it| it.contains("is not a known value"));
            assert!(
                has_new_value || validator.is_valid(&arguments),
                "{operation}: {value}"
            );
            let again = run(operation, arguments.clone());
            let again = again.unwrap_or_else(|it| panic!("{operation}: {arguments}: {it}"));
            assert_eq!(
                Value::Object(again.arguments),
                arguments,
                "{operation}: {value}"
            );
            assert!(
                again.corrections.iter().all(|it| is_remark(it)),
                "{operation}: {:?}",
                again.corrections
            );
        }
    }
    assert!(
        accepted > 1000,
        "only {accepted} of the random calls were accepted"
    );
}

#[test]
fn handles_recursive_schemas() {
    let schema = InputSchema::new(serde_json::json!({
        "type": "object",
        "properties": {"tree": {"$ref": "#/$defs/Tree"}, "loop": {"$ref": "#/$defs/Loop"}},
        "$defs": {
            "Tree": {"type": "array", "items": {"$ref": "#/$defs/Tree"}},
            "Loop": {"oneOf": [
                {"type": "object", "properties": {"type": {"const": "a"},
                 "next": {"$ref": "#/$defs/Loop"}}, "required": ["type"]},
                {"type": "array", "items": {"$ref": "#/$defs/Loop"}}
            ]}
        }
    }));
    for text in ["x", "a", "[[\"x\"]]", "{\"next\": \"a\"}"] {
        let _ = run_with(
            "tree",
            &schema,
            serde_json::json!({"tree": text, "loop": text}),
        );
    }
    let mut deep = Value::from("a");
    for _ in 0..60 {
        deep = Value::Array(vec![deep]);
    }
    let _ = run_with(
        "tree",
        &schema,
        serde_json::json!({"tree": deep, "loop": deep.clone()}),
    );
}

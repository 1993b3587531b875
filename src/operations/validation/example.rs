//! Generates minimal valid arguments of an operation.

use exa_mcp_model::ExampleCall;
use serde_json::{Map, Value};

use super::schema::Node;

/// The maximum depth, which only recursive schemas reach.
const MAX_DEPTH: usize = 12;

/// Example texts by field name; `parent.name` takes precedence.
const TEXTS: &[(&str, &str)] = &[
    ("webhook.url", "https://example.com/webhook"),
    ("entities.name", "Exa"),
    ("entities.domain", "exa.ai"),
    ("fields.name", "ceo"),
    (
        "fields.description",
        "Full name of the present chief executive",
    ),
    ("entity.description", "open-source databases"),
    ("criteria.description", "raised a Series A after 2023"),
    ("options.label", "yes"),
    ("query", "AI startups in Berlin with under 50 employees"),
    (
        "instructions",
        "Compare the three largest makers of electric trucks in Europe",
    ),
    ("description", "CEO's work email"),
    ("definition", "investors of the company"),
    ("csvContent", "name,url\nExa,https://exa.ai"),
    ("title", "Customers 2026"),
    ("name", "Weekly overview"),
    ("url", "https://exa.ai"),
    ("urls", "https://exa.ai"),
    ("domain", "exa.ai"),
    ("email", "ada@example.com"),
    ("cron", "0 9 * * 1"),
    ("timezone", "Europe/Berlin"),
    ("cadence", "7d"),
    ("period", "1d"),
    ("provider", "similarweb"),
    ("websetId", "ws_123"),
    ("webset", "ws_123"),
    ("itemId", "item_123"),
    ("searchId", "search_123"),
    ("enrichmentId", "enrichment_123"),
    ("monitorId", "monitor_123"),
    ("webhookId", "webhook_123"),
    ("importId", "import_123"),
    ("eventId", "event_123"),
    ("researchId", "research_123"),
    ("backtestId", "backtest_123"),
    ("runId", "run_123"),
    ("batchId", "batch_123"),
];

/// Returns minimal arguments that match `schema`: the required ones, and those that `example` adds.
pub fn example(example: &ExampleCall, schema: &Value) -> Value {
    let top = Node::root(schema);
    let generator = ExampleGenerator(example);
    let mut value = generator.value(&top, &["", ""], 0);
    if let Value::Object(map) = &mut value {
        for name in &example.with {
            if let Some(property) = top.property(name) {
                map.insert(name.clone(), generator.value(&property, &["", name], 0));
            }
        }
    }
    value
}

struct ExampleGenerator<'e>(&'e ExampleCall);

impl ExampleGenerator<'_> {
    /// Returns a value for `node`; `names` are the names of the parent property, which is empty at the top level, and
    /// of the property itself.
    fn value(&self, node: &Node<'_>, names: &[&str; 2], depth: usize) -> Value {
        if depth > MAX_DEPTH {
            return Value::Null;
        }
        if let Some(value) = value_in_schema(node) {
            return value;
        }
        let branches = node.branches();
        if let Some(first) = branches.first().filter(|_| !only_require(&branches)) {
            return self.value(first, names, depth + 1);
        }
        let kind = match node.types().first() {
            Some(kind) => *kind,
            None if node.names().is_empty() => "string",
            None => "object",
        };
        match kind {
            "object" => self.object(node, names, depth),
            "array" => {
                let entries = node.number("minItems").unwrap_or(1.0).max(1.0);
                let items = node.items();
                let entry = items.map_or(Value::Null, |items| self.value(&items, names, depth + 1));
                Value::Array(vec![entry; entries as usize])
            }
            "integer" | "number" => number(node, names),
            "boolean" => Value::Bool(true),
            "null" => Value::Null,
            _ => Value::String(self.text(node, names)),
        }
    }

    fn object(&self, node: &Node<'_>, names: &[&str; 2], depth: usize) -> Value {
        let [_, own] = names;
        let mut map = Map::new();
        for name in node.required().into_iter().chain(self.choose(node)) {
            if let Some(property) = node.property(name) {
                map.insert(
                    name.to_owned(),
                    self.value(&property, &[own, name], depth + 1),
                );
            }
        }
        // An empty map would not show what it may contain.
        if let Some(entry) = node.additional()
            && node.names().is_empty()
            && entry.accepts_type("string")
        {
            map.insert("project".to_owned(), "alpha".into());
        }
        Value::Object(map)
    }

    /// Returns the properties that one of several branches requires; those with a known text come first.
    fn choose<'s>(&self, node: &Node<'s>) -> Vec<&'s str> {
        let branches = node.branches();
        if !only_require(&branches) {
            return Vec::new();
        }
        let required: Vec<Vec<&'s str>> = branches.iter().map(Node::required).collect();
        let is_known = |name: &&str| {
            self.0.texts.contains_key(*name) || TEXTS.iter().any(|(field, _)| field == name)
        };
        let known = required.iter().find(|names| names.iter().all(is_known));
        known.or(required.first()).cloned().unwrap_or_default()
    }

    fn text(&self, node: &Node<'_>, names: &[&str; 2]) -> String {
        let [parent, name] = names;
        if node.keyword("format").is_some_and(|it| it == "date-time") {
            return "2026-01-31T00:00:00Z".to_owned();
        }
        let own = self.0.texts.get(*name).filter(|_| parent.is_empty());
        let qualified = format!("{parent}.{name}");
        let find = |wanted: &str| TEXTS.iter().find(|(field, _)| *field == wanted);
        let known = || {
            find(&qualified)
                .or_else(|| find(name))
                .map(|(_, text)| *text)
        };
        let text = own.map(String::as_str).or_else(known);
        let mut text = text.unwrap_or("text").to_owned();
        let least = node.number("minLength").unwrap_or(0.0) as usize;
        while text.chars().count() < least {
            text.push_str(" text");
        }
        match node.number("maxLength") {
            Some(most) => text.chars().take(most as usize).collect(),
            None => text,
        }
    }
}

/// Returns whether the branches of a union do nothing but require properties of the schema around them.
fn only_require(branches: &[Node<'_>]) -> bool {
    let requires = |branch: &Node<'_>| {
        branch.names().is_empty() && branch.types().is_empty() && !branch.required().is_empty()
    };
    !branches.is_empty() && branches.iter().all(requires)
}

/// Returns an example, default or enum value of the schema.
fn value_in_schema(node: &Node<'_>) -> Option<Value> {
    let examples = node.keyword("examples").and_then(Value::as_array);
    examples
        .and_then(|examples| examples.first())
        .or_else(|| node.keyword("example"))
        .or_else(|| node.keyword("default"))
        .cloned()
        .or_else(|| node.choices().first().map(|choice| (*choice).clone()))
}

fn number(node: &Node<'_>, names: &[&str; 2]) -> Value {
    let [_, name] = names;
    let usual: f64 = if *name == "size" { 1024.0 } else { 10.0 };
    let least = node.number("minimum");
    let above = node.number("exclusiveMinimum").map(|it| it.floor() + 1.0);
    let most = node.number("maximum");
    let below = node.number("exclusiveMaximum").map(|it| it.ceil() - 1.0);
    let low = least.into_iter().chain(above).fold(usual, f64::max);
    let fitting = most.into_iter().chain(below).fold(low, f64::min);
    Value::from(fitting as i64)
}

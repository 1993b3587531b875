//! Renders the templates of prompts.
//!
//! A prompt mentions only available tools, and is itself available only if its task can be done with them.

use exa_mcp_model::{
    Prompt, PromptArgumentKind, PromptFile, PromptRequirement, PromptStep, PromptValue,
};
use serde_json::{Map, Value, json};

/// The most criteria of a webset, and the most characters of each.
const MAX_CRITERIA: usize = 5;
const MAX_CRITERION: usize = 1_000;

/// The available tools, as prompts see them.
pub(super) struct AvailableTools<'a> {
    /// Describes how to call an operation, if that is possible.
    pub(super) route_to: &'a dyn Fn(&str) -> Option<String>,
    /// Returns whether there is a tool with this name.
    pub(super) has: &'a dyn Fn(&str) -> bool,
}

impl AvailableTools<'_> {
    /// Returns whether the task of a prompt can be done.
    pub(super) fn support(&self, prompt: &Prompt) -> bool {
        match &prompt.needs {
            PromptRequirement::Operation(operation) => (self.route_to)(operation).is_some(),
            PromptRequirement::Tool(tool) => (self.has)(tool),
        }
    }
}

/// The arguments of a prompt by name, without blank ones.
pub(super) type ArgumentValues = std::collections::BTreeMap<&'static str, String>;

/// Splits a list at commas and line breaks.
pub(super) fn list_entries(text: &str) -> Vec<&str> {
    let entries = text.split([',', '\n']).map(str::trim);
    entries.filter(|entry| !entry.is_empty()).collect()
}

/// Renders a prompt with its arguments for the available tools.
pub(super) struct Renderer<'a> {
    pub(super) file: &'a PromptFile,
    pub(super) prompt: &'a Prompt,
    pub(super) values: &'a ArgumentValues,
    pub(super) tools: &'a AvailableTools<'a>,
}

impl Renderer<'_> {
    /// Returns the rendered text.
    pub(super) fn render(&self) -> String {
        let steps = self.prompt.steps.iter().filter_map(|step| self.step(step));
        let steps: Vec<String> = steps
            .zip(1..)
            .map(|(step, number)| format!("{number}. {step}"))
            .collect();
        self.fill(&self.prompt.text, "steps", &steps.join("\n"))
    }

    /// Renders a step; `None` if it is impossible or does not apply.
    fn step(&self, step: &PromptStep) -> Option<String> {
        let applies = |(name, value): (&String, &String)| self.argument(name) == value;
        let has_tool = step.tool.as_ref().is_none_or(|tool| (self.tools.has)(tool));
        if !has_tool || !step.when.iter().all(applies) {
            return None;
        }
        let preferred = step.prefer.as_ref().filter(|tool| (self.tools.has)(tool));
        let call = match (preferred, &step.operation) {
            (Some(tool), _) => format!("`{tool}`"),
            (None, Some(operation)) => (self.tools.route_to)(operation)?,
            (None, None) => String::new(),
        };
        Some(self.fill(&step.text, "call", &call))
    }

    /// Replaces the placeholders of a template; `own` is one that only this template has. Values are not expanded
    /// again, because they may come from the user.
    fn fill(&self, template: &str, own: &str, value: &str) -> String {
        fill(template, |name| {
            if name == own {
                return Some(value.to_owned());
            }
            let known = self.prompt.values.get(name).map(|value| self.value(value));
            known.or_else(|| {
                let shared = self.file.texts.get(name).cloned();
                shared.or_else(|| Some(self.argument(name).to_owned()))
            })
        })
    }

    fn value(&self, value: &PromptValue) -> String {
        match value {
            PromptValue::Choice {
                argument,
                cases,
                otherwise,
            } => cases
                .get(self.argument(argument))
                .unwrap_or(otherwise)
                .clone(),
            PromptValue::List {
                argument,
                otherwise,
            } => match list_entries(self.argument(argument)).as_slice() {
                [] => otherwise.clone(),
                entries => entries.join(", "),
            },
            PromptValue::Given { argument, text } => match self.argument(argument) {
                "" => String::new(),
                value => fill(text, |name| (name == "value").then(|| value.to_owned())),
            },
            PromptValue::Call { operation, text } => match (self.tools.route_to)(operation) {
                Some(call) => fill(text, |name| (name == "call").then(|| call.clone())),
                None => String::new(),
            },
            PromptValue::WebsetArguments => webset_arguments(self.prompt, self.values).to_string(),
        }
    }

    fn argument(&self, name: &str) -> &str {
        argument(self.values, name)
    }
}

fn argument<'a>(values: &'a ArgumentValues, name: &str) -> &'a str {
    values.get(name).map_or("", String::as_str)
}

/// Replaces every `{name}` by its value; leaves unknown ones unchanged.
fn fill(template: &str, value: impl Fn(&str) -> Option<String>) -> String {
    let mut text = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        text.push_str(before);
        let placeholder = after.split_once('}');
        match placeholder.and_then(|(name, behind)| Some((value(name)?, behind))) {
            Some((value, behind)) => {
                text.push_str(&value);
                rest = behind;
            }
            None => {
                text.push('{');
                rest = after;
            }
        }
    }
    text.push_str(rest);
    text
}

/// Returns the arguments for creating the webset that a prompt requests.
pub(super) fn webset_arguments(prompt: &Prompt, values: &ArgumentValues) -> Value {
    let mut search = Map::new();
    let mut put = |name: &str, value: Value| drop(search.insert(name.to_owned(), value));
    put("query", json!(argument(values, "description")));
    let count = values.get("count").and_then(|count| count.parse().ok());
    put("count", json!(count.unwrap_or(10_u32)));
    if let Some(kind) = values.get("entity") {
        let known = entity_types(prompt).find(|known| known.eq_ignore_ascii_case(kind));
        put(
            "entity",
            match known {
                Some(known) => json!({"type": known}),
                None => json!({"type": "custom", "description": kind}),
            },
        );
    }
    let criteria = argument(values, "criteria")
        .split([';', '\n'])
        .map(str::trim);
    let criteria: Vec<Value> = criteria
        .filter(|criterion| !criterion.is_empty())
        .take(MAX_CRITERIA)
        .map(|criterion| criterion.chars().take(MAX_CRITERION).collect::<String>())
        .map(|criterion| json!({"description": criterion}))
        .collect();
    if !criteria.is_empty() {
        put("criteria", json!(criteria));
    }
    json!({"search": search})
}

/// Returns the entity types of Exa, which are the ones that the prompt suggests.
fn entity_types(prompt: &Prompt) -> impl Iterator<Item = &String> {
    let arguments = prompt.arguments.iter();
    let suggested = arguments.filter(|argument| argument.name == "entity");
    suggested.flat_map(|argument| match &argument.takes {
        PromptArgumentKind::Suggested(kinds) => kinds.as_slice(),
        _ => &[],
    })
}

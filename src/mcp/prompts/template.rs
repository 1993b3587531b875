//! Renders the templates of prompts.
//!
//! A prompt speaks only of tools that are offered, and is itself offered only where its work can be done
//! with them.

use exa_mcp_model::{
    Prompt, PromptArgumentKind, PromptFile, PromptRequirement, PromptStep, PromptValue,
};
use serde_json::{Map, Value, json};

/// Conditions of a webset, and characters of one of them.
const MOST_CRITERIA: usize = 5;
const LONGEST_CRITERION: usize = 1_000;

/// The tools as far as prompts speak of them.
pub(super) struct Kit<'a> {
    /// How an operation can be called, if at all.
    pub(super) way_to: &'a dyn Fn(&str) -> Option<String>,
    /// Whether there is a tool of this name.
    pub(super) has: &'a dyn Fn(&str) -> bool,
}

impl Kit<'_> {
    /// Whether the work of a prompt can be done.
    pub(super) fn allows(&self, prompt: &Prompt) -> bool {
        match &prompt.needs {
            PromptRequirement::Operation(operation) => (self.way_to)(operation).is_some(),
            PromptRequirement::Tool(tool) => (self.has)(tool),
        }
    }
}

/// The arguments of a call by name; blank ones are left out.
pub(super) type Given = std::collections::BTreeMap<&'static str, String>;

/// The members of a list that someone typed.
pub(super) fn members(text: &str) -> Vec<&str> {
    let members = text.split([',', '\n']).map(str::trim);
    members.filter(|member| !member.is_empty()).collect()
}

/// A prompt with the arguments of a call, rendered for the tools that are offered.
pub(super) struct Renderer<'a> {
    pub(super) file: &'a PromptFile,
    pub(super) prompt: &'a Prompt,
    pub(super) given: &'a Given,
    pub(super) kit: &'a Kit<'a>,
}

impl Renderer<'_> {
    /// The whole text.
    pub(super) fn text(&self) -> String {
        let steps = self.prompt.steps.iter().filter_map(|step| self.step(step));
        let steps: Vec<String> = steps
            .zip(1..)
            .map(|(step, number)| format!("{number}. {step}"))
            .collect();
        self.fill(&self.prompt.text, "steps", &steps.join("\n"))
    }

    /// A step, unless it cannot be taken or is not wanted.
    fn step(&self, step: &PromptStep) -> Option<String> {
        let wanted = |(name, value): (&String, &String)| self.argument(name) == value;
        let has_tool = step.tool.as_ref().is_none_or(|tool| (self.kit.has)(tool));
        if !has_tool || !step.when.iter().all(wanted) {
            return None;
        }
        let preferred = step.prefer.as_ref().filter(|tool| (self.kit.has)(tool));
        let call = match (preferred, &step.operation) {
            (Some(tool), _) => format!("`{tool}`"),
            (None, Some(operation)) => (self.kit.way_to)(operation)?,
            (None, None) => String::new(),
        };
        Some(self.fill(&step.text, "call", &call))
    }

    /// A template with its placeholders filled in; `own` is one that only this template has. What is
    /// filled in is not looked at again: it may come from the caller.
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
            } => match members(self.argument(argument)).as_slice() {
                [] => otherwise.clone(),
                members => members.join(", "),
            },
            PromptValue::Given { argument, text } => match self.argument(argument) {
                "" => String::new(),
                given => fill(text, |name| (name == "value").then(|| given.to_owned())),
            },
            PromptValue::Call { operation, text } => match (self.kit.way_to)(operation) {
                Some(call) => fill(text, |name| (name == "call").then(|| call.clone())),
                None => String::new(),
            },
            PromptValue::WebsetArguments => webset_arguments(self.prompt, self.given).to_string(),
        }
    }

    fn argument(&self, name: &str) -> &str {
        argument(self.given, name)
    }
}

fn argument<'a>(given: &'a Given, name: &str) -> &'a str {
    given.get(name).map_or("", String::as_str)
}

/// Replaces every `{name}` by its value; one without a value stays as it is.
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

/// The arguments for creating the webset that a call of a prompt asks for.
pub(super) fn webset_arguments(prompt: &Prompt, given: &Given) -> Value {
    let mut search = Map::new();
    let mut put = |name: &str, value: Value| drop(search.insert(name.to_owned(), value));
    put("query", json!(argument(given, "description")));
    let count = given.get("count").and_then(|count| count.parse().ok());
    put("count", json!(count.unwrap_or(10_u32)));
    if let Some(kind) = given.get("entity") {
        let known = kinds(prompt).find(|known| known.eq_ignore_ascii_case(kind));
        put(
            "entity",
            match known {
                Some(known) => json!({"type": known}),
                None => json!({"type": "custom", "description": kind}),
            },
        );
    }
    let criteria = argument(given, "criteria")
        .split([';', '\n'])
        .map(str::trim);
    let criteria: Vec<Value> = criteria
        .filter(|criterion| !criterion.is_empty())
        .take(MOST_CRITERIA)
        .map(|criterion| {
            criterion
                .chars()
                .take(LONGEST_CRITERION)
                .collect::<String>()
        })
        .map(|criterion| json!({"description": criterion}))
        .collect();
    if !criteria.is_empty() {
        put("criteria", json!(criteria));
    }
    json!({"search": search})
}

/// The kinds of entities that Exa knows by name: those that the prompt suggests.
fn kinds(prompt: &Prompt) -> impl Iterator<Item = &String> {
    let arguments = prompt.arguments.iter();
    let suggested = arguments.filter(|argument| argument.name == "entity");
    suggested.flat_map(|argument| match &argument.takes {
        PromptArgumentKind::Suggested(kinds) => kinds.as_slice(),
        _ => &[],
    })
}

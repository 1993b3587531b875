//! Prompts: listed, checked, filled in.

mod template;

use rmcp::model::{
    ContentBlock, EmbeddedResource, ErrorData, GetPromptResult, JsonObject, ListPromptsResult,
    Prompt as Listed, PromptArgument, PromptMessage, ResourceContents, Role,
};
use serde_json::{Value, json};

pub(super) use exa_mcp_model::Takes;
use exa_mcp_model::{Prompt, PromptArgument as Argument};
use template::{Given, Kit, Renderer, members};

use super::{
    pages::Page,
    tools::Tools,
    version::{Era, FRESH_FOR, KEPT_BY},
};
use crate::tools::notes::Note;
use crate::tools::resources::{PLAIN, Resources};
use exa_mcp_generated::tools::PROMPTS;
use exa_mcp_model::Identity;

/// The longest argument, in characters.
const LONGEST_ARGUMENT: usize = 5_000;

/// How many notes a prompt carries, and how many bytes of them together.
const MOST_NOTES: usize = 100;
const MOST_BYTES: usize = 256 * 1024;

/// The prompts that are offered with these tools.
fn offered(tools: &impl Tools) -> Vec<&'static Prompt> {
    with_kit(tools, |kit| {
        let prompts = PROMPTS.prompts.iter();
        prompts.filter(|prompt| kit.allows(prompt)).collect()
    })
}

fn with_kit<T>(tools: &impl Tools, work: impl FnOnce(&Kit<'_>) -> T) -> T {
    work(&Kit {
        way_to: &|operation| tools.way_to(operation),
        has: &|tool| tools.has(tool),
    })
}

/// The prompts as this version lists them.
pub(super) fn all(tools: &impl Tools, era: &Era) -> Vec<Listed> {
    let prompts = offered(tools).into_iter();
    prompts.map(|prompt| era.prompt(prompt)).collect()
}

/// What an argument of a prompt takes.
pub(super) fn takes(
    tools: &impl Tools,
    name: &str,
    argument: &str,
) -> Result<&'static Takes, ErrorData> {
    let prompt = find(tools, name)?;
    let found = prompt.arguments.iter().find(|one| one.name == argument);
    found.map(|argument| &argument.takes).ok_or_else(|| {
        let known: Vec<&str> = prompt
            .arguments
            .iter()
            .map(|one| one.name.as_str())
            .collect();
        let text = format!(
            "The prompt {name} has no argument {}; it has {}",
            brief(argument),
            known.join(", ")
        );
        ErrorData::invalid_params(text, None)
    })
}

fn find(tools: &impl Tools, name: &str) -> Result<&'static Prompt, ErrorData> {
    let offered = offered(tools);
    let found = offered.iter().find(|prompt| prompt.name == name);
    found.copied().ok_or_else(|| {
        let known: Vec<&str> = offered.iter().map(|prompt| prompt.name.as_str()).collect();
        let data = json!({"prompts": known});
        ErrorData::invalid_params(format!("Unknown prompt: {}", brief(name)), Some(data))
    })
}

fn brief(text: &str) -> String {
    text.chars().take(100).collect()
}

/// Fills a prompt in.
pub(super) async fn get<T: Tools>(
    tools: &T,
    owner: &Identity,
    era: &Era,
    name: &str,
    arguments: JsonObject,
) -> Result<GetPromptResult, ErrorData> {
    let prompt = find(tools, name)?;
    let given = check(prompt, arguments)?;
    let text = with_kit(tools, |kit| {
        let renderer = Renderer {
            file: &PROMPTS,
            prompt,
            given: &given,
            kit,
        };
        renderer.text()
    });
    let mut messages = match tools.resources() {
        Some(resources) if prompt.notes => note_messages(resources, owner, &given).await?,
        _ => Vec::new(),
    };
    messages.push(PromptMessage::new_text(Role::User, text));
    let mut result = GetPromptResult::new(messages).with_description(&prompt.description);
    result.meta = era.result_meta();
    Ok(result)
}

/// The arguments as they fit, or everything that does not.
fn check(prompt: &'static Prompt, arguments: JsonObject) -> Result<Given, ErrorData> {
    let mut given = Given::new();
    let mut problems = Vec::new();
    for argument in &prompt.arguments {
        let text = match arguments.get(&argument.name) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.trim().to_owned(),
            Some(other) => other.to_string(),
        };
        match fit(argument, text) {
            Ok(Some(text)) => drop(given.insert(&argument.name, text)),
            Ok(None) => {}
            Err(problem) => problems.push(format!("`{}` {problem}", argument.name)),
        }
    }
    if problems.is_empty() {
        return Ok(given);
    }
    let text = format!(
        "Invalid arguments for {}: {}",
        prompt.name,
        problems.join("; ")
    );
    Err(ErrorData::invalid_params(text, None))
}

fn fit(argument: &Argument, text: String) -> Result<Option<String>, String> {
    if text.is_empty() {
        return if argument.required {
            Err("is required".to_owned())
        } else {
            Ok(None)
        };
    }
    if text.chars().count() > LONGEST_ARGUMENT {
        return Err(format!("is longer than {LONGEST_ARGUMENT} characters"));
    }
    match &argument.takes {
        Takes::Number(most) => match text.parse::<u32>() {
            Ok(number) if (1..=*most).contains(&number) => Ok(Some(number.to_string())),
            _ => Err(format!("must be a whole number from 1 to {most}")),
        },
        Takes::OneOf(known) => {
            let found = known.iter().find(|known| known.eq_ignore_ascii_case(&text));
            let found = found.map(|known| Some(known.clone()));
            found.ok_or_else(|| format!("must be one of {}", known.join(", ")))
        }
        Takes::Suggested(_) if !(2..=200).contains(&text.chars().count()) => {
            Err("must have 2 to 200 characters".to_owned())
        }
        Takes::Several { least, .. } if members(&text).len() < *least => {
            Err(format!("must name at least {least}, separated by commas"))
        }
        _ => Ok(Some(text)),
    }
}

/// The notes themselves, as resources.
async fn note_messages(
    resources: &Resources,
    owner: &Identity,
    given: &Given,
) -> Result<Vec<PromptMessage>, ErrorData> {
    let wanted = members(given.get("notes").map_or("", String::as_str));
    let notes = notes(resources, owner, &wanted).await?;
    if notes.is_empty() {
        let text = "There are no notes yet; `create_note` makes one.";
        return Ok(vec![PromptMessage::new_text(Role::User, text)]);
    }
    let mut room = MOST_BYTES;
    let mut messages = vec![PromptMessage::new_text(Role::User, "These are my notes:")];
    let mut left_out = Vec::new();
    for note in notes {
        let text = note.text();
        match room
            .checked_sub(text.len())
            .filter(|_| messages.len() <= MOST_NOTES)
        {
            Some(rest) => {
                room = rest;
                messages.push(note_message(&note, text));
            }
            None => left_out.push(format!("{} ({})", note.uri(), note.draft.title)),
        }
    }
    if !left_out.is_empty() {
        let text = format!(
            "{} more notes did not fit here; they can be read as resources: {}",
            left_out.len(),
            left_out.join(", ")
        );
        messages.push(PromptMessage::new_text(Role::User, text));
    }
    Ok(messages)
}

async fn notes(
    resources: &Resources,
    owner: &Identity,
    wanted: &[&str],
) -> Result<Vec<Note>, ErrorData> {
    let failed = |error: crate::tools::notes::NoteError| {
        ErrorData::internal_error(format!("The notes cannot be read: {error}"), None)
    };
    let Some(notes) = resources.notes() else {
        return Ok(Vec::new());
    };
    if wanted.is_empty() {
        // More than are shown, so that it can be told which were left out.
        return notes
            .list(owner, None, 2 * MOST_NOTES)
            .await
            .map_err(failed);
    }
    let mut found = Vec::new();
    for id in wanted {
        let id = id.strip_prefix("note:///").unwrap_or(id);
        let note = notes.get(owner, id).await.map_err(failed)?;
        found.push(note.ok_or_else(|| {
            let text = format!("`notes`: there is no note {}", brief(id));
            ErrorData::invalid_params(text, None)
        })?);
    }
    Ok(found)
}

fn note_message(note: &Note, text: String) -> PromptMessage {
    let contents = ResourceContents::text(text, note.uri().to_string()).with_mime_type(PLAIN);
    let resource = EmbeddedResource::new(contents);
    PromptMessage::new(Role::User, ContentBlock::Resource(resource))
}

impl Era {
    fn prompt(&self, prompt: &Prompt) -> Listed {
        let arguments = prompt.arguments.iter().map(|argument| {
            let shown = PromptArgument::new(&argument.name)
                .with_description(&argument.description)
                .with_required(argument.required);
            if self.knows_titles() {
                shown.with_title(&argument.title)
            } else {
                shown
            }
        });
        let arguments = Some(arguments.collect());
        let listed = Listed::new(&prompt.name, Some(&prompt.description), arguments);
        if self.knows_titles() {
            listed.with_title(&prompt.title)
        } else {
            listed
        }
    }

    /// A page of prompts.
    pub(super) fn prompt_list(&self, page: Page<Listed>) -> ListPromptsResult {
        let mut list = ListPromptsResult::with_all_items(page.items);
        list.next_cursor = page.next;
        list.meta = self.result_meta();
        if self.is_stateless() {
            list = list.with_ttl_ms(FRESH_FOR).with_cache_scope(KEPT_BY);
        }
        list
    }
}

#[cfg(test)]
mod tests;

//! Lists prompts, validates their arguments and renders them.

mod template;

use rmcp::model::{
    ContentBlock, EmbeddedResource, ErrorData, GetPromptResult, JsonObject, ListPromptsResult,
    Prompt as ListedPrompt, PromptArgument, PromptMessage, ResourceContents, Role,
};
use serde_json::{Value, json};

pub(super) use exa_mcp_model::PromptArgumentKind;
use exa_mcp_model::{Prompt, PromptArgument as Argument};
use template::{ArgumentValues, AvailableTools, Renderer, list_entries};

use super::{
    pagination::Page,
    tools::Tools,
    version::{CACHE_SCOPE, CACHE_TTL_MS, McpVersion},
};
use crate::tools::notes::Note;
use crate::tools::resources::{PLAIN, Resources};
use exa_mcp_generated::tools::PROMPTS;
use exa_mcp_model::Identity;

/// The longest argument, in characters.
const MAX_ARGUMENT: usize = 5_000;

/// The most notes that a prompt includes, and their most bytes together.
const MAX_NOTES: usize = 100;
const MAX_NOTE_BYTES: usize = 256 * 1024;

/// Returns the prompts that these tools support.
fn available(tools: &impl Tools) -> Vec<&'static Prompt> {
    with_available_tools(tools, |tools| {
        let prompts = PROMPTS.prompts.iter();
        prompts.filter(|prompt| tools.support(prompt)).collect()
    })
}

fn with_available_tools<T>(
    tools: &impl Tools,
    use_tools: impl FnOnce(&AvailableTools<'_>) -> T,
) -> T {
    use_tools(&AvailableTools {
        route_to: &|operation| tools.route_to(operation),
        has: &|tool| tools.has(tool),
    })
}

/// Returns the available prompts in the form of a protocol version.
pub(super) fn all(tools: &impl Tools, protocol: &McpVersion) -> Vec<ListedPrompt> {
    let prompts = available(tools).into_iter();
    prompts
        .map(|prompt| convert_prompt(protocol, prompt))
        .collect()
}

/// Returns the values that an argument of a prompt accepts.
pub(super) fn takes(
    tools: &impl Tools,
    name: &str,
    argument: &str,
) -> Result<&'static PromptArgumentKind, ErrorData> {
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
            shorten(argument),
            known.join(", ")
        );
        ErrorData::invalid_params(text, None)
    })
}

fn find(tools: &impl Tools, name: &str) -> Result<&'static Prompt, ErrorData> {
    let available = available(tools);
    let found = available.iter().find(|prompt| prompt.name == name);
    found.copied().ok_or_else(|| {
        let known: Vec<&str> = available
            .iter()
            .map(|prompt| prompt.name.as_str())
            .collect();
        let data = json!({"prompts": known});
        ErrorData::invalid_params(format!("Unknown prompt: {}", shorten(name)), Some(data))
    })
}

fn shorten(text: &str) -> String {
    text.chars().take(100).collect()
}

/// Renders a prompt.
pub(super) async fn get<T: Tools>(
    tools: &T,
    owner: &Identity,
    protocol: &McpVersion,
    name: &str,
    arguments: JsonObject,
) -> Result<GetPromptResult, ErrorData> {
    let prompt = find(tools, name)?;
    let values = validate(prompt, arguments)?;
    let text = with_available_tools(tools, |tools| {
        let renderer = Renderer {
            file: &PROMPTS,
            prompt,
            values: &values,
            tools,
        };
        renderer.render()
    });
    let mut messages = match tools.resources() {
        Some(resources) if prompt.notes => note_messages(resources, owner, &values).await?,
        _ => Vec::new(),
    };
    messages.push(PromptMessage::new_text(Role::User, text));
    let mut result = GetPromptResult::new(messages).with_description(&prompt.description);
    result.meta = protocol.result_meta();
    Ok(result)
}

/// Validates the arguments, or reports all problems with them.
fn validate(prompt: &'static Prompt, arguments: JsonObject) -> Result<ArgumentValues, ErrorData> {
    let mut values = ArgumentValues::new();
    let mut problems = Vec::new();
    for argument in &prompt.arguments {
        let text = match arguments.get(&argument.name) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.trim().to_owned(),
            Some(other) => other.to_string(),
        };
        match validate_value(argument, text) {
            Ok(Some(text)) => drop(values.insert(&argument.name, text)),
            Ok(None) => {}
            Err(problem) => problems.push(format!("`{}` {problem}", argument.name)),
        }
    }
    if problems.is_empty() {
        return Ok(values);
    }
    let text = format!(
        "Invalid arguments for {}: {}",
        prompt.name,
        problems.join("; ")
    );
    Err(ErrorData::invalid_params(text, None))
}

fn validate_value(argument: &Argument, text: String) -> Result<Option<String>, String> {
    if text.is_empty() {
        return if argument.required {
            Err("is required".to_owned())
        } else {
            Ok(None)
        };
    }
    if text.chars().count() > MAX_ARGUMENT {
        return Err(format!("is longer than {MAX_ARGUMENT} characters"));
    }
    match &argument.takes {
        PromptArgumentKind::Number(most) => match text.parse::<u32>() {
            Ok(number) if (1..=*most).contains(&number) => Ok(Some(number.to_string())),
            _ => Err(format!("must be a whole number from 1 to {most}")),
        },
        PromptArgumentKind::OneOf(known) => {
            let found = known.iter().find(|known| known.eq_ignore_ascii_case(&text));
            let found = found.map(|known| Some(known.clone()));
            found.ok_or_else(|| format!("must be one of {}", known.join(", ")))
        }
        PromptArgumentKind::Suggested(_) if !(2..=200).contains(&text.chars().count()) => {
            Err("must have 2 to 200 characters".to_owned())
        }
        PromptArgumentKind::Several { least, .. } if list_entries(&text).len() < *least => {
            Err(format!("must name at least {least}, separated by commas"))
        }
        _ => Ok(Some(text)),
    }
}

/// Returns messages that embed the notes as resources.
async fn note_messages(
    resources: &Resources,
    owner: &Identity,
    values: &ArgumentValues,
) -> Result<Vec<PromptMessage>, ErrorData> {
    let wanted = list_entries(values.get("notes").map_or("", String::as_str));
    let notes = notes(resources, owner, &wanted).await?;
    if notes.is_empty() {
        let text = "There are no notes yet; `create_note` creates one.";
        return Ok(vec![PromptMessage::new_text(Role::User, text)]);
    }
    let mut remaining = MAX_NOTE_BYTES;
    let mut messages = vec![PromptMessage::new_text(
        Role::User,
        "Please summarize the following notes:",
    )];
    let mut left_out = Vec::new();
    for note in notes {
        let text = note.text();
        match remaining
            .checked_sub(text.len())
            .filter(|_| messages.len() <= MAX_NOTES)
        {
            Some(rest) => {
                remaining = rest;
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
        // More than are included, so that the rest can be listed.
        return notes.list(owner, None, 2 * MAX_NOTES).await.map_err(failed);
    }
    let mut found = Vec::new();
    for id in wanted {
        let id = id.strip_prefix("note:///").unwrap_or(id);
        let note = notes.get(owner, id).await.map_err(failed)?;
        found.push(note.ok_or_else(|| {
            let text = format!("`notes`: there is no note {}", shorten(id));
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

fn convert_prompt(protocol: &McpVersion, prompt: &Prompt) -> ListedPrompt {
    let arguments = prompt.arguments.iter().map(|argument| {
        let converted = PromptArgument::new(&argument.name)
            .with_description(&argument.description)
            .with_required(argument.required);
        if protocol.supports_titles() {
            converted.with_title(&argument.title)
        } else {
            converted
        }
    });
    let arguments = Some(arguments.collect());
    let listed = ListedPrompt::new(&prompt.name, Some(&prompt.description), arguments);
    if protocol.supports_titles() {
        listed.with_title(&prompt.title)
    } else {
        listed
    }
}

/// Converts a page of prompts for a protocol version.
pub(super) fn prompt_list(protocol: &McpVersion, page: Page<ListedPrompt>) -> ListPromptsResult {
    let mut list = ListPromptsResult::with_all_items(page.items);
    list.next_cursor = page.next;
    list.meta = protocol.result_meta();
    if protocol.is_stateless() {
        list = list.with_ttl_ms(CACHE_TTL_MS).with_cache_scope(CACHE_SCOPE);
    }
    list
}

#[cfg(test)]
mod tests;

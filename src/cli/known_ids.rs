//! Ids that lists have returned lately, for completions.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;

use crate::config::cache_directory;
use exa_mcp_generated::response_fields::{ENTRIES, ID};
use exa_mcp_generated::tools::COMMANDS;
use exa_mcp_text::is_identifier;

/// The most ids of one list that are stored.
const MAX_IDS: usize = 50;

/// The name of the file in the user's cache directory.
const FILE: &str = "known-ids.json";

/// Returns the ids that an operation has listed.
pub(super) fn read(operation: &str) -> Vec<String> {
    read_all().remove(operation).unwrap_or_default()
}

/// Stores the ids of a list, if a command completes them. A failure does not matter.
pub(super) fn record(operation: &str, response: &Value) {
    let mut plans = COMMANDS.plans.iter();
    let is_completed = plans.any(|plan| {
        let mut arguments = plan.arguments.iter();
        arguments.any(|argument| argument.ids.as_deref() == Some(operation))
    });
    let (true, Some(path)) = (is_completed, path()) else {
        return;
    };
    let entries = ENTRIES.list(response).into_iter().flatten();
    let ids = entries.filter_map(|entry| ID.text(entry));
    let ids = ids.filter(|id| is_identifier(id)).map(str::to_owned);
    let mut all = read_all();
    all.insert(operation.to_owned(), ids.take(MAX_IDS).collect());
    let text = serde_json::to_string(&all).unwrap_or_default();
    if let Some(folder) = path.parent() {
        let _ = std::fs::create_dir_all(folder);
    }
    let _ = std::fs::write(path, text);
}

fn read_all() -> BTreeMap<String, Vec<String>> {
    let text = path().and_then(|path| std::fs::read_to_string(path).ok());
    text.and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default()
}

fn path() -> Option<PathBuf> {
    Some(cache_directory()?.join(FILE))
}

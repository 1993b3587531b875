//! Counts the o200k tokens of tool definitions.

use std::fmt::Write;

use serde_json::json;

use super::ToolRegistry;

/// Counts the tokens of a text in the o200k encoding.
pub fn count(text: &str) -> usize {
    bpe_openai::o200k_base().count(text)
}

/// The size of a set.
pub(crate) struct SetSize {
    /// The number of its tools.
    pub(crate) tools: usize,
    /// The tokens of the `tools/list` result.
    pub(crate) tokens: usize,
}

impl SetSize {
    pub(super) fn of(registry: &ToolRegistry, names: &[String]) -> Self {
        let tools: Vec<_> = names
            .iter()
            .filter_map(|name| Some(&registry.tools.get(name)?.definition))
            .collect();
        Self {
            tools: names.len(),
            tokens: count(&json!({"tools": tools}).to_string()),
        }
    }
}

/// Returns `TOKENS.md`: the size of the `tools/list` result per set.
pub fn table(registry: &ToolRegistry) -> String {
    let mut text = String::from(
        "# Tokens\n\nWritten by `cargo build --features codegen`: the size of the answer to `tools/list` in \
         o200k tokens. The size of a\ntool is in its snapshot.\n\n| set | tools | tokens |\n|---|---|---|\n",
    );
    for (set, names) in &registry.sets {
        let size = SetSize::of(registry, names);
        let _ = writeln!(text, "| {set} | {} | {} |", size.tools, size.tokens);
    }
    text
}

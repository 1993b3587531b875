//! `exa-mcp-server tools`.

use serde_json::{Value, json};

use crate::surface::{Catalogue, ToolDefinition};

/// The answer to `tools/list`, with its size.
pub(super) fn json(catalogue: &Catalogue) -> String {
    let tools: Vec<Value> = catalogue.tools().iter().map(definition).collect();
    let listed = json!({"tools": tools, "tokens": catalogue.tokens()});
    serde_json::to_string_pretty(&listed).unwrap_or_default()
}

/// A line a tool, and the size of all together.
pub(super) fn table(catalogue: &Catalogue) -> String {
    let tools = catalogue.tools();
    let width = tools
        .iter()
        .map(|tool| tool.name.len())
        .max()
        .unwrap_or_default();
    let mut lines: Vec<String> = tools
        .iter()
        .map(|tool| format!("{:width$}  {}", tool.name, tool.title))
        .collect();
    lines.push(format!(
        "\n{} tools, {} tokens (o200k)",
        tools.len(),
        catalogue.tokens()
    ));
    lines.join("\n")
}

fn definition(tool: &ToolDefinition) -> Value {
    json!({
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": tool.input_schema.owned(),
        "annotations": {
            "readOnlyHint": tool.hints.read_only,
            "destructiveHint": tool.hints.destructive,
            "idempotentHint": tool.hints.idempotent,
            "openWorldHint": tool.hints.open_world,
        },
    })
}

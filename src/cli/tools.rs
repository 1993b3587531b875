//! `exa-mcp-server tools`.

use serde_json::{Value, json};

use crate::tools::{ToolDefinition, ToolExecutor};

/// Returns the result of `tools/list` with its size.
pub(super) fn json(executor: &ToolExecutor) -> String {
    let tools: Vec<Value> = executor
        .registry()
        .definitions()
        .iter()
        .map(definition)
        .collect();
    let listed = json!({"tools": tools, "tokens": executor.registry().tokens()});
    serde_json::to_string_pretty(&listed).unwrap_or_default()
}

/// Returns one line per tool, and the total size.
pub(super) fn table(executor: &ToolExecutor) -> String {
    let tools = executor.registry().definitions();
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
        executor.registry().tokens()
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

//! Stage 5: builds tools from the operations and `surface.yaml`.

pub mod definitions;
mod named;
pub mod signature;
mod tokens;

use std::collections::BTreeMap;

use definitions::{DispatcherTool, HostTool, LocalTool, OutputOption, ToolDefinitions};
use exa_mcp_model::{ToolDefinition, ToolFile, ToolHints, ToolPlan, ToolhostEntry};
use serde_json::{Map, Value, json};
use signature::SignatureDetail;

use crate::error::Notice;
use crate::model::{Model, Operation};
use crate::operations::ASSERTIONS;

/// Clients truncate descriptions after 2,000 characters.
const MAX_DESCRIPTION: usize = 2_000;

/// One tool in its final form.
pub type Tool = ToolFile<Value>;

/// All tools and sets.
#[derive(Debug, Default)]
pub struct ToolRegistry {
    /// Tools by name.
    pub tools: BTreeMap<String, Tool>,
    /// Sets and domains with the names of their tools, in order.
    pub sets: BTreeMap<String, Vec<String>>,
    /// JSON Schema of the output options.
    pub options: Value,
}

/// Builds the tools. Omits and reports tools whose operations no longer exist.
pub fn build(
    definitions: &ToolDefinitions,
    model: &Model,
    notices: &mut Vec<Notice>,
) -> ToolRegistry {
    let mut registry = ToolRegistry {
        options: options_schema(&definitions.options),
        ..ToolRegistry::default()
    };
    for operation in &model.operations {
        let name = registry.unused_name(operation_tool_name(&operation.name));
        let mut tool = operation_tool(operation, &name);
        let reads = operation.method == "get" || operation.read_only;
        add_options(&mut tool, &definitions.options, reads, is_paged(operation));
        registry.add(tool);
        for set in ["granular", operation.domain.as_str()] {
            let tools = registry.sets.entry(set.to_owned()).or_default();
            if !tools.contains(&name) {
                tools.push(name.clone());
            }
        }
    }
    for dispatcher in &definitions.dispatchers {
        match dispatcher_tool(dispatcher, model) {
            Some(mut tool) => {
                add_options(&mut tool, &definitions.options, true, true);
                registry.add(tool);
            }
            None => notices.push(tool_notice(
                &dispatcher.name,
                "its API no longer has operations; tool omitted",
            )),
        }
    }
    for host in &definitions.hosts {
        if let Some(mut tool) = host_tool(host, model, notices) {
            add_options(&mut tool, &definitions.options, true, false);
            registry.add(tool);
        }
    }
    for named in &definitions.named {
        if let Some(mut tool) = named::named_tool(named, model, notices) {
            add_options(&mut tool, &definitions.options, true, false);
            registry.add(tool);
        }
    }
    for local in &definitions.local {
        registry.add(local_tool(local, model, notices));
    }
    for (set, names) in &definitions.sets {
        let (known, unknown): (Vec<_>, Vec<_>) = names
            .iter()
            .cloned()
            .partition(|name| registry.tools.contains_key(name));
        notices.extend(unknown.iter().map(|name| {
            tool_notice(
                set,
                &format!("the set contains `{name}`, which is not a tool; ignored"),
            )
        }));
        registry.sets.insert(set.clone(), known);
    }
    registry
}

/// Returns one schema for all output options.
fn options_schema(options: &[OutputOption]) -> Value {
    let properties: Map<String, Value> = options
        .iter()
        .map(|option| (option.name.clone(), Value::Object(option.schema.clone())))
        .collect();
    json!({"type": "object", "properties": properties, "additionalProperties": false})
}

/// Returns whether an operation is paginated: it takes a cursor.
fn is_paged(operation: &Operation) -> bool {
    operation.has_argument("cursor")
}

/// Adds the listed output options, except those with the name of an argument of the tool.
fn add_options(tool: &mut Tool, options: &[OutputOption], reads: bool, paged: bool) {
    let properties = tool.definition.input_schema.get_mut("properties");
    let Some(Value::Object(properties)) = properties else {
        return;
    };
    for option in options
        .iter()
        .filter(|option| reads && (paged || !option.pages))
    {
        if let Some(listed) = &option.listed {
            properties
                .entry(option.name.clone())
                .or_insert_with(|| Value::Object(listed.clone()));
        }
    }
}

/// Returns a notice about a tool or set of `surface.yaml`.
fn tool_notice(name: &str, message: &str) -> Notice {
    Notice {
        file: "surface.yaml".to_owned(),
        location: format!("tool {name}"),
        message: message.to_owned(),
    }
}

impl ToolRegistry {
    /// Returns the name, with a number if a tool has it: `a.b_c` and `a_b.c` would both be `a_b_c`.
    fn unused_name(&self, name: String) -> String {
        let numbered = (2..).map(|number| format!("{name}_{number}"));
        let mut candidates = std::iter::once(name.clone()).chain(numbered);
        let unused = candidates.find(|candidate| !self.tools.contains_key(candidate));
        unused.unwrap_or(name)
    }

    fn add(&mut self, mut tool: Tool) {
        tool.tokens = tokens::count(&json!(tool.definition).to_string());
        self.tools.insert(tool.definition.name.clone(), tool);
    }

    /// Returns `TOKENS.md`: the number of tokens of each set and tool.
    pub fn token_table(&self) -> String {
        tokens::table(self)
    }
}

/// Returns the name of the tool for a single operation, with underscores.
fn operation_tool_name(operation: &str) -> String {
    operation.replace('.', "_")
}

fn operation_tool(operation: &Operation, name: &str) -> Tool {
    let mut schema = operation.input_schema.clone();
    if let Value::Object(map) = &mut schema {
        map.shift_remove("$schema");
        // Some clients reject these at the top level; the server checks them, and `describe` shows them.
        map.retain(|key, _| !ASSERTIONS.contains(&key.as_str()));
    }
    remove_unused_definitions(&mut schema);
    remove_aliases(&mut schema);
    new_tool(
        ToolDefinition {
            name: name.to_owned(),
            title: operation.summary.clone(),
            description: operation.description.clone(),
            input_schema: schema,
            annotations: hints(operation),
        },
        ToolPlan::Operation {
            operation: operation.name.clone(),
        },
    )
}

/// Removes definitions that nothing refers to.
fn remove_unused_definitions(schema: &mut Value) {
    let Some(Value::Object(definitions)) = schema.get("$defs").cloned() else {
        return;
    };
    let mut root = schema.clone();
    root.as_object_mut().map(|root| root.shift_remove("$defs"));
    let mut used: Vec<String> = Vec::new();
    let mut pending = vec![&root];
    while let Some(value) = pending.pop() {
        match value {
            Value::Object(map) => {
                let reference = map.get("$ref").and_then(Value::as_str);
                let name = reference.and_then(|it| it.strip_prefix("#/$defs/"));
                let name = name.map(|it| it.replace("~1", "/").replace("~0", "~"));
                if let Some(name) = name.filter(|name| !used.contains(name)) {
                    pending.extend(definitions.get(&name));
                    used.push(name);
                }
                pending.extend(map.values());
            }
            Value::Array(list) => pending.extend(list),
            _ => {}
        }
    }
    if let Some(Value::Object(definitions)) = schema.get_mut("$defs") {
        definitions.retain(|name, _| used.contains(name));
        if definitions.is_empty() {
            root = schema.clone();
            root.as_object_mut().map(|root| root.shift_remove("$defs"));
            *schema = root;
        }
    }
}

/// Removes aliases, which are accepted but not shown to models.
fn remove_aliases(schema: &mut Value) {
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    for property in properties.into_iter().flat_map(|map| map.values_mut()) {
        if let Value::Object(property) = property {
            property.shift_remove("x-aliases");
        }
    }
}

/// Creates a tool without its token count.
fn new_tool(definition: ToolDefinition<Value>, plan: ToolPlan) -> Tool {
    Tool {
        definition,
        plan,
        tokens: 0,
    }
}

/// Returns the tool annotations of an operation.
pub fn hints(operation: &Operation) -> ToolHints {
    let verb = operation.name.rsplit('.').next().unwrap_or_default();
    let read_only = operation.method == "get" || operation.read_only;
    let ends = operation.method == "delete" || ["cancel", "stop"].contains(&verb);
    let overwrites = ["put", "patch"].contains(&operation.method.as_str()) || verb == "update";
    ToolHints {
        read_only,
        destructive: !read_only && (ends || overwrites),
        idempotent: read_only || ends || overwrites,
        open_world: operation.open_world,
    }
}

/// Returns annotations that hold for all of several operations.
fn common_hints(operations: &[&Operation]) -> ToolHints {
    let hints: Vec<ToolHints> = operations
        .iter()
        .map(|operation| hints(operation))
        .collect();
    ToolHints {
        read_only: hints.iter().all(|hints| hints.read_only),
        destructive: hints.iter().any(|hints| hints.destructive),
        idempotent: hints.iter().all(|hints| hints.idempotent),
        open_world: hints.iter().any(|hints| hints.open_world),
    }
}

fn dispatcher_tool(dispatcher: &DispatcherTool, model: &Model) -> Option<Tool> {
    let operations: Vec<&Operation> = model
        .operations
        .iter()
        .filter(|operation| operation.api == dispatcher.api)
        .collect();
    if operations.is_empty() {
        return None;
    }
    let names: Vec<String> = operations
        .iter()
        .map(|operation| operation.name.clone())
        .collect();
    let mut all: Vec<&str> = names.iter().map(String::as_str).collect();
    all.extend(["describe", "list_operations"]);
    let schema = json!({
        "type": "object",
        "properties": {
            "operation": {"type": "string", "enum": all},
            "args": {"type": "object"},
        },
        "required": ["operation"],
    });
    let max_length = dispatcher.max_characters.unwrap_or(MAX_DESCRIPTION);
    let description = dispatcher_description(
        &dispatcher.intro,
        &operations,
        max_length.min(MAX_DESCRIPTION),
    );
    let definition = ToolDefinition {
        name: dispatcher.name.clone(),
        title: dispatcher.title.clone(),
        description,
        input_schema: schema,
        annotations: common_hints(&operations),
    };
    Some(new_tool(
        definition,
        ToolPlan::Dispatcher { operations: names },
    ))
}

/// Returns a description with as many optional arguments as fit into `max_length`.
fn dispatcher_description(intro: &str, operations: &[&Operation], max_length: usize) -> String {
    let mut text = String::new();
    for optional in (0..=12).rev() {
        for fields in (0..=3).rev() {
            let detail = SignatureDetail { optional, fields };
            let signatures = signature::by_domain(operations, detail);
            text = format!("{}\n{signatures}", intro.trim());
            if text.chars().count() <= max_length {
                return text;
            }
        }
    }
    // Too many operations for signatures: the enum lists them and `describe` explains them.
    text.chars()
        .take(MAX_DESCRIPTION - 1)
        .chain(['…'])
        .collect()
}

fn host_tool(host: &HostTool, model: &Model, notices: &mut Vec<Notice>) -> Option<Tool> {
    let mut entries: Vec<ToolhostEntry> = Vec::new();
    let mut operations = Vec::new();
    for entry in &host.operations {
        match entry
            .operation
            .as_ref()
            .map(|name| (model.find(name), name))
        {
            Some((None, operation)) => {
                let message = format!("`{operation}` no longer exists; `{}` omitted", entry.name);
                notices.push(tool_notice(&host.name, &message));
            }
            Some((Some(operation), _)) => {
                operations.push(operation);
                entries.push(entry.clone());
            }
            None => entries.push(entry.clone()),
        }
    }
    if operations.is_empty() {
        notices.push(tool_notice(
            &host.name,
            "its operations no longer exist; tool omitted",
        ));
        return None;
    }
    let names: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
    let names: Vec<&str> = ["list_operations"].into_iter().chain(names).collect();
    let schema = json!({
        "type": "object",
        "properties": {
            "operation": {"type": "string", "enum": names},
            "params": {"type": "object"},
        },
        "required": ["operation"],
    });
    let is_unsupported = |name: &String| {
        let mut entries = entries.iter();
        entries.any(|entry| entry.name == *name && entry.unsupported.is_some())
    };
    let entries: Vec<ToolhostEntry> = entries
        .iter()
        .map(|entry| {
            let mut entry = entry.clone();
            entry.cancel_is_unsupported = entry.cancel_with.as_ref().is_some_and(is_unsupported);
            complete_host_entry(entry, model)
        })
        .collect();
    let definition = ToolDefinition {
        name: host.name.clone(),
        title: host.title.clone(),
        description: host.description.trim().to_owned(),
        input_schema: schema,
        annotations: common_hints(&operations),
    };
    Some(new_tool(definition, ToolPlan::Toolhost { entries }))
}

/// Completes an entry from the long-running marker of its operation.
fn complete_host_entry(mut entry: ToolhostEntry, model: &Model) -> ToolhostEntry {
    let operation = entry.operation.clone();
    let markers = model.operations.iter().filter_map(|operation| {
        operation
            .behavior
            .long_running
            .as_ref()
            .map(|marker| (operation.name.as_str(), marker))
    });
    for (name, marker) in markers {
        let named = [
            Some(name),
            Some(marker.get.as_str()),
            marker.cancel.as_deref(),
        ];
        if named.contains(&operation.as_deref()) && entry.final_states.is_empty() {
            entry.final_states = marker.final_states.clone();
        }
        if operation.as_deref() == Some(name) && entry.follow.is_empty() {
            entry.follow = marker.arguments.clone();
        }
    }
    entry
}

fn local_tool(local: &LocalTool, model: &Model, notices: &mut Vec<Notice>) -> Tool {
    let mut plan = local.plan.clone();
    if let ToolPlan::Suggest { read, add } = &mut plan {
        for operation in [read, add] {
            if let Some(missing) = operation.take_if(|name| model.find(name).is_none()) {
                let message = format!("`{missing}` no longer exists; omitted");
                notices.push(tool_notice(&local.name, &message));
            }
        }
    }
    let definition = ToolDefinition {
        name: local.name.clone(),
        title: local.title.clone(),
        description: local.description.trim().to_owned(),
        input_schema: Value::Object(local.input_schema.clone()),
        annotations: ToolHints {
            read_only: local.read_only,
            destructive: false,
            idempotent: local.read_only,
            open_world: false,
        },
    };
    new_tool(definition, plan)
}

/// Returns `tools.rs`, the table that is compiled into the server.
pub fn table(registry: &ToolRegistry) -> String {
    let mut text = format!(
        "{}//! Every tool, every set of tools, every prompt, every price, and the operations behind resources.\n\n\
         use exa_mcp_model::price::PriceList;\n\
         use exa_mcp_model::{{EmbeddedJson, PromptFile, Resources}};\n\n",
        crate::HEADER
    );
    text.push_str(
        "/// Tools by name, each as JSON; sorted.\npub static TOOLS: &[(&str, &str)] = &[\n",
    );
    for name in registry.tools.keys() {
        text.push_str(&format!(
            "    ({name:?}, include_str!(\"tools/{name}.json\")),\n"
        ));
    }
    text.push_str("];\n\n/// Sets by name with their tools; sorted.\npub static SETS: &[(&str, &[&str])] = &[\n");
    for (set, names) in &registry.sets {
        text.push_str(&format!("    ({set:?}, &{names:?}),\n"));
    }
    text.push_str("];\n\n/// JSON Schema of the arguments that say how an answer is shown.\n");
    text.push_str("pub static OPTIONS: &str = include_str!(\"options.json\");\n");
    for (name, what, ty) in [
        ("prices", "What the operations cost.", "PriceList"),
        ("prompts", "The prompts.", "PromptFile"),
        ("resources", "The operations behind resources.", "Resources"),
    ] {
        let constant = name.to_uppercase();
        text.push_str(&format!(
            "\n/// {what}\npub static {constant}: EmbeddedJson<{ty}> =\n    \
             EmbeddedJson::new(include_str!(\"{name}.json\"));\n"
        ));
    }
    text
}

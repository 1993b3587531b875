//! Stage 9: tools, made from operations by what `surface.yaml` says about them.

pub mod definitions;
mod named;
pub mod signature;
mod tokens;

use std::collections::BTreeMap;

use definitions::{Dispatcher, Host, Local, Tools, ViewOption};
use exa_mcp_model::{HostEntry, ToolDefinition, ToolFile, ToolHints, ToolPlan};
use serde_json::{Map, Value, json};
use signature::Detail;

use crate::error::Notice;
use crate::model::{Model, Operation};

/// Clients cut descriptions at two thousand characters.
const MAX_DESCRIPTION: usize = 2_000;

/// One tool in its final form.
pub type Tool = ToolFile<Value>;

/// All tools and sets.
#[derive(Debug, Default)]
pub struct Catalogue {
    /// Tools by name.
    pub tools: BTreeMap<String, Tool>,
    /// Sets and domains with the names of their tools, in order.
    pub sets: BTreeMap<String, Vec<String>>,
    /// JSON Schema of the arguments that say how an answer is shown.
    pub options: Value,
}

/// Makes the tools; what upstream took away is reported and left out.
pub fn build(tools: &Tools, model: &Model, notices: &mut Vec<Notice>) -> Catalogue {
    let mut catalogue = Catalogue {
        options: options_schema(&tools.options),
        ..Catalogue::default()
    };
    for operation in &model.operations {
        let mut tool = granular(operation);
        let reads = operation.method == "get" || operation.read_only;
        list_options(&mut tool, &tools.options, reads, is_paged(operation));
        catalogue.add(tool);
        let name = granular_name(&operation.name);
        for set in ["granular", operation.domain.as_str()] {
            catalogue
                .sets
                .entry(set.to_owned())
                .or_default()
                .push(name.clone());
        }
    }
    for dispatcher in &tools.dispatchers {
        match dispatcher_tool(dispatcher, model) {
            Some(mut tool) => {
                list_options(&mut tool, &tools.options, true, true);
                catalogue.add(tool);
            }
            None => notices.push(lost(
                &dispatcher.name,
                "its API has no operations any more; the tool was left out",
            )),
        }
    }
    for host in &tools.hosts {
        if let Some(mut tool) = host_tool(host, model, notices) {
            list_options(&mut tool, &tools.options, true, false);
            catalogue.add(tool);
        }
    }
    for named in &tools.named {
        if let Some(mut tool) = named::tool(named, model, notices) {
            list_options(&mut tool, &tools.options, true, false);
            catalogue.add(tool);
        }
    }
    for local in &tools.local {
        catalogue.add(local_tool(local, model, notices));
    }
    for (set, names) in &tools.sets {
        let (known, gone): (Vec<_>, Vec<_>) = names
            .iter()
            .cloned()
            .partition(|name| catalogue.tools.contains_key(name));
        notices.extend(gone.iter().map(|name| {
            lost(
                set,
                &format!("the set names `{name}`, which is no tool; it was left out"),
            )
        }));
        catalogue.sets.insert(set.clone(), known);
    }
    catalogue
}

/// One schema for all options.
fn options_schema(options: &[ViewOption]) -> Value {
    let properties: Map<String, Value> = options
        .iter()
        .map(|option| (option.name.clone(), Value::Object(option.schema.clone())))
        .collect();
    json!({"type": "object", "properties": properties, "additionalProperties": false})
}

/// An operation that takes a cursor answers in pages.
fn is_paged(operation: &Operation) -> bool {
    operation.has_argument("cursor")
}

/// Adds the options that are listed; an argument of the tool's own keeps its name.
fn list_options(tool: &mut Tool, options: &[ViewOption], reads: bool, paged: bool) {
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

/// A notice about a tool or set of the surface.
fn lost(name: &str, text: &str) -> Notice {
    Notice {
        file: "surface.yaml".to_owned(),
        place: format!("tool {name}"),
        text: text.to_owned(),
    }
}

impl Catalogue {
    fn add(&mut self, mut tool: Tool) {
        tool.tokens = tokens::count(&json!(tool.definition).to_string());
        self.tools.insert(tool.definition.name.clone(), tool);
    }

    /// `TOKENS.md`: what each set costs a client that loads it.
    pub fn token_table(&self) -> String {
        tokens::table(self)
    }
}

/// The tool of a single operation is called like it, with underscores.
fn granular_name(operation: &str) -> String {
    operation.replace('.', "_")
}

fn granular(operation: &Operation) -> Tool {
    let mut schema = operation.input_schema.clone();
    if let Value::Object(map) = &mut schema {
        map.shift_remove("$schema");
    }
    without_aliases(&mut schema);
    tool(
        ToolDefinition {
            name: granular_name(&operation.name),
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

/// Aliases are a courtesy to callers, not part of what a model should read.
fn without_aliases(schema: &mut Value) {
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    for property in properties.into_iter().flat_map(|map| map.values_mut()) {
        if let Value::Object(property) = property {
            property.shift_remove("x-aliases");
        }
    }
}

/// A tool whose tokens are not counted yet.
fn tool(definition: ToolDefinition<Value>, plan: ToolPlan) -> Tool {
    Tool {
        definition,
        plan,
        tokens: 0,
    }
}

/// What an operation does to the world, as hints for clients.
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

/// A tool over several operations promises only what holds for all of them.
fn common_hints(operations: &[&Operation]) -> ToolHints {
    let hints: Vec<ToolHints> = operations.iter().map(|it| hints(it)).collect();
    ToolHints {
        read_only: hints.iter().all(|it| it.read_only),
        destructive: hints.iter().any(|it| it.destructive),
        idempotent: hints.iter().all(|it| it.idempotent),
        open_world: hints.iter().any(|it| it.open_world),
    }
}

fn dispatcher_tool(dispatcher: &Dispatcher, model: &Model) -> Option<Tool> {
    let operations: Vec<&Operation> = model
        .operations
        .iter()
        .filter(|operation| operation.api == dispatcher.api)
        .collect();
    if operations.is_empty() {
        return None;
    }
    let names: Vec<String> = operations.iter().map(|it| it.name.clone()).collect();
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
    let most = dispatcher.max_characters.unwrap_or(MAX_DESCRIPTION);
    let description =
        fitting_description(&dispatcher.intro, &operations, most.min(MAX_DESCRIPTION));
    let definition = ToolDefinition {
        name: dispatcher.name.clone(),
        title: dispatcher.title.clone(),
        description,
        input_schema: schema,
        annotations: common_hints(&operations),
    };
    Some(tool(definition, ToolPlan::Dispatcher { operations: names }))
}

/// As many optional arguments as the limit of clients allows.
fn fitting_description(intro: &str, operations: &[&Operation], most: usize) -> String {
    let mut text = String::new();
    for optional in (0..=12).rev() {
        for inner in (0..=3).rev() {
            let groups = signature::groups(operations, Detail { optional, inner });
            text = format!("{}\n{groups}", intro.trim());
            if text.chars().count() <= most {
                return text;
            }
        }
    }
    // Too many operations for signatures: the enum names them, `describe` explains them.
    text.chars()
        .take(MAX_DESCRIPTION - 1)
        .chain(['…'])
        .collect()
}

fn host_tool(host: &Host, model: &Model, notices: &mut Vec<Notice>) -> Option<Tool> {
    let mut kept: Vec<HostEntry> = Vec::new();
    let mut operations = Vec::new();
    for entry in &host.operations {
        match entry
            .operation
            .as_ref()
            .map(|name| (model.find(name), name))
        {
            Some((None, operation)) => {
                let text = format!(
                    "`{operation}` does not exist any more; `{}` was left out",
                    entry.name
                );
                notices.push(lost(&host.name, &text));
            }
            Some((Some(operation), _)) => {
                operations.push(operation);
                kept.push(entry.clone());
            }
            None => kept.push(entry.clone()),
        }
    }
    if operations.is_empty() {
        notices.push(lost(
            &host.name,
            "none of its operations exists any more; the tool was left out",
        ));
        return None;
    }
    let names: Vec<&str> = kept.iter().map(|entry| entry.name.as_str()).collect();
    let names: Vec<&str> = ["list_operations"].into_iter().chain(names).collect();
    let schema = json!({
        "type": "object",
        "properties": {
            "operation": {"type": "string", "enum": names},
            "params": {"type": "object"},
        },
        "required": ["operation"],
    });
    let refused = |name: &String| {
        let mut entries = kept.iter();
        entries.any(|entry| entry.name == *name && entry.unsupported.is_some())
    };
    let entries: Vec<HostEntry> = kept
        .iter()
        .map(|entry| {
            let mut entry = entry.clone();
            entry.cancel_is_unsupported = entry.cancel_with.as_ref().is_some_and(refused);
            host_entry(entry, model)
        })
        .collect();
    let definition = ToolDefinition {
        name: host.name.clone(),
        title: host.title.clone(),
        description: host.description.trim().to_owned(),
        input_schema: schema,
        annotations: common_hints(&operations),
    };
    Some(tool(definition, ToolPlan::Host { entries }))
}

/// An entry with what the operation's long-running marker says about following it.
fn host_entry(mut entry: HostEntry, model: &Model) -> HostEntry {
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

fn local_tool(local: &Local, model: &Model, notices: &mut Vec<Notice>) -> Tool {
    let mut plan = local.plan.clone();
    if let ToolPlan::Suggest { read, add } = &mut plan {
        for operation in [read, add] {
            if let Some(gone) = operation.take_if(|name| model.find(name).is_none()) {
                let text = format!("`{gone}` does not exist any more; it was left out");
                notices.push(lost(&local.name, &text));
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
    tool(definition, plan)
}

/// `tools.rs`: the table that is compiled into the server.
pub fn table(catalogue: &Catalogue) -> String {
    let mut text = format!(
        "{}//! Every tool, every set of tools, every prompt, every price, and the operations behind resources.\n\n\
         use exa_mcp_model::price::PriceList;\n\
         use exa_mcp_model::{{EmbeddedJson, PromptFile, Resources}};\n\n",
        crate::HEADER
    );
    text.push_str(
        "/// Tools by name, each as JSON; sorted.\npub static TOOLS: &[(&str, &str)] = &[\n",
    );
    for name in catalogue.tools.keys() {
        text.push_str(&format!(
            "    ({name:?}, include_str!(\"tools/{name}.json\")),\n"
        ));
    }
    text.push_str("];\n\n/// Sets by name with their tools; sorted.\npub static SETS: &[(&str, &[&str])] = &[\n");
    for (set, names) in &catalogue.sets {
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

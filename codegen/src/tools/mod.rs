//! Stage 9: tools, made from operations by what `surface.yaml` says about them.

pub mod definitions;
mod named;
pub mod signature;
mod tokens;

use std::collections::BTreeMap;

use definitions::{Dispatcher, Host, HostEntry, Local, Tools, ViewOption};
use serde_json::{Map, Value, json};
use signature::Detail;

use crate::error::Notice;
use crate::model::{Model, Operation};

/// Clients cut descriptions at two thousand characters.
const MAX_DESCRIPTION: usize = 2_000;

/// One tool in its final form.
#[derive(Debug)]
pub struct Tool {
    /// Tool name.
    pub name: String,
    /// What `tools/list` shows of it.
    pub definition: Value,
    /// How a call of it is carried out.
    pub plan: Value,
    /// Size of the definition in o200k tokens.
    pub tokens: usize,
}

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
        catalogue.add(local_tool(local));
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
    let properties = operation.input_schema.get("properties");
    properties.and_then(|it| it.get("cursor")).is_some()
}

/// Adds the options that are listed; an argument of the tool's own keeps its name.
fn list_options(tool: &mut Tool, options: &[ViewOption], reads: bool, paged: bool) {
    let properties = tool.definition.pointer_mut("/inputSchema/properties");
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
        tool.tokens = tokens::count(&tool.definition.to_string());
        self.tools.insert(tool.name.clone(), tool);
    }

    /// `TOKENS.md`: what each set costs a client that loads it, and what was measured of answers.
    pub fn token_table(&self, measured: &str) -> String {
        tokens::table(self, measured)
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
    let name = granular_name(&operation.name);
    let definition = definition(
        &name,
        &operation.summary,
        &operation.description,
        schema,
        hints(operation),
    );
    Tool {
        name,
        definition,
        plan: json!({"kind": "operation", "operation": operation.name}),
        tokens: 0,
    }
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

fn definition(
    name: &str,
    title: &str,
    description: &str,
    input_schema: Value,
    hints: Value,
) -> Value {
    json!({
        "name": name,
        "title": title,
        "description": description,
        "inputSchema": input_schema,
        "annotations": hints,
    })
}

/// What an operation does to the world, as hints for clients.
pub fn hints(operation: &Operation) -> Value {
    let verb = operation.name.rsplit('.').next().unwrap_or_default();
    let read_only = operation.method == "get" || operation.read_only;
    let ends = operation.method == "delete" || ["cancel", "stop"].contains(&verb);
    let overwrites = ["put", "patch"].contains(&operation.method.as_str()) || verb == "update";
    json!({
        "readOnlyHint": read_only,
        "destructiveHint": !read_only && (ends || overwrites),
        "idempotentHint": read_only || ends || overwrites,
        "openWorldHint": operation.open_world,
    })
}

/// A tool over several operations promises only what holds for all of them.
fn common_hints(operations: &[&Operation]) -> Value {
    let hints: Vec<Value> = operations
        .iter()
        .map(|operation| hints(operation))
        .collect();
    let all = |key: &str| {
        hints
            .iter()
            .all(|hint| hint.get(key) == Some(&Value::Bool(true)))
    };
    let any = |key: &str| {
        hints
            .iter()
            .any(|hint| hint.get(key) == Some(&Value::Bool(true)))
    };
    json!({
        "readOnlyHint": all("readOnlyHint"),
        "destructiveHint": any("destructiveHint"),
        "idempotentHint": all("idempotentHint"),
        "openWorldHint": any("openWorldHint"),
    })
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
    let names: Vec<&str> = operations
        .iter()
        .map(|operation| operation.name.as_str())
        .collect();
    let mut all = names.clone();
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
    let hints = common_hints(&operations);
    Some(Tool {
        name: dispatcher.name.clone(),
        definition: definition(
            &dispatcher.name,
            &dispatcher.title,
            &description,
            schema,
            hints,
        ),
        plan: json!({"kind": "dispatcher", "operations": names}),
        tokens: 0,
    })
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
    let find = |name: &str| {
        model
            .operations
            .iter()
            .find(|operation| operation.name == name)
    };
    let mut kept: Vec<HostEntry> = Vec::new();
    let mut operations = Vec::new();
    for entry in &host.operations {
        match entry
            .preset
            .as_ref()
            .map(|preset| (find(&preset.operation), preset))
        {
            Some((None, preset)) => {
                let text = format!(
                    "`{}` does not exist any more; `{}` was left out",
                    preset.operation, entry.name
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
    let entries: Vec<Value> = kept
        .iter()
        .map(|entry| {
            let mut entry = entry.clone();
            entry.cancel_is_refused = entry.cancel_with.as_ref().is_some_and(refused);
            host_entry(entry, model)
        })
        .collect();
    Some(Tool {
        name: host.name.clone(),
        definition: definition(
            &host.name,
            &host.title,
            host.description.trim(),
            schema,
            common_hints(&operations),
        ),
        plan: json!({"kind": "host", "entries": entries}),
        tokens: 0,
    })
}

/// An entry with what the operation's long-running marker says about following it.
fn host_entry(mut entry: HostEntry, model: &Model) -> Value {
    let operation = entry.preset.as_ref().map(|preset| preset.operation.clone());
    let markers = model.operations.iter().filter_map(|operation| {
        operation
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
    serde_json::to_value(&entry).unwrap_or_else(|_| Value::Object(Map::new()))
}

fn local_tool(local: &Local) -> Tool {
    let hints = json!({
        "readOnlyHint": local.read_only,
        "destructiveHint": false,
        "idempotentHint": local.read_only,
        "openWorldHint": false,
    });
    Tool {
        name: local.name.clone(),
        definition: definition(
            &local.name,
            &local.title,
            local.description.trim(),
            Value::Object(local.input_schema.clone()),
            hints,
        ),
        plan: json!({"kind": local.kind}),
        tokens: 0,
    }
}

/// `tools.rs`: the table that is compiled into the server.
pub fn table(catalogue: &Catalogue) -> String {
    let mut text = format!(
        "{}//! Every tool and every set of tools.\n\n",
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
    text
}

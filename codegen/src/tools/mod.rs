//! Stage 5: builds tools from the operations and `surface.yaml`.

mod admin;
mod common_schema;
pub mod definitions;
mod host;
mod named;
mod presets;
mod sets;
pub mod signature;
mod table;
mod tokens;

pub use table::table;

use std::collections::{BTreeMap, BTreeSet};

use definitions::{DispatcherTool, LocalTool, OutputOption, ToolDefinitions};
use exa_mcp_model::{ToolDefinition, ToolFile, ToolHints, ToolPlan};
use serde_json::{Map, Value, json};
use signature::SignatureDetail;
use tokens::SetSize;

use crate::error::Findings;
use crate::model::{Model, Operation};
use crate::operations::ASSERTIONS;
use crate::surface_check::Report;

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
    findings: &mut Findings,
) -> ToolRegistry {
    let mut registry = ToolRegistry {
        options: options_schema(&definitions.options),
        ..ToolRegistry::default()
    };
    sets::check_options(&definitions.options, findings);
    for dispatcher in &definitions.dispatchers {
        match dispatcher_tool(dispatcher, model) {
            Some(mut tool) => {
                let usage = OptionUsage::of(&tool, model, false);
                add_options(&mut tool, &definitions.options, &usage);
                registry.add_defined(tool, findings);
            }
            None => tool_report(&dispatcher.name, findings)
                .omit("its API no longer has operations; tool omitted"),
        }
    }
    for host in &definitions.hosts {
        if let Some(mut tool) = host::host_tool(host, model, findings) {
            let usage = OptionUsage::of(&tool, model, true);
            add_options(&mut tool, &definitions.options, &usage);
            registry.add_defined(tool, findings);
        }
    }
    let described = definitions.dispatchers.iter().map(|tool| &tool.name);
    let beside_dispatchers: BTreeSet<&String> = definitions
        .sets
        .values()
        .filter(|set| described.clone().any(|name| set.contains(name)))
        .flatten()
        .collect();
    for named in &definitions.named {
        if let Some(mut tool) = named::named_tool(named, definitions, model, findings) {
            let is_brief = beside_dispatchers.contains(&named.name);
            let usage = OptionUsage::of(&tool, model, is_brief);
            add_options(&mut tool, &definitions.options, &usage);
            registry.add_defined(tool, findings);
        }
    }
    for local in &definitions.local {
        if let Some(mut tool) = local_tool(local, model, findings) {
            let usage = OptionUsage::default();
            add_options(&mut tool, &definitions.options, &usage);
            registry.add_defined(tool, findings);
        }
    }
    admin::confine(&mut registry, model, findings);
    let defined: Vec<String> = registry.tools.keys().cloned().collect();
    add_operation_tools(definitions, model, &mut registry, findings);
    sets::add_sets(definitions, &defined, model, &mut registry, findings);
    sets::check_exceptions(&definitions.options, &registry, findings);
    registry
}

/// Adds one tool for each operation, and the sets of the domains.
fn add_operation_tools(
    definitions: &ToolDefinitions,
    model: &Model,
    registry: &mut ToolRegistry,
    findings: &mut Findings,
) {
    for operation in &model.operations {
        let wanted = operation_tool_name(&operation.name);
        let name = registry.unused_name(wanted.clone());
        if name != wanted {
            tool_report(&wanted, findings).note(format!(
                "the tool of `{}` would have the same name; it is called `{name}`",
                operation.name
            ));
        }
        let mut tool = operation_tool(operation, &name);
        let usage = OptionUsage {
            reads: operation.method == "get" || operation.read_only,
            pages: is_paged(operation),
            starts: operation.behavior.long_running.is_some(),
            caches: is_cached(operation),
            is_brief: false,
        };
        add_options(&mut tool, &definitions.options, &usage);
        registry.add(tool);
        let set = model.only_set(operation).unwrap_or("granular");
        for set in [set, operation.domain.as_str()] {
            let tools = registry.sets.entry(set.to_owned()).or_default();
            if !tools.contains(&name) {
                tools.push(name.clone());
            }
        }
    }
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

/// Returns whether a repeated call may be answered from the cache.
fn is_cached(operation: &Operation) -> bool {
    operation.read_only && operation.method != "get"
}

/// What the calls of a tool do, which decides about its options.
#[derive(Debug, Default)]
struct OptionUsage {
    reads: bool,
    pages: bool,
    starts: bool,
    caches: bool,
    /// Its options are not described: the dispatchers do that.
    is_brief: bool,
}

impl OptionUsage {
    fn of(tool: &Tool, model: &Model, is_brief: bool) -> Self {
        let operations = tool.plan.operations();
        let any = |is: fn(&Operation) -> bool| {
            let mut found = operations.iter().filter_map(|name| model.find(name));
            found.any(is)
        };
        Self {
            reads: true,
            pages: any(is_paged),
            starts: any(|operation| operation.behavior.long_running.is_some()),
            caches: any(is_cached),
            is_brief,
        }
    }

    fn lists(&self, option: &OutputOption) -> bool {
        let is_used = if option.starts {
            self.starts
        } else {
            self.reads || option.always
        };
        is_used && (self.pages || !option.pages) && (self.caches || !option.cached)
    }
}

/// Adds the listed output options, except those with the name of an argument of the tool.
fn add_options(tool: &mut Tool, options: &[OutputOption], usage: &OptionUsage) {
    let properties = tool.definition.input_schema.get_mut("properties");
    let Some(Value::Object(properties)) = properties else {
        return;
    };
    let name = &tool.definition.name;
    let listed = options.iter().filter(|option| usage.lists(option));
    for option in listed.filter(|option| !option.except.contains(name)) {
        if let Some(listed) = &option.listed {
            let mut listed = listed.clone();
            if usage.is_brief {
                listed.shift_remove("description");
            }
            properties
                .entry(option.name.clone())
                .or_insert_with(|| Value::Object(listed));
        }
    }
}

/// Reports on a tool or set of `surface.yaml`.
fn tool_report<'a>(name: &str, findings: &'a mut Findings) -> Report<'a> {
    Report::new(findings, format!("tool {name}"))
}

/// Returns whether clients accept a text as the name of a tool.
fn is_tool_name(name: &str) -> bool {
    let is_valid = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    (1..=64).contains(&name.len()) && name.chars().all(is_valid)
}

impl ToolRegistry {
    /// Returns the name, with a number if a tool has it: `a.b_c` and `a_b.c` would both be `a_b_c`.
    fn unused_name(&self, name: String) -> String {
        let numbered = (2..).map(|number| format!("{name}_{number}"));
        let mut candidates = std::iter::once(name.clone()).chain(numbered);
        let unused = candidates.find(|candidate| !self.tools.contains_key(candidate));
        unused.unwrap_or(name)
    }

    /// Adds a tool of `surface.yaml` if its name can be used.
    fn add_defined(&mut self, tool: Tool, findings: &mut Findings) {
        let name = &tool.definition.name;
        let mut report = tool_report(name, findings);
        if self.tools.contains_key(name) {
            report.omit("a second tool has this name; omitted");
        } else if !is_tool_name(name) {
            report.omit("a name has 1 to 64 letters, digits, `_` and `-`; tool omitted");
        } else {
            self.add(tool);
        }
    }

    fn add(&mut self, mut tool: Tool) {
        common_schema::reduce(&mut tool.definition.input_schema);
        remove_unused_definitions(&mut tool.definition.input_schema);
        tool.tokens = tokens::count(&json!(tool.definition).to_string());
        self.tools.insert(tool.definition.name.clone(), tool);
    }

    /// Returns `TOKENS.md`: the number of tokens of each set.
    pub fn token_table(&self) -> String {
        tokens::table(self)
    }

    /// Returns the size of a set or domain.
    pub(crate) fn set_size(&self, set: &str) -> Option<SetSize> {
        let names = self.sets.get(set)?;
        Some(SetSize::of(self, names))
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
    let listed: Vec<&Operation> = operations
        .iter()
        .copied()
        .filter(|operation| !operation.behavior.unlisted)
        .collect();
    let max_length = dispatcher.max_characters.unwrap_or(MAX_DESCRIPTION);
    // Descriptions of tools are short; that of an argument may be longer.
    let signatures = dispatcher_signatures(&listed, max_length.min(MAX_DESCRIPTION));
    let mut schema = schema;
    schema["properties"]["args"]["description"] = json!(signatures);
    let definition = ToolDefinition {
        name: dispatcher.name.clone(),
        title: dispatcher.title.clone(),
        description: dispatcher.intro.trim().to_owned(),
        input_schema: schema,
        annotations: common_hints(&operations),
    };
    Some(new_tool(
        definition,
        ToolPlan::Dispatcher { operations: names },
    ))
}

/// Returns signatures with as many optional arguments as fit into `max_length`.
fn dispatcher_signatures(operations: &[&Operation], max_length: usize) -> String {
    let mut text = String::new();
    // A few fields of objects are worth more than many names of arguments.
    let rich = (3..=12)
        .rev()
        .flat_map(|optional| [(optional, 3), (optional, 2)]);
    let poor = (0..=12)
        .rev()
        .flat_map(|optional| [(optional, 1), (optional, 0)]);
    for (optional, fields) in rich.chain(poor) {
        let detail = SignatureDetail { optional, fields };
        text = signature::by_domain(operations, detail);
        if text.chars().count() <= max_length {
            return text;
        }
    }
    // Too many operations for signatures: the enum lists them and `describe` explains them.
    text.chars()
        .take(max_length.saturating_sub(1))
        .chain(['…'])
        .collect()
}

fn local_tool(local: &LocalTool, model: &Model, findings: &mut Findings) -> Option<Tool> {
    let mut report = tool_report(&local.name, findings);
    let mut plan = local.plan.clone();
    match &mut plan {
        ToolPlan::Note => {}
        ToolPlan::Suggest { read, add } => {
            for operation in [read, add] {
                if let Some(missing) = operation.take_if(|name| model.find(name).is_none()) {
                    report.omit(format!("`{missing}` no longer exists; omitted"));
                }
            }
        }
        _ => {
            report.omit("its plan calls an operation, so it is not a local tool; omitted");
            return None;
        }
    }
    let schema = Value::Object(local.input_schema.clone());
    let is_object = schema.get("type").and_then(Value::as_str) == Some("object");
    if !is_object || !jsonschema::meta::is_valid(&schema) {
        report.omit("`inputSchema` is not the JSON Schema of an object; tool omitted");
        return None;
    }
    let definition = ToolDefinition {
        name: local.name.clone(),
        title: local.title.clone(),
        description: local.description.trim().to_owned(),
        input_schema: schema,
        annotations: ToolHints {
            read_only: local.read_only,
            destructive: false,
            idempotent: local.read_only,
            open_world: false,
        },
    };
    Some(new_tool(definition, plan))
}

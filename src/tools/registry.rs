//! The registry of enabled tools.

use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};

use super::call::ToolCall;
use super::schema::Schema;
use super::{parse, routing, task_call};
use crate::operations::{self, validation::InputSchema};
use exa_mcp_generated::tools::{RESOURCES, SETS, TOOLS};
use exa_mcp_model::{Operation, ToolFile, ToolHints, ToolPlan};
use exa_mcp_text::similar_names;

/// Why a list of tools cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SelectError {
    /// Some names are neither sets nor tools.
    #[error(
        "unknown tool or set {}{}; available sets: {}; {}",
        names.join(", "), suggestion(names, sets, tools), sets.join(", "), list_tools(tools)
    )]
    Unknown {
        /// The unknown names.
        names: Vec<String>,
        /// All sets.
        sets: Vec<String>,
        /// All tools.
        tools: Vec<String>,
    },
    /// The list is empty.
    #[error("the list of tools is empty; omit it for the default set")]
    Empty,
    /// No tool in the list is enabled.
    #[error("these tools are not enabled; available: {}", .0.join(", "))]
    NotEnabled(Vec<String>),
    /// The generated table is invalid.
    #[error("the generated definition of `{0}` is invalid: {1}")]
    InvalidDefinition(&'static str, String),
}

/// How many tools an error message lists.
const MAX_LISTED: usize = 20;

fn list_tools(tools: &[String]) -> String {
    if tools.len() > MAX_LISTED {
        let count = tools.len();
        return format!("`exa-mcp-server capabilities` lists the {count} tools");
    }
    format!("available tools: {}", tools.join(", "))
}

/// The definition of a tool in `tools/list`.
#[derive(Debug, Clone)]
pub struct ToolDefinition {
    /// The name.
    pub name: String,
    /// The title, for people.
    pub title: String,
    /// The description, for models.
    pub description: String,
    /// The JSON Schema of the arguments.
    pub input_schema: Schema,
    /// The annotations, such as read-only.
    pub hints: ToolHints,
    /// The tool can start a long-running job.
    pub starts_job: bool,
}

/// A tool and how its calls are executed.
pub(super) struct Tool {
    pub(super) definition: ToolDefinition,
    /// The schema prepared for validation, created by the first call.
    schema: OnceLock<InputSchema>,
    pub(super) plan: ToolPlan,
    /// Whether only the local user and admins may use it.
    admin_only: bool,
    tokens: usize,
}

impl Tool {
    /// Loads a tool from the generated table.
    fn load(name: &'static str) -> Result<Self, SelectError> {
        let index = TOOLS.binary_search_by(|(known, _)| (*known).cmp(name));
        let entry = index.ok().and_then(|index| TOOLS.get(index));
        let text = entry.map_or("", |(_, text)| *text);
        let file: ToolFile = serde_json::from_str(text)
            .map_err(|error| SelectError::InvalidDefinition(name, error.to_string()))?;
        let definition = file.definition;
        Ok(Self {
            schema: OnceLock::new(),
            definition: ToolDefinition {
                name: definition.name,
                title: definition.title,
                description: definition.description,
                input_schema: Schema::in_file(text),
                hints: definition.annotations,
                starts_job: task_call::can_start(&file.plan),
            },
            admin_only: calls_admin_operation(&file.plan),
            plan: file.plan,
            tokens: file.tokens,
        })
    }

    /// Loads the tool with this name, whether it is enabled or not.
    pub(super) fn find(name: &str) -> Option<Self> {
        let index = TOOLS.binary_search_by(|(known, _)| (*known).cmp(name)).ok();
        let (name, _) = index.and_then(|index| TOOLS.get(index))?;
        Self::load(name).ok()
    }

    /// Returns the schema for validation.
    pub(super) fn schema(&self) -> &InputSchema {
        let load = || InputSchema::new(Value::Object(self.definition.input_schema.owned()));
        self.schema.get_or_init(load)
    }

    pub(super) fn name(&self) -> &str {
        &self.definition.name
    }
}

/// The enabled tools.
#[derive(Clone)]
pub(crate) struct ToolRegistry {
    tools: Arc<[Arc<Tool>]>,
    /// Only read-only operations are allowed.
    read_only: bool,
}

impl ToolRegistry {
    /// Creates a registry of the sets and tools in a list.
    pub(crate) fn new(list: &str) -> Result<Self, SelectError> {
        let tools = select(list)?.into_iter();
        let tools = tools.map(|name| Tool::load(name).map(Arc::new));
        Ok(Self {
            tools: tools.collect::<Result<_, _>>()?,
            read_only: false,
        })
    }

    /// Returns the instructions for clients.
    pub(crate) fn instructions(&self) -> String {
        let mut text = "Exa: web search, page contents, answers, research and Websets (collections of entities \
                        found, verified and enriched on the web)."
            .to_owned();
        let hosts = |api: &str| {
            let hosts = self.tools.iter().filter(|tool| {
                matches!(tool.plan, ToolPlan::Toolhost { .. }) && tool.name().starts_with(api)
            });
            hosts.map(|tool| tool.name()).collect::<Vec<_>>().join("/")
        };
        let (websets, exa) = (hosts("websets"), hosts("exa"));
        let uses = [(websets, "Websets"), (exa, "Search")].into_iter();
        let uses: Vec<String> = uses
            .filter(|(tools, _)| !tools.is_empty())
            .map(|(tools, what)| format!("{tools} for {what} operations"))
            .collect();
        if !uses.is_empty() {
            text.push_str(&format!(" Use {}.", uses.join(" and ")));
        }
        if self.tools.iter().any(|tool| tool.plan.is_open()) {
            text.push_str(
                " Tools with `operation` take `list_operations` to show what they can do.",
            );
        }
        text
    }

    /// Returns the definitions, in the order of the list.
    pub(crate) fn definitions(&self) -> Vec<ToolDefinition> {
        let tools = self.tools.iter();
        tools.map(|tool| tool.definition.clone()).collect()
    }

    /// Returns the tokens of all definitions together.
    pub(crate) fn tokens(&self) -> usize {
        self.tools.iter().map(|tool| tool.tokens).sum()
    }

    /// Returns whether a tool is enabled.
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// Describes for a prompt how to call an operation with these tools; `None` if no tool can.
    pub(crate) fn route_to(&self, operation: &str) -> Option<String> {
        routing::route_to(&self.tools, operation)
    }

    /// Parses and validates a call of a tool.
    pub(crate) fn parse(&self, name: &str, arguments: Map<String, Value>) -> ToolCall {
        parse::parse(self, name, arguments)
    }

    /// Returns the enabled tools that are in a list of sets and tools.
    pub(crate) fn narrow(&self, list: &str) -> Result<Self, SelectError> {
        let wanted = select(list).map_err(|error| self.without_disabled_names(error))?;
        let is_wanted = |tool: &&Arc<Tool>| wanted.contains(&tool.name());
        let tools: Arc<[Arc<Tool>]> = self.tools.iter().filter(is_wanted).cloned().collect();
        if tools.is_empty() {
            let enabled = self.tools.iter().map(|tool| tool.name().to_owned());
            return Err(SelectError::NotEnabled(enabled.collect()));
        }
        Ok(Self {
            tools,
            read_only: self.read_only,
        })
    }

    /// Removes tools and sets that are not enabled from the names that an error suggests.
    fn without_disabled_names(&self, error: SelectError) -> SelectError {
        let SelectError::Unknown {
            names,
            mut sets,
            mut tools,
        } = error
        else {
            return error;
        };
        let has_enabled = |name: &str| {
            let tools = set(name).into_iter().flatten();
            tools.into_iter().any(|tool| self.contains(tool))
        };
        sets.retain(|name| has_enabled(name));
        tools.retain(|name| self.contains(name));
        SelectError::Unknown { names, sets, tools }
    }

    /// Returns whether a tool is for the local user and admins only.
    pub(super) fn has_admin_tools(&self) -> bool {
        self.iter().any(|tool| tool.admin_only)
    }

    /// Returns the tools that others than admins may use.
    #[must_use]
    pub(super) fn without_admin_tools(&self) -> Self {
        let is_open = |tool: &&Arc<Tool>| !tool.admin_only;
        Self {
            tools: self.tools.iter().filter(is_open).cloned().collect(),
            read_only: self.read_only,
        }
    }

    /// Returns a registry without tools.
    pub(super) fn empty(&self) -> Self {
        Self {
            tools: Arc::default(),
            read_only: self.read_only,
        }
    }

    /// Returns the read-only tools, and dispatchers limited to read-only operations.
    #[must_use]
    pub(super) fn read_only(&self) -> Self {
        let reads = |tool: &&Arc<Tool>| tool.definition.hints.read_only || tool.plan.is_open();
        Self {
            tools: self.tools.iter().filter(reads).cloned().collect(),
            read_only: true,
        }
    }

    /// Returns whether a tool must not call an operation.
    pub(super) fn forbids(&self, tool: &Tool, operation: &Operation) -> bool {
        self.read_only && tool.plan.is_open() && !operation.read_only
    }

    pub(super) fn find(&self, name: &str) -> Option<&Arc<Tool>> {
        self.tools.iter().find(|tool| tool.name() == name)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Tool> {
        self.tools.iter().map(AsRef::as_ref)
    }

    /// Returns whether a tool creates notes.
    pub(super) fn has_notes(&self) -> bool {
        self.iter().any(|tool| matches!(tool.plan, ToolPlan::Note))
    }

    /// Returns whether the tools can read websets and their items.
    pub(super) fn has_websets(&self) -> bool {
        let reaches = |operation: &str| self.route_to(operation).is_some();
        let websets = RESOURCES.websets.as_ref();
        websets.is_some_and(|it| reaches(&it.get) && reaches(&it.items))
    }
}

fn calls_admin_operation(plan: &ToolPlan) -> bool {
    let operations = plan.operations().into_iter().filter_map(operations::find);
    let mut apis = operations.map(|operation| operation.api);
    apis.any(|api| api.admin_only)
}

/// Returns the distinct tools of a list such as `default,items,answer_exa`, in the order of the list.
pub(crate) fn select(list: &str) -> Result<Vec<&'static str>, SelectError> {
    let mut chosen: Vec<&'static str> = Vec::new();
    let mut unknown = Vec::new();
    for name in list
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty())
    {
        let found: &[&'static str] = match (set(name), tool(name)) {
            (Some(tools), _) => tools,
            (None, Some(tool)) => &[tool],
            (None, None) => {
                unknown.push(name.to_owned());
                continue;
            }
        };
        for tool in found {
            if !chosen.contains(tool) {
                chosen.push(tool);
            }
        }
    }
    if !unknown.is_empty() {
        return Err(SelectError::Unknown {
            names: unknown,
            sets: SETS.iter().map(|(name, _)| (*name).to_owned()).collect(),
            tools: TOOLS.iter().map(|(name, _)| (*name).to_owned()).collect(),
        });
    }
    if chosen.is_empty() {
        return Err(SelectError::Empty);
    }
    Ok(chosen)
}

/// Suggests names for unknown ones.
fn suggestion(names: &[String], sets: &[String], tools: &[String]) -> String {
    let known = || sets.iter().chain(tools).map(String::as_str);
    let near = names
        .iter()
        .filter_map(|name| similar_names::closest_spelling(name, known()));
    let near: Vec<String> = near.map(|name| format!("`{name}`")).collect();
    if near.is_empty() {
        return String::new();
    }
    format!("; did you mean {}?", near.join(", "))
}

/// Finds a set. Sets take precedence over tools of the same name: `search` is a domain and an operation.
fn set(name: &str) -> Option<&'static [&'static str]> {
    let index = SETS
        .binary_search_by(|(known, _)| (*known).cmp(name))
        .ok()?;
    SETS.get(index).map(|(_, tools)| *tools)
}

fn tool(name: &str) -> Option<&'static str> {
    let index = TOOLS
        .binary_search_by(|(known, _)| (*known).cmp(name))
        .ok()?;
    TOOLS.get(index).map(|(name, _)| *name)
}

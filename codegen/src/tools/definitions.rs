//! The part of `surface.yaml` that defines tools.

use std::collections::BTreeMap;

use exa_mcp_model::{AlternativeOperation, ExampleCall, ToolPlan, ToolhostEntry};
use serde::Deserialize;
use serde_json::{Map, Value};

/// All tools except those for single operations.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ToolDefinitions {
    /// Named groups of tools.
    #[serde(default)]
    pub sets: BTreeMap<String, Vec<String>>,
    /// Tools that call any operation of one API.
    #[serde(default)]
    pub dispatchers: Vec<DispatcherTool>,
    /// Tools that call operations under their own names.
    #[serde(default)]
    pub hosts: Vec<HostTool>,
    /// Tools with flat arguments for one operation.
    #[serde(default)]
    pub named: Vec<NamedTool>,
    /// Output options: arguments of every tool that returns results.
    #[serde(default)]
    pub options: Vec<OutputOption>,
    /// Tools that the server executes itself.
    #[serde(default)]
    pub local: Vec<LocalTool>,
}

impl ToolDefinitions {
    /// Returns the names of the result filters, which are the fields of the option `filters`.
    pub fn filter_names(&self) -> Vec<&str> {
        let option = self.options.iter().find(|option| option.name == "filters");
        let properties = option.and_then(|option| option.schema.get("properties")?.as_object());
        let properties = properties.into_iter().flatten();
        properties.map(|(name, _)| name.as_str()).collect()
    }

    /// Returns the values of the option `content_level`.
    pub fn content_levels(&self) -> Vec<&str> {
        let option = self
            .options
            .iter()
            .find(|option| option.name == "content_level");
        let values = option.and_then(|option| option.schema.get("enum")?.as_array());
        values
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect()
    }
}

/// An argument that controls how a result is shown.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct OutputOption {
    /// The name callers use.
    pub name: String,
    /// Its schema.
    pub schema: Map<String, Value>,
    /// Its schema in `tools/list`. Without it, the option is accepted but not listed.
    pub listed: Option<Map<String, Value>>,
    /// Tools that do not list it.
    #[serde(default)]
    pub except: Vec<String>,
    /// Whether only paginated operations have it.
    #[serde(default)]
    pub pages: bool,
    /// Whether only tools that start long-running work have it.
    #[serde(default)]
    pub starts: bool,
    /// Whether tools that return no results have it, too.
    #[serde(default)]
    pub always: bool,
    /// Whether only tools list it whose results may come from the cache without being asked for by id.
    #[serde(default)]
    pub cached: bool,
}

/// A tool that the server executes itself, without an operation of Exa.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct LocalTool {
    /// Tool name.
    pub name: String,
    /// Title for people.
    pub title: String,
    /// Description for language models.
    pub description: String,
    /// How the server executes it.
    pub plan: ToolPlan,
    /// The schema of the arguments.
    pub input_schema: Map<String, Value>,
    /// Whether it is read-only.
    #[serde(default)]
    pub read_only: bool,
}

/// A tool that calls any operation of one API.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct DispatcherTool {
    /// Tool name.
    pub name: String,
    /// Title for people.
    pub title: String,
    /// The API whose operations it calls.
    pub api: String,
    /// The text before the signatures.
    pub intro: String,
    /// The maximum length of the description, if shorter than what clients allow.
    pub max_characters: Option<usize>,
}

/// A tool that calls operations under its own names.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct HostTool {
    /// Tool name.
    pub name: String,
    /// Title for people.
    pub title: String,
    /// Description for language models.
    pub description: String,
    /// The operations it calls.
    pub operations: Vec<ToolhostEntry>,
}

/// A tool with flat arguments for one operation.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct NamedTool {
    /// Tool name.
    pub name: String,
    /// Title for people.
    pub title: String,
    /// Description for language models.
    pub description: String,
    /// The operation.
    pub operation: String,
    /// The visible arguments, in order.
    pub arguments: Vec<NamedArgument>,
    /// Values for omitted arguments, by dotted path.
    #[serde(default)]
    pub defaults: Map<String, Value>,
    /// Values that the caller cannot change, by dotted path.
    #[serde(default)]
    pub fixed: Map<String, Value>,
    /// More fixed values, by the requested content level.
    #[serde(default)]
    pub levels: BTreeMap<String, Map<String, Value>>,
    /// The content level if the caller gives none.
    pub content_level: Option<String>,
    /// Whether only title, URL and passages of each page are shown.
    #[serde(default)]
    pub brief: bool,
    /// Text appended to the first argument.
    pub suffix: Option<String>,
    /// Whether `category:x` in the query sets the category argument.
    #[serde(default)]
    pub category_in_query: bool,
    /// Another operation for calls that give this argument.
    pub instead: Option<AlternativeOperation>,
    /// What an example call shows in addition to the required arguments.
    #[serde(default)]
    pub example: ExampleCall,
}

/// One visible argument of a named tool.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct NamedArgument {
    /// The name callers use.
    pub name: String,
    /// The target of its value as a dotted path; by default the argument with the same name.
    pub to: Option<String>,
    /// The value that `true` sets at `to`; `false` removes it.
    pub switch: Option<Value>,
    /// Values of the tool, mapped to those of the operation.
    #[serde(default)]
    pub values: Map<String, Value>,
    /// Whether a call without it is rejected.
    #[serde(default)]
    pub required: bool,
    /// Description for language models; by default that of the spec.
    pub description: Option<String>,
    /// Its schema, if it differs from the spec.
    pub schema: Option<Map<String, Value>>,
}

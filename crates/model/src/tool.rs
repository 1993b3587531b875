//! Tools: their definitions, and how calls to them are executed.
//!
//! The generator writes one [`ToolFile`] per tool, and the server reads it.

use std::collections::BTreeMap;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ExampleCall;

/// A tool. By default, the argument schema `S` is skipped when the file is parsed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ToolFile<S = IgnoredAny> {
    /// Its entry in `tools/list`.
    pub definition: ToolDefinition<S>,
    /// How calls are executed.
    pub plan: ToolPlan,
    /// The size of the definition in o200k tokens.
    pub tokens: usize,
}

/// The entry of a tool in `tools/list`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolDefinition<S = IgnoredAny> {
    /// The name of the tool.
    pub name: String,
    /// The title for users.
    pub title: String,
    /// The description for language models.
    pub description: String,
    /// JSON Schema of the arguments.
    pub input_schema: S,
    /// Hints about its effects.
    pub annotations: ToolHints,
}

/// The MCP annotations of a tool: hints about its effects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolHints {
    /// Whether it changes nothing.
    #[serde(rename = "readOnlyHint")]
    pub read_only: bool,
    /// Whether it may delete or overwrite data.
    #[serde(rename = "destructiveHint")]
    pub destructive: bool,
    /// Whether repeated calls have no additional effect.
    #[serde(rename = "idempotentHint")]
    pub idempotent: bool,
    /// Whether it accesses the web.
    #[serde(rename = "openWorldHint")]
    pub open_world: bool,
}

/// How calls to a tool are executed.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum ToolPlan {
    /// Executes any operation of an API.
    Dispatcher {
        /// The names of the operations.
        operations: Vec<String>,
    },
    /// Executes operations under other names.
    #[serde(rename = "host")]
    Toolhost {
        /// The operations.
        entries: Vec<ToolhostEntry>,
    },
    /// Executes one operation.
    Operation {
        /// The name of the operation.
        operation: String,
    },
    /// Executes one operation with presets.
    Named(Box<NamedToolPlan>),
    /// Stores a note.
    Note,
    /// Suggests enrichments for a webset.
    Suggest {
        /// The operation that reads the webset.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        read: Option<String>,
        /// The operation that adds a suggested enrichment.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        add: Option<String>,
    },
}

impl ToolPlan {
    /// Returns whether the caller chooses the operation.
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Dispatcher { .. } | Self::Toolhost { .. })
    }

    /// Returns the names of all operations that calls may execute.
    pub fn operations(&self) -> Vec<&str> {
        match self {
            Self::Dispatcher { operations } => operations.iter().map(String::as_str).collect(),
            Self::Toolhost { entries } => entries
                .iter()
                .filter_map(|entry| entry.operation.as_deref())
                .collect(),
            Self::Operation { operation } => vec![operation],
            Self::Named(plan) => {
                let instead = plan.instead.as_ref().map(|other| other.operation.as_str());
                instead.into_iter().chain([&*plan.operation]).collect()
            }
            Self::Suggest { read, add } => read.iter().chain(add).map(String::as_str).collect(),
            Self::Note => Vec::new(),
        }
    }
}

/// An operation of a toolhost.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ToolhostEntry {
    /// Its name in the toolhost.
    pub name: String,
    /// A one-line summary.
    pub summary: String,
    /// The operation; `None` if upstream does not support it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// Renamed arguments, mapped to dotted paths.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rename: BTreeMap<String, String>,
    /// Objects whose fields become arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spread: Vec<String>,
    /// Default values by dotted path.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub defaults: Map<String, Value>,
    /// Fixed values by dotted path, which the caller cannot change.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub fixed: Map<String, Value>,
    /// Values of own parameters, mapped to those of the operation.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, Map<String, Value>>,
    /// The tool of the server that runs it, instead of an operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// What to tell about a success, instead of a sentence made from its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Why it is not supported, and what to do instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsupported: Option<String>,
    /// The parameters of an entry without an operation; they are strings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<String>,
    /// How the result is presented.
    #[serde(default)]
    pub role: ToolhostRole,
    /// The entry that reads the job that this one starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check_with: Option<String>,
    /// The entry that cancels the job that this one starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel_with: Option<String>,
    /// Whether that entry is not supported; set by the generator.
    #[serde(
        default,
        rename = "cancelIsRefused",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub cancel_is_unsupported: bool,
    /// The arguments of both, mapped to a field of the response or, with `$`, to an argument of this entry.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub follow: BTreeMap<String, String>,
    /// The final states.
    #[serde(default, rename = "final", skip_serializing_if = "Vec::is_empty")]
    pub final_states: Vec<String>,
}

/// How the result of a toolhost entry is presented.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ToolhostRole {
    /// As Exa returns it.
    #[default]
    Plain,
    /// With the calls that poll and cancel the started job.
    Start,
    /// With the status and whether it is final.
    Check,
    /// With the new status.
    Cancel,
}

/// The presets of a named tool.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NamedToolPlan {
    /// The operation.
    pub operation: String,
    /// How arguments of the tool map to arguments of the operation.
    pub moves: Vec<ArgumentMapping>,
    /// Default values by dotted path.
    pub defaults: Map<String, Value>,
    /// Fixed values by dotted path, which the caller cannot change.
    pub fixed: Map<String, Value>,
    /// Further fixed values by content level.
    #[serde(default)]
    pub levels: BTreeMap<String, Map<String, Value>>,
    /// The default content level.
    pub content_level: Option<String>,
    /// Whether only title, URL and passages of each page are shown, as the tool of the same name at Exa does.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub brief: bool,
    /// Text that is appended to the first argument.
    pub suffix: Option<String>,
    /// Whether `category:x` in the query sets the argument.
    pub category_in_query: bool,
    /// An alternative operation for calls with a certain argument.
    pub instead: Option<AlternativeOperation>,
    /// Additions to the example call.
    #[serde(default, skip_serializing_if = "ExampleCall::is_empty")]
    pub example: ExampleCall,
}

/// Maps an argument of a named tool to the operation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ArgumentMapping {
    /// The argument of the tool.
    pub from: String,
    /// The argument of the operation, as a dotted path.
    pub to: String,
    /// The value that `true` sets; `false` removes the argument.
    pub switch: Option<Value>,
    /// Values of the tool, mapped to those of the operation.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub values: Map<String, Value>,
}

/// An alternative operation for calls with a certain argument.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AlternativeOperation {
    /// The argument.
    pub given: String,
    /// The operation, which is called with this argument alone.
    pub operation: String,
}

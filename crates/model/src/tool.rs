//! Tools: their definitions, and the plans by which calls of them are carried out.
//!
//! The generator writes one [`ToolFile`] a tool, the server reads it.

use std::collections::BTreeMap;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ExampleCall;

/// One tool. The server skips the schema `S` of the arguments until it is asked for.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ToolFile<S = IgnoredAny> {
    /// What `tools/list` shows of it.
    pub definition: ToolDefinition<S>,
    /// How a call of it is carried out.
    pub plan: ToolPlan,
    /// Size of the definition in o200k tokens.
    pub tokens: usize,
}

/// What `tools/list` shows of a tool.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolDefinition<S = IgnoredAny> {
    /// The name of the tool.
    pub name: String,
    /// Its title for people.
    pub title: String,
    /// What a language model reads.
    pub description: String,
    /// JSON Schema of the arguments.
    pub input_schema: S,
    /// What the tool does to the world.
    pub annotations: ToolHints,
}

/// What a tool does to the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolHints {
    /// It changes nothing.
    #[serde(rename = "readOnlyHint")]
    pub read_only: bool,
    /// It may delete or overwrite.
    #[serde(rename = "destructiveHint")]
    pub destructive: bool,
    /// Calling it twice does no more than calling it once.
    #[serde(rename = "idempotentHint")]
    pub idempotent: bool,
    /// It reaches out to the web.
    #[serde(rename = "openWorldHint")]
    pub open_world: bool,
}

/// How a call of a tool is carried out.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum ToolPlan {
    /// Takes any operation of an API.
    Dispatcher {
        /// The names of the operations.
        operations: Vec<String>,
    },
    /// Takes operations under names of their own.
    Host {
        /// The operations.
        entries: Vec<HostEntry>,
    },
    /// Is one operation.
    Operation {
        /// The name of the operation.
        operation: String,
    },
    /// Is one operation with presets.
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
    /// Whether the caller chooses the operation.
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Dispatcher { .. } | Self::Host { .. })
    }
}

/// One operation of a host.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct HostEntry {
    /// The name under which it is called.
    pub name: String,
    /// What it does, in a line.
    pub summary: String,
    /// The operation; none where upstream cannot do it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// Argument names that stand for other arguments, as dotted paths.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rename: BTreeMap<String, String>,
    /// Objects whose fields are arguments themselves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spread: Vec<String>,
    /// Values for what the caller leaves out, by dotted path.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub defaults: Map<String, Value>,
    /// Values that the caller cannot change, by dotted path.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub fixed: Map<String, Value>,
    /// Why it cannot be done and what to do instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsupported: Option<String>,
    /// The parameters of an entry without an operation; they are strings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<String>,
    /// How the result is presented.
    #[serde(default)]
    pub role: HostRole,
    /// The entry that reads the state of what this one starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check_with: Option<String>,
    /// The entry that ends what this one starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel_with: Option<String>,
    /// Whether that entry can only say that it cannot be done; found by the generator.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cancel_is_refused: bool,
    /// Arguments of both, by the field of the response or (with `$`) the argument of this entry.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub follow: BTreeMap<String, String>,
    /// The states after which nothing more happens.
    #[serde(default, rename = "final", skip_serializing_if = "Vec::is_empty")]
    pub final_states: Vec<String>,
}

/// How the result of a host's operation is presented.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum HostRole {
    /// As Exa returns it.
    #[default]
    Plain,
    /// With the calls that follow and end what was started.
    Start,
    /// With the state and whether it is final.
    ArgumentCheck,
    /// With the new state.
    Cancel,
}

/// Presets of a named tool.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NamedToolPlan {
    /// The operation.
    pub operation: String,
    /// Where the arguments go.
    pub moves: Vec<ArgumentMapping>,
    /// Values for what the caller leaves out, by dotted path.
    pub defaults: Map<String, Value>,
    /// Values that the caller cannot change, by dotted path.
    pub fixed: Map<String, Value>,
    /// More such values, by the level of content that the caller wants.
    #[serde(default)]
    pub levels: BTreeMap<String, Map<String, Value>>,
    /// The level of content for a caller that names none.
    pub content_level: Option<String>,
    /// Words added to the text of the first argument.
    pub suffix: Option<String>,
    /// `category:x` in the query is read as the argument.
    pub category_in_query: bool,
    /// Another operation for calls that give a certain argument.
    pub instead: Option<AlternativeOperation>,
    /// What an example call shows beside the required arguments.
    #[serde(default, skip_serializing_if = "ExampleCall::is_empty")]
    pub example: ExampleCall,
}

/// Where an argument of a named tool goes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ArgumentMapping {
    /// The argument of the tool.
    pub from: String,
    /// The argument of the operation, as a dotted path.
    pub to: String,
    /// The value that `true` puts there; `false` removes what is there.
    pub switch: Option<Value>,
}

/// Another operation for calls that give a certain argument.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AlternativeOperation {
    /// The argument.
    pub given: String,
    /// The operation that is called then, with this argument alone.
    pub operation: String,
}

//! How a call of a tool is carried out, as the generated table tells it.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

/// One tool of the generated table.
#[derive(Debug, Deserialize)]
pub(super) struct ToolFile {
    pub(super) definition: Definition,
    pub(super) plan: Plan,
    pub(super) tokens: usize,
}

/// What `tools/list` shows, but for the schema, which is read when it is asked for.
#[derive(Debug, Deserialize)]
pub(super) struct Definition {
    pub(super) name: String,
    pub(super) title: String,
    pub(super) description: String,
    pub(super) annotations: Hints,
}

/// What a tool does to the world.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hints {
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

/// The kinds of tools.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub(super) enum Plan {
    /// Takes any operation of an API.
    Dispatcher { operations: Vec<String> },
    /// Takes operations under names of their own.
    Host { entries: Vec<Entry> },
    /// Is one operation.
    Operation { operation: String },
    /// Is one operation with presets.
    Named(Box<Named>),
    /// Keeps a note.
    Note,
    /// Suggests enrichments.
    Suggest,
}

impl Plan {
    /// Whether the caller chooses the operation.
    pub(super) fn is_open(&self) -> bool {
        matches!(self, Self::Dispatcher { .. } | Self::Host { .. })
    }
}

/// One operation of a host.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) summary: String,
    pub(super) operation: Option<String>,
    #[serde(default)]
    pub(super) rename: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) spread: Vec<String>,
    #[serde(default)]
    pub(super) defaults: Map<String, Value>,
    #[serde(default)]
    pub(super) fixed: Map<String, Value>,
    pub(super) unsupported: Option<String>,
    /// Parameters of an entry that has no operation.
    #[serde(default)]
    pub(super) parameters: Vec<String>,
    #[serde(default)]
    pub(super) role: Role,
    pub(super) check_with: Option<String>,
    pub(super) cancel_with: Option<String>,
    /// What `cancel_with` names only says that Exa cannot do it.
    #[serde(default)]
    pub(super) cancel_is_refused: bool,
    #[serde(default)]
    pub(super) follow: BTreeMap<String, String>,
    #[serde(default, rename = "final")]
    pub(super) final_states: Vec<String>,
}

/// How the answer of a host's operation is told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Role {
    /// As Exa gives it.
    #[default]
    Plain,
    /// With the ways to follow and end what was started.
    Start,
    /// With the state and whether it is final.
    Check,
    /// With the new state.
    Cancel,
}

/// Presets of a named tool.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Named {
    pub(super) operation: String,
    pub(super) moves: Vec<Move>,
    pub(super) defaults: Map<String, Value>,
    pub(super) fixed: Map<String, Value>,
    #[serde(default)]
    pub(super) levels: BTreeMap<String, Map<String, Value>>,
    pub(super) content_level: Option<String>,
    pub(super) suffix: Option<String>,
    pub(super) category_in_query: bool,
    pub(super) instead: Option<Instead>,
}

/// Where an argument of a named tool goes.
#[derive(Debug, Deserialize)]
pub(super) struct Move {
    pub(super) from: String,
    pub(super) to: String,
    pub(super) switch: Option<Value>,
}

/// Another operation for calls that give a certain argument.
#[derive(Debug, Deserialize)]
pub(super) struct Instead {
    pub(super) given: String,
    pub(super) operation: String,
}

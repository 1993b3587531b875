//! The part of `surface.yaml` that defines tools.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// All tools that are not simply one operation each.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Tools {
    /// Named groups of tools.
    #[serde(default)]
    pub sets: BTreeMap<String, Vec<String>>,
    /// Tools that take any operation of one API.
    #[serde(default)]
    pub dispatchers: Vec<Dispatcher>,
    /// Tools that take operations under names of their own.
    #[serde(default)]
    pub hosts: Vec<Host>,
    /// Tools with flat arguments over one operation.
    #[serde(default)]
    pub named: Vec<Named>,
    /// How answers are shown: arguments of every tool that answers with results.
    #[serde(default)]
    pub options: Vec<ViewOption>,
    /// Tools that the server carries out by itself.
    #[serde(default)]
    pub local: Vec<Local>,
}

/// An argument that says how an answer is shown.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ViewOption {
    /// The name callers use.
    pub name: String,
    /// What it must fit.
    pub schema: Map<String, Value>,
    /// What `tools/list` shows of it; without this it is taken, but not listed.
    pub listed: Option<Map<String, Value>>,
    /// Only operations that answer in pages have it.
    #[serde(default)]
    pub pages: bool,
}

/// A tool that the server carries out by itself, without an operation of Exa.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Local {
    /// Tool name.
    pub name: String,
    /// Title for people.
    pub title: String,
    /// What a language model reads.
    pub description: String,
    /// What the server does; it must know this kind.
    pub kind: String,
    /// The schema of the arguments.
    pub input_schema: Map<String, Value>,
    /// It changes nothing.
    #[serde(default)]
    pub read_only: bool,
}

/// A tool that takes any operation of one API.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Dispatcher {
    /// Tool name.
    pub name: String,
    /// Title for people.
    pub title: String,
    /// The API whose operations it takes.
    pub api: String,
    /// What stands before the signatures.
    pub intro: String,
    /// The longest description, where it must be shorter than clients allow.
    pub max_characters: Option<usize>,
}

/// A tool that takes operations under names of their own.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Host {
    /// Tool name.
    pub name: String,
    /// Title for people.
    pub title: String,
    /// What a language model reads.
    pub description: String,
    /// The operations it takes.
    pub operations: Vec<HostEntry>,
}

/// One operation of a host.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct HostEntry {
    /// The name under which it is called.
    pub name: String,
    /// What it does, in a line.
    pub summary: String,
    /// What it does with its arguments; none where upstream cannot do it.
    #[serde(flatten)]
    pub preset: Option<Preset>,
    /// Says why it cannot be done and what to do instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsupported: Option<String>,
    /// The parameters of an entry that cannot be done; they are strings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<String>,
    /// How the answer is told.
    #[serde(default)]
    pub role: Role,
    /// The entry that tells the state of what this one starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check_with: Option<String>,
    /// The entry that ends what this one starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel_with: Option<String>,
    /// Whether that entry can only say that it cannot be done; found, not declared.
    #[serde(
        default,
        skip_deserializing,
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub cancel_is_refused: bool,
    /// Arguments of both, by the field of the answer or (with `$`) the argument of this entry.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub follow: BTreeMap<String, String>,
    /// The states after which nothing more happens.
    #[serde(default, rename = "final", skip_serializing_if = "Vec::is_empty")]
    pub final_states: Vec<String>,
}

/// How the answer of a host's operation is told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Role {
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

/// How arguments of a tool become arguments of an operation.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Preset {
    /// The operation.
    pub operation: String,
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
}

/// A tool with flat arguments over one operation.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Named {
    /// Tool name.
    pub name: String,
    /// Title for people.
    pub title: String,
    /// What a language model reads.
    pub description: String,
    /// The operation.
    pub operation: String,
    /// The visible arguments, in order.
    pub arguments: Vec<NamedArgument>,
    /// Values for what the caller leaves out, by dotted path.
    #[serde(default)]
    pub defaults: Map<String, Value>,
    /// Values that the caller cannot change, by dotted path.
    #[serde(default)]
    pub fixed: Map<String, Value>,
    /// More such values, by the level of content that the caller wants.
    #[serde(default)]
    pub levels: BTreeMap<String, Map<String, Value>>,
    /// The level of content for a caller that names none.
    pub content_level: Option<String>,
    /// Words added to the text of the first argument.
    pub suffix: Option<String>,
    /// `category:x` in the query is taken as the argument.
    #[serde(default)]
    pub category_in_query: bool,
    /// Another operation for calls that give this argument.
    pub instead: Option<Instead>,
}

/// Another operation for calls that give a certain argument.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Instead {
    /// The argument.
    pub given: String,
    /// The operation that is called then, with this argument alone.
    pub operation: String,
}

/// One visible argument of a named tool.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct NamedArgument {
    /// The name callers use.
    pub name: String,
    /// Where its value goes, as a dotted path; by default the argument of the same name.
    pub to: Option<String>,
    /// The value that `true` puts at `to`; `false` takes away what is there.
    pub switch: Option<Value>,
    /// Whether a call without it is refused.
    #[serde(default)]
    pub required: bool,
    /// What a language model reads; by default what the spec says.
    pub description: Option<String>,
    /// Its schema, where the spec's own does not fit.
    pub schema: Option<Map<String, Value>>,
}

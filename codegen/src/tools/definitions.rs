//! The part of `surface.yaml` that defines tools.

use std::collections::BTreeMap;

use exa_mcp_model::{AlternativeOperation, ExampleCall, HostEntry, ToolPlan};
use serde::Deserialize;
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
    /// What the server does.
    pub plan: ToolPlan,
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
    pub instead: Option<AlternativeOperation>,
    /// What an example call shows beside the required arguments.
    #[serde(default)]
    pub example: ExampleCall,
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

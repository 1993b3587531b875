//! The format of `surface.yaml`: facts about the operations that the specs cannot express.

use std::collections::BTreeMap;

use exa_mcp_model::{
    ArgumentCheck, CommandFile, DefaultContents, ExampleCall, KeyKind, LongRunning,
    OperationBehavior, Resources, Streaming, UploadOperations,
};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::path_template;
use crate::response_fields::ResponseFields;
use crate::tools::definitions::ToolDefinitions;

/// The contents of `surface.yaml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Surface {
    /// The specs and overlays of the APIs, by API name.
    pub apis: BTreeMap<String, ApiEntry>,
    /// Defaults for all operations.
    pub defaults: OperationDefaults,
    /// Argument names of header parameters, by header name.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Names of operations, by method and full path. Those of missing operations are reserved.
    #[serde(default)]
    pub names: BTreeMap<String, String>,
    /// Settings of single operations.
    #[serde(default)]
    pub operations: Vec<OperationEntry>,
    /// Tool definitions.
    #[serde(default)]
    pub tools: ToolDefinitions,
    /// Commands of the command line.
    #[serde(default)]
    pub commands: CommandFile,
    /// The operations behind resources.
    #[serde(default)]
    pub resources: Resources,
    /// Where responses have the fields that the server itself reads.
    #[serde(default)]
    pub response_fields: ResponseFields,
}

/// A spec and how it is read.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ApiEntry {
    /// File name of the OpenAPI document.
    pub spec: String,
    /// File name of the overlay.
    pub overlay: Option<String>,
    /// First word of operationIds that is dropped from operation names.
    pub namespace: Option<String>,
    /// The kind of key that the API takes.
    #[serde(default)]
    pub key: KeyKind,
    /// The only set with the tools of its operations, apart from those of their domains. Over HTTP, only admins may use
    /// these tools. Without it, they are in `granular`.
    pub set: Option<String>,
}

/// Defaults for operations without an entry.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct OperationDefaults {
    /// Time limit of one attempt.
    pub timeout_seconds: u64,
    /// The address of the API if the spec has no absolute server URL.
    pub base_url: String,
}

/// Settings of one operation.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct OperationEntry {
    /// Method and full path, for example `GET /websets/v0/events/{id}`. Names of path variables are
    /// ignored, so that an entry still matches if upstream renames them.
    #[serde(rename = "match")]
    pub matches: String,
    /// The operation's name, if it differs from the derived one.
    pub name: Option<String>,
    /// Argument names of parameters, by the name in the spec.
    #[serde(default)]
    pub parameters: BTreeMap<String, String>,
    /// Time limit of one attempt.
    pub timeout_seconds: Option<u64>,
    /// The operation is read-only although it is not a GET.
    #[serde(default)]
    pub read_only: bool,
    /// The operation accesses the web.
    #[serde(default)]
    pub open_world: bool,
    /// Optional arguments that a short signature shows before all others.
    #[serde(default, rename = "show")]
    pub show_first: Vec<String>,
    /// Arguments that the server itself handles; they are never sent.
    #[serde(default, rename = "own")]
    pub server_arguments: Vec<ServerArgument>,
    // The fields of `OperationBehavior`. Not flattened, because serde would lose the line numbers of errors.
    #[serde(default)]
    hints: Vec<String>,
    #[serde(default)]
    example: ExampleCall,
    #[serde(default)]
    checks: Vec<ArgumentCheck>,
    stream: Option<Streaming>,
    upload: Option<UploadOperations>,
    #[serde(default)]
    filters: BTreeMap<String, String>,
    contents: Option<DefaultContents>,
    #[serde(default)]
    probe: bool,
    #[serde(default)]
    secret: bool,
    long_running: Option<LongRunning>,
    replaced_by: Option<String>,
    #[serde(default)]
    unlisted: bool,
}

/// An argument that the server itself handles and never sends to Exa.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ServerArgument {
    /// The name callers use.
    pub name: String,
    /// Its schema, with the description for language models.
    pub schema: Map<String, Value>,
    /// Required arguments of the spec that may be omitted if this one is present.
    #[serde(default)]
    pub replaces: Vec<String>,
}

/// Returns method and path without variable names, such as `GET /a/{}/b`, to match entries with
/// operations.
pub fn signature(method: &str, path: &str) -> String {
    format!("{} {}", method.to_uppercase(), path_template::shape(path))
}

impl Surface {
    /// Returns the configured name of the operation with this [`signature`].
    pub fn operation_name(&self, signature: &str) -> Option<&String> {
        let mut names = self.names.iter();
        names
            .find(|(matches, _)| signature_of(matches) == signature)
            .map(|(_, name)| name)
    }
}

/// Returns the [`signature`] of method and path in one text.
pub(crate) fn signature_of(matches: &str) -> String {
    match matches.trim().split_once(' ') {
        Some((method, path)) => signature(method, path.trim()),
        None => matches.to_owned(),
    }
}

impl OperationEntry {
    /// Returns the behavior of the server for the operation.
    pub fn behavior(&self) -> OperationBehavior {
        OperationBehavior {
            hints: self.hints.clone(),
            example: self.example.clone(),
            checks: self.checks.clone(),
            stream: self.stream.clone(),
            upload: self.upload.clone(),
            filters: self.filters.clone(),
            contents: self.contents.clone(),
            probe: self.probe,
            secret: self.secret,
            long_running: self.long_running.clone(),
            replaced_by: self.replaced_by.clone(),
            unlisted: self.unlisted,
        }
    }

    /// Returns the configured argument name of a parameter of the operation at `path`.
    pub fn parameter_name(&self, wire_name: &str, path: &str) -> Option<&String> {
        let own_path = self.matches.trim().split_once(' ').map_or("", |(_, it)| it);
        let renamed = path_template::renamed_variables(path, own_path.trim());
        let own_name = renamed.get(wire_name).map_or(wire_name, String::as_str);
        self.parameters.get(own_name)
    }

    /// Returns the [`signature`] of the entry's operation.
    pub fn signature(&self) -> String {
        signature_of(&self.matches)
    }
}

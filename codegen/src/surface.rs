//! `surface.yaml`: what the specs cannot say about the operations.

use std::collections::BTreeMap;

use exa_mcp_model::{
    ArgumentCheck, ExampleCall, LongRunning, OperationBehavior, Resources, Streaming,
    UploadOperations,
};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::tools::definitions::Tools;

/// The whole file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Surface {
    /// The APIs by name, each a spec with its overlay.
    pub apis: BTreeMap<String, Api>,
    /// What holds for an operation that says nothing else.
    pub defaults: Defaults,
    /// Argument names of header parameters, by header name.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// What single operations need.
    #[serde(default)]
    pub operations: Vec<Entry>,
    /// Tool definitions.
    #[serde(default)]
    pub tools: Tools,
    /// The operations behind resources.
    #[serde(default)]
    pub resources: Resources,
}

/// A spec and how it is read.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Api {
    /// File name of the OpenAPI document.
    pub spec: String,
    /// File name of the overlay.
    pub overlay: Option<String>,
    /// First word of operationIds that is left out of operation names.
    pub namespace: Option<String>,
}

/// Values for operations without an entry of their own.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Defaults {
    /// How long one attempt may take.
    pub timeout_seconds: u64,
    /// The API's address, for a spec without an absolute server URL.
    pub base_url: String,
}

/// What one operation needs.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Entry {
    /// Method and full path, for example `GET /websets/v0/events/{id}`. Names of path variables do
    /// not matter, so that an entry survives their renaming.
    #[serde(rename = "match")]
    pub matches: String,
    /// The operation's name, where the rule does not give it.
    pub name: Option<String>,
    /// Argument names of parameters, by the name in the spec.
    #[serde(default)]
    pub parameters: BTreeMap<String, String>,
    /// How long one attempt may take.
    pub timeout_seconds: Option<u64>,
    /// Says that the operation changes nothing, though it is no GET.
    #[serde(default)]
    pub read_only: bool,
    /// Says that the operation reaches out to the web.
    #[serde(default)]
    pub open_world: bool,
    /// Optional arguments that a short signature shows before all others.
    #[serde(default)]
    pub show: Vec<String>,
    /// Arguments that the server itself acts on; they are never sent.
    #[serde(default)]
    pub own: Vec<OwnArgument>,
    // The fields of `OperationBehavior`. A flattened struct would be buffered, and errors would lose their lines.
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
    #[serde(default)]
    probe: bool,
    long_running: Option<LongRunning>,
}

/// An argument of an operation that the spec does not have and Exa never sees.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct OwnArgument {
    /// The name callers use.
    pub name: String,
    /// What it must fit, with what a language model reads.
    pub schema: Map<String, Value>,
    /// Required arguments of the spec that can be left out where this one is given.
    #[serde(default)]
    pub replaces: Vec<String>,
}

/// `GET /a/{}/b`: the form in which entries and operations are compared.
pub fn signature(method: &str, path: &str) -> String {
    let path: Vec<&str> = path
        .split('/')
        .map(|segment| {
            if segment.starts_with('{') {
                "{}"
            } else {
                segment
            }
        })
        .collect();
    format!("{} {}", method.to_uppercase(), path.join("/"))
}

impl Entry {
    /// What the server does for the operation.
    pub fn behavior(&self) -> OperationBehavior {
        OperationBehavior {
            hints: self.hints.clone(),
            example: self.example.clone(),
            checks: self.checks.clone(),
            stream: self.stream.clone(),
            upload: self.upload.clone(),
            filters: self.filters.clone(),
            probe: self.probe,
            long_running: self.long_running.clone(),
        }
    }

    /// The entry's operation in the form of [`signature`].
    pub fn signature(&self) -> String {
        match self.matches.trim().split_once(' ') {
            Some((method, path)) => signature(method, path.trim()),
            None => self.matches.clone(),
        }
    }
}

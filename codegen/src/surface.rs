//! `surface.yaml`: what the specs cannot say about the operations.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::Result;
use crate::load::Document;
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
    /// Says that the operation starts work that goes on after the answer.
    pub long_running: Option<LongRunning>,
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

/// How work that an operation starts is followed.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct LongRunning {
    /// The operation that tells the state.
    pub get: String,
    /// The operation that ends the work early, where upstream has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancel: Option<String>,
    /// Arguments of `get` and `cancel`, by the field of the answer or the argument of the start
    /// (written `$name`) that holds the value.
    pub arguments: BTreeMap<String, String>,
    /// The field of the answer that holds the state.
    pub status: String,
    /// The states after which nothing more happens.
    #[serde(rename = "final")]
    pub final_states: Vec<String>,
    /// A field of the answer that asks the caller to do something first; while it is there, waiting
    /// would be in vain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unless: Option<String>,
    /// How to find the work of a start whose answer never came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub find: Option<Find>,
}

/// How to find work among other work.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Find {
    /// The operation that shows what there is.
    pub list: String,
    /// Its arguments, by the argument of the start (written `$name`) that holds the value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub arguments: BTreeMap<String, String>,
    /// The field of its answer that holds the entries.
    pub entries: String,
    /// The field of an entry that tells when it was made.
    pub created: String,
    /// Arguments of the start and where an entry repeats them, as dotted paths.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub same: BTreeMap<String, String>,
    /// The field of an entry that repeats the whole request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub echo: Option<String>,
    /// Arguments that the API adds to that field if they were not sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub defaults: Vec<String>,
}

/// Reads the surface from its document.
pub fn parse(document: &Document) -> Result<Surface> {
    serde_json::from_value(document.root.clone())
        .map_err(|error| document.error("", error.to_string()))
}

/// `GET /a/{}/b`: the form in which entries and operations are compared.
pub fn signature(method: &str, path: &str) -> String {
    let path: Vec<&str> = path
        .split('/')
        .map(|segment| match segment.starts_with('{') {
            true => "{}",
            false => segment,
        })
        .collect();
    format!("{} {}", method.to_uppercase(), path.join("/"))
}

impl Entry {
    /// The entry's operation in the form of [`signature`].
    pub fn signature(&self) -> String {
        match self.matches.trim().split_once(' ') {
            Some((method, path)) => signature(method, path.trim()),
            None => self.matches.clone(),
        }
    }
}

//! Reads one operation of a document: name, parameters and body.

use serde_json::Value;

use super::security;
use crate::body;
use crate::error::{Notice, Result};
use crate::load::Document;
use crate::model::{BodyContent, KeyPlacement, Location, Operation, Parameter, SentWith};
use crate::names;
use crate::parameters::{self, SpecParameter};
use crate::surface::{ApiEntry, OperationEntry, ServerArgument, Surface, signature};

/// Reads a single operation.
pub(super) struct OperationReader<'a> {
    pub(super) document: &'a Document,
    pub(super) surface: &'a Surface,
    pub(super) api_name: &'a str,
    pub(super) api: &'a ApiEntry,
    pub(super) base_url: String,
    pub(super) path: String,
    pub(super) method: &'a str,
    pub(super) item: &'a Value,
    pub(super) node: &'a Value,
    pub(super) pointer: String,
}

/// The request body as the spec declares it.
pub(super) enum SpecBody {
    None,
    Fields {
        fields: body::BodyFields,
        required: bool,
        schema: Value,
        pointer: String,
        content: BodyContent,
    },
    Whole {
        required: bool,
        schema: Value,
        pointer: String,
        description: Option<String>,
        content: BodyContent,
    },
}

impl OperationReader<'_> {
    pub(super) fn read(&self, notices: &mut Vec<Notice>) -> Result<Operation> {
        let entry = self.entry();
        let text = |key: &str| self.node.get(key).and_then(Value::as_str).map(str::trim);
        let configured_name = entry.and_then(|entry| entry.name.as_ref());
        let configured_name =
            configured_name.or_else(|| self.surface.operation_name(&self.signature()));
        let has_configured_name = configured_name.is_some();
        let name = match configured_name {
            Some(name) => name.clone(),
            None => names::operation_name(
                text("operationId"),
                self.api.namespace.as_deref(),
                self.method,
                &self.path,
            ),
        };
        let spec_parameters = parameters::collect(
            self.document,
            &self.path,
            self.item,
            self.node,
            &self.pointer,
            notices,
        )?;
        let body = self.body()?;
        let mut parameters = self.parameters(&spec_parameters, &body, entry, notices)?;
        parameters::set_client_names(&mut parameters);
        let description = text("description")
            .or(text("summary"))
            .unwrap_or_default()
            .to_owned();
        let summary = text("summary")
            .map(str::to_owned)
            .unwrap_or_else(|| first_sentence(&description));
        let server_arguments = server_arguments(entry, &parameters, &body);
        let (input_schema, body) =
            self.input_schema(&spec_parameters, &parameters, body, &server_arguments)?;
        let (output_schema, response_type) = self.output_schema()?;
        let timeout = entry.and_then(|entry| entry.timeout_seconds);
        Ok(Operation {
            name,
            has_configured_name,
            domain: String::new(),
            api: self.api_name.to_owned(),
            function: String::new(),
            method: self.method.to_owned(),
            base_url: self.base_url.clone(),
            path: self.path.clone(),
            pointer: self.pointer.clone(),
            summary,
            description,
            deprecated: self.node.get("deprecated") == Some(&Value::Bool(true)),
            parameters,
            body,
            key_placement: self.key_placement(notices),
            response_type,
            input_schema,
            output_schema,
            stream_schema: self.stream_schema(),
            timeout_seconds: timeout.unwrap_or(self.surface.defaults.timeout_seconds),
            behavior: entry.map(OperationEntry::behavior).unwrap_or_default(),
            read_only: entry.is_some_and(|entry| entry.read_only),
            open_world: entry.is_some_and(|entry| entry.open_world),
            show_first: entry
                .map(|entry| entry.show_first.clone())
                .unwrap_or_default(),
            server_arguments,
        })
    }

    fn key_placement(&self, notices: &mut Vec<Notice>) -> Option<KeyPlacement> {
        security::key_placement(self.document, self.node).unwrap_or_else(|schemes| {
            notices.push(Notice {
                file: self.document.file.clone(),
                location: format!("#{}", self.pointer),
                message: format!(
                    "no supported security scheme ({schemes}); the key is sent in `x-api-key`"
                ),
            });
            None
        })
    }

    fn signature(&self) -> String {
        signature(self.method, &self.path)
    }

    fn entry(&self) -> Option<&OperationEntry> {
        let signature = self.signature();
        self.surface
            .operations
            .iter()
            .find(|entry| entry.signature() == signature)
    }

    fn parameters(
        &self,
        spec_parameters: &[SpecParameter],
        body: &SpecBody,
        entry: Option<&OperationEntry>,
        notices: &mut Vec<Notice>,
    ) -> Result<Vec<Parameter>> {
        let mut taken: Vec<String> = match body {
            SpecBody::None => Vec::new(),
            SpecBody::Fields { fields, .. } => {
                fields.known.iter().map(|(name, _)| name.clone()).collect()
            }
            SpecBody::Whole { .. } => vec!["body".to_owned()],
        };
        let configured =
            |name: &str| entry.and_then(|entry| entry.parameter_name(name, &self.path));
        let mut parameters = Vec::new();
        for raw in spec_parameters {
            let configured = configured(&raw.wire_name).or_else(|| match raw.location {
                Location::Header => self.header_name(&raw.wire_name),
                _ => None,
            });
            let default = || parameters::default_name(raw, &self.path);
            let preferred = configured.cloned().unwrap_or_else(default);
            let name = self.unique_name(preferred, raw, &taken, notices);
            taken.push(name.clone());
            parameters.push(Parameter {
                name,
                wire_name: raw.wire_name.clone(),
                location: raw.location,
                required: raw.required,
                aliases: Vec::new(),
                encoding: parameters::encoding(self.document, raw)?,
                always_sent: always_sent(raw),
                sent_with: sent_with(self.document, raw)?,
                client_name: String::new(),
                via_context: false,
            });
        }
        add_aliases(&mut parameters, &taken);
        Ok(parameters)
    }

    fn header_name(&self, wire_name: &str) -> Option<&String> {
        let mut headers = self.surface.headers.iter();
        headers
            .find(|(header, _)| header.eq_ignore_ascii_case(wire_name))
            .map(|(_, name)| name)
    }

    /// Returns `preferred`, or another name if a body field or parameter already has it.
    fn unique_name(
        &self,
        preferred: String,
        raw: &SpecParameter,
        taken: &[String],
        notices: &mut Vec<Notice>,
    ) -> String {
        if !taken.contains(&preferred) {
            return preferred;
        }
        let location = raw.location.as_str();
        let mut name = format!(
            "{preferred}In{}{}",
            &location[..1].to_uppercase(),
            &location[1..]
        );
        while taken.contains(&name) {
            name.push('_');
        }
        notices.push(Notice {
            file: self.document.file.clone(),
            location: format!("#{}", self.pointer),
            message: format!(
                "the {location} parameter `{}` has the same name `{preferred}` as another argument and becomes \
                 `{name}`; set its name in surface.yaml",
                raw.wire_name
            ),
        });
        name
    }
}

/// Returns the server arguments. An argument of the spec with the same name takes precedence.
fn server_arguments(
    entry: Option<&OperationEntry>,
    parameters: &[Parameter],
    body: &SpecBody,
) -> Vec<ServerArgument> {
    let in_body = |name: &str| match body {
        SpecBody::Fields { fields, .. } => fields.known.iter().any(|(known, _)| known == name),
        SpecBody::None | SpecBody::Whole { .. } => false,
    };
    let known = |name: &str| in_body(name) || parameters.iter().any(|p| p.name == name);
    let arguments = entry
        .map(|entry| entry.server_arguments.as_slice())
        .unwrap_or_default();
    let new = arguments.iter().filter(|argument| !known(&argument.name));
    new.cloned().collect()
}

/// Returns the list entries of a parameter that every request sends.
fn always_sent(raw: &SpecParameter) -> Vec<String> {
    let list = raw.node.get("x-exa-always").and_then(Value::as_array);
    list.into_iter()
        .flatten()
        .filter_map(|value| Some(value.as_str()?.to_owned()))
        .collect()
}

/// Returns the list entries of a parameter that requests with other arguments send.
fn sent_with(document: &Document, raw: &SpecParameter) -> Result<Vec<SentWith>> {
    let Some(list) = raw.node.get("x-exa-with") else {
        return Ok(Vec::new());
    };
    serde_json::from_value(list.clone())
        .map_err(|error| document.error(&format!("{}/x-exa-with", raw.pointer), error.to_string()))
}

/// Adds the spec's name as an alias, and `id` for the only identifier, unless another argument has it.
fn add_aliases(parameters: &mut [Parameter], taken: &[String]) {
    let identifiers = parameters
        .iter()
        .filter(|p| p.location == Location::Path)
        .count();
    let wire_names: Vec<String> = parameters.iter().map(|p| p.wire_name.clone()).collect();
    for parameter in parameters.iter_mut() {
        if parameter.location != Location::Path {
            continue;
        }
        let mut aliases = vec![parameter.wire_name.clone()];
        if identifiers == 1
            && !wire_names
                .iter()
                .any(|name| name == "id" && *name != parameter.wire_name)
        {
            aliases.push("id".to_owned());
        }
        aliases.retain(|alias| !taken.contains(alias));
        aliases.dedup();
        parameter.aliases = aliases;
    }
}

fn first_sentence(text: &str) -> String {
    text.split_inclusive(". ")
        .next()
        .unwrap_or_default()
        .trim()
        .to_owned()
}

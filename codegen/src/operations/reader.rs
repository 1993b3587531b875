//! One operation of a document: its names, parameters and body.

use serde_json::{Value, json};

use crate::body;
use crate::error::{Notice, Result};
use crate::load::{Document, escape};
use crate::model::{Location, Operation, Parameter};
use crate::names;
use crate::parameters::{self, Raw};
use crate::surface::{Api, Entry, OwnArgument, Surface, signature};

/// Reads a single operation.
pub(super) struct Reader<'a> {
    pub(super) document: &'a Document,
    pub(super) surface: &'a Surface,
    pub(super) api_name: &'a str,
    pub(super) api: &'a Api,
    pub(super) path: String,
    pub(super) method: &'a str,
    pub(super) item: &'a Value,
    pub(super) node: &'a Value,
    pub(super) pointer: String,
}

/// The body as the spec has it.
pub(super) enum RawBody {
    None,
    Fields {
        fields: body::Fields,
        required: bool,
        schema: Value,
        pointer: String,
    },
    Whole {
        required: bool,
        schema: Value,
        pointer: String,
        description: Option<String>,
    },
}

impl Reader<'_> {
    pub(super) fn read(&self, notices: &mut Vec<Notice>) -> Result<Operation> {
        self.refuse_own_servers()?;
        let entry = self.entry();
        let text = |key: &str| self.node.get(key).and_then(Value::as_str).map(str::trim);
        let name = match entry.and_then(|entry| entry.name.clone()) {
            Some(name) => name,
            None => names::operation_name(
                text("operationId"),
                self.api.namespace.as_deref(),
                self.method,
                &self.path,
            ),
        };
        let raw = parameters::collect(
            self.document,
            &self.path,
            self.item,
            self.node,
            &self.pointer,
            notices,
        )?;
        let body = self.body()?;
        let mut parameters = self.parameters(&raw, &body, entry, notices)?;
        parameters::mark_carried(&mut parameters, !matches!(body, RawBody::None));
        let description = text("description")
            .or(text("summary"))
            .unwrap_or_default()
            .to_owned();
        let summary = text("summary")
            .map(str::to_owned)
            .unwrap_or_else(|| first_sentence(&description));
        let own = own_arguments(entry, &parameters, &body);
        let (input_schema, body) = self.input_schema(&raw, &parameters, body, &own)?;
        let timeout = entry.and_then(|entry| entry.timeout_seconds);
        Ok(Operation {
            name,
            domain: String::new(),
            api: self.api_name.to_owned(),
            function: String::new(),
            method: self.method.to_owned(),
            path: self.path.clone(),
            pointer: self.pointer.clone(),
            summary,
            description,
            deprecated: self.node.get("deprecated") == Some(&Value::Bool(true)),
            parameters,
            body,
            input_schema,
            output_schema: self.output_schema()?,
            timeout_seconds: timeout.unwrap_or(self.surface.defaults.timeout_seconds),
            behavior: entry.map(Entry::behavior).unwrap_or_default(),
            read_only: entry.is_some_and(|entry| entry.read_only),
            open_world: entry.is_some_and(|entry| entry.open_world),
            show: entry.map(|entry| entry.show.clone()).unwrap_or_default(),
            own,
        })
    }

    /// A path with another server would be called at the wrong address.
    fn refuse_own_servers(&self) -> Result<()> {
        let own = [self.item, self.node].map(|node| node.get("servers"));
        let root = self.document.root.get("servers");
        match own
            .into_iter()
            .flatten()
            .any(|servers| Some(servers) != root)
        {
            true => {
                let construct = "servers of a single path or operation".to_owned();
                Err(self
                    .document
                    .unsupported(&self.pointer, "server", construct))
            }
            false => Ok(()),
        }
    }

    fn entry(&self) -> Option<&Entry> {
        let own = signature(self.method, &self.path);
        self.surface
            .operations
            .iter()
            .find(|entry| entry.signature() == own)
    }

    fn body(&self) -> Result<RawBody> {
        let Some(node) = self.node.get("requestBody") else {
            return Ok(RawBody::None);
        };
        let (node, pointer) = self
            .document
            .resolve(node, &format!("{}/requestBody", self.pointer))?;
        let required = node.get("required") == Some(&Value::Bool(true));
        let content = node.get("content").and_then(Value::as_object);
        let Some(content) = content.filter(|content| !content.is_empty()) else {
            return Ok(RawBody::None);
        };
        let Some((media, chosen)) = content.iter().find(|(media, _)| parameters::is_json(media))
        else {
            let media: Vec<_> = content.keys().map(String::as_str).collect();
            let construct = format!("a request body of {}", media.join(", "));
            return Err(self.document.unsupported(&pointer, "body", construct));
        };
        let pointer = format!("{pointer}/content/{}/schema", escape(media));
        let schema = chosen.get("schema").cloned().unwrap_or_else(|| json!({}));
        Ok(match body::fields(self.document, &schema, &pointer)? {
            Some(fields) => RawBody::Fields {
                fields,
                required,
                schema,
                pointer,
            },
            None => RawBody::Whole {
                required,
                schema,
                pointer,
                description: node
                    .get("description")
                    .and_then(Value::as_str)
                    .map(str::to_owned),
            },
        })
    }

    fn parameters(
        &self,
        raw: &[Raw],
        body: &RawBody,
        entry: Option<&Entry>,
        notices: &mut Vec<Notice>,
    ) -> Result<Vec<Parameter>> {
        let mut taken: Vec<String> = match body {
            RawBody::None => Vec::new(),
            RawBody::Fields { fields, .. } => {
                fields.known.iter().map(|(name, _)| name.clone()).collect()
            }
            RawBody::Whole { .. } => vec!["body".to_owned()],
        };
        let given = |wire: &str| entry.and_then(|entry| entry.parameters.get(wire));
        let mut parameters = Vec::new();
        for raw in raw {
            let given = given(&raw.wire).or_else(|| match raw.location {
                Location::Header => self.header_name(&raw.wire),
                _ => None,
            });
            let ruled = || parameters::ruled_name(raw, &self.path);
            let wanted = given.cloned().unwrap_or_else(ruled);
            let name = self.free_name(wanted, raw, &taken, notices);
            taken.push(name.clone());
            parameters.push(Parameter {
                name,
                wire: raw.wire.clone(),
                location: raw.location,
                required: raw.required,
                aliases: Vec::new(),
                encoding: parameters::encoding(self.document, raw)?,
                always: always(raw),
                carried: false,
            });
        }
        add_aliases(&mut parameters, &taken);
        Ok(parameters)
    }

    fn header_name(&self, wire: &str) -> Option<&String> {
        let mut headers = self.surface.headers.iter();
        headers
            .find(|(header, _)| header.eq_ignore_ascii_case(wire))
            .map(|(_, name)| name)
    }

    /// `wanted`, or where a body field or another parameter has that name, one that is free.
    fn free_name(
        &self,
        wanted: String,
        raw: &Raw,
        taken: &[String],
        notices: &mut Vec<Notice>,
    ) -> String {
        if !taken.contains(&wanted) {
            return wanted;
        }
        let place = raw.location.as_str();
        let mut name = format!("{wanted}In{}{}", &place[..1].to_uppercase(), &place[1..]);
        while taken.contains(&name) {
            name.push('_');
        }
        notices.push(Notice {
            file: self.document.file.clone(),
            place: format!("#{}", self.pointer),
            text: format!(
                "the {place} parameter `{}` shares the name `{wanted}` with another argument and is called \
                 `{name}`; name it in surface.yaml",
                raw.wire
            ),
        });
        name
    }
}

/// The server's own arguments; an argument of the spec with the same name takes precedence.
fn own_arguments(
    entry: Option<&Entry>,
    parameters: &[Parameter],
    body: &RawBody,
) -> Vec<OwnArgument> {
    let in_body = |name: &str| match body {
        RawBody::Fields { fields, .. } => fields.known.iter().any(|(known, _)| known == name),
        RawBody::None | RawBody::Whole { .. } => false,
    };
    let known = |name: &str| in_body(name) || parameters.iter().any(|p| p.name == name);
    let own = entry.map(|entry| entry.own.as_slice()).unwrap_or_default();
    let free = own.iter().filter(|own| !known(&own.name));
    free.cloned().collect()
}

/// Values of a list parameter that are sent whether asked for or not.
fn always(raw: &Raw) -> Vec<String> {
    let list = raw.node.get("x-exa-always").and_then(Value::as_array);
    list.into_iter()
        .flatten()
        .filter_map(|value| Some(value.as_str()?.to_owned()))
        .collect()
}

/// The spec's own name, and `id` for the only identifier, are accepted where no argument has them.
fn add_aliases(parameters: &mut [Parameter], taken: &[String]) {
    let identifiers = parameters
        .iter()
        .filter(|p| p.location == Location::Path)
        .count();
    let own_names: Vec<String> = parameters.iter().map(|p| p.wire.clone()).collect();
    for parameter in parameters.iter_mut() {
        if parameter.location != Location::Path {
            continue;
        }
        let mut aliases = vec![parameter.wire.clone()];
        if identifiers == 1
            && !own_names
                .iter()
                .any(|own| own == "id" && *own != parameter.wire)
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

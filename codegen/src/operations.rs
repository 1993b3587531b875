//! Stage 4: a document becomes operations with flat arguments.

use serde_json::{Map, Value, json};

use crate::body;
use crate::error::{Error, Notice, Result};
use crate::load::{Document, escape};
use crate::model::{ApiModel, Body, Location, Operation, Parameter};
use crate::names;
use crate::parameters::{self, Raw};
use crate::schemas::{DIALECT, Publisher};
use crate::surface::{Api, Entry, Surface, signature};

const METHODS: &[&str] = &[
    "get", "put", "post", "delete", "patch", "head", "options", "trace",
];

/// Reads one API: its description and its operations.
pub fn read(
    document: &Document,
    name: &str,
    api: &Api,
    surface: &Surface,
    notices: &mut Vec<Notice>,
) -> Result<(ApiModel, Vec<Operation>)> {
    let (base_url, prefix) = server(document, &surface.defaults.base_url)?;
    let text = |pointer: &str| match document.root.pointer(pointer) {
        Some(Value::String(text)) => text.clone(),
        _ => String::new(),
    };
    let model = ApiModel {
        name: name.to_owned(),
        file: document.file.clone(),
        title: text("/info/title"),
        version: text("/info/version"),
        base_url,
    };
    let mut operations = Vec::new();
    let paths = document.root.get("paths").and_then(Value::as_object);
    for (path, item) in paths.into_iter().flatten() {
        let item_pointer = format!("/paths/{}", escape(path));
        let (item, item_pointer) = document.resolve(item, &item_pointer)?;
        for (method, node) in item.as_object().into_iter().flatten() {
            if !METHODS.contains(&method.as_str()) {
                continue;
            }
            let reader = Reader {
                document,
                surface,
                api_name: name,
                api,
                path: format!("{prefix}{path}"),
                method,
                item,
                node,
                pointer: format!("{item_pointer}/{method}"),
            };
            operations.push(reader.read(notices)?);
        }
    }
    Ok((model, operations))
}

/// Scheme and host of the first server, and the path that stands before every path.
fn server(document: &Document, default: &str) -> Result<(String, String)> {
    let server = document.root.pointer("/servers/0");
    let mut url = server
        .and_then(|server| server.get("url")?.as_str())
        .unwrap_or(default)
        .to_owned();
    let variables = server.and_then(|server| server.get("variables")?.as_object());
    for (name, variable) in variables.into_iter().flatten() {
        let value = variable
            .get("default")
            .and_then(Value::as_str)
            .unwrap_or_default();
        url = url.replace(&format!("{{{name}}}"), value);
    }
    if !url.contains("://") {
        url = format!(
            "{}/{}",
            default.trim_end_matches('/'),
            url.trim_start_matches('/')
        );
    }
    let (scheme, rest) = url.split_once("://").unwrap_or(("https", ""));
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    if host.is_empty() || host.contains('{') || !matches!(scheme, "http" | "https") {
        let message = format!("`{url}` is no http(s) address");
        return Err(document.error("/servers/0/url", message));
    }
    let path = path.trim_matches('/');
    let prefix = match path.is_empty() {
        true => String::new(),
        false => format!("/{path}"),
    };
    Ok((format!("{scheme}://{host}"), prefix))
}

/// Reads a single operation.
struct Reader<'a> {
    document: &'a Document,
    surface: &'a Surface,
    api_name: &'a str,
    api: &'a Api,
    path: String,
    method: &'a str,
    item: &'a Value,
    node: &'a Value,
    pointer: String,
}

/// The body as the spec has it.
enum RawBody {
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
    fn read(&self, notices: &mut Vec<Notice>) -> Result<Operation> {
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
        let (input_schema, body) = self.input_schema(&raw, &parameters, body)?;
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
            long_running: entry.and_then(|entry| entry.long_running.clone()),
        })
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

    /// The flat arguments as one schema, and the body in the form of the model.
    fn input_schema(
        &self,
        raw: &[Raw],
        parameters: &[Parameter],
        body: RawBody,
    ) -> Result<(Value, Body)> {
        let mut publisher = Publisher::new(self.document);
        let mut properties = Map::new();
        let mut required = Vec::new();
        let mut headers = Vec::new();
        for (raw, parameter) in raw.iter().zip(parameters) {
            let schema = self.parameter_schema(&mut publisher, raw, parameter)?;
            if parameter.required && parameter.always.is_empty() {
                required.push(parameter.name.clone());
            }
            // Headers come last: they matter least to whoever fills the arguments.
            match parameter.location {
                Location::Header => headers.push((parameter.name.clone(), schema)),
                _ => drop(properties.insert(parameter.name.clone(), schema)),
            }
        }
        let mut open = false;
        let body = match body {
            RawBody::None => Body::None,
            RawBody::Whole {
                required: must,
                schema,
                pointer,
                description,
            } => {
                let mut published = publisher.publish(&schema, &pointer)?;
                describe(&mut published, description.as_deref());
                properties.insert("body".to_owned(), published);
                if must {
                    required.push("body".to_owned());
                }
                Body::Whole {
                    name: "body".to_owned(),
                    required: must,
                }
            }
            RawBody::Fields {
                fields,
                required: must,
                schema,
                pointer,
            } => {
                open = !fields.closed;
                let mut known = Map::new();
                for (name, (schema, place)) in &fields.known {
                    properties.insert(name.clone(), publisher.publish(schema, place)?);
                    known.insert(name.clone(), json!(must && fields.required.contains(name)));
                }
                if must {
                    required.extend(
                        fields
                            .required
                            .iter()
                            .filter(|name| known.contains_key(*name))
                            .cloned(),
                    );
                }
                Body::Fields {
                    required: must,
                    closed: fields.closed,
                    fields: known,
                    schema,
                    pointer,
                }
            }
        };
        properties.extend(headers);
        let mut schema = json!({"$schema": DIALECT, "type": "object", "properties": properties});
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        if !open {
            schema["additionalProperties"] = json!(false);
        }
        add_definitions(&mut schema, publisher);
        Ok((schema, body))
    }

    fn parameter_schema(
        &self,
        publisher: &mut Publisher<'_>,
        raw: &Raw,
        parameter: &Parameter,
    ) -> Result<Value> {
        let (schema, pointer) = parameters::schema(self.document, raw)?;
        let mut published = publisher.publish(&schema, &pointer)?;
        if raw.location == Location::Path && published == json!({}) {
            published = json!({"type": "string"});
        }
        describe(
            &mut published,
            raw.node.get("description").and_then(Value::as_str),
        );
        if raw.node.get("deprecated") == Some(&Value::Bool(true)) {
            published["deprecated"] = json!(true);
        }
        if !parameter.aliases.is_empty() {
            published["x-aliases"] = json!(parameter.aliases);
        }
        Ok(published)
    }

    /// The schema of a successful answer; several different ones are alternatives.
    fn output_schema(&self) -> Result<Value> {
        let mut publisher = Publisher::new(self.document);
        let mut found: Vec<Value> = Vec::new();
        let responses = self.node.get("responses").and_then(Value::as_object);
        for (code, response) in responses.into_iter().flatten() {
            if !code.starts_with('2') {
                continue;
            }
            let place = format!("{}/responses/{}", self.pointer, escape(code));
            let (response, place) = self.document.resolve(response, &place)?;
            let content = response.get("content").and_then(Value::as_object);
            let json = content
                .into_iter()
                .flatten()
                .find(|(media, _)| parameters::is_json(media));
            let Some((media, node)) = json else { continue };
            let Some(schema) = node.get("schema") else {
                continue;
            };
            let place = format!("{place}/content/{}/schema", escape(media));
            let published = publisher.publish(schema, &place)?;
            if !found.contains(&published) {
                found.push(published);
            }
        }
        let mut schema = json!({ "$schema": DIALECT });
        match found.as_slice() {
            [] => {}
            [Value::Object(single)] => {
                for (key, value) in single {
                    schema[key] = value.clone();
                }
            }
            several => schema["anyOf"] = json!(several),
        }
        add_definitions(&mut schema, publisher);
        Ok(schema)
    }
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

fn describe(schema: &mut Value, description: Option<&str>) {
    let Some(text) = description.map(str::trim).filter(|text| !text.is_empty()) else {
        return;
    };
    if let Value::Object(map) = schema {
        map.insert("description".to_owned(), json!(text));
    }
}

fn add_definitions(schema: &mut Value, publisher: Publisher<'_>) {
    let definitions = publisher.into_definitions();
    if !definitions.is_empty() {
        schema["$defs"] = Value::Object(definitions);
    }
}

fn first_sentence(text: &str) -> String {
    text.split_inclusive(". ")
        .next()
        .unwrap_or_default()
        .trim()
        .to_owned()
}

/// Sorts operations, checks their names and gives them domain and Rust name.
pub fn finish(apis: &[ApiModel], operations: &mut [Operation]) -> Result<()> {
    operations.sort_by(|a, b| a.name.cmp(&b.name));
    let place = |operation: &Operation| {
        let file = apis
            .iter()
            .find(|api| api.name == operation.api)
            .map_or("", |api| &api.file);
        format!("{file}#{}", operation.pointer)
    };
    for pair in operations.windows(2) {
        if let [first, second] = pair
            && first.name == second.name
        {
            return Err(Error::DuplicateName {
                name: first.name.clone(),
                first: place(first),
                second: place(second),
            });
        }
    }
    let all: Vec<String> = operations
        .iter()
        .map(|operation| operation.name.clone())
        .collect();
    let mut taken = Vec::new();
    for operation in operations.iter_mut() {
        operation.domain = domain(&operation.name, &operation.api, &all);
        operation.function = names::function(&operation.name, &mut taken);
    }
    Ok(())
}

/// The shortest first part of a name that has a verb of its own: `monitors` of
/// `monitors.runs.list`, but `agent.runs` of `agent.runs.list`.
fn domain(name: &str, api: &str, all: &[String]) -> String {
    let words: Vec<&str> = name.split('.').collect();
    for length in 1..words.len() {
        let prefix = words
            .iter()
            .take(length)
            .copied()
            .collect::<Vec<_>>()
            .join(".");
        let has_verb = all.iter().any(|other| {
            other
                .strip_prefix(&prefix)
                .and_then(|rest| rest.strip_prefix('.'))
                .is_some_and(|verb| !verb.contains('.'))
        });
        if has_verb {
            return prefix;
        }
    }
    match words.split_last() {
        Some((_, [])) | None => api.to_owned(),
        Some((_, rest)) => rest.join("."),
    }
}

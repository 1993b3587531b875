//! The parameters of an operation: collection, names and serialization.

use serde_json::{Map, Value};

use crate::error::{Notice, Result};
use crate::load::{Document, escape};
use crate::lower::{Shape, shape};
use crate::model::{Encoding, Location, Parameter};
use crate::names;
use crate::path_template;

/// Headers that the HTTP client sets itself. They do not become arguments.
const TRANSPORT_HEADERS: &[&str] = &[
    "accept",
    "content-type",
    "authorization",
    "x-api-key",
    "user-agent",
    "content-length",
    "host",
];

/// A parameter as the spec declares it.
pub struct SpecParameter {
    /// Name in the spec.
    pub wire_name: String,
    /// Where it is sent.
    pub location: Location,
    /// Whether the spec requires it.
    pub required: bool,
    /// The parameter object.
    pub node: Map<String, Value>,
    /// JSON pointer of the parameter object.
    pub pointer: String,
}

/// Returns all parameters of the operation at `pointer`: those of the path item, overridden by those
/// of the operation, in the order path, query, header.
pub fn collect(
    document: &Document,
    path: &str,
    item: &Value,
    operation: &Value,
    pointer: &str,
    notices: &mut Vec<Notice>,
) -> Result<Vec<SpecParameter>> {
    let item_pointer = pointer
        .rsplit_once('/')
        .map_or(pointer, |(parent, _)| parent);
    let mut all: Vec<SpecParameter> = Vec::new();
    for (owner, base) in [(item, item_pointer), (operation, pointer)] {
        let list = owner.get("parameters").and_then(Value::as_array);
        for (index, node) in list.into_iter().flatten().enumerate() {
            let pointer = format!("{base}/parameters/{index}");
            let raw = read(document, path, node, &pointer, notices).and_then(|raw| {
                raw.as_ref()
                    .map_or(Ok(()), |raw| is_supported(document, raw))?;
                Ok(raw)
            });
            let raw = match raw {
                Ok(Some(raw)) => raw,
                Ok(None) => continue,
                Err(error) if is_optional(document, node, &pointer) => {
                    notices.push(Notice {
                        file: document.file.clone(),
                        location: format!("#{pointer}"),
                        message: format!("the optional parameter was omitted: {error}"),
                    });
                    continue;
                }
                Err(error) => return Err(error),
            };
            all.retain(|known| {
                known.location != raw.location || !is_same_name(known, &raw.wire_name)
            });
            all.push(raw);
        }
    }
    add_undeclared(document, path, pointer, &mut all, notices);
    all.sort_by_key(|raw| match raw.location {
        Location::Path => (0, path.find(&format!("{{{}}}", raw.wire_name)).unwrap_or(0)),
        Location::Query => (1, 0),
        Location::Header => (2, 0),
    });
    Ok(all)
}

fn read(
    document: &Document,
    path: &str,
    node: &Value,
    pointer: &str,
    notices: &mut Vec<Notice>,
) -> Result<Option<SpecParameter>> {
    let (node, node_pointer) = document.resolve(node, pointer)?;
    let Some(node) = node.as_object() else {
        return Err(document.error(&node_pointer, "a parameter must be an object".to_owned()));
    };
    // A replaced dangling reference of the overlay is an empty object.
    if node.is_empty() {
        return Ok(None);
    }
    let text = |key: &str| node.get(key).and_then(Value::as_str);
    let (Some(wire_name), Some(location)) = (text("name"), text("in")) else {
        return Err(document.error(
            &node_pointer,
            "a parameter needs `name` and `in`".to_owned(),
        ));
    };
    let required = node.get("required") == Some(&Value::Bool(true));
    let mut report = |message: String| {
        notices.push(Notice {
            file: document.file.clone(),
            location: format!("#{pointer}"),
            message,
        });
    };
    let location = match location {
        "path" if path.contains(&format!("{{{wire_name}}}")) => Location::Path,
        "path" => {
            report(format!(
                "`{wire_name}` is not in the path `{path}`; sent in the query"
            ));
            Location::Query
        }
        "query" => Location::Query,
        "header" if TRANSPORT_HEADERS.contains(&wire_name.to_ascii_lowercase().as_str()) => {
            return Ok(None);
        }
        "header" if is_header_name(wire_name) => Location::Header,
        "cookie" if !required => {
            report(format!(
                "the cookie `{wire_name}` is optional and was omitted"
            ));
            return Ok(None);
        }
        other => {
            let construct = format!("the parameter `{wire_name}` in `{other}`");
            return Err(document.unsupported(&node_pointer, "parameter", construct));
        }
    };
    Ok(Some(SpecParameter {
        wire_name: wire_name.to_owned(),
        location,
        required: required || location == Location::Path,
        node: node.clone(),
        pointer: node_pointer,
    }))
}

/// Fails if the value of a parameter cannot be sent.
fn is_supported(document: &Document, raw: &SpecParameter) -> Result<()> {
    schema(document, raw)?;
    encoding(document, raw).map(drop)
}

/// Returns whether an operation can be called without a parameter.
fn is_optional(document: &Document, node: &Value, pointer: &str) -> bool {
    document.resolve(node, pointer).is_ok_and(|(node, _)| {
        node.is_object()
            && node.get("required") != Some(&Value::Bool(true))
            && node.get("in").and_then(Value::as_str) != Some("path")
    })
}

/// Returns whether a parameter has this name. Case does not matter in headers.
fn is_same_name(parameter: &SpecParameter, name: &str) -> bool {
    match parameter.location {
        Location::Header => parameter.wire_name.eq_ignore_ascii_case(name),
        _ => parameter.wire_name == name,
    }
}

fn is_header_name(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// Adds path variables that no parameter declares, as text.
fn add_undeclared(
    document: &Document,
    path: &str,
    pointer: &str,
    all: &mut Vec<SpecParameter>,
    notices: &mut Vec<Notice>,
) {
    for variable in path_template::variables(path) {
        let declared = all
            .iter()
            .any(|raw| raw.location == Location::Path && raw.wire_name == variable);
        if declared {
            continue;
        }
        notices.push(Notice {
            file: document.file.clone(),
            location: format!("#{pointer}"),
            message: format!("no parameter declares `{{{variable}}}`; treated as text"),
        });
        all.push(SpecParameter {
            wire_name: variable,
            location: Location::Path,
            required: true,
            node: Map::new(),
            pointer: pointer.to_owned(),
        });
    }
}

/// Returns the default argument name of a parameter.
pub fn default_name(raw: &SpecParameter, path: &str) -> String {
    match raw.location {
        Location::Path => names::path_argument(&raw.wire_name, path),
        Location::Query => raw.wire_name.clone(),
        Location::Header => names::header_argument(&raw.wire_name),
    }
}

/// Returns the schema of a parameter and its pointer, from `schema` or from JSON `content`.
pub fn schema(document: &Document, raw: &SpecParameter) -> Result<(Value, String)> {
    if let Some(schema) = raw.node.get("schema") {
        return Ok((schema.clone(), format!("{}/schema", raw.pointer)));
    }
    let content = raw.node.get("content").and_then(Value::as_object);
    match content.and_then(|content| content.iter().next()) {
        None => Ok((Value::Object(Map::new()), raw.pointer.clone())),
        Some((media, node)) => {
            let pointer = format!("{}/content/{}/schema", raw.pointer, escape(media));
            if !is_json(media) {
                let construct = format!("a parameter of media type `{media}`");
                return Err(document.unsupported(&pointer, "parameter", construct));
            }
            Ok((node.get("schema").cloned().unwrap_or_default(), pointer))
        }
    }
}

/// Returns whether a media type is JSON, such as `application/json` or `application/problem+json`.
pub fn is_json(media: &str) -> bool {
    let essence = media
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    essence == "application/json" || essence.ends_with("+json") || essence == "*/*"
}

/// Returns how the value is serialized, from the `style` and `explode` of OpenAPI.
pub fn encoding(document: &Document, raw: &SpecParameter) -> Result<Encoding> {
    if raw.node.contains_key("content") {
        return Ok(Encoding::Json);
    }
    let (schema, pointer) = schema(document, raw)?;
    let value_shape = shape(document, &schema, &pointer)?;
    let has_objects = value_shape == Shape::List && has_object_items(document, &schema, &pointer)?;
    let in_query = raw.location == Location::Query;
    let default_style = if in_query { "form" } else { "simple" };
    let style = raw.node.get("style").and_then(Value::as_str);
    let style = style.unwrap_or(default_style);
    let explode = raw.node.get("explode").and_then(Value::as_bool);
    let explode = explode.unwrap_or(matches!(style, "form" | "deepObject"));
    Ok(match (style, value_shape) {
        ("deepObject", Shape::Object | Shape::List | Shape::Any) if in_query => {
            Encoding::Pairs("DeepObject")
        }
        ("form", Shape::Object) if in_query && explode => Encoding::Pairs("Properties"),
        ("form", Shape::Object) if in_query => Encoding::Pairs("Joined"),
        ("simple", Shape::Object) => Encoding::ObjectText(explode),
        ("form", Shape::List) if has_objects && in_query && explode => Encoding::Pairs("Repeated"),
        ("form" | "simple", Shape::List) if has_objects => Encoding::Json,
        ("form", Shape::List) if explode && in_query => Encoding::Repeated,
        ("spaceDelimited" | "pipeDelimited", Shape::List) if explode => Encoding::Repeated,
        ("form" | "simple", Shape::List) => Encoding::Joined(','),
        ("spaceDelimited", Shape::List) => Encoding::Joined(' '),
        ("pipeDelimited", Shape::List) => Encoding::Joined('|'),
        ("form", Shape::Any) if in_query && may_be_list(document, &schema, &pointer)? => {
            Encoding::Pairs("Repeated")
        }
        ("form" | "simple" | "deepObject", Shape::Number) if in_query => Encoding::Number,
        ("form" | "simple" | "deepObject", Shape::Boolean) if in_query => Encoding::Boolean,
        ("form" | "simple" | "deepObject", shape) if shape != Shape::Object => Encoding::Text,
        (style, _) => {
            let construct = format!("`style: {style}` of the parameter `{}`", raw.wire_name);
            return Err(document.unsupported(&raw.pointer, "parameter", construct));
        }
    })
}

/// Returns whether the entries of a list are objects.
fn has_object_items(document: &Document, schema: &Value, pointer: &str) -> Result<bool> {
    let (list, pointer) = document.resolve(schema, pointer)?;
    match list.get("items") {
        Some(items) => Ok(shape(document, items, &format!("{pointer}/items"))? == Shape::Object),
        None => Ok(false),
    }
}

/// Returns whether a branch of a union is a list or an object.
fn may_be_list(document: &Document, schema: &Value, pointer: &str) -> Result<bool> {
    let (union, pointer) = document.resolve(schema, pointer)?;
    for keyword in ["oneOf", "anyOf"] {
        let branches = union.get(keyword).and_then(Value::as_array);
        for (index, branch) in branches.into_iter().flatten().enumerate() {
            let shape = shape(document, branch, &format!("{pointer}/{keyword}/{index}"))?;
            if matches!(shape, Shape::List | Shape::Object) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Names of values in the glue and in the generated clients, which a parameter must not hide.
const RESERVED: &[&str] = &[
    "base_url",
    "body",
    "client",
    "context",
    "header_map",
    "http",
    "info",
    "parts",
    "response",
    "self",
];

/// Sets the names for the client generator.
///
/// A query or header parameter whose Rust name is taken or unusual is sent through the call context, and so are
/// optional headers; a path variable gets another name.
pub fn set_client_names(parameters: &mut [Parameter]) {
    let mut taken: Vec<String> = RESERVED.iter().map(|name| (*name).to_owned()).collect();
    for parameter in parameters {
        let mut client_name = match parameter.location {
            Location::Path => parameter.name.clone(),
            Location::Query => parameter.wire_name.clone(),
            Location::Header => parameter.wire_name.to_ascii_lowercase(),
        };
        let mut identifier = names::parameter_identifier(&client_name);
        let is_usable = |identifier: &String, taken: &[String]| {
            !taken.contains(identifier) && names::is_plain_identifier(identifier)
        };
        if parameter.location == Location::Path {
            let mut number = 1;
            while !is_usable(&identifier, &taken) {
                client_name = format!("variable{number}");
                identifier = names::parameter_identifier(&client_name);
                number += 1;
            }
        } else {
            let is_usable = is_usable(&identifier, &taken) && parameter.wire_name.is_ascii();
            // Few callers need headers, so a method takes only those without which a call fails.
            let is_optional_header = parameter.location == Location::Header
                && (!parameter.required || !parameter.always_sent.is_empty());
            parameter.via_context =
                !is_usable || is_optional_header || parameter.encoding.needs_context();
        }
        if !parameter.via_context {
            taken.push(identifier);
        }
        parameter.client_name = client_name;
    }
}

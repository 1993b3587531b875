//! Parameters of an operation: collected, named, and told how to be written.

use serde_json::{Map, Value};

use crate::error::{Notice, Result};
use crate::load::{Document, escape};
use crate::lower::{Shape, shape};
use crate::model::{Encoding, Location, Parameter};
use crate::names;

/// Headers that the transport sets itself, so a spec that lists them asks nothing of the caller.
const TRANSPORT_HEADERS: &[&str] = &[
    "accept",
    "content-type",
    "authorization",
    "x-api-key",
    "user-agent",
    "content-length",
    "host",
];

/// A parameter of the spec with the place where it stands.
pub struct Raw {
    /// Name in the spec.
    pub wire: String,
    /// Where it goes.
    pub location: Location,
    /// Whether the spec requires it.
    pub required: bool,
    /// The parameter object.
    pub node: Map<String, Value>,
    /// Where it stands.
    pub pointer: String,
}

/// All parameters that apply to the operation at `pointer`: the path's own, overridden by the
/// operation's, in the order path, query, header.
pub fn collect(
    document: &Document,
    path: &str,
    item: &Value,
    operation: &Value,
    pointer: &str,
    notices: &mut Vec<Notice>,
) -> Result<Vec<Raw>> {
    let item_pointer = pointer
        .rsplit_once('/')
        .map_or(pointer, |(parent, _)| parent);
    let mut all: Vec<Raw> = Vec::new();
    for (holder, base) in [(item, item_pointer), (operation, pointer)] {
        let list = holder.get("parameters").and_then(Value::as_array);
        for (index, node) in list.into_iter().flatten().enumerate() {
            let place = format!("{base}/parameters/{index}");
            let Some(raw) = read(document, path, node, &place, notices)? else {
                continue;
            };
            all.retain(|known| (&known.wire, known.location) != (&raw.wire, raw.location));
            all.push(raw);
        }
    }
    add_undeclared(document, path, pointer, &mut all, notices);
    all.sort_by_key(|raw| match raw.location {
        Location::Path => (0, path.find(&format!("{{{}}}", raw.wire)).unwrap_or(0)),
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
) -> Result<Option<Raw>> {
    let (node, place) = document.resolve(node, pointer)?;
    let Some(node) = node.as_object() else {
        return Err(document.error(&place, "a parameter must be an object".to_owned()));
    };
    // An opened reference of the overlay leaves an empty object behind.
    if node.is_empty() {
        return Ok(None);
    }
    let text = |key: &str| node.get(key).and_then(Value::as_str);
    let (Some(wire), Some(location)) = (text("name"), text("in")) else {
        return Err(document.error(&place, "a parameter needs `name` and `in`".to_owned()));
    };
    let required = node.get("required") == Some(&Value::Bool(true));
    let mut note = |text: String| {
        notices.push(Notice {
            file: document.file.clone(),
            place: format!("#{pointer}"),
            text,
        });
    };
    let location = match location {
        "path" if path.contains(&format!("{{{wire}}}")) => Location::Path,
        "path" => {
            note(format!(
                "`{wire}` is not in the path `{path}`; it is sent in the query"
            ));
            Location::Query
        }
        "query" => Location::Query,
        "header" if TRANSPORT_HEADERS.contains(&wire.to_ascii_lowercase().as_str()) => {
            return Ok(None);
        }
        "header" if is_header_name(wire) => Location::Header,
        "cookie" if !required => {
            note(format!("the cookie `{wire}` is optional and was left out"));
            return Ok(None);
        }
        other => {
            let construct = format!("the parameter `{wire}` in `{other}`");
            return Err(document.unsupported(&place, "parameter", construct));
        }
    };
    Ok(Some(Raw {
        wire: wire.to_owned(),
        location,
        required: required || location == Location::Path,
        node: node.clone(),
        pointer: place,
    }))
}

fn is_header_name(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// A variable of the path that no parameter declares is text.
fn add_undeclared(
    document: &Document,
    path: &str,
    pointer: &str,
    all: &mut Vec<Raw>,
    notices: &mut Vec<Notice>,
) {
    for variable in variables(path) {
        let declared = all
            .iter()
            .any(|raw| raw.location == Location::Path && raw.wire == variable);
        if declared {
            continue;
        }
        notices.push(Notice {
            file: document.file.clone(),
            place: format!("#{pointer}"),
            text: format!("no parameter declares `{{{variable}}}`; it is taken as text"),
        });
        all.push(Raw {
            wire: variable,
            location: Location::Path,
            required: true,
            node: Map::new(),
            pointer: pointer.to_owned(),
        });
    }
}

fn variables(path: &str) -> Vec<String> {
    path.split('{')
        .skip(1)
        .filter_map(|rest| Some(rest.split_once('}')?.0.to_owned()))
        .collect()
}

/// The argument name that a rule gives a parameter.
pub fn ruled_name(raw: &Raw, path: &str) -> String {
    match raw.location {
        Location::Path => names::path_argument(&raw.wire, path),
        Location::Query => raw.wire.clone(),
        Location::Header => names::header_argument(&raw.wire),
    }
}

/// The schema of a parameter with its pointer; JSON in a `content` map counts.
pub fn schema(document: &Document, raw: &Raw) -> Result<(Value, String)> {
    if let Some(schema) = raw.node.get("schema") {
        return Ok((schema.clone(), format!("{}/schema", raw.pointer)));
    }
    let content = raw.node.get("content").and_then(Value::as_object);
    match content.and_then(|content| content.iter().next()) {
        None => Ok((Value::Object(Map::new()), raw.pointer.clone())),
        Some((media, node)) => {
            let place = format!("{}/content/{}/schema", raw.pointer, escape(media));
            if !is_json(media) {
                let construct = format!("a parameter of media type `{media}`");
                return Err(document.unsupported(&place, "parameter", construct));
            }
            Ok((node.get("schema").cloned().unwrap_or_default(), place))
        }
    }
}

/// `application/json`, with or without parameters, and its relatives.
pub fn is_json(media: &str) -> bool {
    let essence = media
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    essence == "application/json" || essence.ends_with("+json") || essence == "*/*"
}

/// How the value is written: the serialisation styles of OpenAPI.
pub fn encoding(document: &Document, raw: &Raw) -> Result<Encoding> {
    let refuse =
        |construct: String| Err(document.unsupported(&raw.pointer, "parameter", construct));
    if raw.node.contains_key("content") {
        return Ok(Encoding::Json);
    }
    let (schema, pointer) = schema(document, raw)?;
    let shape = shape(document, &schema, &pointer)?;
    let default_style = match raw.location {
        Location::Query => "form",
        _ => "simple",
    };
    let style = raw
        .node
        .get("style")
        .and_then(Value::as_str)
        .unwrap_or(default_style);
    let explode = raw
        .node
        .get("explode")
        .and_then(Value::as_bool)
        .unwrap_or(style == "form");
    Ok(match (style, shape) {
        (_, Shape::Object) => return refuse(format!("the object parameter `{}`", raw.wire)),
        ("form", Shape::List) if explode => Encoding::Repeated,
        ("spaceDelimited" | "pipeDelimited", Shape::List) if explode => Encoding::Repeated,
        ("form" | "simple", Shape::List) => Encoding::Joined(','),
        ("spaceDelimited", Shape::List) => Encoding::Joined(' '),
        ("pipeDelimited", Shape::List) => Encoding::Joined('|'),
        ("form" | "simple", Shape::Number) if raw.location == Location::Query => Encoding::Number,
        ("form" | "simple", Shape::Boolean) if raw.location == Location::Query => Encoding::Boolean,
        ("form" | "simple", _) => Encoding::Text,
        (style, _) => return refuse(format!("`style: {style}` of the parameter `{}`", raw.wire)),
    })
}

/// Marks parameters whose Rust name the client generator would use twice.
pub fn mark_carried(parameters: &mut [Parameter], has_body: bool) {
    let mut taken: Vec<String> = vec!["self".to_owned()];
    if has_body {
        taken.push("body".to_owned());
    }
    for parameter in parameters {
        // A path variable is known to the client generator by its argument name.
        let identifier = match parameter.location {
            Location::Path => names::parameter_identifier(&parameter.name),
            _ => names::parameter_identifier(&parameter.wire),
        };
        parameter.carried = parameter.location != Location::Path && taken.contains(&identifier);
        taken.push(identifier);
    }
}

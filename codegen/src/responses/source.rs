//! Writes the module with the response types.

use std::fmt::Write;

use super::{Definition, ResponseTypes, Shape};

const HEADER: &str = "\
#[allow(unused_imports)]
use exa_mcp_exa_client::{
    Entries, List, open_enum, response_object, response_union, response_value,
};
#[allow(unused_imports)]
use serde_json::Value;
";

impl ResponseTypes {
    /// Returns the source of the module. `title` is the name of the API.
    pub fn source(&self, title: &str) -> String {
        let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut text = format!("//! Responses of the {title}, as views of their JSON.\n\n{HEADER}");
        for (name, (doc, definition)) in &self.definitions {
            text.push('\n');
            write_definition(&mut text, name, doc.as_deref(), definition);
        }
        text
    }
}

fn write_definition(text: &mut String, name: &str, doc: Option<&str>, definition: &Definition) {
    let macro_name = match definition {
        Definition::Object(_) => "response_object",
        Definition::Enum(_) => "open_enum",
        Definition::Union { .. } => "response_union",
        Definition::Value(_) => "response_value",
    };
    let _ = writeln!(text, "{macro_name}! {{");
    if let Some(doc) = doc {
        let _ = writeln!(text, "    /// {doc}");
    }
    match definition {
        Definition::Object(fields) => {
            let _ = writeln!(text, "    {name}<'a> {{");
            for field in fields {
                if let Some(doc) = &field.doc {
                    let _ = writeln!(text, "        /// {doc}");
                }
                let (identifier, key) = (&field.identifier, &field.name);
                let _ = writeln!(
                    text,
                    "        {identifier}: {} = {key:?},",
                    rust_type(&field.shape)
                );
            }
            text.push_str("    }\n");
        }
        Definition::Enum(variants) => {
            let _ = writeln!(text, "    {name} {{");
            for (identifier, value) in variants {
                let _ = writeln!(text, "        {identifier} = {value:?},");
            }
            text.push_str("    }\n");
        }
        Definition::Union { tag, variants } => {
            let _ = writeln!(text, "    {name}<'a> by {tag:?} {{");
            for variant in variants {
                let tags = variant.tags.iter().map(|tag| format!("{tag:?}"));
                let tags = tags.collect::<Vec<_>>().join(" | ");
                let (identifier, ty) = (&variant.identifier, rust_type(&variant.shape));
                let _ = writeln!(text, "        {identifier}({ty}) = {tags},");
            }
            text.push_str("    }\n");
        }
        Definition::Value(shape) => {
            let _ = writeln!(text, "    {name}<'a>({})", rust_type(shape));
        }
    }
    text.push_str("}\n");
}

/// Returns the Rust type that reads a shape.
fn rust_type(shape: &Shape) -> String {
    match shape {
        Shape::Any => "&'a Value".to_owned(),
        Shape::Text => "&'a str".to_owned(),
        Shape::Integer => "i64".to_owned(),
        Shape::Number => "f64".to_owned(),
        Shape::Boolean => "bool".to_owned(),
        Shape::List(item) => format!("List<'a, {}>", rust_type(item)),
        Shape::Entries(value) => format!("Entries<'a, {}>", rust_type(value)),
        Shape::Object(name) => format!("{name}<&'a Value>"),
        Shape::Enum(name) => format!("{name}<&'a str>"),
        Shape::Union(name) => format!("{name}<'a>"),
    }
}

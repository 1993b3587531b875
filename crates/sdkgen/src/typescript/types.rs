//! Writes types in TypeScript.

use serde_json::Value;

use crate::module::Method;
use crate::text::{lines, typescript_string};
use crate::types::{Declaration, Declarations, Doc, Field, Shape, Type};

pub(super) fn response_text(names: &Declarations, method: &Method<'_>) -> String {
    let result = type_text(names, &method.result);
    let mut text = comment(&format!("Answer of `{}`.", method.source.name), false, 0);
    let name = &method.response;
    if method.rest.is_empty() {
        text.push_str(&format!("export type {name} = Answer<{result}>;\n\n"));
    } else {
        let fields = fields_text(names, &method.rest);
        text.push_str(&format!(
            "export interface {name} extends Answer<{result}> {{\n{fields}}}\n\n"
        ));
    }
    if let Some(options) = &method.options {
        let (name, arguments) = (&options.name, &method.arguments);
        let doc = format!("What follows the query of `{}`.", method.source.name);
        text.push_str(&comment(&doc, false, 0));
        text.push_str(&format!(
            "export type {name} = Omit<{arguments}, \"query\"> & Options;\n\n"
        ));
    }
    text
}

pub(super) fn declaration_text(names: &Declarations, declaration: &Declaration) -> String {
    let Doc { text, deprecated } = &declaration.doc;
    let name = &declaration.name;
    let doc = comment(text, *deprecated, 0);
    match &declaration.shape {
        Shape::Alias(target) => {
            format!(
                "{doc}export type {name} = {};\n\n",
                type_text(names, target)
            )
        }
        Shape::Object { fields, open } => {
            let mut inside = fields_text(names, fields);
            if *open {
                inside.push_str("  [field: string]: unknown;\n");
            }
            if inside.is_empty() {
                return format!("{doc}export type {name} = {{ [field: string]: never }};\n\n");
            }
            format!("{doc}export interface {name} {{\n{inside}}}\n\n")
        }
    }
}

fn fields_text(names: &Declarations, fields: &[Field]) -> String {
    let mut text = String::new();
    for field in fields {
        let mark = if field.required { "" } else { "?" };
        text.push_str(&comment(&field.doc.text, field.doc.deprecated, 2));
        text.push_str(&format!(
            "  {}{mark}: {};\n",
            key_text(&field.name),
            type_text(names, &field.value)
        ));
    }
    text
}

/// Writes the name of a field, quoted where necessary.
fn key_text(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
    let digit = name.starts_with(|c: char| c.is_ascii_digit());
    if !name.is_empty() && !digit && name.chars().all(plain) {
        return name.to_owned();
    }
    typescript_string(name)
}

pub(super) fn type_text(names: &Declarations, of: &Type) -> String {
    match of {
        Type::Unknown => "unknown".to_owned(),
        Type::Null => "null".to_owned(),
        Type::Boolean => "boolean".to_owned(),
        Type::Integer | Type::Number => "number".to_owned(),
        Type::String => "string".to_owned(),
        Type::Literals { values, open } => {
            let mut members: Vec<String> = values.iter().map(literal_text).collect();
            // Editors complete the known values; any other string is accepted.
            members.extend(open.then(|| "(string & {})".to_owned()));
            members.join(" | ")
        }
        Type::List(item) => match type_text(names, item) {
            plain if plain.chars().all(|c| c.is_ascii_alphanumeric()) => format!("{plain}[]"),
            other => format!("Array<{other}>"),
        },
        Type::Map(value) => format!("{{ [key: string]: {} }}", type_text(names, value)),
        Type::Union(members) => {
            let members: Vec<String> = members.iter().map(|m| type_text(names, m)).collect();
            members.join(" | ")
        }
        Type::Named(index) => match names.get(*index) {
            Some(found) => found.name.clone(),
            None => "unknown".to_owned(),
        },
    }
}

fn literal_text(value: &Value) -> String {
    match value.as_str() {
        Some(text) => typescript_string(text),
        None => value.to_string(),
    }
}

pub(super) fn comment(text: &str, deprecated: bool, indent: usize) -> String {
    let margin = " ".repeat(indent);
    let mut lines: Vec<String> = lines(text, indent + 3)
        .iter()
        .map(|line| line.replace("*/", "*\\/"))
        .collect();
    if deprecated {
        lines.push("@deprecated".to_owned());
    }
    match lines.as_slice() {
        [] => String::new(),
        [line] => format!("{margin}/** {line} */\n"),
        lines => {
            let inner: String = lines
                .iter()
                .map(|line| format!("{margin} * {line}").trim_end().to_owned() + "\n")
                .collect();
            format!("{margin}/**\n{inner}{margin} */\n")
        }
    }
}

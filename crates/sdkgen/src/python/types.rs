//! Writes types in Python.

use serde_json::Value;

use crate::module::Method;
use crate::names::is_python_keyword;
use crate::text::{lines, python_string};
use crate::types::{Declaration, Declarations, Field, Shape, Side, Type};

pub(super) fn response_text(names: &Declarations, method: &Method<'_>) -> String {
    let result = Type::List(Box::new(method.result.clone()));
    let field = |name: &str, value: String| (name.to_owned(), String::new(), value);
    let mut fields = vec![
        field("metadata", "Metadata".to_owned()),
        field("results", type_text(names, &result, Side::Output)),
    ];
    fields.extend(
        method
            .rest
            .iter()
            .map(|rest| field_text(names, rest, Side::Output)),
    );
    let doc = format!("Answer of `{}`.", method.source.name);
    let mut text = typed_dict(&method.response, &doc, &fields);
    if let Some(options) = &method.options {
        let fields = options.fields.iter();
        let fields: Vec<_> = fields
            .map(|field| field_text(names, field, Side::Input))
            .collect();
        let doc = format!("What follows the query of `{}`.", method.source.name);
        let declared = typed_dict(&options.name, &doc, &fields);
        // They stand beside the options of every operation.
        text.push_str(&declared.replacen("(TypedDict)", "(Options)", 1));
    }
    text
}

pub(super) fn declaration_text(names: &Declarations, declaration: &Declaration) -> String {
    let Declaration {
        name, doc, side, ..
    } = declaration;
    match &declaration.shape {
        Shape::Alias(target) => {
            let doc = comment(&doc.text, doc.deprecated, 0);
            format!(
                "{doc}{name}: TypeAlias = {}\n\n\n",
                alias_text(names, target, *side)
            )
        }
        Shape::Object { fields, .. } => {
            let fields: Vec<_> = fields.iter().map(|f| field_text(names, f, *side)).collect();
            let note = if doc.deprecated {
                "\n\nDeprecated."
            } else {
                ""
            };
            typed_dict(name, &format!("{}{note}", doc.text), &fields)
        }
    }
}

/// Returns the name, comment and type of a field.
fn field_text(names: &Declarations, field: &Field, side: Side) -> (String, String, String) {
    let value = type_text(names, &field.value, side);
    let value = if field.required {
        value
    } else {
        format!("NotRequired[{value}]")
    };
    (
        field.name.clone(),
        comment(&field.doc.text, field.doc.deprecated, 4),
        value,
    )
}

/// Writes a typed dictionary. Fields that are not valid attributes need the functional syntax.
fn typed_dict(name: &str, doc: &str, fields: &[(String, String, String)]) -> String {
    if fields.iter().all(|(field, _, _)| is_attribute(field)) {
        let mut text = format!("class {name}(TypedDict):\n{}", docstring(doc, 4));
        for (field, comment, value) in fields {
            text.push_str(&format!("\n{comment}    {field}: {value}\n"));
        }
        if doc.is_empty() && fields.is_empty() {
            text.push_str("    pass\n");
        }
        return format!("{text}\n\n");
    }
    let mut text = comment(doc, false, 0);
    text.push_str(&format!(
        "{name} = TypedDict(\n    {},\n    {{\n",
        python_string(name)
    ));
    for (field, comment, value) in fields {
        text.push_str(&comment.replace("    # ", "        # "));
        text.push_str(&format!(
            "        {}: {},\n",
            python_string(field),
            quoted(value)
        ));
    }
    format!("{text}    }},\n)\n\n\n")
}

/// Returns whether a name is valid for an attribute or a module.
pub(crate) fn is_attribute(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(plain)
        && !is_python_keyword(name)
}

/// Quotes a type, because it may refer to a later declaration.
fn quoted(text: &str) -> String {
    if text.contains(['\'', '\\']) || !text.contains('"') {
        return python_string(text);
    }
    format!("'{text}'")
}

/// Writes the right-hand side of an alias. Python evaluates it in place, so later names are quoted.
fn alias_text(names: &Declarations, of: &Type, side: Side) -> String {
    let union = |members: &[String]| format!("Union[\n    {},\n]", members.join(",\n    "));
    match of {
        Type::Named(_) => quoted(&type_text(names, of, side)),
        Type::Union(members) => {
            let member = |of| match of {
                &Type::Literals { .. } | Type::Null => type_text(names, of, side),
                other => quoted(&type_text(names, other, side)),
            };
            union(&members.iter().map(member).collect::<Vec<_>>())
        }
        Type::Literals { values, open: true } => {
            union(&[literals_text(values, false), "str".to_owned()])
        }
        Type::Literals { .. } => type_text(names, of, side),
        Type::List(item) => format!("list[{}]", quoted(&type_text(names, item, side))),
        Type::Map(value) => {
            let map = if side == Side::Input {
                "Mapping"
            } else {
                "dict"
            };
            format!("{map}[str, {}]", quoted(&type_text(names, value, side)))
        }
        scalar => type_text(names, scalar, side),
    }
}

pub(super) fn type_text(names: &Declarations, of: &Type, side: Side) -> String {
    let input = side == Side::Input;
    match of {
        // Any argument is accepted; the caller decides what a returned value is.
        Type::Unknown if input => "object".to_owned(),
        Type::Unknown => "Any".to_owned(),
        Type::Null => "None".to_owned(),
        Type::Boolean => "bool".to_owned(),
        Type::Integer => "int".to_owned(),
        Type::Number => "float".to_owned(),
        Type::String => "str".to_owned(),
        Type::Literals { values, open } => literals_text(values, *open),
        Type::List(item) => format!("list[{}]", type_text(names, item, side)),
        Type::Map(value) => {
            let map = if input { "Mapping" } else { "dict" };
            format!("{map}[str, {}]", type_text(names, value, side))
        }
        Type::Union(members) => {
            let members: Vec<String> = members.iter().map(|m| type_text(names, m, side)).collect();
            members.join(" | ")
        }
        Type::Named(index) => match names.get(*index) {
            // A typed dictionary accepts no other keys; a mapping does.
            Some(found) if input && is_open(found) => {
                format!("{} | Mapping[str, object]", found.name)
            }
            Some(found) => found.name.clone(),
            None => "object".to_owned(),
        },
    }
}

fn is_open(declaration: &Declaration) -> bool {
    matches!(declaration.shape, Shape::Object { open: true, .. })
}

fn literals_text(values: &[Value], open: bool) -> String {
    // Python has no float literals in types.
    if values.iter().any(Value::is_f64) {
        return "float".to_owned();
    }
    let literal = |value: &Value| match value {
        Value::String(text) => python_string(text),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        other => other.to_string(),
    };
    let values: Vec<String> = values.iter().map(literal).collect();
    let text = format!("Literal[{}]", values.join(", "));
    if open { format!("{text} | str") } else { text }
}

fn comment(text: &str, deprecated: bool, indent: usize) -> String {
    let margin = " ".repeat(indent);
    let mut lines = lines(text, indent + 2);
    if deprecated {
        lines.push("Deprecated.".to_owned());
    }
    lines
        .iter()
        .map(|line| format!("{margin}# {line}").trim_end().to_owned() + "\n")
        .collect()
}

pub(super) fn docstring(text: &str, indent: usize) -> String {
    let margin = " ".repeat(indent);
    let escaped = |line: &String| line.replace('\\', "\\\\").replace('"', "\\\"");
    let lines: Vec<String> = lines(text, indent + 6).iter().map(escaped).collect();
    match lines.as_slice() {
        [] => String::new(),
        [line] => format!("{margin}\"\"\"{line}\"\"\"\n"),
        [first, others @ ..] => {
            let others: String = others
                .iter()
                .map(|line| format!("{margin}{line}").trim_end().to_owned() + "\n")
                .collect();
            format!("{margin}\"\"\"{first}\n{others}{margin}\"\"\"\n")
        }
    }
}

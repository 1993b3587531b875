//! From method and path to an operation. The templates come from the specs.

use std::collections::HashMap;

use exa_mcp_model::ArgumentLocation;
use serde_json::Value;

use super::strict;
use crate::behaviour::{self, Behaviour};
use crate::percent::decode;
use crate::{Error, OperationSpec, time};

/// An operation, ready to be matched and checked.
pub(super) struct Operation {
    pub(super) spec: OperationSpec,
    pub(super) validator: jsonschema::Validator,
    /// Hand-written behaviour; without it the answer is a sample of the output schema.
    pub(super) behaviour: Option<Behaviour>,
    segments: Vec<Segment>,
}

/// What holds arguments against a schema.
pub(super) fn validator(schema: &Value) -> Result<jsonschema::Validator, String> {
    jsonschema::options()
        .should_validate_formats(true)
        // Exa takes plain dates where the spec says date-time.
        .with_format("date-time", |text: &str| time::parse(text).is_some())
        .build(schema)
        .map_err(|error| error.to_string())
}

enum Segment {
    Literal(String),
    Variable(String),
}

/// What a method and a path lead to.
pub(super) enum Found<'a> {
    Operation(&'a Operation, Vec<(String, String)>),
    /// The path is known, the method is not; these are.
    OtherMethods(Vec<&'a str>),
    Nothing,
}

pub(super) struct Routes {
    operations: Vec<Operation>,
}

impl Routes {
    pub(super) fn new(specs: Vec<OperationSpec>) -> Result<Self, Error> {
        let mut seen: HashMap<String, String> = HashMap::new();
        let mut operations = Vec::with_capacity(specs.len());
        for spec in specs {
            let operation = Operation::new(spec)?;
            let key = format!("{} {}", operation.spec.method, operation.shape());
            if let Some(other) = seen.insert(key, operation.spec.name.clone()) {
                return Err(Error::Duplicate {
                    operation: operation.spec.name,
                    other,
                });
            }
            operations.push(operation);
        }
        // Literal segments win over variables: `/websets/preview` before `/websets/{id}`.
        operations.sort_by_key(|operation| operation.shape().replace("{}", "~"));
        Ok(Routes { operations })
    }

    pub(super) fn find(&self, method: &str, path: &str) -> Found<'_> {
        let parts: Vec<&str> = path.strip_prefix('/').unwrap_or(path).split('/').collect();
        let mut methods = Vec::new();
        for operation in &self.operations {
            let Some(variables) = operation.matches(&parts) else {
                continue;
            };
            if operation.spec.method == method {
                return Found::Operation(operation, variables);
            }
            methods.push(operation.spec.method.as_str());
        }
        methods.sort_unstable();
        if methods.is_empty() {
            Found::Nothing
        } else {
            Found::OtherMethods(methods)
        }
    }

    pub(super) fn len(&self) -> usize {
        self.operations.len()
    }
}

impl Operation {
    fn new(spec: OperationSpec) -> Result<Self, Error> {
        let validator = validator(&strict::closed(&spec.input_schema)).map_err(|message| {
            let operation = spec.name.clone();
            Error::Schema { operation, message }
        })?;
        let segments = spec
            .path
            .trim_start_matches('/')
            .split('/')
            .map(Segment::new)
            .collect();
        Ok(Operation {
            behaviour: behaviour::of(&spec.name),
            spec,
            validator,
            segments,
        })
    }

    /// The template without its variables' names.
    fn shape(&self) -> String {
        let parts: Vec<&str> = self
            .segments
            .iter()
            .map(|segment| match segment {
                Segment::Literal(text) => text.as_str(),
                Segment::Variable(_) => "{}",
            })
            .collect();
        parts.join("/")
    }

    /// The path variables, when the path fits.
    fn matches(&self, parts: &[&str]) -> Option<Vec<(String, String)>> {
        if parts.len() != self.segments.len() {
            return None;
        }
        let mut variables = Vec::new();
        for (segment, part) in self.segments.iter().zip(parts) {
            match segment {
                Segment::Literal(text) if text == part => {}
                Segment::Variable(name) if !part.is_empty() => {
                    variables.push((name.clone(), decode(part)))
                }
                _ => return None,
            }
        }
        Some(variables)
    }

    /// Schema of one flat argument.
    pub(super) fn schema_of(&self, name: &str) -> Option<&Value> {
        self.spec.input_schema.get("properties")?.get(name)
    }

    /// Place and wire name of a flat argument.
    pub(super) fn wire_of(&self, name: &str) -> Option<(ArgumentLocation, &str)> {
        let argument = self
            .spec
            .arguments
            .iter()
            .find(|argument| argument.name == name)?;
        Some((argument.location, argument.wire))
    }
}

impl Segment {
    fn new(text: &str) -> Self {
        match text
            .strip_prefix('{')
            .and_then(|rest| rest.strip_suffix('}'))
        {
            Some(name) => Segment::Variable(name.to_owned()),
            None => Segment::Literal(text.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn spec(name: &str, method: &str, path: &str) -> OperationSpec {
        OperationSpec {
            name: name.into(),
            method: method.into(),
            path: path.into(),
            arguments: Vec::new(),
            input_schema: json!({}),
            output_schema: json!({}),
        }
    }

    fn name(found: &Found<'_>) -> String {
        match found {
            Found::Operation(operation, variables) => {
                format!("{} {variables:?}", operation.spec.name)
            }
            Found::OtherMethods(methods) => format!("other {methods:?}"),
            Found::Nothing => "nothing".into(),
        }
    }

    #[test]
    fn literals_win_and_methods_are_told() {
        let routes = Routes::new(vec![
            spec("get", "GET", "/a/{id}"),
            spec("update", "POST", "/a/{id}"),
            spec("preview", "POST", "/a/preview"),
        ])
        .unwrap_or_else(|error| unreachable!("{error}"));
        assert_eq!(name(&routes.find("POST", "/a/preview")), "preview []");
        assert_eq!(
            name(&routes.find("GET", "/a/preview")),
            r#"get [("id", "preview")]"#
        );
        assert_eq!(
            name(&routes.find("POST", "/a/x%2Fy")),
            r#"update [("id", "x/y")]"#
        );
        assert_eq!(
            name(&routes.find("PUT", "/a/1")),
            r#"other ["GET", "POST"]"#
        );
        assert_eq!(name(&routes.find("GET", "/a/")), "nothing");
        assert_eq!(name(&routes.find("GET", "/a/1/2")), "nothing");
    }

    #[test]
    fn same_path_twice_is_an_error() {
        let both = vec![
            spec("one", "GET", "/a/{id}"),
            spec("two", "GET", "/a/{other}"),
        ];
        assert_eq!(
            Routes::new(both).err(),
            Some(Error::Duplicate {
                operation: "two".into(),
                other: "one".into()
            })
        );
    }
}

//! Routing: finds the operation of a method and path. The path templates come from the specs.

use std::collections::HashMap;

use exa_mcp_model::{Argument, ArgumentLocation};
use serde_json::Value;

use super::closed_schema::close_objects;
use crate::handlers::{Handler, handler_for};
use crate::percent::decode;
use crate::{Error, OperationSpec, time};

/// An operation with its compiled path and schema.
pub(super) struct Route {
    pub(super) spec: OperationSpec,
    pub(super) validator: jsonschema::Validator,
    /// The hand-written handler; without it the response is a sample of the output schema.
    pub(super) handler: Option<Handler>,
    segments: Vec<Segment>,
}

/// Compiles a schema.
pub(super) fn compile_schema(schema: &Value) -> Result<jsonschema::Validator, String> {
    jsonschema::options()
        .should_validate_formats(true)
        // Exa accepts plain dates where the spec says date-time.
        .with_format("date-time", |text: &str| time::parse(text).is_some())
        .build(schema)
        .map_err(|error| error.to_string())
}

enum Segment {
    Literal(String),
    Variable(String),
}

/// The result of routing.
pub(super) enum RouteMatch<'a> {
    /// The route and the path variables.
    Route(&'a Route, Vec<(String, String)>),
    /// The path exists, but only with these methods.
    MethodNotAllowed(Vec<&'a str>),
    NotFound,
}

pub(super) struct Routes {
    routes: Vec<Route>,
}

impl Routes {
    pub(super) fn new(specs: Vec<OperationSpec>) -> Result<Self, Error> {
        let mut seen: HashMap<String, String> = HashMap::new();
        let mut routes = Vec::with_capacity(specs.len());
        for spec in specs {
            let route = Route::new(spec)?;
            let key = format!("{} {}", route.spec.method, route.shape());
            if let Some(other) = seen.insert(key, route.spec.name.clone()) {
                return Err(Error::Duplicate {
                    operation: route.spec.name,
                    other,
                });
            }
            routes.push(route);
        }
        // Literal segments take precedence over variables: `/websets/preview` before `/websets/{id}`.
        routes.sort_by_key(|route| route.shape().replace("{}", "~"));
        Ok(Routes { routes })
    }

    pub(super) fn find(&self, method: &str, path: &str) -> RouteMatch<'_> {
        let parts: Vec<&str> = path.strip_prefix('/').unwrap_or(path).split('/').collect();
        let mut methods = Vec::new();
        for route in &self.routes {
            let Some(variables) = route.matches(&parts) else {
                continue;
            };
            if route.spec.method == method {
                return RouteMatch::Route(route, variables);
            }
            methods.push(route.spec.method.as_str());
        }
        methods.sort_unstable();
        if methods.is_empty() {
            RouteMatch::NotFound
        } else {
            RouteMatch::MethodNotAllowed(methods)
        }
    }

    pub(super) fn len(&self) -> usize {
        self.routes.len()
    }
}

impl Route {
    fn new(spec: OperationSpec) -> Result<Self, Error> {
        let validator = compile_schema(&close_objects(&spec.input_schema)).map_err(|message| {
            let operation = spec.name.clone();
            Error::Schema { operation, message }
        })?;
        let segments = spec
            .path
            .trim_start_matches('/')
            .split('/')
            .map(Segment::new)
            .collect();
        Ok(Route {
            handler: handler_for(&spec.name),
            spec,
            validator,
            segments,
        })
    }

    /// Returns the path template without the names of its variables.
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

    /// Returns the path variables if the path matches.
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

    /// Returns the schema of a flat argument.
    pub(super) fn schema_of(&self, name: &str) -> Option<&Value> {
        self.spec.input_schema.get("properties")?.get(name)
    }

    /// Returns the argument that a request carries under a wire name.
    pub(super) fn argument_at(&self, location: ArgumentLocation, wire: &str) -> Option<&Argument> {
        let mut arguments = self.spec.arguments.iter();
        arguments.find(|argument| argument.location == location && argument.wire == wire)
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

    fn describe(result: &RouteMatch<'_>) -> String {
        match result {
            RouteMatch::Route(route, variables) => {
                format!("{} {variables:?}", route.spec.name)
            }
            RouteMatch::MethodNotAllowed(methods) => format!("allowed {methods:?}"),
            RouteMatch::NotFound => "not found".into(),
        }
    }

    #[test]
    fn prefers_literals_and_reports_allowed_methods() {
        let routes = Routes::new(vec![
            spec("get", "GET", "/a/{id}"),
            spec("update", "POST", "/a/{id}"),
            spec("preview", "POST", "/a/preview"),
        ])
        .unwrap_or_else(|error| unreachable!("{error}"));
        assert_eq!(describe(&routes.find("POST", "/a/preview")), "preview []");
        assert_eq!(
            describe(&routes.find("GET", "/a/preview")),
            r#"get [("id", "preview")]"#
        );
        assert_eq!(
            describe(&routes.find("POST", "/a/x%2Fy")),
            r#"update [("id", "x/y")]"#
        );
        assert_eq!(
            describe(&routes.find("PUT", "/a/1")),
            r#"allowed ["GET", "POST"]"#
        );
        assert_eq!(describe(&routes.find("GET", "/a/")), "not found");
        assert_eq!(describe(&routes.find("GET", "/a/1/2")), "not found");
    }

    #[test]
    fn rejects_duplicate_routes() {
        let specs = vec![
            spec("one", "GET", "/a/{id}"),
            spec("two", "GET", "/a/{other}"),
        ];
        assert_eq!(
            Routes::new(specs).err(),
            Some(Error::Duplicate {
                operation: "two".into(),
                other: "one".into()
            })
        );
    }
}

//! The published input and output schemas of an operation.

use serde_json::{Map, Value, json};

use super::assertions::{self, BodyAssertions};
use super::content::{is_event_stream, response_schema};
use super::reader::{OperationReader, SpecBody};
use crate::error::Result;
use crate::load::escape;
use crate::model::{Body, Location, Parameter};
use crate::parameters::{self, SpecParameter};
use crate::schemas::{DIALECT, SchemaPublisher};
use crate::surface::ServerArgument;

impl OperationReader<'_> {
    /// Returns the schema of the flat arguments, and the body for the model.
    pub(super) fn input_schema(
        &self,
        spec_parameters: &[SpecParameter],
        parameters: &[Parameter],
        body: SpecBody,
        server_arguments: &[ServerArgument],
    ) -> Result<(Value, Body)> {
        let mut publisher = SchemaPublisher::for_requests(self.document);
        let mut assertions = Vec::new();
        let mut properties = Map::new();
        let mut required = Vec::new();
        let mut headers = Vec::new();
        for (raw, parameter) in spec_parameters.iter().zip(parameters) {
            let schema = self.parameter_schema(&mut publisher, raw, parameter)?;
            if parameter.required && parameter.always_sent.is_empty() {
                required.push(parameter.name.clone());
            }
            // Headers come last because they matter least to the caller.
            match parameter.location {
                Location::Header => headers.push((parameter.name.clone(), schema)),
                _ => drop(properties.insert(parameter.name.clone(), schema)),
            }
        }
        let mut open = false;
        let others: Vec<String> = parameters
            .iter()
            .map(|parameter| parameter.name.clone())
            .chain(
                server_arguments
                    .iter()
                    .map(|argument| argument.name.clone()),
            )
            .collect();
        let mut must_have_body = false;
        let body = match body {
            SpecBody::None => Body::None,
            SpecBody::Whole {
                required: is_required,
                schema,
                pointer,
                description,
                content,
            } => {
                let mut published = publisher.publish(&schema, &pointer)?;
                describe(&mut published, description.as_deref());
                properties.insert("body".to_owned(), published);
                if is_required {
                    required.push("body".to_owned());
                }
                Body::Whole {
                    name: "body".to_owned(),
                    required: is_required,
                    content,
                }
            }
            SpecBody::Fields {
                fields,
                required: is_required,
                schema,
                pointer,
                content,
            } => {
                open = !fields.closed;
                let mut known = Map::new();
                for (name, (schema, pointer)) in &fields.known {
                    properties.insert(name.clone(), publisher.publish(schema, pointer)?);
                    known.insert(
                        name.clone(),
                        json!(is_required && fields.required.contains(name)),
                    );
                }
                let mut found = BodyAssertions {
                    document: self.document,
                    publisher: &mut publisher,
                    others: others.clone(),
                    fields: known.keys().cloned().collect(),
                    required_others: required.len(),
                };
                assertions = found.collect(&schema, &pointer)?;
                must_have_body = is_required;
                if is_required {
                    required.extend(
                        fields
                            .required
                            .iter()
                            .filter(|name| known.contains_key(*name))
                            .cloned(),
                    );
                }
                Body::Fields {
                    required: is_required,
                    closed: fields.closed,
                    fields: known,
                    schema,
                    pointer,
                    content,
                }
            }
        };
        for argument in server_arguments {
            let schema = Value::Object(argument.schema.clone());
            properties.insert(argument.name.clone(), schema);
            required.retain(|name| !argument.replaces.contains(name));
        }
        properties.extend(headers);
        let mut schema = json!({"$schema": DIALECT, "type": "object", "properties": properties});
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        if !open {
            schema["additionalProperties"] = json!(false);
        }
        // A server argument may stand for fields that the body demands.
        if server_arguments
            .iter()
            .all(|argument| argument.replaces.is_empty())
        {
            assertions::add(&mut schema, assertions, must_have_body, &others);
        }
        add_definitions(&mut schema, publisher);
        Ok((schema, body))
    }

    fn parameter_schema(
        &self,
        publisher: &mut SchemaPublisher<'_>,
        raw: &SpecParameter,
        parameter: &Parameter,
    ) -> Result<Value> {
        let (schema, pointer) = parameters::schema(self.document, raw)?;
        let mut published = publisher.publish(&schema, &pointer)?;
        if !published.is_object() {
            published = json!({});
        }
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

    /// Returns the schema of a successful response, and its media type if it is never JSON.
    ///
    /// Several different schemas become alternatives.
    pub(super) fn output_schema(&self) -> Result<(Value, Option<String>)> {
        let mut others: Vec<&String> = Vec::new();
        let mut has_json = false;
        let mut publisher = SchemaPublisher::new(self.document);
        let mut found: Vec<Value> = Vec::new();
        let responses = self.node.get("responses").and_then(Value::as_object);
        for (code, response) in responses.into_iter().flatten() {
            if !code.starts_with('2') {
                continue;
            }
            let pointer = format!("{}/responses/{}", self.pointer, escape(code));
            let (response, pointer) = self.document.resolve(response, &pointer)?;
            let content = response.get("content").and_then(Value::as_object);
            let json = content
                .into_iter()
                .flatten()
                .find(|(media, _)| parameters::is_json(media));
            has_json |= json.is_some();
            let Some((media, node)) = json.or_else(|| content?.iter().next()) else {
                continue;
            };
            let is_json = parameters::is_json(media);
            if !is_json && !others.contains(&media) {
                others.push(media);
            }
            let pointer = format!("{pointer}/content/{}/schema", escape(media));
            let schema = node.get("schema");
            let published = schema.map(|schema| publisher.publish(schema, &pointer));
            let published = match published.transpose()? {
                published if !is_json => response_schema(media, published),
                Some(published) => published,
                None => continue,
            };
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
        let others: Vec<&str> = others.into_iter().map(String::as_str).collect();
        let response_type = (!has_json && !others.is_empty()).then(|| others.join(", "));
        Ok((schema, response_type))
    }

    /// Returns the schema of the events of a streamed response, if the response can be JSON as well.
    ///
    /// Only reports need it, so a schema that cannot be published is ignored.
    pub(super) fn stream_schema(&self) -> Option<Value> {
        let responses = self.node.get("responses")?.as_object()?;
        let (code, response) = responses.iter().find(|(code, _)| code.starts_with('2'))?;
        let pointer = format!("{}/responses/{}", self.pointer, escape(code));
        let (response, pointer) = self.document.resolve(response, &pointer).ok()?;
        let content = response.get("content")?.as_object()?;
        content.keys().find(|media| parameters::is_json(media))?;
        let mut media = content.iter();
        let (media, node) = media.find(|(media, _)| is_event_stream(media))?;
        let pointer = format!("{pointer}/content/{}/schema", escape(media));
        let mut publisher = SchemaPublisher::new(self.document);
        let mut schema = publisher.publish(node.get("schema")?, &pointer).ok()?;
        if schema.is_object() {
            add_definitions(&mut schema, publisher);
        }
        Some(schema)
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

fn add_definitions(schema: &mut Value, publisher: SchemaPublisher<'_>) {
    let definitions = publisher.into_definitions();
    if !definitions.is_empty() {
        schema["$defs"] = Value::Object(definitions);
    }
}

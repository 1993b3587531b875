//! The published schemas of an operation: what it takes and what it answers.

use serde_json::{Map, Value, json};

use super::reader::{RawBody, Reader};
use crate::error::Result;
use crate::load::escape;
use crate::model::{Body, Location, Parameter};
use crate::parameters::{self, Raw};
use crate::schemas::{DIALECT, Publisher};
use crate::surface::OwnArgument;

impl Reader<'_> {
    /// The flat arguments as one schema, and the body in the form of the model.
    pub(super) fn input_schema(
        &self,
        raw: &[Raw],
        parameters: &[Parameter],
        body: RawBody,
        own: &[OwnArgument],
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
        for own in own {
            properties.insert(own.name.clone(), Value::Object(own.schema.clone()));
            required.retain(|name| !own.replaces.contains(name));
        }
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
    pub(super) fn output_schema(&self) -> Result<Value> {
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

//! Unions of objects that a tag tells apart.

use serde_json::{Map, Value};

use super::reader::{Located, ResponseReader, ascii, variant_name};
use super::{Definition, Shape, Variant};
use crate::body;
use crate::references::local_pointer;

/// A union whose alternatives are not read yet.
pub(super) struct TaggedUnion {
    tag: String,
    /// The alternatives with their tags.
    branches: Vec<(Located, Vec<String>)>,
}

impl ResponseReader<'_> {
    /// Returns the union of these objects, if one of their fields tells them apart.
    pub(super) fn tagged_union(
        &self,
        branches: &[Located],
        map: &Map<String, Value>,
    ) -> Option<TaggedUnion> {
        if branches.len() < 2 {
            return None;
        }
        let mut tagged = Vec::new();
        for (branch, pointer) in branches {
            let fields = body::response_fields(self.document, branch, pointer).ok()??;
            let tags = fields.known.into_iter().map(|(name, (schema, pointer))| {
                let values = self.values(&schema, &pointer, 0);
                (name, values.unwrap_or_default())
            });
            tagged.push(tags.collect::<Vec<_>>());
        }
        let declared = map
            .get("discriminator")
            .and_then(|it| it.get("propertyName"));
        let declared = declared.and_then(Value::as_str);
        let candidates = tagged.first()?.iter().map(|(name, _)| name.as_str());
        let mut candidates = declared.into_iter().chain(candidates);
        candidates.find_map(|tag| {
            let is_declared = declared == Some(tag);
            let mapping = map.get("discriminator").filter(|_| is_declared);
            let mut all: Vec<String> = Vec::new();
            let mut with_tags = Vec::new();
            for ((branch, pointer), fields) in branches.iter().zip(&tagged) {
                let own = fields.iter().find(|(name, _)| name == tag);
                let mut tags = mapping.map_or_else(Vec::new, |it| mapped(it, branch));
                if tags.is_empty() {
                    tags = own.map(|(_, tags)| tags.clone()).unwrap_or_default();
                }
                if tags.is_empty() && is_declared {
                    tags.extend(component(branch));
                }
                if tags.is_empty() || tags.iter().any(|tag| all.contains(tag)) {
                    return None;
                }
                all.extend(tags.iter().cloned());
                with_tags.push(((branch.clone(), pointer.clone()), tags));
            }
            Some(TaggedUnion {
                tag: tag.to_owned(),
                branches: with_tags,
            })
        })
    }

    /// Reads the alternatives of a union.
    pub(super) fn read_tagged(&mut self, name: &str, union: TaggedUnion) -> Definition {
        let mut taken = vec!["Other".to_owned(), "Self".to_owned()];
        let variants = union.branches.into_iter().map(|((branch, pointer), tags)| {
            let first = tags.first().map_or("", String::as_str);
            let identifier = variant_name(first, &mut taken);
            let hint = format!("{name}{}", ascii(&identifier));
            let shape = match self.read(&branch, &pointer, &hint) {
                // A union that contains itself would be infinitely large.
                Shape::Union(_) => Shape::Any,
                shape => shape,
            };
            Variant {
                identifier,
                shape,
                tags,
            }
        });
        Definition::Union {
            tag: union.tag,
            variants: variants.collect(),
        }
    }

    /// Returns the texts that a schema allows, if they are listed.
    fn values(&self, schema: &Value, pointer: &str, depth: usize) -> Option<Vec<String>> {
        const MAX_DEPTH: usize = 8;
        if depth > MAX_DEPTH {
            return None;
        }
        let (schema, pointer) = self.document.resolve(schema, pointer).ok()?;
        if let Some(value) = schema.get("const") {
            return Some(vec![value.as_str()?.to_owned()]);
        }
        if let Some(Value::Array(values)) = schema.get("enum") {
            let texts = values.iter().map(|value| Some(value.as_str()?.to_owned()));
            return texts.collect();
        }
        let branches = schema.get("anyOf").or_else(|| schema.get("oneOf"))?;
        let mut all = Vec::new();
        for branch in branches.as_array()? {
            for value in self.values(branch, &pointer, depth + 1)? {
                if !all.contains(&value) {
                    all.push(value);
                }
            }
        }
        Some(all)
    }
}

/// Returns the tags that a discriminator maps to a branch.
fn mapped(discriminator: &Value, branch: &Value) -> Vec<String> {
    let reference = branch.get("$ref").and_then(Value::as_str);
    let component = component(branch);
    let mapping = discriminator.get("mapping").and_then(Value::as_object);
    let tags = mapping.into_iter().flatten().filter(|(_, target)| {
        let target = target.as_str();
        target.is_some() && (target == reference || target == component.as_deref())
    });
    tags.map(|(tag, _)| tag.clone()).collect()
}

/// Returns the name of the component that a schema refers to.
fn component(schema: &Value) -> Option<String> {
    let pointer = local_pointer(schema.get("$ref")?.as_str()?)?;
    Some(pointer.rsplit('/').next()?.to_owned())
}

//! Splits a document into specs by path prefix, tag or server.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::manifest::SpecRule;
use super::position::visit_objects;
use crate::load::escape;
use crate::references::local_pointer;

/// The keys of a path item that are operations.
pub(super) const METHODS: &[&str] = &[
    "get", "put", "post", "delete", "options", "head", "patch", "trace", "query",
];

/// The result of a split.
#[derive(Debug)]
pub struct SplitDocument {
    /// One document for each rule, in the order of the rules.
    pub specs: Vec<Value>,
    /// Operations that no rule selects, such as `GET /status`.
    pub unassigned: Vec<String>,
}

/// Splits `document`. The first rule that selects an operation takes it.
///
/// A single rule that takes everything leaves the document as it is. Otherwise each spec gets the
/// components and tags that its operations use.
pub fn split(document: &Value, rules: &[SpecRule]) -> SplitDocument {
    if let [only] = rules
        && only.takes_the_rest()
    {
        return SplitDocument {
            specs: vec![document.clone()],
            unassigned: Vec::new(),
        };
    }
    let mut parts = vec![Map::new(); rules.len()];
    let mut unassigned = Vec::new();
    let empty = Map::new();
    let paths = object(document, "paths").unwrap_or(&empty);
    for (path, item) in paths {
        // What the path refers to may become part of another spec.
        let item = resolved_item(document, item);
        let assignment = assign(document, path, item, rules, &mut unassigned);
        for (part, methods) in parts.iter_mut().zip(&assignment) {
            if !methods.is_empty() {
                part.insert(path.clone(), with_methods(item, methods));
            }
        }
    }
    let specs = parts
        .into_iter()
        .zip(rules)
        .map(|(paths, rule)| assemble(document, paths, rule.takes_the_rest()))
        .collect();
    SplitDocument { specs, unassigned }
}

/// Counts the operations of a document.
pub fn count_operations(document: &Value) -> usize {
    let paths = object(document, "paths").into_iter().flatten();
    let items = paths.map(|(_, item)| resolved_item(document, item));
    items.map(|item| methods_of(item).count()).sum()
}

/// Returns the operations of a path item.
pub(super) fn methods_of(item: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let entries = item.as_object().into_iter().flatten();
    entries.filter(|(key, value)| METHODS.contains(&key.as_str()) && value.is_object())
}

/// Returns the path item, or the one that it refers to.
fn resolved_item<'a>(document: &'a Value, item: &'a Value) -> &'a Value {
    let mut current = item;
    let mut visited = BTreeSet::new();
    while let Some(Value::String(reference)) = current.get("$ref") {
        let target = local_pointer(reference).and_then(|pointer| document.pointer(&pointer));
        match target {
            Some(target) if visited.insert(reference) => current = target,
            _ => break,
        }
    }
    current
}

/// Returns the methods that each rule takes.
fn assign<'a>(
    document: &Value,
    path: &str,
    item: &'a Value,
    rules: &[SpecRule],
    unassigned: &mut Vec<String>,
) -> Vec<BTreeSet<&'a str>> {
    let mut assignment = vec![BTreeSet::new(); rules.len()];
    let entries = item.as_object().into_iter().flatten();
    // The generator reports a method that is not an object.
    let methods =
        entries.filter(|(method, node)| METHODS.contains(&method.as_str()) && !node.is_null());
    for (method, operation) in methods {
        let index = rules
            .iter()
            .position(|rule| selects(rule, document, path, item, operation));
        match index.and_then(|index| assignment.get_mut(index)) {
            Some(methods) => {
                methods.insert(method.as_str());
            }
            None => unassigned.push(format!("{} {path}", method.to_uppercase())),
        }
    }
    assignment
}

fn selects(rule: &SpecRule, document: &Value, path: &str, item: &Value, operation: &Value) -> bool {
    if rule.takes_the_rest() {
        return true;
    }
    let has_prefix = |values: &[String], text: &str| values.iter().any(|v| text.starts_with(v));
    let strings = |list: Option<&Value>, key: Option<&str>| -> Vec<String> {
        let entries = list.and_then(Value::as_array).into_iter().flatten();
        let texts = entries.filter_map(|entry| match key {
            Some(key) => entry.get(key)?.as_str(),
            None => entry.as_str(),
        });
        texts.map(str::to_owned).collect()
    };
    let tags = strings(operation.get("tags"), None);
    // The innermost list of servers applies.
    let servers = [operation, item, document]
        .into_iter()
        .find_map(|owner| owner.get("servers"));
    let servers = strings(servers, Some("url"));
    has_prefix(&rule.path_prefix.0, path)
        || tags.iter().any(|tag| rule.tag.0.contains(tag))
        || servers.iter().any(|url| has_prefix(&rule.server.0, url))
}

/// Returns a path item with only these operations.
fn with_methods(item: &Value, methods: &BTreeSet<&str>) -> Value {
    let entries = item.as_object().into_iter().flatten();
    entries
        .filter(|(key, _)| !METHODS.contains(&key.as_str()) || methods.contains(key.as_str()))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect::<Map<_, _>>()
        .into()
}

/// Builds a spec from its paths and everything that they use, in upstream's order.
fn assemble(document: &Value, paths: Map<String, Value>, is_rest: bool) -> Value {
    let mut used = UsedParts::default();
    let webhooks = document.get("webhooks").filter(|_| is_rest);
    for item in paths.values().chain(webhooks) {
        used.collect(item);
    }
    used.collect_security(document.get("security"));
    used.follow(document);
    let mut spec = Map::new();
    for (key, value) in document.as_object().into_iter().flatten() {
        let part = match key.as_str() {
            "paths" => Some(Value::Object(paths.clone())),
            "components" => used.components(value),
            "tags" => used.tags(value),
            "webhooks" if !is_rest => None,
            _ => Some(value.clone()),
        };
        if let Some(part) = part {
            spec.insert(key.clone(), part);
        }
    }
    Value::Object(spec)
}

/// The components, tags and security schemes that a spec uses.
#[derive(Default)]
struct UsedParts {
    /// JSON pointers such as `/components/schemas/Webset`.
    pointers: BTreeSet<String>,
    /// Found but not yet followed.
    pending: Vec<String>,
    tags: BTreeSet<String>,
}

impl UsedParts {
    /// Collects what `node` uses.
    fn collect(&mut self, node: &Value) {
        visit_objects(node, &mut |map| {
            if let Some(Value::String(reference)) = map.get("$ref") {
                self.add_reference(reference);
            }
            if let Some(Value::Object(mapping)) = map.get("mapping") {
                self.add_mapping(mapping);
            }
            self.collect_security(map.get("security"));
            let tags = map.get("tags").and_then(Value::as_array);
            let tags = tags.into_iter().flatten().filter_map(Value::as_str);
            self.tags.extend(tags.map(str::to_owned));
        });
    }

    /// A mapping of a discriminator contains references or names of schemas.
    fn add_mapping(&mut self, mapping: &Map<String, Value>) {
        for target in mapping.values().filter_map(Value::as_str) {
            if target.starts_with('#') {
                self.add_reference(target);
            } else {
                self.add(format!("/components/schemas/{}", escape(target)));
            }
        }
    }

    fn add_reference(&mut self, reference: &str) {
        // `#/components/schemas/Webset/properties/id` uses the whole component.
        let Some(pointer) = local_pointer(reference) else {
            return;
        };
        let segments: Vec<&str> = pointer.split('/').take(4).collect();
        if let ["", "components", _, _] = segments.as_slice() {
            self.add(segments.join("/"));
        }
    }

    fn collect_security(&mut self, requirements: Option<&Value>) {
        let requirements = requirements.and_then(Value::as_array).into_iter().flatten();
        for name in requirements
            .filter_map(Value::as_object)
            .flat_map(Map::keys)
        {
            self.add(format!("/components/securitySchemes/{}", escape(name)));
        }
    }

    fn add(&mut self, pointer: String) {
        if self.pointers.insert(pointer.clone()) {
            self.pending.push(pointer);
        }
    }

    /// Adds what the used components use.
    fn follow(&mut self, document: &Value) {
        while let Some(pointer) = self.pending.pop() {
            if let Some(component) = document.pointer(&pointer) {
                self.collect(component);
            }
        }
    }

    /// Returns the used components, or nothing if there are none.
    fn components(&self, components: &Value) -> Option<Value> {
        let mut sections = Map::new();
        for (section, entries) in components.as_object()? {
            let Some(entries) = entries.as_object() else {
                sections.insert(section.clone(), entries.clone());
                continue;
            };
            let is_used = |name: &str| {
                let pointer = format!("/components/{}/{}", escape(section), escape(name));
                self.pointers.contains(&pointer)
            };
            let used: Map<String, Value> = entries
                .iter()
                .filter(|(name, _)| is_used(name))
                .map(|(name, entry)| (name.clone(), entry.clone()))
                .collect();
            if !used.is_empty() {
                sections.insert(section.clone(), used.into());
            }
        }
        (!sections.is_empty()).then_some(Value::Object(sections))
    }

    /// Returns the descriptions of the used tags, or nothing if there are none.
    fn tags(&self, tags: &Value) -> Option<Value> {
        let name = |tag: &Value| tag.get("name").and_then(Value::as_str).map(str::to_owned);
        let used: Vec<Value> = tags
            .as_array()?
            .iter()
            .filter(|tag| name(tag).is_some_and(|name| self.tags.contains(&name)))
            .cloned()
            .collect();
        (!used.is_empty()).then_some(Value::Array(used))
    }
}

/// Returns the references of `document` that do not resolve.
pub fn dangling_references(document: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    visit_objects(document, &mut |map| {
        if let Some(Value::String(reference)) = map.get("$ref")
            && local_pointer(reference).is_some_and(|p| document.pointer(&p).is_none())
        {
            found.insert(reference.clone());
        }
    });
    found
}

fn object<'a>(node: &'a Value, key: &str) -> Option<&'a Map<String, Value>> {
    node.get(key).and_then(Value::as_object)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::manifest::OneOrMany;
    use super::*;

    fn rule(file: &str, key: &str, value: &str) -> SpecRule {
        let of = |name: &str| {
            OneOrMany(if name == key {
                vec![value.into()]
            } else {
                vec![]
            })
        };
        SpecRule {
            file: file.into(),
            path_prefix: of("path_prefix"),
            tag: of("tag"),
            server: of("server"),
        }
    }

    fn paths(spec: &Value) -> Vec<&String> {
        spec["paths"].as_object().unwrap().keys().collect()
    }

    fn reference(name: &str) -> Value {
        json!({"$ref": format!("#/components/schemas/{name}")})
    }

    #[test]
    fn takes_components_transitively_and_no_others() {
        let document = json!({
            "openapi": "3.1.0",
            "tags": [{"name": "A"}, {"name": "B"}],
            "paths": {
                "/v0/a": {"servers": [], "get": {"tags": ["A"], "security": [{"key": []}], "x": reference("A")}},
                "/b": {"post": {"tags": ["B"], "x": reference("B")}}},
            "components": {
                "schemas": {
                    // Properties with the names of keywords are still schemas.
                    "A": {"properties": {"examples": {"items": reference("C")}, "default": reference("D")},
                          "discriminator": {"mapping": {"e": "E", "f": "#/components/schemas/F"}}},
                    "B": {"example": reference("C"), "properties": {"$ref": {"type": "string"}}},
                    "C": {"items": reference("A")}, "D": {}, "E": {}, "F": {}, "Unused": {}},
                "securitySchemes": {"key": {}, "other": {}}}});
        let rules = [rule("w", "path_prefix", "/v0/"), rule("s", "", "")];
        let split = split(&document, &rules);
        assert!(split.unassigned.is_empty());
        let [websets, search] = split.specs.as_slice() else {
            panic!("{split:?}")
        };
        assert_eq!(paths(websets), ["/v0/a"]);
        assert_eq!(paths(search), ["/b"]);
        let schemas = |spec: &Value| {
            let schemas = spec["components"]["schemas"].as_object().unwrap();
            schemas.keys().cloned().collect::<Vec<_>>()
        };
        assert_eq!(schemas(websets), ["A", "C", "D", "E", "F"]);
        assert_eq!(schemas(search), ["B"]);
        assert_eq!(websets["tags"], json!([{"name": "A"}]));
        assert_eq!(websets["components"]["securitySchemes"], json!({"key": {}}));
        assert_eq!(search["components"].get("securitySchemes"), None);
    }

    #[test]
    fn splits_one_path_by_tag_and_by_server() {
        let admin = json!([{"url": "https://admin.example/x"}]);
        let document = json!({
            "servers": [{"url": "https://api.example"}],
            "paths": {"/a": {"parameters": [1], "get": {"tags": ["T"]}, "post": {"servers": admin}, "put": {}}}});
        let rules = [
            rule("t", "tag", "T"),
            rule("m", "server", "https://admin.example"),
        ];
        let split = split(&document, &rules);
        let keys = |spec: &Value| -> Vec<String> {
            spec["paths"]["/a"]
                .as_object()
                .unwrap()
                .keys()
                .cloned()
                .collect()
        };
        assert_eq!(keys(&split.specs[0]), ["parameters", "get"]);
        assert_eq!(keys(&split.specs[1]), ["parameters", "post"]);
        assert_eq!(split.unassigned, ["PUT /a"]);
        assert_eq!(count_operations(&document), 3);
    }

    #[test]
    fn path_items_that_are_references_are_split_by_what_they_refer_to() {
        let item = json!({"get": {"tags": ["T"]}, "put": []});
        let document = json!({
            "paths": {
                "/a": {"$ref": "#/components/pathItems/Item"},
                "/b": {"$ref": "#/paths/~1a"},
                "/loop": {"$ref": "#/paths/~1loop"}},
            "components": {"pathItems": {"Item": item}}});
        let split = split(&document, &[rule("t", "tag", "T"), rule("s", "", "")]);
        for path in ["/a", "/b"] {
            assert_eq!(
                split.specs[0]["paths"][path],
                json!({"get": {"tags": ["T"]}})
            );
            // What is not an operation is left for the generator to report.
            assert_eq!(split.specs[1]["paths"][path], json!({"put": []}));
        }
        assert_eq!(count_operations(&document), 2);
    }

    #[test]
    fn a_single_rule_leaves_the_document_unchanged() {
        let document =
            json!({"paths": {"/a": {"get": {}}}, "components": {"schemas": {"Unused": {}}}});
        let split = split(&document, &[rule("s", "", "")]);
        assert_eq!(split.specs, [document]);
    }
}

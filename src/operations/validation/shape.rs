//! What a schema says about a single argument, for people and for the conversion of text.

use serde_json::Value;

use super::schema::Node;

/// The type, the values and the purpose of an argument.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ArgumentShape {
    /// The accepted JSON types, without null; empty means any.
    pub types: Vec<String>,
    /// The values that the schema lists.
    pub values: Vec<Value>,
    /// The value that Exa assumes by default.
    pub default: Option<Value>,
    /// The purpose.
    pub description: Option<String>,
}

impl ArgumentShape {
    /// Returns whether values of this type are accepted.
    pub fn accepts(&self, kind: &str) -> bool {
        self.types.is_empty() || self.types.iter().any(|known| known == kind)
    }
}

/// Returns what a schema says about the value at a path; a number stands for an entry of a list. `None` if the schema
/// does not declare it.
pub fn shape_at(schema: &Value, path: &[&str]) -> Option<ArgumentShape> {
    let mut nodes = vec![Node::root(schema)];
    for name in path {
        nodes = nodes.iter().flat_map(|node| step(node, name)).collect();
    }
    let mut shape = ArgumentShape::default();
    for node in &nodes {
        let text = |name| node.keyword(name).and_then(Value::as_str);
        shape.description = shape.description.or(text("description").map(str::to_owned));
        shape.default = shape.default.or(node.keyword("default").cloned());
        describe(node, &mut shape);
    }
    (!nodes.is_empty()).then_some(shape)
}

/// Returns the nodes of a property or of the entries of a list, in all variants.
fn step<'s>(node: &Node<'s>, name: &str) -> Vec<Node<'s>> {
    let is_index = name.bytes().all(|byte| byte.is_ascii_digit());
    let here = match node.items() {
        Some(items) if is_index => Some(items),
        _ => node.property(name),
    };
    let branches = node.branches();
    let below = branches.iter().flat_map(|branch| step(branch, name));
    here.into_iter().chain(below).collect()
}

/// Adds types and values of a node and its variants.
fn describe(node: &Node<'_>, shape: &mut ArgumentShape) {
    for kind in node.types() {
        if kind != "null" && !shape.types.iter().any(|known| known == kind) {
            shape.types.push(kind.to_owned());
        }
    }
    for value in node.choices() {
        if !value.is_null() && !shape.values.contains(value) {
            shape.values.push(value.clone());
        }
    }
    for branch in node.branches() {
        describe(&branch, shape);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn describes_nested_arguments_of_all_variants() {
        let schema = json!({
            "properties": {
                "count": {"type": ["integer", "null"], "default": 10},
                "list": {"anyOf": [{"items": {"properties": {"a": {"enum": ["x", null]}}}}, {"type": "null"}]},
            },
        });
        let shape = shape_at(&schema, &["count"]).unwrap();
        assert_eq!(
            (shape.types, shape.default),
            (vec!["integer".to_owned()], Some(json!(10)))
        );
        assert_eq!(
            shape_at(&schema, &["list", "0", "a"]).unwrap().values,
            [json!("x")]
        );
        assert_eq!(shape_at(&schema, &["other"]), None);
    }
}

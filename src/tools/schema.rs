//! The input schemas of the tools.

use std::sync::{Arc, OnceLock};

use serde::Deserialize;
use serde_json::{Map, Value};

/// The JSON Schema of a tool's arguments.
///
/// Schemas are the largest part of a definition. They stay text until they are used, so that startup neither parses
/// nor stores them. Clones share the parsed schema.
#[derive(Debug, Clone)]
pub struct Schema {
    /// The generated file of the tool.
    file: &'static str,
    shared: Arc<OnceLock<Arc<Map<String, Value>>>>,
}

/// The part of a generated file with the schema.
#[derive(Deserialize)]
struct File {
    definition: Definition,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Definition {
    input_schema: Map<String, Value>,
}

impl Schema {
    /// Creates the schema in the generated file of a tool.
    pub(super) fn in_file(file: &'static str) -> Self {
        Self {
            file,
            shared: Arc::default(),
        }
    }

    /// Returns the shared schema.
    pub fn shared(&self) -> &Arc<Map<String, Value>> {
        self.shared.get_or_init(|| Arc::new(self.parse()))
    }

    /// Returns an owned copy of the schema.
    pub fn owned(&self) -> Map<String, Value> {
        match self.shared.get() {
            Some(shared) => Map::clone(shared),
            None => self.parse(),
        }
    }

    fn parse(&self) -> Map<String, Value> {
        let file = serde_json::from_str(self.file).ok();
        file.map_or_else(Map::new, |file: File| file.definition.input_schema)
    }
}

impl From<Map<String, Value>> for Schema {
    /// Creates the schema of a tool without a generated file.
    fn from(schema: Map<String, Value>) -> Self {
        Self {
            file: "",
            shared: Arc::new(OnceLock::from(Arc::new(schema))),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use exa_mcp_generated::tools::TOOLS;

    #[test]
    fn every_tool_has_an_object_schema() {
        for (name, file) in TOOLS {
            let schema = Schema::in_file(file);
            let owned = schema.owned();
            assert_eq!(owned.get("type"), Some(&json!("object")), "{name}");
            assert_eq!(**schema.shared(), owned, "{name}");
            assert_eq!(schema.owned(), owned, "{name}");
        }
    }
}

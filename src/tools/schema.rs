//! The schemas of the tools.

use std::sync::{Arc, OnceLock};

use serde::Deserialize;
use serde_json::{Map, Value};

/// The JSON Schema of a tool's arguments.
///
/// Schemas are most of what there is to know of a tool. They stay text until someone asks for them, so
/// that a start neither reads them nor keeps them. Clones share what was read.
#[derive(Debug, Clone)]
pub struct Schema {
    /// The generated file of the tool.
    file: &'static str,
    shared: Arc<OnceLock<Arc<Map<String, Value>>>>,
}

/// As much of a generated file as holds the schema.
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
    /// The schema in the generated file of a tool.
    pub(super) fn in_file(file: &'static str) -> Self {
        Self {
            file,
            shared: Arc::default(),
        }
    }

    /// The schema for several readers.
    pub fn shared(&self) -> &Arc<Map<String, Value>> {
        self.shared.get_or_init(|| Arc::new(self.read()))
    }

    /// The schema for one reader, who may change it.
    pub fn owned(&self) -> Map<String, Value> {
        match self.shared.get() {
            Some(shared) => Map::clone(shared),
            None => self.read(),
        }
    }

    fn read(&self) -> Map<String, Value> {
        let file = serde_json::from_str(self.file).ok();
        file.map_or_else(Map::new, |file: File| file.definition.input_schema)
    }
}

impl From<Map<String, Value>> for Schema {
    /// The schema of a tool without a file.
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
    fn every_tool_has_a_schema_for_all_readers() {
        for (name, file) in TOOLS {
            let schema = Schema::in_file(file);
            let owned = schema.owned();
            assert_eq!(owned.get("type"), Some(&json!("object")), "{name}");
            assert_eq!(**schema.shared(), owned, "{name}");
            assert_eq!(schema.owned(), owned, "{name}");
        }
    }
}

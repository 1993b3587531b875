//! A result as JSON: metadata, fields of the tool, results, other fields.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

use super::budget::FittedResults;

/// Names that fields of a tool or a response cannot replace.
const RESERVED: [&str; 2] = ["metadata", "results"];

/// Returns the result as JSON text, with its results under the name `list`.
pub(super) fn text(
    metadata: &Map<String, Value>,
    tool_fields: &Map<String, Value>,
    fitted: &FittedResults,
    list: &str,
) -> String {
    let whole = JsonResult {
        list,
        metadata,
        tool_fields,
        fitted,
    };
    serde_json::to_string(&whole).unwrap_or_default()
}

/// Returns the result as structured content.
pub(super) fn structured_content(
    metadata: Map<String, Value>,
    tool_fields: &Map<String, Value>,
    fitted: FittedResults,
    list: &str,
) -> Map<String, Value> {
    let mut whole = Map::new();
    whole.insert("metadata".to_owned(), Value::Object(metadata));
    let free_fields = tool_fields.iter().filter(|(name, _)| is_free(name, None));
    whole.extend(free_fields.map(|(name, value)| (name.clone(), value.clone())));
    let results = fitted.shown.into_iter().map(|result| result.value);
    whole.insert(list.to_owned(), results.collect());
    let rest = fitted.rest.into_iter();
    whole.extend(rest.filter(|(name, _)| is_free(name, Some(tool_fields))));
    whole
}

/// Returns whether a name is neither reserved nor used by a field of the tool.
fn is_free(name: &str, tool_fields: Option<&Map<String, Value>>) -> bool {
    !RESERVED.contains(&name)
        && tool_fields.is_none_or(|tool_fields| !tool_fields.contains_key(name))
}

struct JsonResult<'a> {
    list: &'a str,
    metadata: &'a Map<String, Value>,
    tool_fields: &'a Map<String, Value>,
    fitted: &'a FittedResults,
}

impl Serialize for JsonResult<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut whole = serializer.serialize_map(None)?;
        whole.serialize_entry("metadata", self.metadata)?;
        for (name, value) in self
            .tool_fields
            .iter()
            .filter(|(name, _)| is_free(name, None))
        {
            whole.serialize_entry(name, value)?;
        }
        let results: Vec<&Value> = self.fitted.shown.iter().map(|shown| &shown.value).collect();
        whole.serialize_entry(self.list, &results)?;
        let rest = self.fitted.rest.iter();
        for (name, value) in rest.filter(|(name, _)| is_free(name, Some(self.tool_fields))) {
            whole.serialize_entry(name, value)?;
        }
        whole.end()
    }
}

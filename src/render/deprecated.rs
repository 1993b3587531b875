//! The former name of `corrections` in structured content.

// deprecated: removed in 0.3, with everything in this file.

use serde_json::{Map, Value, json};

use exa_mcp_text::tokens::estimate;

/// The former name of `corrections`.
const OLD_KEY: &str = "mended";

/// Adds a copy of the corrections under their former name.
pub(crate) fn add_deprecated_keys(structured: &mut Map<String, Value>) {
    add_copy(structured);
    if let Some(Value::Object(metadata)) = structured.get_mut("metadata") {
        add_copy(metadata);
    }
}

/// Returns the tokens that the copy adds to the JSON of a result.
pub(super) fn extra_tokens(corrections: &[String]) -> usize {
    estimate(&format!(",\"{OLD_KEY}\":{}", json!(corrections)))
}

fn add_copy(map: &mut Map<String, Value>) {
    let corrections = map.get("corrections").filter(|list| list.is_array());
    if let Some(corrections) = corrections.cloned() {
        map.entry(OLD_KEY).or_insert(corrections);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_corrections_under_their_former_name() {
        let mut structured = Map::from_iter([
            ("metadata".to_owned(), json!({"corrections": ["a"]})),
            ("results".to_owned(), json!([])),
        ]);
        add_deprecated_keys(&mut structured);
        let metadata = json!({"corrections": ["a"], "mended": ["a"]});
        assert_eq!(structured.get("metadata"), Some(&metadata));
        assert_eq!(structured.get("mended"), None);
        let mut described = Map::from_iter([("corrections".to_owned(), json!(["b"]))]);
        add_deprecated_keys(&mut described);
        assert_eq!(described.get("mended"), Some(&json!(["b"])));
    }
}

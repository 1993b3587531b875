//! The former name of `corrections` in structured content and JSON text.

// deprecated: removed in 0.3, with everything in this file.

use serde_json::{Map, Value};

/// The former name of `corrections`.
const OLD_KEY: &str = "mended";

/// Adds a copy of the corrections under their former name.
pub(crate) fn add_deprecated_keys(structured: &mut Map<String, Value>) {
    add_copy(structured);
    if let Some(Value::Object(metadata)) = structured.get_mut("metadata") {
        add_copy(metadata);
    }
}

/// Adds a copy of the corrections in one object.
pub(super) fn add_copy(map: &mut Map<String, Value>) {
    let corrections = map.get("corrections").filter(|list| list.is_array());
    if let Some(corrections) = corrections.cloned() {
        map.entry(OLD_KEY).or_insert(corrections);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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

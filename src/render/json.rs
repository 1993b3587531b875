//! An answer as JSON: what is said about it, then what it says.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

use super::budget::Fitted;

/// The fields of the server's own, which nothing that is told can replace.
const OWN: [&str; 2] = ["metadata", "results"];

/// The whole answer as a text.
pub(super) fn text(
    metadata: &Map<String, Value>,
    told: &Map<String, Value>,
    fitted: &Fitted,
) -> String {
    let whole = Whole {
        metadata,
        told,
        fitted,
    };
    serde_json::to_string(&whole).unwrap_or_default()
}

/// The whole answer as data.
pub(super) fn structured(
    metadata: Map<String, Value>,
    told: &Map<String, Value>,
    fitted: Fitted,
) -> Map<String, Value> {
    let mut whole = Map::new();
    whole.insert("metadata".to_owned(), Value::Object(metadata));
    let told_fields = told.iter().filter(|(name, _)| is_free(name, None));
    whole.extend(told_fields.map(|(name, value)| (name.clone(), value.clone())));
    let results = fitted.shown.into_iter().map(|result| result.value);
    whole.insert("results".to_owned(), results.collect());
    let rest = fitted.rest.into_iter();
    whole.extend(rest.filter(|(name, _)| is_free(name, Some(told))));
    whole
}

/// Whether a field may have a name: it is not one of ours, and not told already.
fn is_free(name: &str, told: Option<&Map<String, Value>>) -> bool {
    !OWN.contains(&name) && told.is_none_or(|told| !told.contains_key(name))
}

struct Whole<'a> {
    metadata: &'a Map<String, Value>,
    told: &'a Map<String, Value>,
    fitted: &'a Fitted,
}

impl Serialize for Whole<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut whole = serializer.serialize_map(None)?;
        whole.serialize_entry("metadata", self.metadata)?;
        for (name, value) in self.told.iter().filter(|(name, _)| is_free(name, None)) {
            whole.serialize_entry(name, value)?;
        }
        let results: Vec<&Value> = self.fitted.shown.iter().map(|shown| &shown.value).collect();
        whole.serialize_entry("results", &results)?;
        let rest = self.fitted.rest.iter();
        for (name, value) in rest.filter(|(name, _)| is_free(name, Some(self.told))) {
            whole.serialize_entry(name, value)?;
        }
        whole.end()
    }
}

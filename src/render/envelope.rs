//! Splits a response into its results and the fields beside them.

use exa_mcp_model::envelope::results_field;
use serde_json::{Map, Value};

/// A response in its parts. No field is lost.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Envelope {
    /// The entries of a list, or the single object that the response is.
    pub results: Vec<Value>,
    /// The fields beside the list.
    pub rest: Map<String, Value>,
    /// The name of the list at Exa; `results` for a single object.
    pub list: &'static str,
}

/// The name under which results are shown.
const RESULTS: &str = "results";

impl From<Value> for Envelope {
    fn from(response: Value) -> Self {
        match response {
            Value::Array(results) => Self {
                results,
                rest: Map::new(),
                list: RESULTS,
            },
            Value::Object(map) => Self::from_object(map),
            other => Self::single(other),
        }
    }
}

impl Envelope {
    fn from_object(mut map: Map<String, Value>) -> Self {
        let list = results_field(
            |name| map.contains_key(name),
            |name| map.get(name).is_some_and(Value::is_array),
        );
        match list.and_then(|list| Some((list, map.shift_remove(list)?))) {
            Some((list, Value::Array(results))) => Self {
                results,
                rest: map,
                list,
            },
            _ => Self::single(Value::Object(map)),
        }
    }

    fn single(result: Value) -> Self {
        let mut rest = Map::new();
        let mut result = result;
        // The sandbox marks its responses; the mark belongs to the response, not to the result.
        if let Value::Object(map) = &mut result
            && let Some(mark) = map.shift_remove("sandbox")
        {
            rest.insert("sandbox".to_owned(), mark);
        }
        Self {
            results: vec![result],
            rest,
            list: RESULTS,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn distinguishes_lists_from_single_objects() {
        let open = Envelope::from;
        let list = open(json!({"data": [1, 2], "hasMore": true}));
        assert_eq!(list.results, [json!(1), json!(2)]);
        assert_eq!(list.rest.get("hasMore"), Some(&json!(true)));
        let answer = open(json!({"answer": "yes", "citations": [{"url": "u"}]}));
        assert_eq!(answer.results, [json!({"url": "u"})]);
        let thing = json!({"id": "w", "items": [1], "metadata": {}});
        assert_eq!(open(thing.clone()).results, [thing]);
        let both = json!({"results": null, "data": [1]});
        assert_eq!(open(both.clone()).results, [both]);
        assert_eq!(open(json!([1])).results, [json!(1)]);
        assert_eq!(open(json!("text")).results, [json!("text")]);
    }
}

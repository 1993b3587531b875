//! Taking an answer apart: the things it lists, and what stands beside them.

use exa_mcp_model::envelope::results_field;
use serde_json::{Map, Value};

/// An answer in its parts. Nothing of it is lost.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Envelope {
    /// The things: the entries of a list, or the one thing the answer is.
    pub results: Vec<Value>,
    /// The other fields of an answer that is a list.
    pub rest: Map<String, Value>,
}

impl Envelope {
    /// Takes an answer apart.
    pub(crate) fn open(answer: Value) -> Self {
        match answer {
            Value::Array(results) => Self {
                results,
                rest: Map::new(),
            },
            Value::Object(map) => Self::open_object(map),
            other => Self::single(other),
        }
    }

    fn open_object(mut map: Map<String, Value>) -> Self {
        let list = results_field(
            |name| map.contains_key(name),
            |name| map.get(name).is_some_and(Value::is_array),
        );
        match list.and_then(|list| map.shift_remove(list)) {
            Some(Value::Array(results)) => Self { results, rest: map },
            _ => Self::single(Value::Object(map)),
        }
    }

    fn single(thing: Value) -> Self {
        let mut rest = Map::new();
        let mut thing = thing;
        // The sandbox marks its answers; the mark belongs to the answer, not to the thing.
        if let Value::Object(map) = &mut thing
            && let Some(mark) = map.shift_remove("sandbox")
        {
            rest.insert("sandbox".to_owned(), mark);
        }
        Self {
            results: vec![thing],
            rest,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_and_things_are_told_apart() {
        let open = |answer| Envelope::open(answer);
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

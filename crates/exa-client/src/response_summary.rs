//! Validates a JSON body completely, and retains the parts that the guard of a request reads.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Number, Value};

/// A JSON document in which every list is empty.
///
/// Nearly all data of a response is in lists, but its id, status and cost are not. Parsing the summary finds
/// every error that parsing the whole [`Value`] would find, with a fraction of the memory.
pub(super) struct ResponseSummary(pub(super) Value);

impl<'de> Deserialize<'de> for ResponseSummary {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Summarize.deserialize(deserializer).map(Self)
    }
}

/// Deserializes a value and empties the lists in it.
struct Summarize;

impl<'de> DeserializeSeed<'de> for Summarize {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Summarize {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        while items.next_element::<Checked>()?.is_some() {}
        Ok(Value::Array(Vec::new()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = fields.next_key()? {
            object.insert(name, fields.next_value_seed(Self)?);
        }
        Ok(Value::Object(object))
    }
}

/// Validates a value as strictly as [`Value`] and discards it. `IgnoredAny` would accept invalid UTF-8,
/// numbers out of range and any depth.
struct Checked;

impl<'de> Deserialize<'de> for Checked {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for Checked {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self, A::Error> {
        while items.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self, A::Error> {
        while fields.next_entry::<Self, Self>()?.is_some() {}
        Ok(self)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    fn summary(json: &[u8]) -> serde_json::Result<Value> {
        serde_json::from_slice(json).map(|ResponseSummary(value)| value)
    }

    #[test]
    fn empties_lists_only() {
        let body = json!({
            "id": "r1", "status": null, "n": [1, {"a": [true]}], "done": false,
            "costDollars": {"total": 0.005, "parts": [{"search": 1}], "count": -3, "all": 7},
        });
        let expected = json!({
            "id": "r1", "status": null, "n": [], "done": false,
            "costDollars": {"total": 0.005, "parts": [], "count": -3, "all": 7},
        });
        assert_eq!(summary(body.to_string().as_bytes()).unwrap(), expected);
        assert_eq!(summary(b"[[1]]").unwrap(), json!([]));
    }

    #[test]
    fn reports_the_same_errors_as_value() {
        let deep = "[".repeat(400) + &"]".repeat(400);
        let deep_in_list = format!("[{{\"a\":{deep}}}]");
        let cases: [&[u8]; 9] = [
            deep.as_bytes(),
            deep_in_list.as_bytes(),
            b"[1e999]",
            b"{\"a\":[\"\xff\"]}",
            br#"{"a":["\ud83d"]}"#,
            br#"[{"\ude00":1}]"#,
            br#"{"a":1,"#,
            b"{} x",
            b"[1,]",
        ];
        for body in cases {
            let whole = serde_json::from_slice::<Value>(body).unwrap_err();
            let shown = String::from_utf8_lossy(body);
            let error = summary(body).unwrap_err();
            assert_eq!(error.to_string(), whole.to_string(), "{shown}");
        }
    }
}

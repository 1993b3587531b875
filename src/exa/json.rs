//! Reads JSON whose lists hold things of one kind.
//!
//! The entries of a list mostly have as many fields as the one before them. Who knows that makes room
//! for them at once, instead of three times for each.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// Reads the whole of a text.
pub(super) fn read(text: &[u8]) -> serde_json::Result<Value> {
    let mut reader = serde_json::Deserializer::from_slice(text);
    let value = Room(&mut 0).deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

/// For how many fields there is to be room; then, how many there were.
struct Room<'a>(&'a mut usize);

impl<'de> DeserializeSeed<'de> for Room<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Room<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut fields = 0;
        let mut list = Vec::new();
        while let Some(entry) = entries.next_element_seed(Room(&mut fields))? {
            list.push(entry);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut map = Map::with_capacity(*self.0);
        while let Some(name) = fields.next_key::<String>()? {
            map.insert(name, fields.next_value_seed(Room(&mut 0))?);
        }
        *self.0 = map.len();
        Ok(map.into())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_what_the_library_reads() {
        for text in [
            r#"null"#,
            r#" [true, false, 0, -1, 18446744073709551615, -9223372036854775808, 0.1, 1e300] "#,
            r#"[{"a": 1, "b": "x", "c": [{}]}, {"a": {"a": 1}}, {"z": 1, "y": 2, "x": 3, "w": 4}, 5, {}]"#,
            r#"{"a": 1, "b": "\u00e9\n\"", "a": 2}"#,
            r#""é""#,
        ] {
            let expected: Value = serde_json::from_str(text).unwrap();
            let value = read(text.as_bytes()).unwrap();
            assert_eq!(value, expected);
            assert_eq!(value.to_string(), expected.to_string());
        }
    }

    #[test]
    fn what_is_no_json_is_refused_as_the_library_refuses_it() {
        let deep = "[".repeat(400);
        for text in [
            "",
            "{",
            "[1,]",
            "1 2",
            "{\"a\" 1}",
            "[1e999]",
            "\"\\ud83d\"",
            &deep,
        ] {
            let expected = serde_json::from_str::<Value>(text).unwrap_err();
            let error = read(text.as_bytes()).unwrap_err();
            assert_eq!(error.to_string(), expected.to_string());
        }
    }
}

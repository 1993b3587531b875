//! A field that is absent, null or a value.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An optional field of a request body that distinguishes absence from `null`, so that both reach the API
/// unchanged.
///
/// Fields need `#[serde(default, skip_serializing_if = "Maybe::is_absent")]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Maybe<T> {
    /// The field is absent.
    #[default]
    Absent,
    /// The field is `null`.
    Null,
    /// The field has a value.
    Value(T),
}

impl<T> Maybe<T> {
    /// Returns whether the field is absent.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }

    /// Returns whether the field is `null`.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// Returns the value, if there is one.
    pub fn value(&self) -> Option<&T> {
        match self {
            Self::Value(value) => Some(value),
            Self::Absent | Self::Null => None,
        }
    }
}

impl<T> From<T> for Maybe<T> {
    fn from(value: T) -> Self {
        Self::Value(value)
    }
}

impl<T: Serialize> Serialize for Maybe<T> {
    /// Serializes an absent field as `null`, unless it is skipped.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Absent | Self::Null => serializer.serialize_none(),
            Self::Value(value) => value.serialize(serializer),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Maybe<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Option::deserialize(deserializer).map(|value| value.map_or(Self::Null, Self::Value))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use std::collections::BTreeMap;

    #[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
    struct Body {
        #[serde(default, skip_serializing_if = "Maybe::is_absent")]
        name: Maybe<String>,
        #[serde(default, skip_serializing_if = "Maybe::is_absent")]
        list: Maybe<Vec<String>>,
        #[serde(default, skip_serializing_if = "Maybe::is_absent")]
        number: Maybe<f64>,
        #[serde(default, skip_serializing_if = "Maybe::is_absent")]
        count: Maybe<u64>,
        #[serde(default, skip_serializing_if = "Maybe::is_absent")]
        any: Maybe<Value>,
        #[serde(flatten)]
        extra: BTreeMap<String, Value>,
    }

    fn round_trip(text: &str) -> Body {
        let body: Body = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&body).unwrap(), text);
        let value: Value = serde_json::from_str(text).unwrap();
        let through_value: Body = serde_json::from_value(value.clone()).unwrap();
        assert_eq!(serde_json::to_value(&through_value).unwrap(), value);
        body
    }

    #[test]
    fn distinguishes_absent_null_and_values() {
        assert_eq!(round_trip("{}"), Body::default());
        let body = round_trip(r#"{"name":null,"list":null,"number":null,"any":null}"#);
        assert!(body.name.is_null() && body.list.is_null() && body.count.is_absent());
        assert!(body.any.is_null());
        let body = round_trip(r#"{"name":"","list":[],"any":[]}"#);
        assert_eq!(body.name, Maybe::from(String::new()));
        assert_eq!(body.list.value(), Some(&vec![]));
    }

    #[test]
    fn numbers_stay_exact_with_flattened_fields() {
        let body = round_trip(r#"{"number":0.005,"count":18446744073709551615}"#);
        assert_eq!(body.count, Maybe::Value(u64::MAX));
        let body = round_trip(
            r#"{"any":-9223372036854775808,"x1":18446744073709551615,"x2":-9223372036854775808,"x3":0.005,"x4":null,"x5":[]}"#,
        );
        assert_eq!(body.any, Maybe::Value(json!(i64::MIN)));
        assert_eq!(body.extra.get("x1"), Some(&json!(u64::MAX)));
        assert_eq!(body.extra.get("x4"), Some(&Value::Null));
    }

    #[test]
    fn an_absent_list_item_is_null() {
        assert_eq!(
            serde_json::to_string(&[Maybe::<u8>::Absent]).unwrap(),
            "[null]"
        );
    }

    #[test]
    fn rejects_wrong_types() {
        assert!(serde_json::from_str::<Body>(r#"{"name":3}"#).is_err());
    }
}

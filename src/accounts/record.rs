//! A token as a store keeps it: what was decided at run time.

use serde::{Deserialize, Serialize};

use super::limits::TokenLimits;
use super::secret::Digest;
use exa_mcp_store::format::Format;

/// A token that was made at run time, or what was decided at run time about one of the environment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Record {
    #[serde(rename = "id")]
    pub(super) id: String,
    /// A keyed hash; a token of the environment has none here.
    #[serde(rename = "hash")]
    pub(super) hash: Option<String>,
    /// The token before it was renewed, as long as it may still be used.
    #[serde(rename = "former")]
    pub(super) former: Option<Former>,
    #[serde(rename = "prefix")]
    pub(super) prefix: String,
    #[serde(rename = "user")]
    pub(super) user: Option<String>,
    #[serde(rename = "admin")]
    pub(super) admin: bool,
    /// Milliseconds since 1970, as all moments here.
    #[serde(rename = "created")]
    pub(super) created: Option<i64>,
    #[serde(rename = "expires")]
    pub(super) expires: Option<i64>,
    #[serde(rename = "revoked")]
    pub(super) revoked: Option<i64>,
    #[serde(rename = "limits")]
    pub(super) limits: TokenLimits,
}

/// A token that was renewed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Former {
    #[serde(rename = "hash")]
    pub(super) hash: String,
    #[serde(rename = "until")]
    pub(super) until: i64,
}

impl Format for Record {
    const KIND: &'static str = "token";
}

impl Record {
    /// The hash by which the token is known, if it is of this kind.
    pub(super) fn digest(&self) -> Option<Digest> {
        Digest::read(self.hash.as_deref()?)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;
    use exa_mcp_store::format::{decode, encode};

    /// The format of tokens in stores. Whoever changes it breaks the stores of others: see
    /// docs/upgrading.md.
    #[test]
    fn the_format_of_a_stored_token_does_not_change() {
        let limits = json!({"requestsPerMinute": 1, "concurrentCalls": 2, "dollarsPerDay": 3.5,
            "dollarsPerMonth": 4.0, "softDollarsPerDay": 5.0, "softDollarsPerMonth": 6.0,
            "tools": ["search"], "readOnly": true});
        let record = Record {
            id: "i".to_owned(),
            hash: Some("h".to_owned()),
            former: Some(Former {
                hash: "f".to_owned(),
                until: 7,
            }),
            prefix: "exa_mcp_ab...".to_owned(),
            user: Some("ann".to_owned()),
            admin: true,
            created: Some(8),
            expires: Some(9),
            revoked: Some(10),
            limits: TokenLimits::default().changed(&limits).unwrap(),
        };
        let text = concat!(
            r#"{"v":1,"id":"i","hash":"h","former":{"hash":"f","until":7},"prefix":"exa_mcp_ab...","#,
            r#""user":"ann","admin":true,"created":8,"expires":9,"revoked":10,"limits":{"#,
            r#""requestsPerMinute":1,"concurrentCalls":2,"dollarsPerDay":3.5,"dollarsPerMonth":4.0,"#,
            r#""softDollarsPerDay":5.0,"softDollarsPerMonth":6.0,"tools":["search"],"readOnly":true}}"#,
        );
        assert_eq!(encode(&record), text);
        assert_eq!(decode(text), Some(record.clone()));
        // What was written before there was a version, and what a newer program may add.
        assert_eq!(
            decode(&text.replacen(r#""v":1,"#, "", 1)),
            Some(record.clone())
        );
        let more = text.replacen(r#""limits":{"#, r#""later":1,"limits":{"later":1,"#, 1);
        assert_eq!(decode(&more), Some(record));
    }
}

//! The stored record of a token.

use serde::{Deserialize, Serialize};

use super::limits::TokenLimits;
use super::secret::Digest;
use exa_mcp_store::format::DocumentFormat;

/// How many previous users of a token are retained. Only those with running tasks matter.
const MAX_PREVIOUS_USERS: usize = 100;

/// A token that was created at run time, or the run-time changes of one of the environment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct TokenRecord {
    pub(super) id: String,
    /// The keyed hash; `None` for a token of the environment.
    pub(super) hash: Option<String>,
    /// The text before a rotation, during the grace period.
    #[serde(rename = "former")]
    pub(super) previous: Option<PreviousToken>,
    pub(super) prefix: String,
    pub(super) user: Option<String>,
    /// The previous users, latest last; `None` for a time without a user. Releases that do not know this field drop
    /// it when they change the token.
    #[serde(rename = "formerUsers", skip_serializing_if = "Vec::is_empty")]
    pub(super) previous_users: Vec<Option<String>>,
    pub(super) admin: bool,
    /// In milliseconds since 1970, like all times here.
    pub(super) created: Option<i64>,
    pub(super) expires: Option<i64>,
    pub(super) revoked: Option<i64>,
    pub(super) limits: TokenLimits,
}

/// The hash of a text that was replaced by a rotation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct PreviousToken {
    pub(super) hash: String,
    pub(super) until: i64,
}

impl DocumentFormat for TokenRecord {
    const KIND: &'static str = "token";
}

impl TokenRecord {
    /// Returns the hash, if the token was created at run time.
    pub(super) fn digest(&self) -> Option<Digest> {
        Digest::from_hex(self.hash.as_deref()?)
    }

    /// Assigns the token to another user and remembers the previous one.
    pub(super) fn assign_to(&mut self, user: Option<&str>) {
        if self.user.as_deref() == user {
            return;
        }
        let previous = std::mem::replace(&mut self.user, user.map(str::to_owned));
        let users = &mut self.previous_users;
        users.retain(|known| known.as_deref() != user && *known != previous);
        users.push(previous);
        let excess = users.len().saturating_sub(MAX_PREVIOUS_USERS);
        users.drain(..excess);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;
    use exa_mcp_store::format::{decode, encode};

    /// A change of this format breaks existing stores: see docs/upgrading.md.
    #[test]
    fn the_stored_format_is_stable() {
        let limits = json!({"requestsPerMinute": 1, "concurrentCalls": 2, "dollarsPerDay": 3.5,
            "dollarsPerMonth": 4.0, "softDollarsPerDay": 5.0, "softDollarsPerMonth": 6.0,
            "tools": ["search"], "readOnly": true});
        let record = TokenRecord {
            id: "i".to_owned(),
            hash: Some("h".to_owned()),
            previous: Some(PreviousToken {
                hash: "f".to_owned(),
                until: 7,
            }),
            prefix: "exa_mcp_ab...".to_owned(),
            user: Some("ann".to_owned()),
            previous_users: vec![Some("ben".to_owned()), None],
            admin: true,
            created: Some(8),
            expires: Some(9),
            revoked: Some(10),
            limits: TokenLimits::default().with_changes(&limits).unwrap(),
        };
        let text = concat!(
            r#"{"v":1,"id":"i","hash":"h","former":{"hash":"f","until":7},"prefix":"exa_mcp_ab...","#,
            r#""user":"ann","formerUsers":["ben",null],"admin":true,"created":8,"expires":9,"revoked":10,"limits":{"#,
            r#""requestsPerMinute":1,"concurrentCalls":2,"dollarsPerDay":3.5,"dollarsPerMonth":4.0,"#,
            r#""softDollarsPerDay":5.0,"softDollarsPerMonth":6.0,"tools":["search"],"readOnly":true}}"#,
        );
        assert_eq!(encode(&record), text);
        assert_eq!(decode(text), Some(record.clone()));
        // Without a version, as early releases wrote it, and with fields that a newer release may add.
        assert_eq!(
            decode(&text.replacen(r#""v":1,"#, "", 1)),
            Some(record.clone())
        );
        let more = text.replacen(r#""limits":{"#, r#""later":1,"limits":{"later":1,"#, 1);
        assert_eq!(decode(&more), Some(record.clone()));
        // Without previous users the field is omitted, as in early releases.
        let mut unchanged = record;
        unchanged.previous_users.clear();
        let text = text.replacen(r#""formerUsers":["ben",null],"#, "", 1);
        assert_eq!(encode(&unchanged), text);
        assert_eq!(decode(&text), Some(unchanged));
    }

    #[test]
    fn retains_previous_users() {
        let mut record = TokenRecord::default();
        for (user, previous) in [
            (None, &[][..]),
            (Some("ann"), &[None]),
            (Some("ann"), &[None]),
            (Some("ben"), &[None, Some("ann")]),
            (None, &[Some("ann"), Some("ben")]),
            (Some("ann"), &[Some("ben"), None]),
        ] {
            record.assign_to(user);
            assert_eq!(record.user.as_deref(), user);
            let retained: Vec<_> = record.previous_users.iter().map(Option::as_deref).collect();
            assert_eq!(retained, previous);
        }
        for number in 0..1_000 {
            record.assign_to(Some(&number.to_string()));
        }
        assert_eq!(record.previous_users.len(), MAX_PREVIOUS_USERS);
        assert_eq!(record.previous_users.last(), Some(&Some("998".to_owned())));
    }
}

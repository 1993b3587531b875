//! A token as a store keeps it: what was decided at run time.

use serde::{Deserialize, Serialize};

use super::limits::TokenLimits;
use super::secret::Digest;
use exa_mcp_store::format::Format;

/// How many former users of a token are kept. Only those matter whose tasks are still running.
const MAX_FORMER_USERS: usize = 100;

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
    /// The users whom the token had before this one, the latest last; `None` stands for a time without a
    /// user. Releases that do not know the field leave it out when they change the token.
    #[serde(rename = "formerUsers", skip_serializing_if = "Vec::is_empty")]
    pub(super) former_users: Vec<Option<String>>,
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

    /// Gives the token to another user, and keeps whose it was.
    pub(super) fn give_to(&mut self, user: Option<&str>) {
        if self.user.as_deref() == user {
            return;
        }
        let former = std::mem::replace(&mut self.user, user.map(str::to_owned));
        let users = &mut self.former_users;
        users.retain(|known| known.as_deref() != user && *known != former);
        users.push(former);
        let excess = users.len().saturating_sub(MAX_FORMER_USERS);
        users.drain(..excess);
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
            former_users: vec![Some("ben".to_owned()), None],
            admin: true,
            created: Some(8),
            expires: Some(9),
            revoked: Some(10),
            limits: TokenLimits::default().changed(&limits).unwrap(),
        };
        let text = concat!(
            r#"{"v":1,"id":"i","hash":"h","former":{"hash":"f","until":7},"prefix":"exa_mcp_ab...","#,
            r#""user":"ann","formerUsers":["ben",null],"admin":true,"created":8,"expires":9,"revoked":10,"limits":{"#,
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
        assert_eq!(decode(&more), Some(record.clone()));
        // What was written before a token could have had other users, and still is if it had none.
        let mut unchanged = record;
        unchanged.former_users.clear();
        let text = text.replacen(r#""formerUsers":["ben",null],"#, "", 1);
        assert_eq!(encode(&unchanged), text);
        assert_eq!(decode(&text), Some(unchanged));
    }

    #[test]
    fn the_former_users_of_a_token_are_kept() {
        let mut record = Record::default();
        for (user, former) in [
            (None, &[][..]),
            (Some("ann"), &[None]),
            (Some("ann"), &[None]),
            (Some("ben"), &[None, Some("ann")]),
            (None, &[Some("ann"), Some("ben")]),
            (Some("ann"), &[Some("ben"), None]),
        ] {
            record.give_to(user);
            assert_eq!(record.user.as_deref(), user);
            let kept: Vec<_> = record.former_users.iter().map(Option::as_deref).collect();
            assert_eq!(kept, former);
        }
        for number in 0..1_000 {
            record.give_to(Some(&number.to_string()));
        }
        assert_eq!(record.former_users.len(), MAX_FORMER_USERS);
        assert_eq!(record.former_users.last(), Some(&Some("998".to_owned())));
    }
}

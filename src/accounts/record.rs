//! A token as a store keeps it: what was decided at run time.

use serde::{Deserialize, Serialize};

use super::limits::TokenLimits;
use super::secret::Digest;

/// A token that was made at run time, or what was decided at run time about one of the environment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Record {
    pub(super) id: String,
    /// A keyed hash; a token of the environment has none here.
    pub(super) hash: Option<String>,
    /// The token before it was renewed, as long as it may still be used.
    pub(super) former: Option<Former>,
    pub(super) prefix: String,
    pub(super) user: Option<String>,
    pub(super) admin: bool,
    /// Milliseconds since 1970, as all moments here.
    pub(super) created: Option<i64>,
    pub(super) expires: Option<i64>,
    pub(super) revoked: Option<i64>,
    pub(super) limits: TokenLimits,
}

/// A token that was renewed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Former {
    pub(super) hash: String,
    pub(super) until: i64,
}

impl Record {
    /// The hash by which the token is known, if it is of this kind.
    pub(super) fn digest(&self) -> Option<Digest> {
        Digest::read(self.hash.as_deref()?)
    }
}

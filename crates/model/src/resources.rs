//! The operations behind the resources at `exa://…`.

use serde::{Deserialize, Serialize};

/// The operations behind all resources that are read from Exa.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Resources {
    /// `exa://websets/…`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub websets: Option<WebsetResources>,
}

/// The operations behind `exa://websets/{id}` and `exa://websets/{id}/items`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebsetResources {
    /// The operation that reads a webset. Other operations of its API with the same id argument may change the
    /// webset.
    pub get: String,
    /// The operation that lists the items of a webset.
    pub items: String,
    /// The operation that lists websets, for completion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list: Option<String>,
    /// The argument with the id of the webset.
    pub argument: String,
}

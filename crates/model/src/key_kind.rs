//! The kinds of keys that Exa issues.

use serde::{Deserialize, Serialize};

/// The kind of a key, and of the APIs that accept it. A key is sent only to APIs of its own kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum KeyKind {
    /// An API key, for everything that searches, reads or collects.
    #[default]
    Api,
    /// A service key, for the management of a team and its API keys.
    Service,
}

impl KeyKind {
    /// Returns the name in sentences.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Api => "API key",
            Self::Service => "service key",
        }
    }

    /// Returns the environment variable that holds a key of this kind.
    #[must_use]
    pub const fn variable(self) -> &'static str {
        match self {
            Self::Api => "EXA_API_KEY",
            Self::Service => "EXA_SERVICE_KEY",
        }
    }

    /// Returns the environment variable that overrides the address of the APIs of this kind.
    #[must_use]
    pub const fn base_url_variable(self) -> &'static str {
        match self {
            Self::Api => "EXA_BASE_URL",
            Self::Service => "EXA_ADMIN_BASE_URL",
        }
    }

    /// Returns the page where keys of this kind are managed.
    #[must_use]
    pub const fn page(self) -> &'static str {
        match self {
            Self::Api => "https://dashboard.exa.ai/api-keys",
            Self::Service => "https://dashboard.exa.ai",
        }
    }
}

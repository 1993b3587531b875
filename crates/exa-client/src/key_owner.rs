//! Who owns the keys of a pool.

/// The owner of the keys of a pool. Determines whether a single key cools down after Exa rejects it, and
/// who must provide a key if there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyOwner {
    /// A single user. A single key never cools down, so that it works again once its owner has added
    /// credits; errors come from Exa.
    #[default]
    User,
    /// The operator of a server with many users. A single key cools down like any other, and errors say when
    /// it is ready.
    Operator,
    /// The clients. Each sends its own key, which is treated as in [`Self::User`].
    Clients,
    /// The clients, where one has put its key into the URL, which is not accepted.
    ClientsNotInUrl,
}

impl KeyOwner {
    /// What to do if there is no service key. It always belongs to the operator of this server.
    pub const NO_SERVICE_KEY: &str = "No Exa service key is set, which team management needs. Create one in the settings \
         of the team at https://dashboard.exa.ai, set EXA_SERVICE_KEY in the environment of this server, and restart it.";

    /// Returns what to do if there is no key.
    pub fn advice(self) -> &'static str {
        match self {
            Self::User => {
                "No Exa API key is set. Get one at https://dashboard.exa.ai/api-keys, set EXA_API_KEY in \
                 the environment of this server, and restart it."
            }
            Self::Operator => {
                "This server has no Exa API key. Its operator must set EXA_API_KEYS and restart it."
            }
            Self::Clients => {
                "The request has no Exa API key. Get one at https://dashboard.exa.ai/api-keys, and have \
                 the client send it with every request to this server, in the header `x-api-key` or as \
                 `Authorization: Bearer`."
            }
            Self::ClientsNotInUrl => {
                "This server does not accept Exa API keys in the URL. Have the client send the key with every \
                 request in the header `x-api-key` or as `Authorization: Bearer`, and remove it from the URL."
            }
        }
    }

    /// Returns whether a single key is exempt from cooling down.
    pub(super) fn exempts_single_key(self) -> bool {
        self != Self::Operator
    }
}

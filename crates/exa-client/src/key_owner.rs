//! Who owns the keys of a pool.

/// Who owns the keys of a pool. Decides whether a single key cools down after Exa rejects it, and whom to
/// ask for a key if there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyOwner {
    /// One person. A single key is always tried, so that it works again as soon as its owner has topped it
    /// up; Exa itself reports when it is rejected.
    #[default]
    User,
    /// The operator of a server with many users. A single key cools down like any of several, and errors
    /// say when it is ready.
    Operator,
    /// The clients: each brings a key of its own, which is treated as in [`Self::User`].
    Clients,
    /// A client that put its key into the URL, where keys are not accepted.
    ClientsNotInUrl,
}

impl KeyOwner {
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
                "No Exa API key came with the request. Get one at https://dashboard.exa.ai/api-keys, and have \
                 the client send it with every request to this server, in the header `x-api-key` or as \
                 `Authorization: Bearer`."
            }
            Self::ClientsNotInUrl => {
                "Exa API keys in the address are not taken here. Have the client send the key with every \
                 request to this server in the header `x-api-key` or as `Authorization: Bearer`, and take it \
                 out of the address."
            }
        }
    }

    /// Whether a single key is used again at once, however Exa turned it away.
    pub(super) fn spares_single(self) -> bool {
        self != Self::Operator
    }
}

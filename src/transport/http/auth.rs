//! Authentication of HTTP requests.

use std::net::IpAddr;
use std::sync::Arc;

use http::request::Parts;
use http::{HeaderMap, HeaderName, Uri, header};

use crate::http_response::{HttpRejection, bad_request, denied};
use exa_mcp_accounts::{
    Accounts, AuthError, KnownKeys, Requester, Secret, Token, TokenDirectory, now,
};
use exa_mcp_exa_client::ApiKey;
use exa_mcp_model::{Identity, ids};

/// The headers that may carry an Exa API key.
const KEY_HEADERS: [HeaderName; 2] = [
    HeaderName::from_static("x-api-key"),
    HeaderName::from_static("x-exa-api-key"),
];

/// The query parameter that may carry an Exa API key, if the operator allows it.
pub(super) const KEY_QUERY_PARAMETER: &str = "exaApiKey";

/// How clients authenticate.
pub enum AuthMode {
    /// With a token of this server, which calls Exa with its own keys.
    Pool(Box<Accounts>),
    /// With an Exa API key of their own.
    Passthrough {
        /// Derives identities from keys.
        secret: Secret,
        /// Whether keys in the URL are accepted. URLs end up in the logs of proxies.
        key_in_url: bool,
        /// How to treat clients without a key.
        anonymous_access: AnonymousAccess,
        /// The keys that Exa has accepted. Clients with any other key count as anonymous.
        known_keys: KnownKeys,
    },
}

/// How to treat clients without a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnonymousAccess {
    /// Each request has its own identity. It can list tools, but not call Exa.
    SeparateUsers,
    /// All requests share the local user of the sandbox.
    SharedUser,
}

/// The result of authenticating a request.
pub(super) struct Authentication {
    pub(super) requester: Requester,
    /// The token, in pool mode.
    pub(super) token: Option<Arc<Token>>,
    /// Whether the request has no credentials, so that its session determines its owner.
    pub(super) is_anonymous: bool,
    /// Whether the key was in the URL.
    pub(super) key_from_url: bool,
}

impl AuthMode {
    /// Returns the name of the mode.
    pub(super) fn mode(&self) -> &'static str {
        match self {
            Self::Pool(_) => "pool",
            Self::Passthrough { .. } => "passthrough",
        }
    }

    /// Returns the token directory, in pool mode.
    pub(crate) fn tokens(&self) -> Option<Arc<TokenDirectory>> {
        match self {
            Self::Pool(accounts) => Some(Arc::clone(&accounts.directory)),
            Self::Passthrough { .. } => None,
        }
    }

    /// Authenticates a request, or returns the error response.
    pub(super) fn authenticate(
        &self,
        parts: &Parts,
        address: IpAddr,
    ) -> Result<Authentication, HttpRejection> {
        let credentials = Credentials::from_parts(parts)?;
        match self {
            Self::Pool(accounts) => {
                let found = accounts
                    .directory
                    .lookup(credentials.bearer.as_deref(), address);
                let token =
                    found.map_err(|reason| deny(accounts, reason, None, &credentials, address))?;
                let admitted = token.check_active(now());
                admitted.map_err(|reason| {
                    deny(accounts, reason, Some(&token), &credentials, address)
                })?;
                let bearer = credentials.bearer.as_deref().unwrap_or_default();
                Ok(Authentication {
                    requester: accounts.requester(&token, bearer, address),
                    token: Some(token),
                    is_anonymous: false,
                    key_from_url: false,
                })
            }
            Self::Passthrough {
                secret,
                anonymous_access,
                key_in_url,
                known_keys,
            } => {
                let mut authentication = match credentials.key(*key_in_url) {
                    Some(key) => Authentication {
                        key_from_url: credentials.key(false).is_none(),
                        ..with_key(key, secret)?
                    },
                    None => anonymous(*anonymous_access, &credentials)?,
                };
                let requester = &mut authentication.requester;
                if !known_keys.contains(&requester.owner) {
                    requester.guest_address = Some(address.into());
                }
                if requester.key.is_some() {
                    requester.key_proof = Some(known_keys.proof(&requester.owner));
                }
                Ok(authentication)
            }
        }
    }
}

fn deny(
    accounts: &Accounts,
    reason: AuthError,
    token: Option<&Token>,
    credentials: &Credentials,
    address: IpAddr,
) -> HttpRejection {
    if !matches!(reason, AuthError::Unknown) || credentials.bearer.is_some() {
        let user = token.map(Token::owner);
        let (user, id) = (
            user.as_ref().map(Identity::as_str),
            token.map(|token| &*token.id),
        );
        tracing::info!(%address, reason = ?reason, user, token = id, "denied");
    }
    let action = match reason {
        AuthError::Unknown if credentials.bearer.is_none() => "denied.missing",
        AuthError::Unknown => "denied.unknown",
        AuthError::Expired => "denied.expired",
        AuthError::Revoked => "denied.revoked",
        AuthError::NotAdmin => "denied.not_admin",
        AuthError::Throttled(_) => "denied.throttled",
    };
    let target = token.map(|token| token.id.as_str());
    let address = address.to_canonical().to_string();
    accounts.audit.record_denial(action, &address, target, None);
    Box::new(denied(reason, credentials.bearer.is_some()))
}

fn with_key(key: &str, secret: &Secret) -> Result<Authentication, HttpRejection> {
    let owner = Identity::key(&secret.digest("key", key.trim()).short_hex());
    let key = ApiKey::new(key).map_err(|error| Box::new(bad_request(&error.to_string())))?;
    Ok(Authentication {
        requester: Requester {
            key: Some(key),
            ..Requester::new(owner)
        },
        token: None,
        is_anonymous: false,
        key_from_url: false,
    })
}

fn anonymous(
    anonymous_access: AnonymousAccess,
    credentials: &Credentials,
) -> Result<Authentication, HttpRejection> {
    let owner = match anonymous_access {
        AnonymousAccess::SharedUser => Identity::local(),
        AnonymousAccess::SeparateUsers => {
            let id = ids::random_id().map_err(|error| Box::new(bad_request(&error.to_string())))?;
            Identity::anonymous(&id)
        }
    };
    Ok(Authentication {
        requester: Requester {
            // The sandbox user needs no key.
            key_in_address: anonymous_access == AnonymousAccess::SeparateUsers
                && credentials.key_in_url.is_some(),
            ..Requester::new(owner)
        },
        token: None,
        is_anonymous: anonymous_access == AnonymousAccess::SeparateUsers,
        key_from_url: false,
    })
}

/// The credentials of a request.
#[derive(Default)]
struct Credentials {
    bearer: Option<String>,
    key: Option<String>,
    key_in_url: Option<String>,
}

impl Credentials {
    fn from_parts(parts: &Parts) -> Result<Self, HttpRejection> {
        let mut credentials = Self {
            bearer: bearer(&parts.headers)?,
            ..Self::default()
        };
        for name in &KEY_HEADERS {
            let value = single_header(&parts.headers, name)?;
            credentials.key = credentials.key.or(value);
        }
        if let Some(query) = parts.uri.query() {
            let mut pairs = url::form_urlencoded::parse(query.as_bytes());
            let pair = pairs.find(|(name, _)| name == KEY_QUERY_PARAMETER);
            credentials.key_in_url = pair.map(|(_, value)| value.into_owned());
        }
        Ok(credentials)
    }

    /// Returns the Exa API key, in passthrough mode.
    fn key(&self, in_url: bool) -> Option<&str> {
        let key = self.key.as_deref().or(self.bearer.as_deref());
        key.or(self.key_in_url.as_deref().filter(|_| in_url))
            .filter(|key| !key.trim().is_empty())
    }
}

/// Returns the bearer token of the `Authorization` header.
fn bearer(headers: &HeaderMap) -> Result<Option<String>, HttpRejection> {
    let Some(value) = single_header(headers, &header::AUTHORIZATION)? else {
        return Ok(None);
    };
    let token = value
        .split_once(' ')
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    let token = token.map(|(_, token)| token.trim().to_owned());
    Ok(token.filter(|token| !token.is_empty()))
}

/// Returns a header that must not be repeated: a proxy may have checked the other value.
fn single_header(headers: &HeaderMap, name: &HeaderName) -> Result<Option<String>, HttpRejection> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => Ok(value.to_str().ok().map(str::to_owned)),
        (Some(_), Some(_)) => {
            let reason = format!("the header {name} must not be repeated");
            Err(Box::new(bad_request(&reason)))
        }
    }
}

/// Removes credentials before the request is passed on.
pub(super) fn strip_credentials(parts: &mut Parts) {
    parts.headers.remove(header::AUTHORIZATION);
    parts.headers.remove(header::COOKIE);
    for name in &KEY_HEADERS {
        parts.headers.remove(name);
    }
    if let Ok(path) = parts.uri.path().parse::<Uri>() {
        parts.uri = path;
    }
}

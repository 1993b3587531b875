//! Who is let in, and as whom.

use std::net::IpAddr;
use std::sync::Arc;

use axum::body::Body;
use http::request::Parts;
use http::{HeaderMap, HeaderName, Response, Uri, header};

use crate::http_response::{bad_request, denied};
use exa_mcp_accounts::{
    Accounts, AuthError, KnownKeys, Requester, Secret, Token, TokenDirectory, now,
};
use exa_mcp_exa_client::ApiKey;
use exa_mcp_model::Identity;
use exa_mcp_model::ids;

/// The headers that may hold an Exa key.
const KEY_HEADERS: [HeaderName; 2] = [
    HeaderName::from_static("x-api-key"),
    HeaderName::from_static("x-exa-api-key"),
];

/// The part of an address that may hold one, if the operator allows it.
pub(super) const KEY_IN_URL: &str = "exaApiKey";

/// Who is let in.
pub enum Gate {
    /// Those with a token; the server's own keys are used.
    Pool(Box<Accounts>),
    /// Everybody; each brings a key of their own.
    Passthrough {
        /// Makes identities of keys.
        secret: Secret,
        /// A key may stand in the address, where logs of others may keep it.
        key_in_url: bool,
        /// As whom those without a key come in.
        guests: Guests,
        /// The keys that Exa has accepted; all others are made up until it has.
        known_keys: KnownKeys,
    },
}

/// As whom those without a key come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guests {
    /// Each as another one; they can look around, but not call Exa.
    Strangers,
    /// All as the one user of a sandbox, in which nothing is real.
    OneUser,
}

/// A request that was let in.
pub(super) struct Entry {
    pub(super) requester: Requester,
    /// The token that it showed, where tokens are needed.
    pub(super) token: Option<Arc<Token>>,
    /// It showed nothing; the session that it names says who it is.
    pub(super) guest: bool,
    /// Its key stood in the address.
    pub(super) key_from_url: bool,
}

type Answer = Box<Response<Body>>;

impl Gate {
    /// What the mode is called.
    pub(super) fn mode(&self) -> &'static str {
        match self {
            Self::Pool(_) => "pool",
            Self::Passthrough { .. } => "passthrough",
        }
    }

    /// The tokens, where they are needed.
    pub(crate) fn tokens(&self) -> Option<Arc<TokenDirectory>> {
        match self {
            Self::Pool(pool) => Some(Arc::clone(&pool.directory)),
            Self::Passthrough { .. } => None,
        }
    }

    /// Lets a request in, or answers it.
    pub(super) fn admit(&self, parts: &Parts, address: IpAddr) -> Result<Entry, Answer> {
        let shown = Shown::of(parts)?;
        match self {
            Self::Pool(pool) => {
                let found = pool.directory.lookup(shown.bearer.as_deref(), address);
                let token = found.map_err(|why| turned_away(pool, why, None, &shown, address))?;
                let admitted = token.check_active(now());
                admitted.map_err(|why| turned_away(pool, why, Some(&token), &shown, address))?;
                let bearer = shown.bearer.as_deref().unwrap_or_default();
                Ok(Entry {
                    requester: pool.requester(&token, bearer, address),
                    token: Some(token),
                    guest: false,
                    key_from_url: false,
                })
            }
            Self::Passthrough {
                secret,
                guests,
                key_in_url,
                known_keys,
            } => {
                let mut entry = match shown.key(*key_in_url) {
                    Some(key) => Entry {
                        key_from_url: shown.key(false).is_none(),
                        ..with_key(key, secret)?
                    },
                    None => guest(*guests, &shown)?,
                };
                let requester = &mut entry.requester;
                if !known_keys.contains(&requester.owner) {
                    requester.guest_address = Some(address.into());
                }
                if requester.key.is_some() {
                    requester.key_proof = Some(known_keys.proof(&requester.owner));
                }
                Ok(entry)
            }
        }
    }
}

fn turned_away(
    pool: &Accounts,
    why: AuthError,
    token: Option<&Token>,
    shown: &Shown,
    address: IpAddr,
) -> Answer {
    if !matches!(why, AuthError::Unknown) || shown.bearer.is_some() {
        let user = token.map(Token::owner);
        let (user, id) = (
            user.as_ref().map(Identity::as_str),
            token.map(|token| &*token.id),
        );
        tracing::info!(%address, reason = ?why, user, token = id, "denied");
    }
    let action = match why {
        AuthError::Unknown if shown.bearer.is_none() => "denied.missing",
        AuthError::Unknown => "denied.unknown",
        AuthError::Expired => "denied.expired",
        AuthError::Revoked => "denied.revoked",
        AuthError::NotAdmin => "denied.not_admin",
        AuthError::Throttled(_) => "denied.throttled",
    };
    let target = token.map(|token| token.id.as_str());
    let address = address.to_canonical().to_string();
    pool.audit.record_denial(action, &address, target, None);
    Box::new(denied(why, shown.bearer.is_some()))
}

fn with_key(key: &str, secret: &Secret) -> Result<Entry, Answer> {
    let owner = Identity::key(&secret.digest("key", key.trim()).short_hex());
    let key = ApiKey::new(key).map_err(|error| Box::new(bad_request(&error.to_string())))?;
    Ok(Entry {
        requester: Requester {
            key: Some(key),
            ..Requester::new(owner)
        },
        token: None,
        guest: false,
        key_from_url: false,
    })
}

fn guest(guests: Guests, shown: &Shown) -> Result<Entry, Answer> {
    let owner = match guests {
        Guests::OneUser => Identity::local(),
        Guests::Strangers => {
            let id = ids::random_id().map_err(|error| Box::new(bad_request(&error.to_string())))?;
            Identity::anonymous(&id)
        }
    };
    Ok(Entry {
        requester: Requester {
            // The user of a sandbox needs no key.
            key_in_address: guests == Guests::Strangers && shown.key_in_url.is_some(),
            ..Requester::new(owner)
        },
        token: None,
        guest: guests == Guests::Strangers,
        key_from_url: false,
    })
}

/// What a request shows.
#[derive(Default)]
struct Shown {
    bearer: Option<String>,
    key: Option<String>,
    key_in_url: Option<String>,
}

impl Shown {
    fn of(parts: &Parts) -> Result<Self, Answer> {
        let mut shown = Self {
            bearer: bearer(&parts.headers)?,
            ..Self::default()
        };
        for name in &KEY_HEADERS {
            let value = only(&parts.headers, name)?;
            shown.key = shown.key.or(value);
        }
        if let Some(query) = parts.uri.query() {
            let mut pairs = url::form_urlencoded::parse(query.as_bytes());
            let pair = pairs.find(|(name, _)| name == KEY_IN_URL);
            shown.key_in_url = pair.map(|(_, value)| value.into_owned());
        }
        Ok(shown)
    }

    /// The Exa key, where clients bring one; perhaps out of the address.
    fn key(&self, in_url: bool) -> Option<&str> {
        let key = self.key.as_deref().or(self.bearer.as_deref());
        key.or(self.key_in_url.as_deref().filter(|_| in_url))
            .filter(|key| !key.trim().is_empty())
    }
}

/// The token of the `Authorization` header.
fn bearer(headers: &HeaderMap) -> Result<Option<String>, Answer> {
    let Some(value) = only(headers, &header::AUTHORIZATION)? else {
        return Ok(None);
    };
    let token = value
        .split_once(' ')
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    let token = token.map(|(_, token)| token.trim().to_owned());
    Ok(token.filter(|token| !token.is_empty()))
}

/// A header that must not be there twice: others on the way may have read the other one.
fn only(headers: &HeaderMap, name: &HeaderName) -> Result<Option<String>, Answer> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => Ok(value.to_str().ok().map(str::to_owned)),
        (Some(_), Some(_)) => {
            let why = format!("the header {name} is there more than once");
            Err(Box::new(bad_request(&why)))
        }
    }
}

/// Takes away what must not travel further into the server.
pub(super) fn strip(parts: &mut Parts) {
    parts.headers.remove(header::AUTHORIZATION);
    parts.headers.remove(header::COOKIE);
    for name in &KEY_HEADERS {
        parts.headers.remove(name);
    }
    if let Ok(path) = parts.uri.path().parse::<Uri>() {
        parts.uri = path;
    }
}

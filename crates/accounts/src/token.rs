//! Tokens, and their configuration as a comma-separated list of `token:userId:expiry`.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use tokio::sync::watch;

use super::AuthError;
use super::limits::TokenLimits;
use super::secret::{Digest, Secret};
use exa_mcp_model::Identity;
use exa_mcp_model::time::{format_timestamp, parse_timestamp};

/// The expiry of a token that never expires, in all accepted spellings.
const NEVER: [&str; 6] = ["", "never", "infinite", "∞", "none", "-"];

/// The maximum length of a user id, in characters.
const MAX_USER_LENGTH: usize = 128;

/// Tokens of at least this length are displayed with a prefix of `PREFIX_LENGTH`; shorter ones with less.
const LONG_TOKEN: usize = 16;
const PREFIX_LENGTH: usize = 8;

/// The purposes of token hashes: authentication, and the ids in a store.
pub(super) const TOKEN_HASH: &str = "token";
const TOKEN_ID: &str = "token id";

/// The role of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenRole {
    /// May call tools.
    User,
    /// May call tools and manage the server.
    Admin,
}

impl TokenRole {
    /// Returns the name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Admin => "admin",
        }
    }
}

/// The source of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenSource {
    /// The environment of the server.
    Environment,
    /// An admin created it at run time.
    Admin,
}

impl TokenSource {
    /// Returns the name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Environment => "environment",
            Self::Admin => "admin",
        }
    }
}

/// A token. Only its hash is stored, never its text.
#[derive(Clone)]
pub struct Token {
    pub(super) digest: Digest,
    /// The hash of the text before a rotation, and the end of its grace period.
    pub(super) previous: Option<(Digest, i64)>,
    /// The id.
    pub id: String,
    /// The start of the text, for display: enough to recognize it, too little to guess it.
    pub prefix: String,
    /// The user it belongs to.
    pub user: Option<String>,
    /// The users it belonged to before; `None` for a time without a user.
    pub(super) previous_users: Vec<Option<String>>,
    /// The role.
    pub role: TokenRole,
    /// When it expires, in milliseconds since 1970.
    pub expires: Option<i64>,
    /// The source.
    pub source: TokenSource,
    /// When it was created, if that was at run time.
    pub created: Option<i64>,
    /// When it was revoked.
    pub revoked: Option<i64>,
    /// Its own limits.
    pub limits: TokenLimits,
    /// Its own limits, completed by the default ones.
    pub effective_limits: TokenLimits,
    /// The number of calls in progress in this process.
    pub(super) calls: Arc<AtomicUsize>,
    /// Notifies open requests whenever the token changes.
    pub(super) changes: Arc<watch::Sender<()>>,
}

impl Token {
    /// Returns whether it is neither revoked nor expired.
    pub fn is_active(&self, now: i64) -> bool {
        self.revoked.is_none() && !self.is_expired(now)
    }

    /// Returns whether it has expired.
    pub fn is_expired(&self, now: i64) -> bool {
        self.expires.is_some_and(|end| end <= now)
    }

    /// Returns when it expires, in RFC 3339 format.
    pub fn expires_at(&self) -> Option<String> {
        self.expires.map(format_timestamp)
    }

    /// Returns the identity that owns what is created with it. All tokens of a user share one identity.
    pub fn owner(&self) -> Identity {
        self.owner_as(self.user.as_deref())
    }

    /// Returns the identity while it belongs to this user.
    pub(super) fn owner_as(&self, user: Option<&str>) -> Identity {
        match user {
            Some(user) => Identity::user(user),
            None => Identity::token(&self.id),
        }
    }

    /// Returns when it was created, in milliseconds since 1970; 0 if unknown.
    pub fn created_at(&self) -> i64 {
        self.created.unwrap_or_default()
    }

    /// Checks that it is neither revoked nor expired.
    ///
    /// # Errors
    /// It is revoked or expired.
    pub fn check_active(&self, now: i64) -> Result<(), AuthError> {
        if self.revoked.is_some() {
            return Err(AuthError::Revoked);
        }
        if self.is_expired(now) {
            return Err(AuthError::Expired);
        }
        Ok(())
    }

    /// Checks that it is an admin token.
    ///
    /// # Errors
    /// It is not an admin token.
    pub fn check_admin(&self) -> Result<(), AuthError> {
        match self.role {
            TokenRole::Admin => Ok(()),
            TokenRole::User => Err(AuthError::NotAdmin),
        }
    }
}

/// An invalid configured token. The message never contains any part of the token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{variable}{}: {reason}", .entry.map(|entry| format!(", entry {entry}")).unwrap_or_default())]
pub struct TokenError {
    /// The environment variable.
    pub variable: &'static str,
    /// The position in the list, starting at 1.
    pub entry: Option<usize>,
    /// What is wrong.
    pub reason: &'static str,
}

/// Parses the admin token and the list of user tokens. The secret keys their hashes.
pub(super) fn parse_tokens(
    admin: Option<&str>,
    users: Option<&str>,
    secret: &Secret,
) -> Result<Vec<Token>, TokenError> {
    let mut tokens = Vec::new();
    let mut ids = HashSet::new();
    if let Some(text) = admin {
        let error = |reason| TokenError {
            variable: "MCP_AUTH_TOKEN",
            entry: None,
            reason,
        };
        let text = text.trim();
        check_text(text).map_err(error)?;
        let token = new_token(text, None, TokenRole::Admin, None, secret);
        ids.insert(token.id.clone());
        tokens.push(token);
    }
    let entries = users.unwrap_or_default().split(',').map(str::trim);
    let entries = entries.enumerate().filter(|(_, entry)| !entry.is_empty());
    for (index, entry) in entries {
        let error = |reason| TokenError {
            variable: "USER_TOKENS",
            entry: Some(index + 1),
            reason,
        };
        let token = parse_user_token(entry, secret).map_err(error)?;
        if !ids.insert(token.id.clone()) {
            return Err(error("the same token appears twice"));
        }
        tokens.push(token);
    }
    warn_about_short_tokens(admin, users);
    if tokens.is_empty() {
        return Err(TokenError {
            variable: "USER_TOKENS",
            entry: None,
            reason: "the list contains no token",
        });
    }
    Ok(tokens)
}

/// Warns about tokens that are short enough to guess: only wrong tokens are throttled.
fn warn_about_short_tokens(admin: Option<&str>, users: Option<&str>) {
    let texts = users.unwrap_or_default().split(',');
    let texts = texts.filter_map(|entry| entry.split(':').next());
    let texts = texts.chain(admin).map(str::trim);
    let short = texts.filter(|text| !text.is_empty() && text.len() < LONG_TOKEN);
    let count = short.count();
    if count > 0 {
        tracing::warn!(
            count,
            "tokens of fewer than {LONG_TOKEN} characters can be guessed; use random ones of 32 or more"
        );
    }
}

/// Parses `token:userId:expiry`. The expiry may itself contain colons.
fn parse_user_token(entry: &str, secret: &Secret) -> Result<Token, &'static str> {
    let mut fields = entry.splitn(3, ':').map(str::trim);
    let text = fields.next().unwrap_or_default();
    check_text(text)?;
    let user = fields.next().filter(|user| !user.is_empty());
    if let Some(user) = user {
        validate_user(user)?;
    }
    let expires = parse_expiry(fields.next().unwrap_or_default())?;
    Ok(new_token(text, user, TokenRole::User, expires, secret))
}

fn new_token(
    text: &str,
    user: Option<&str>,
    role: TokenRole,
    expires: Option<i64>,
    secret: &Secret,
) -> Token {
    Token {
        digest: secret.digest(TOKEN_HASH, text),
        id: secret.digest(TOKEN_ID, text).short_hex(),
        prefix: display_prefix(text),
        user: user.map(str::to_owned),
        previous_users: Vec::new(),
        role,
        expires,
        previous: None,
        source: TokenSource::Environment,
        created: None,
        revoked: None,
        limits: TokenLimits::default(),
        effective_limits: TokenLimits::default(),
        calls: Arc::default(),
        changes: Arc::default(),
    }
}

fn check_text(token: &str) -> Result<(), &'static str> {
    if token.is_empty() {
        return Err("the token is empty; write token:userId:expiry");
    }
    if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("a token may only contain printable ASCII characters without spaces");
    }
    Ok(())
}

/// Checks that a name is a valid user id.
///
/// # Errors
/// What is wrong with it.
pub fn validate_user(user: &str) -> Result<(), &'static str> {
    if user.chars().count() > MAX_USER_LENGTH || user.chars().any(char::is_control) {
        return Err("a user id may have at most 128 characters and no control characters");
    }
    // An expiry in the wrong field would leave the token without one.
    if parse_time(user).is_some() {
        return Err(
            "the second field is the user id, but looks like an expiry; write token::expiry",
        );
    }
    Ok(())
}

/// Parses the expiry of a token; `None` is never.
///
/// # Errors
/// It is not a date.
pub fn parse_expiry(text: &str) -> Result<Option<i64>, &'static str> {
    if NEVER.contains(&text.to_lowercase().as_str()) {
        return Ok(None);
    }
    let expires = parse_time(text);
    expires.map(Some).ok_or(
        "the expiry is not a date; write for example 2030-12-31, 2030-12-31T23:59:59Z or never",
    )
}

/// Parses a date or a time. A date means midnight UTC.
fn parse_time(text: &str) -> Option<i64> {
    // A year alone is most likely a mistake.
    if text.len() < "2030-12-31".len() {
        return None;
    }
    // Accept a time without seconds before the zone.
    let without_zone = || text.strip_suffix(['Z', 'z']).and_then(parse_timestamp);
    parse_timestamp(text).or_else(without_zone)
}

/// Returns the displayed start of a token; a quarter of a short one, so that the rest cannot be guessed.
fn display_prefix(token: &str) -> String {
    let length = token.chars().count();
    let shown = if length >= LONG_TOKEN {
        PREFIX_LENGTH
    } else {
        length / 4
    };
    let prefix: String = token.chars().take(shown).collect();
    format!("{prefix}...")
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;

    fn parse(admin: Option<&str>, users: &str) -> Result<Vec<Token>, TokenError> {
        parse_tokens(admin, Some(users), &Secret::from_passphrase("test"))
    }

    /// Returns the user and the expiry of the only token.
    fn parse_one(entry: &str) -> (Option<String>, Option<String>) {
        let tokens = parse(None, entry).unwrap();
        assert_eq!(tokens.len(), 1, "{entry}");
        assert_eq!(tokens[0].role, TokenRole::User);
        let secret = Secret::from_passphrase("test");
        let text = entry.trim().split(':').next().unwrap().trim();
        assert!(
            tokens[0].digest.is(&secret.digest(TOKEN_HASH, text)),
            "{entry}"
        );
        (tokens[0].user.clone(), tokens[0].expires_at())
    }

    #[test]
    fn accepts_every_documented_form() {
        let day = "2025-12-31T00:00:00.000Z";
        for (entry, user, end) in [
            ("abc123:alice:2025-12-31", Some("alice"), Some(day)),
            ("xyz789:bob:never", Some("bob"), None),
            ("def456", None, None),
            ("simple_token", None, None),
            ("t:u", Some("u"), None),
            ("t:u:", Some("u"), None),
            ("t::2025-12-31", None, Some(day)),
            (" t : Ann Lee : 2025-12-31 ", Some("Ann Lee"), Some(day)),
            (
                "t:u:2025-06-15T23:59:59Z",
                Some("u"),
                Some("2025-06-15T23:59:59.000Z"),
            ),
            (
                "t:u:2025-06-15T23:59Z",
                Some("u"),
                Some("2025-06-15T23:59:00.000Z"),
            ),
            (
                "t:u:2025-06-15T23:59:59.5",
                Some("u"),
                Some("2025-06-15T23:59:59.500Z"),
            ),
            (
                "t:u:2025-06-16T01:59:59+02:00",
                Some("u"),
                Some("2025-06-15T23:59:59.000Z"),
            ),
            ("t:u:infinite", Some("u"), None),
            ("t:u:∞", Some("u"), None),
            ("t:u:None", Some("u"), None),
            ("t:u:-", Some("u"), None),
        ] {
            let expected = (user.map(str::to_owned), end.map(str::to_owned));
            assert_eq!(parse_one(entry), expected, "{entry}");
        }
    }

    #[test]
    fn skips_empty_entries_and_does_not_split_the_admin_token() {
        let tokens = parse(Some("admin:secret:x"), "a:u, ,b,\n c:v:never,").unwrap();
        let roles: Vec<_> = tokens.iter().map(|token| token.role.as_str()).collect();
        assert_eq!(roles, ["admin", "user", "user", "user"]);
        assert_eq!(tokens[0].user, None);
    }

    #[test]
    fn errors_name_the_position_but_not_the_token() {
        for (admin, users, part) in [
            (
                None,
                "a:u,hunter2:u:tomorrow",
                "USER_TOKENS, entry 2: the expiry",
            ),
            (None, "hunter2:u:2025-13-01", "entry 1: the expiry"),
            (None, "hunter2:u:2025", "entry 1: the expiry"),
            (None, "hunter2:2025-12-31", "entry 1: the second field"),
            (None, ":hunter2", "entry 1: the token is empty"),
            (None, "hunter 2", "entry 1: a token may"),
            (None, "hünter2", "entry 1: a token may"),
            (None, "a,hunter2,b,hunter2:u", "entry 4: the same token"),
            (Some("hunter2"), "a,hunter2", "entry 2: the same token"),
            (Some("hunter 2"), "", "MCP_AUTH_TOKEN: a token may"),
        ] {
            let error = parse(admin, users).map(drop).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
            assert!(
                !error.contains("hunter") && !error.contains("hünter"),
                "{error}"
            );
        }
    }

    #[test]
    fn short_tokens_have_short_prefixes() {
        for (token, prefix) in [
            ("admin-token-here", "admin-to..."),
            ("0123456789abcdef", "01234567..."),
            ("admin-secret", "adm..."),
            ("token1", "t..."),
            ("abc", "..."),
        ] {
            assert_eq!(display_prefix(token), prefix);
        }
    }

    #[test]
    fn expires_at_the_exact_millisecond() {
        let token = &parse(None, "t:u:2025-12-31").unwrap()[0];
        let expires = token.expires.unwrap();
        assert!(!token.is_expired(expires - 1));
        assert!(token.is_expired(expires));
        assert!(!parse(None, "t").unwrap()[0].is_expired(i64::MAX));
    }
}

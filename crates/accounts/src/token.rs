//! Tokens as an operator writes them: `token:userId:expiry`, comma-separated.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use tokio::sync::watch;

use super::limits::TokenLimits;
use super::secret::{Digest, Secret};
use exa_mcp_model::time::{format_timestamp, parse_timestamp};

/// The words for a token without an end.
const NEVER: [&str; 6] = ["", "never", "infinite", "∞", "none", "-"];

/// The longest name of a user, in characters.
const LONGEST_USER: usize = 128;

/// Tokens from this length on show their beginning; of shorter ones much less is shown.
const LONG: usize = 16;
const SHOWN: usize = 8;

/// What hashes of tokens are for: to know them again in this process, and to name them in a store.
pub(super) const KNOWN_BY: &str = "token";
const NAMED_BY: &str = "token id";

/// What a token allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The tools.
    User,
    /// The tools, and looking after the server.
    Admin,
}

impl Role {
    /// How it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Admin => "admin",
        }
    }
}

/// Where a token comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The environment of the server.
    Environment,
    /// An admin, at run time.
    Admin,
}

impl Source {
    /// How it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Environment => "environment",
            Self::Admin => "admin",
        }
    }
}

/// A token, by its hash alone.
#[derive(Clone)]
pub struct Token {
    pub(super) digest: Digest,
    /// The hash of the token before it was renewed, and until when that one may be used.
    pub(super) former: Option<(Digest, i64)>,
    /// What it is called in a store.
    pub id: String,
    /// So much of it that its holder knows it again, and nobody guesses the rest.
    pub prefix: String,
    /// Whose it is.
    pub user: Option<String>,
    /// Whose it was before; `None` is a time without a user.
    pub(super) former_users: Vec<Option<String>>,
    /// What it allows.
    pub role: Role,
    /// When it ends, in milliseconds since 1970.
    pub expires: Option<i64>,
    /// Where it comes from.
    pub source: Source,
    /// When it was made, if that was at run time.
    pub created: Option<i64>,
    /// When it was revoked.
    pub revoked: Option<i64>,
    /// Its own limits.
    pub limits: TokenLimits,
    /// Its own limits, and the usual ones where it has none.
    pub in_force: TokenLimits,
    /// The calls under way with it in this process.
    pub(super) calls: Arc<AtomicUsize>,
    /// Notifies what is open with it whenever it changes.
    pub(super) changes: Arc<watch::Sender<()>>,
}

impl Token {
    /// Whether it lets its holder in.
    pub fn is_active(&self, now: i64) -> bool {
        self.revoked.is_none() && !self.is_expired(now)
    }

    /// Whether it has ended.
    pub fn is_expired(&self, now: i64) -> bool {
        self.expires.is_some_and(|end| end <= now)
    }

    /// When it ends, as JavaScript writes dates.
    pub fn expires_at(&self) -> Option<String> {
        self.expires.map(format_timestamp)
    }
}

/// Why a token cannot be used. No text of it repeats anything of the token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{variable}{}: {why}", .entry.map(|entry| format!(", entry {entry}")).unwrap_or_default())]
pub struct TokenError {
    /// The variable that it stands in.
    pub variable: &'static str,
    /// Its place among the others, from 1.
    pub entry: Option<usize>,
    /// What is wrong with it.
    pub why: &'static str,
}

/// The hashes that are made of tokens.
pub(super) struct Hashes<'a> {
    /// Keys the hashes by which tokens are known again.
    pub(super) known: &'a Secret,
    /// Keys the hashes by which a store names them; it must stay the same as long as the store.
    pub(super) named: &'a Secret,
}

/// Reads the admin token and the list of user tokens.
pub(super) fn read(
    admin: Option<&str>,
    users: Option<&str>,
    hashes: &Hashes<'_>,
) -> Result<Vec<Token>, TokenError> {
    let mut tokens = Vec::new();
    let mut known = HashSet::new();
    if let Some(text) = admin {
        let error = |why| TokenError {
            variable: "MCP_AUTH_TOKEN",
            entry: None,
            why,
        };
        let text = text.trim();
        check(text).map_err(error)?;
        let token = token(text, None, Role::Admin, None, hashes);
        known.insert(token.id.clone());
        tokens.push(token);
    }
    let entries = users.unwrap_or_default().split(',').map(str::trim);
    let entries = entries.enumerate().filter(|(_, entry)| !entry.is_empty());
    for (index, entry) in entries {
        let error = |why| TokenError {
            variable: "USER_TOKENS",
            entry: Some(index + 1),
            why,
        };
        let token = user_token(entry, hashes).map_err(error)?;
        if !known.insert(token.id.clone()) {
            return Err(error("the same token is there twice"));
        }
        tokens.push(token);
    }
    warn_of_short(admin, users);
    if tokens.is_empty() {
        return Err(TokenError {
            variable: "USER_TOKENS",
            entry: None,
            why: "there is no token in it",
        });
    }
    Ok(tokens)
}

/// Warns of tokens that could be guessed: wrong ones are refused, but a right one always lets its holder in.
fn warn_of_short(admin: Option<&str>, users: Option<&str>) {
    let texts = users.unwrap_or_default().split(',');
    let texts = texts.filter_map(|entry| entry.split(':').next());
    let texts = texts.chain(admin).map(str::trim);
    let short = texts.filter(|text| !text.is_empty() && text.len() < LONG);
    let count = short.count();
    if count > 0 {
        tracing::warn!(
            count,
            "tokens of fewer than {LONG} characters can be guessed; use random ones of 32 or more"
        );
    }
}

/// Reads `token:userId:expiry`; the time in an expiry has colons of its own.
fn user_token(entry: &str, hashes: &Hashes<'_>) -> Result<Token, &'static str> {
    let mut fields = entry.splitn(3, ':').map(str::trim);
    let text = fields.next().unwrap_or_default();
    check(text)?;
    let user = fields.next().filter(|user| !user.is_empty());
    if let Some(user) = user {
        check_user(user)?;
    }
    let expires = expiry(fields.next().unwrap_or_default())?;
    Ok(token(text, user, Role::User, expires, hashes))
}

fn token(
    text: &str,
    user: Option<&str>,
    role: Role,
    expires: Option<i64>,
    hashes: &Hashes<'_>,
) -> Token {
    Token {
        digest: hashes.known.digest(KNOWN_BY, text),
        id: hashes.named.digest(NAMED_BY, text).name(),
        prefix: prefix(text),
        user: user.map(str::to_owned),
        former_users: Vec::new(),
        role,
        expires,
        former: None,
        source: Source::Environment,
        created: None,
        revoked: None,
        limits: TokenLimits::default(),
        in_force: TokenLimits::default(),
        calls: Arc::default(),
        changes: Arc::default(),
    }
}

fn check(token: &str) -> Result<(), &'static str> {
    if token.is_empty() {
        return Err("the token is empty; write token:userId:expiry");
    }
    match token.bytes().all(|byte| byte.is_ascii_graphic()) {
        true => Ok(()),
        false => Err("a token has letters, digits and signs of ASCII only, without spaces"),
    }
}

/// Whether a name can be a user's.
pub fn check_user(user: &str) -> Result<(), &'static str> {
    if user.chars().count() > LONGEST_USER || user.chars().any(char::is_control) {
        return Err("a user id has at most 128 characters and no control characters");
    }
    // Taken for a name it would leave a token without an end.
    match moment(user) {
        None => Ok(()),
        Some(_) => {
            Err("the second field is the user id, but looks like an expiry; write token::expiry")
        }
    }
}

/// Reads when a token ends; `None` is never.
pub fn expiry(text: &str) -> Result<Option<i64>, &'static str> {
    if NEVER.contains(&text.to_lowercase().as_str()) {
        return Ok(None);
    }
    let end = moment(text);
    end.map(Some)
        .ok_or("the expiry is no date; write for example 2030-12-31, 2030-12-31T23:59:59Z or never")
}

/// A day or a moment; a day begins at midnight UTC.
fn moment(text: &str) -> Option<i64> {
    // A year alone is more likely a slip.
    if text.len() < "2030-12-31".len() {
        return None;
    }
    // Seconds may be left out before the zone too.
    let without_zone = || text.strip_suffix(['Z', 'z']).and_then(parse_timestamp);
    parse_timestamp(text).or_else(without_zone)
}

/// The beginning of a long token; of a short one a quarter, so that the rest cannot be guessed.
fn prefix(token: &str) -> String {
    let length = token.chars().count();
    let shown = if length >= LONG { SHOWN } else { length / 4 };
    let shown: String = token.chars().take(shown).collect();
    format!("{shown}...")
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;

    fn read(admin: Option<&str>, users: &str) -> Result<Vec<Token>, TokenError> {
        let secret = Secret::chosen("test");
        let hashes = Hashes {
            known: &secret,
            named: &secret,
        };
        super::read(admin, Some(users), &hashes)
    }

    /// The user and the end of the only token.
    fn only(entry: &str) -> (Option<String>, Option<String>) {
        let tokens = read(None, entry).unwrap();
        assert_eq!(tokens.len(), 1, "{entry}");
        assert_eq!(tokens[0].role, Role::User);
        let secret = Secret::chosen("test");
        let text = entry.trim().split(':').next().unwrap().trim();
        assert!(
            tokens[0].digest.is(&secret.digest(KNOWN_BY, text)),
            "{entry}"
        );
        (tokens[0].user.clone(), tokens[0].expires_at())
    }

    #[test]
    fn every_form_is_read() {
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
            assert_eq!(only(entry), expected, "{entry}");
        }
    }

    #[test]
    fn lists_may_have_gaps_and_the_admin_is_one_whole_token() {
        let tokens = read(Some("admin:secret:x"), "a:u, ,b,\n c:v:never,").unwrap();
        let roles: Vec<_> = tokens.iter().map(|token| token.role.as_str()).collect();
        assert_eq!(roles, ["admin", "user", "user", "user"]);
        assert_eq!(tokens[0].user, None);
    }

    #[test]
    fn what_is_malformed_is_named_by_its_place_and_not_repeated() {
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
            (None, "hunter 2", "entry 1: a token has"),
            (None, "hünter2", "entry 1: a token has"),
            (None, "a,hunter2,b,hunter2:u", "entry 4: the same token"),
            (Some("hunter2"), "a,hunter2", "entry 2: the same token"),
            (Some("hunter 2"), "", "MCP_AUTH_TOKEN: a token has"),
        ] {
            let error = read(admin, users).map(drop).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
            assert!(
                !error.contains("hunter") && !error.contains("hünter"),
                "{error}"
            );
        }
    }

    #[test]
    fn a_prefix_gives_no_short_token_away() {
        for (token, shown) in [
            ("admin-token-here", "admin-to..."),
            ("0123456789abcdef", "01234567..."),
            ("admin-secret", "adm..."),
            ("token1", "t..."),
            ("abc", "..."),
        ] {
            assert_eq!(prefix(token), shown);
        }
    }

    #[test]
    fn an_end_is_exact() {
        let token = &read(None, "t:u:2025-12-31").unwrap()[0];
        let end = token.expires.unwrap();
        assert!(!token.is_expired(end - 1));
        assert!(token.is_expired(end));
        assert!(!read(None, "t").unwrap()[0].is_expired(i64::MAX));
    }
}

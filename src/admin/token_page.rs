//! Pagination of the token list.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use http::request::Parts;

use super::HttpRejection;
use super::query::{boolean, invalid_parameter, number, text};
use exa_mcp_accounts::{Token, TokenSource, now};

/// The default and maximum number of tokens per page.
const DEFAULT_LIMIT: u64 = 100;
const MAX_LIMIT: u64 = 1_000;

/// The query for a page of tokens.
pub(super) struct PageQuery {
    limit: usize,
    after: Option<PageCursor>,
    /// Text that the user or the token prefix must contain, in lower case.
    search: Option<String>,
    active_only: bool,
}

/// A page of tokens.
pub(super) struct TokenPage {
    pub(super) tokens: Vec<Arc<Token>>,
    pub(super) next: Option<String>,
    /// The number of matching tokens on all pages, active or not.
    pub(super) matching: usize,
    /// The number of matching tokens that are active.
    pub(super) active: usize,
}

/// The last token of a page. All servers that share a store list tokens in the same order, and tokens are
/// never removed, so the next page may come from another server.
#[derive(Clone, Debug, PartialEq, Eq)]
enum PageCursor {
    /// A token of the environment, in configured order.
    Environment(String),
    /// A token created at run time, with its creation time.
    Created(i64, String),
}

impl PageQuery {
    /// Parses the query. Returns `None` if it requests all tokens at once.
    pub(super) fn parse(parts: &Parts) -> Result<Option<Self>, HttpRejection> {
        let limit = number(parts, "limit")?;
        let active = boolean(parts, "active")?;
        let cursor = text(parts, "cursor");
        let search = text(parts, "q");
        if limit.is_none() && active.is_none() && cursor.is_none() && search.is_none() {
            return Ok(None);
        }
        let after = match cursor.as_deref().filter(|cursor| !cursor.is_empty()) {
            Some(cursor) => Some(PageCursor::parse(cursor).ok_or_else(invalid_cursor)?),
            None => None,
        };
        let limit = limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT);
        let search = search.map(|search| search.trim().to_lowercase());
        Ok(Some(Self {
            limit: usize::try_from(limit).unwrap_or(usize::MAX),
            after,
            search: search.filter(|search| !search.is_empty()),
            active_only: active.unwrap_or_default(),
        }))
    }

    /// Returns the requested page of `all` tokens, which are in list order.
    pub(super) fn page(&self, all: &[Arc<Token>]) -> Result<TokenPage, HttpRejection> {
        let now = now();
        let start = match &self.after {
            Some(after) => after.next_index(all).ok_or_else(invalid_cursor)?,
            None => 0,
        };
        let matches = |token: &&Arc<Token>| {
            self.search
                .as_ref()
                .is_none_or(|search| matches_search(token, search))
        };
        let is_listed = |token: &&Arc<Token>| !self.active_only || token.is_active(now);
        let rest = all.get(start..).unwrap_or_default().iter();
        let mut rest = rest.filter(matches).filter(is_listed).cloned();
        let tokens: Vec<Arc<Token>> = rest.by_ref().take(self.limit).collect();
        let is_last = rest.next().is_none();
        let next = tokens.last().filter(|_| !is_last);
        let matching = all.iter().filter(matches);
        Ok(TokenPage {
            next: next.map(|token| PageCursor::from(&**token).to_string()),
            tokens,
            active: matching
                .clone()
                .filter(|token| token.is_active(now))
                .count(),
            matching: matching.count(),
        })
    }
}

fn matches_search(token: &Token, search: &str) -> bool {
    let has = |text: &str| text.to_lowercase().contains(search);
    token.user.as_deref().is_some_and(has) || has(&token.prefix)
}

fn invalid_cursor() -> HttpRejection {
    invalid_parameter(
        "cursor",
        "is not a cursor of this list; start again without it",
    )
}

impl From<&Token> for PageCursor {
    fn from(token: &Token) -> Self {
        match token.source {
            TokenSource::Environment => Self::Environment(token.id.clone()),
            TokenSource::Admin => Self::Created(token.created_at(), token.id.clone()),
        }
    }
}

impl fmt::Display for PageCursor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Environment(id) => write!(formatter, "e.{id}"),
            Self::Created(at, id) => write!(formatter, "m.{at}.{id}"),
        }
    }
}

impl PageCursor {
    fn parse(cursor: &str) -> Option<Self> {
        let (kind, rest) = cursor.split_once('.')?;
        match kind {
            "e" => Some(Self::Environment(rest.to_owned())),
            "m" => {
                let (at, id) = rest.split_once('.')?;
                Some(Self::Created(at.parse().ok()?, id.to_owned()))
            }
            _ => None,
        }
    }

    /// Returns the index of the first token of the next page.
    fn next_index(&self, all: &[Arc<Token>]) -> Option<usize> {
        match self {
            Self::Environment(id) => {
                let is_last = |token: &Arc<Token>| {
                    token.source == TokenSource::Environment && token.id == *id
                };
                all.iter().position(is_last).map(|index| index + 1)
            }
            Self::Created(at, id) => Some(all.partition_point(|token| match token.source {
                TokenSource::Environment => true,
                TokenSource::Admin => {
                    let order = (token.created_at(), &token.id).cmp(&(*at, id));
                    order != Ordering::Greater
                }
            })),
        }
    }
}

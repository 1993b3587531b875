//! A page of the tokens, for servers that have many.

use std::cmp::Ordering;
use std::sync::Arc;

use http::request::Parts;

use super::Refused;
use super::query::{number, switch, text, unfit};
use exa_mcp_accounts::{Token, TokenSource, now};

/// Tokens on a page without being asked for, and at most.
const USUAL: u64 = 100;
const MOST: u64 = 1_000;

/// What of the tokens is asked for.
pub(super) struct Wanted {
    limit: usize,
    after: Option<After>,
    /// What the user or the shown part of the token must contain, in lower case.
    like: Option<String>,
    active_only: bool,
}

/// A page.
pub(super) struct Page {
    pub(super) tokens: Vec<Arc<Token>>,
    pub(super) next: Option<String>,
    /// How many fit on all pages, whether they are active or not.
    pub(super) matching: usize,
    /// How many of them are active.
    pub(super) active: usize,
}

/// The last token of a page. All servers of a store list tokens in the same order, and no token goes away,
/// so a page may be asked of another server than the one before.
#[derive(Clone, Debug, PartialEq, Eq)]
enum After {
    /// One of the environment, which all have in its order.
    Environment(String),
    /// One that was made, and when.
    Made(i64, String),
}

impl Wanted {
    /// What an address asks for; `None` if it asks for all tokens at once.
    pub(super) fn read(parts: &Parts) -> Result<Option<Self>, Refused> {
        let limit = number(parts, "limit")?;
        let active = switch(parts, "active")?;
        let cursor = text(parts, "cursor");
        let like = text(parts, "q");
        if limit.is_none() && active.is_none() && cursor.is_none() && like.is_none() {
            return Ok(None);
        }
        let after = match cursor.as_deref().filter(|cursor| !cursor.is_empty()) {
            Some(cursor) => Some(After::read(cursor).ok_or_else(foreign)?),
            None => None,
        };
        let limit = limit.unwrap_or(USUAL).clamp(1, MOST);
        let like = like.map(|like| like.trim().to_lowercase());
        Ok(Some(Self {
            limit: usize::try_from(limit).unwrap_or(usize::MAX),
            after,
            like: like.filter(|like| !like.is_empty()),
            active_only: active.unwrap_or_default(),
        }))
    }

    /// The page of these tokens, which are in the order of the list.
    pub(super) fn page(&self, all: &[Arc<Token>]) -> Result<Page, Refused> {
        let now = now();
        let begin = match &self.after {
            Some(after) => after.place(all).ok_or_else(foreign)?,
            None => 0,
        };
        let fits = |token: &&Arc<Token>| self.like.as_ref().is_none_or(|like| is_like(token, like));
        let listed = |token: &&Arc<Token>| !self.active_only || token.is_active(now);
        let rest = all.get(begin..).unwrap_or_default().iter();
        let mut rest = rest.filter(fits).filter(listed).cloned();
        let tokens: Vec<Arc<Token>> = rest.by_ref().take(self.limit).collect();
        let is_last = rest.next().is_none();
        let next = tokens.last().filter(|_| !is_last);
        let matching = all.iter().filter(fits);
        Ok(Page {
            next: next.map(|token| After::of(token).written()),
            tokens,
            active: matching
                .clone()
                .filter(|token| token.is_active(now))
                .count(),
            matching: matching.count(),
        })
    }
}

fn is_like(token: &Token, like: &str) -> bool {
    let has = |text: &str| text.to_lowercase().contains(like);
    token.user.as_deref().is_some_and(has) || has(&token.prefix)
}

fn foreign() -> Refused {
    unfit(
        "cursor",
        "is none that a page of this list ended with; begin again without it",
    )
}

impl After {
    fn of(token: &Token) -> Self {
        match token.source {
            TokenSource::Environment => Self::Environment(token.id.clone()),
            TokenSource::Admin => Self::Made(token.created_at(), token.id.clone()),
        }
    }

    fn written(&self) -> String {
        match self {
            Self::Environment(id) => format!("e.{id}"),
            Self::Made(at, id) => format!("m.{at}.{id}"),
        }
    }

    fn read(cursor: &str) -> Option<Self> {
        let (kind, rest) = cursor.split_once('.')?;
        match kind {
            "e" => Some(Self::Environment(rest.to_owned())),
            "m" => {
                let (at, id) = rest.split_once('.')?;
                Some(Self::Made(at.parse().ok()?, id.to_owned()))
            }
            _ => None,
        }
    }

    /// Where the next page begins.
    fn place(&self, all: &[Arc<Token>]) -> Option<usize> {
        match self {
            Self::Environment(id) => {
                let own = |token: &Arc<Token>| {
                    token.source == TokenSource::Environment && token.id == *id
                };
                all.iter().position(own).map(|place| place + 1)
            }
            Self::Made(at, id) => Some(all.partition_point(|token| match token.source {
                TokenSource::Environment => true,
                TokenSource::Admin => {
                    let order = (token.created_at(), &token.id).cmp(&(*at, id));
                    order != Ordering::Greater
                }
            })),
        }
    }
}

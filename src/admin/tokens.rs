//! `GET /mcp/usage` and `GET /admin/tokens`: who used how much.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use axum::extract::State;
use futures_util::future::try_join_all;
use http::request::Parts;
use serde_json::{Map, Value, json};

use super::page::{Page, Wanted};
use super::{Answered, ServerState, admin, holder, looked, unreadable};
use exa_mcp_accounts::daily::{
    ANONYMOUS, CACHE_HITS, Day, ERRORS, MICRODOLLARS, Spending, TOKENS, UNPRICED_CALLS, dollars,
};
use exa_mcp_accounts::usage::{LAST_USED, REQUESTS, UsageRecorder};
use exa_mcp_accounts::{Token, now};
use exa_mcp_model::time::format_timestamp;
use exa_mcp_store::{Counter, StoreError};

/// So many tokens are few.
const FEW: usize = 2_000;

/// The store is asked for the numbers of so many at once.
const AT_ONCE: usize = 50;

/// The numbers of one token, by their names.
#[derive(Default)]
pub(super) struct Numbers {
    counted: BTreeMap<String, u64>,
    spent: Spending,
}

impl Numbers {
    fn of(day: Day, counts: Vec<Counter>, spent: &[Counter]) -> Self {
        let counts = counts.into_iter();
        Self {
            counted: counts.map(|count| (count.name, count.value)).collect(),
            spent: Spending::from_counters(day, spent),
        }
    }

    /// What is known of one token.
    pub(super) async fn read(usage: &UsageRecorder, token: &Token) -> Result<Self, StoreError> {
        let day = Day::of(now());
        let counts = usage.counters(Some(&token.id)).await?;
        let spent = usage
            .counters(Some(&day.spending_subject(&token.id)))
            .await?;
        Ok(Self::of(day, counts, &spent))
    }

    fn get(&self, name: &str) -> u64 {
        self.counted.get(name).copied().unwrap_or_default()
    }

    fn last_used(&self) -> Option<String> {
        let at = Some(self.get(LAST_USED)).filter(|at| *at > 0);
        at.and_then(|at| i64::try_from(at).ok())
            .map(format_timestamp)
    }

    /// Everything else that is counted.
    fn details(&self) -> Map<String, Value> {
        let names = |name: &&String| *name != REQUESTS && *name != LAST_USED;
        let others = self.counted.iter().filter(|(name, _)| names(name));
        others
            .map(|(name, value)| (name.clone(), json!(value)))
            .collect()
    }

    /// What is counted of each thing of a kind.
    fn by(&self, kind: &str) -> Map<String, Value> {
        let named = |(name, value): (&String, &u64)| {
            let name = name.strip_prefix(kind)?;
            Some((name.to_owned(), json!(value)))
        };
        self.counted.iter().filter_map(named).collect()
    }

    fn usage(&self) -> Value {
        json!({
            "errors": self.get(ERRORS),
            "tokens": self.get(TOKENS),
            "cacheHits": self.get(CACHE_HITS),
            "dollars": dollars(self.get(MICRODOLLARS)),
            "byTool": self.by("tool:"),
            "byOperation": self.by("operation:"),
            "dollarsToday": dollars(self.spent.today),
            "dollarsThisMonth": dollars(self.spent.this_month),
            "reservedToday": dollars(self.spent.reserved_today),
            "reservedThisMonth": dollars(self.spent.reserved_this_month),
            "unpricedCalls": self.get(UNPRICED_CALLS),
        })
    }
}

/// `GET /mcp/usage`: what the holder of a token used.
pub(super) async fn own_usage<S: ServerState>(
    State(server): State<Arc<S>>,
    parts: Parts,
) -> Answered {
    let (token, pool) = holder(&*server, &parts)?;
    let numbers = Numbers::read(&pool.usage, &token).await;
    let numbers = numbers.map_err(|error| unreadable(&error))?;
    looked(json!({
        "userId": token.user,
        "role": token.role.as_str(),
        "expiresAt": token.expires_at(),
        "isExpired": token.is_expired(now()),
        "usageCount": numbers.get(REQUESTS),
        "lastUsedAt": numbers.last_used(),
        "limits": token.effective_limits,
        "usage": numbers.usage(),
        "details": numbers.details(),
    }))
}

/// `GET /admin/tokens`: what everybody used, of all tokens or of a page of them.
pub(super) async fn tokens<S: ServerState>(State(server): State<Arc<S>>, parts: Parts) -> Answered {
    let (_, pool) = admin(&*server, &parts)?;
    let wanted = Wanted::read(&parts)?;
    let all = pool.directory.tokens();
    let page = wanted.map(|wanted| wanted.page(&all)).transpose()?;
    let tokens = page.as_ref().map_or(&all, |page| &page.tokens);
    let numbers = read_all(&pool.usage, tokens).await;
    let numbers = numbers.map_err(|error| unreadable(&error))?;
    looked(match &page {
        None => statistics(&all, &numbers),
        Some(page) => paged(&all, page, &numbers),
    })
}

/// A page, without those figures that only a look at all tokens gives.
fn paged(all: &[Arc<Token>], page: &Page, numbers: &[Numbers]) -> Value {
    let now = now();
    let count = |fits: &dyn Fn(&Token) -> bool| all.iter().filter(|token| fits(token)).count();
    let listed = page.tokens.iter().zip(numbers);
    json!({
        "stats": {
            "totalTokens": all.len(),
            "activeTokens": count(&|token| token.is_active(now)),
            "expiredTokens": count(&|token| token.is_expired(now)),
        },
        "matching": {"tokens": page.matching, "active": page.active},
        "tokens": listed.map(|(token, numbers)| shown(token, numbers)).collect::<Vec<_>>(),
        "nextCursor": page.next,
    })
}

/// The numbers of all tokens, in their order. Those of a few are read one by one, since there are many
/// more numbers than theirs; those of many are picked out of all.
async fn read_all(
    usage: &UsageRecorder,
    tokens: &[Arc<Token>],
) -> Result<Vec<Numbers>, StoreError> {
    if tokens.len() <= FEW {
        let mut all = Vec::with_capacity(tokens.len());
        for some in tokens.chunks(AT_ONCE) {
            let some = some.iter().map(|token| Numbers::read(usage, token));
            all.extend(try_join_all(some).await?);
        }
        return Ok(all);
    }
    let day = Day::of(now());
    let mut by_subject: HashMap<String, Vec<Counter>> = HashMap::new();
    for count in usage.counters(None).await? {
        let known = by_subject.entry(count.subject.clone());
        known.or_default().push(count);
    }
    let mut take = |subject: &str| by_subject.remove(subject).unwrap_or_default();
    let numbers = tokens.iter().map(|token| {
        let counts = take(&token.id);
        Numbers::of(day, counts, &take(&day.spending_subject(&token.id)))
    });
    Ok(numbers.collect())
}

fn statistics(tokens: &[Arc<Token>], numbers: &[Numbers]) -> Value {
    let now = now();
    let mut by_user: BTreeMap<&str, u64> = BTreeMap::new();
    let (mut total, mut active, mut expired) = (0, 0, 0);
    let mut listed = Vec::new();
    for (token, numbers) in tokens.iter().zip(numbers) {
        let user = token.user.as_deref().unwrap_or(ANONYMOUS);
        *by_user.entry(user).or_default() += 1;
        total += numbers.get(REQUESTS);
        active += usize::from(token.is_active(now));
        expired += usize::from(token.is_expired(now));
        listed.push(shown(token, numbers));
    }
    json!({
        "stats": {
            "totalTokens": tokens.len(),
            "activeTokens": active,
            "expiredTokens": expired,
            "totalUsage": total,
            "tokensByUser": by_user,
        },
        "tokens": listed,
    })
}

/// A token as an admin sees it.
pub(super) fn shown(token: &Token, numbers: &Numbers) -> Value {
    let now = now();
    json!({
        "id": token.id,
        "tokenPrefix": token.prefix,
        "userId": token.user,
        "role": token.role.as_str(),
        "source": token.source.as_str(),
        "createdAt": token.created.map(format_timestamp),
        "expiresAt": token.expires_at(),
        "revokedAt": token.revoked.map(format_timestamp),
        "isActive": token.is_active(now),
        "isExpired": token.is_expired(now),
        "usageCount": numbers.get(REQUESTS),
        "lastUsedAt": numbers.last_used(),
        "limits": token.limits,
        "limitsInForce": token.effective_limits,
        "usage": numbers.usage(),
        "details": numbers.details(),
    })
}

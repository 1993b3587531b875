//! `GET /mcp/usage` and `GET /admin/tokens`: usage per token.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use axum::extract::State;
use futures_util::future::try_join_all;
use http::request::Parts;
use serde_json::{Map, Value, json};

use super::token_page::{PageQuery, TokenPage};
use super::{ApiResult, ServerState, ok_json, require_admin, require_token, store_error};
use exa_mcp_accounts::daily::{
    ANONYMOUS, CACHE_HITS, Day, ERRORS, MICRODOLLARS, Spending, TOKENS, UNPRICED_CALLS, dollars,
};
use exa_mcp_accounts::usage::{LAST_USED, REQUESTS, UsageRecorder};
use exa_mcp_accounts::{Token, now};
use exa_mcp_model::time::format_timestamp;
use exa_mcp_store::{Counter, StoreError};

/// Up to this many tokens, usage is read per token.
const MAX_SEPARATE_READS: usize = 2_000;

/// The number of concurrent reads from the store.
const CONCURRENT_READS: usize = 50;

/// The usage of one token.
#[derive(Default)]
pub(super) struct TokenUsage {
    counts: BTreeMap<String, u64>,
    spent: Spending,
}

impl TokenUsage {
    fn new(day: Day, counts: Vec<Counter>, spent: &[Counter]) -> Self {
        let counts = counts.into_iter();
        Self {
            counts: counts.map(|count| (count.name, count.value)).collect(),
            spent: Spending::from_counters(day, spent),
        }
    }

    /// Reads the usage of one token.
    pub(super) async fn read(usage: &UsageRecorder, token: &Token) -> Result<Self, StoreError> {
        let day = Day::from_timestamp(now());
        let counts = usage.counters(Some(&token.id)).await?;
        let spent = usage
            .counters(Some(&day.spending_subject(&token.id)))
            .await?;
        Ok(Self::new(day, counts, &spent))
    }

    fn get(&self, name: &str) -> u64 {
        self.counts.get(name).copied().unwrap_or_default()
    }

    fn last_used(&self) -> Option<String> {
        let at = Some(self.get(LAST_USED)).filter(|at| *at > 0);
        at.and_then(|at| i64::try_from(at).ok())
            .map(format_timestamp)
    }

    /// Returns all other counters.
    fn details(&self) -> Map<String, Value> {
        let names = |name: &&String| *name != REQUESTS && *name != LAST_USED;
        let others = self.counts.iter().filter(|(name, _)| names(name));
        others
            .map(|(name, value)| (name.clone(), json!(value)))
            .collect()
    }

    /// Returns the counters whose names start with `prefix`, without it.
    fn counts_with_prefix(&self, prefix: &str) -> Map<String, Value> {
        let named = |(name, value): (&String, &u64)| {
            let name = name.strip_prefix(prefix)?;
            Some((name.to_owned(), json!(value)))
        };
        self.counts.iter().filter_map(named).collect()
    }

    fn usage(&self) -> Value {
        json!({
            "errors": self.get(ERRORS),
            "tokens": self.get(TOKENS),
            "cacheHits": self.get(CACHE_HITS),
            "dollars": dollars(self.get(MICRODOLLARS)),
            "byTool": self.counts_with_prefix("tool:"),
            "byOperation": self.counts_with_prefix("operation:"),
            "dollarsToday": dollars(self.spent.today),
            "dollarsThisMonth": dollars(self.spent.this_month),
            "reservedToday": dollars(self.spent.reserved_today),
            "reservedThisMonth": dollars(self.spent.reserved_this_month),
            "unpricedCalls": self.get(UNPRICED_CALLS),
        })
    }
}

/// `GET /mcp/usage`: returns the usage of the client's own token.
pub(super) async fn own_usage<S: ServerState>(
    State(server): State<Arc<S>>,
    parts: Parts,
) -> ApiResult {
    let (token, accounts) = require_token(&*server, &parts)?;
    let usage = TokenUsage::read(&accounts.usage, &token).await;
    let usage = usage.map_err(|error| store_error(&error))?;
    ok_json(json!({
        "userId": token.user,
        "role": token.role.as_str(),
        "expiresAt": token.expires_at(),
        "isExpired": token.is_expired(now()),
        "usageCount": usage.get(REQUESTS),
        "lastUsedAt": usage.last_used(),
        "limits": token.effective_limits,
        "usage": usage.usage(),
        "details": usage.details(),
    }))
}

/// `GET /admin/tokens`: returns the usage of all tokens, or of a page of them.
pub(super) async fn tokens<S: ServerState>(
    State(server): State<Arc<S>>,
    parts: Parts,
) -> ApiResult {
    let (_, accounts) = require_admin(&*server, &parts)?;
    let query = PageQuery::parse(&parts)?;
    let all = accounts.directory.tokens();
    let page = query.map(|query| query.page(&all)).transpose()?;
    let tokens = page.as_ref().map_or(&all, |page| &page.tokens);
    let usages = read_all(&accounts.usage, tokens).await;
    let usages = usages.map_err(|error| store_error(&error))?;
    ok_json(match &page {
        None => statistics_json(&all, &usages),
        Some(page) => page_json(&all, page, &usages),
    })
}

/// Returns a page, without the totals that require the usage of all tokens.
fn page_json(all: &[Arc<Token>], page: &TokenPage, usages: &[TokenUsage]) -> Value {
    let now = now();
    let count =
        |matches: &dyn Fn(&Token) -> bool| all.iter().filter(|token| matches(token)).count();
    let listed = page.tokens.iter().zip(usages);
    json!({
        "stats": {
            "totalTokens": all.len(),
            "activeTokens": count(&|token| token.is_active(now)),
            "expiredTokens": count(&|token| token.is_expired(now)),
        },
        "matching": {"tokens": page.matching, "active": page.active},
        "tokens": listed.map(|(token, usage)| token_json(token, usage)).collect::<Vec<_>>(),
        "nextCursor": page.next,
    })
}

/// Returns the usage of all tokens, in their order. For a few tokens it is read one by one, because the
/// store holds many more counters. For many tokens all counters are read at once.
async fn read_all(
    usage: &UsageRecorder,
    tokens: &[Arc<Token>],
) -> Result<Vec<TokenUsage>, StoreError> {
    if tokens.len() <= MAX_SEPARATE_READS {
        let mut all = Vec::with_capacity(tokens.len());
        for some in tokens.chunks(CONCURRENT_READS) {
            let some = some.iter().map(|token| TokenUsage::read(usage, token));
            all.extend(try_join_all(some).await?);
        }
        return Ok(all);
    }
    let day = Day::from_timestamp(now());
    let mut by_subject: HashMap<String, Vec<Counter>> = HashMap::new();
    for count in usage.counters(None).await? {
        let counts = by_subject.entry(count.subject.clone());
        counts.or_default().push(count);
    }
    let mut take = |subject: &str| by_subject.remove(subject).unwrap_or_default();
    let usages = tokens.iter().map(|token| {
        let counts = take(&token.id);
        TokenUsage::new(day, counts, &take(&day.spending_subject(&token.id)))
    });
    Ok(usages.collect())
}

fn statistics_json(tokens: &[Arc<Token>], usages: &[TokenUsage]) -> Value {
    let now = now();
    let mut by_user: BTreeMap<&str, u64> = BTreeMap::new();
    let (mut total, mut active, mut expired) = (0, 0, 0);
    let mut listed = Vec::new();
    for (token, usage) in tokens.iter().zip(usages) {
        let user = token.user.as_deref().unwrap_or(ANONYMOUS);
        *by_user.entry(user).or_default() += 1;
        total += usage.get(REQUESTS);
        active += usize::from(token.is_active(now));
        expired += usize::from(token.is_expired(now));
        listed.push(token_json(token, usage));
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

/// Returns a token as shown to admins.
pub(super) fn token_json(token: &Token, usage: &TokenUsage) -> Value {
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
        "usageCount": usage.get(REQUESTS),
        "lastUsedAt": usage.last_used(),
        "limits": token.limits,
        "limitsInForce": token.effective_limits,
        "usage": usage.usage(),
        "details": usage.details(),
    })
}

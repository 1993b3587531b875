//! The overview for operators: `/admin/audit`, `/admin/usage` and `/admin/state`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use futures_util::future::try_join_all;
use http::request::Parts;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::query::number;
use super::{ApiResult, ServerState, ok_json, require_admin, store_error};
use exa_mcp_accounts::audit::AuditEntry;
use exa_mcp_accounts::daily::{
    ANONYMOUS, CACHE_HITS, DailyUsage, Day, ERRORS, MICRODOLLARS, TOKENS, UNPRICED_CALLS, dollars,
};
use exa_mcp_accounts::usage::REQUESTS;
use exa_mcp_accounts::{TokenDirectory, now};
use exa_mcp_model::Identity;
use exa_mcp_model::time::format_timestamp;

/// The default and maximum number of audit log entries per response.
const DEFAULT_ENTRIES: u64 = 100;
const MAX_ENTRIES: u64 = 1_000;

/// The default number of days.
const DEFAULT_DAYS: u64 = 30;

/// How long a store check may take.
const STORE_TIMEOUT: Duration = Duration::from_secs(2);

/// `GET /admin/audit?limit=&before=`: returns the audit log, newest first.
pub(super) async fn audit<S: ServerState>(State(server): State<Arc<S>>, parts: Parts) -> ApiResult {
    let (_, accounts) = require_admin(&*server, &parts)?;
    let limit = number(&parts, "limit")?.unwrap_or(DEFAULT_ENTRIES);
    let limit = limit.clamp(1, MAX_ENTRIES) as usize;
    let before = number(&parts, "before")?;
    let entries = accounts.audit.entries(before, limit).await;
    let entries = entries.map_err(|error| store_error(&error))?;
    let next = entries.last().filter(|_| entries.len() == limit);
    ok_json(json!({
        "next": next.map(|entry| entry.sequence),
        "entries": entries.iter().map(|entry| entry_json(entry, &accounts.directory)).collect::<Vec<_>>(),
    }))
}

fn entry_json(entry: &AuditEntry, directory: &TokenDirectory) -> Value {
    let event = &entry.event;
    let target = event.target.as_deref().and_then(|id| directory.get(id));
    json!({
        "number": entry.sequence,
        "at": format_timestamp(event.at),
        "actor": event.actor,
        "actorUser": event.actor_user,
        "action": event.action,
        "target": event.target,
        "targetToken": target.map(|token| json!({
            "tokenPrefix": token.prefix,
            "userId": token.user,
            "role": token.role.as_str(),
        })),
        "detail": event.detail,
        "address": event.address,
        "count": event.count,
    })
}

/// `GET /admin/usage?days=30`: returns the usage per day, newest first.
pub(super) async fn usage<S: ServerState>(State(server): State<Arc<S>>, parts: Parts) -> ApiResult {
    let (_, accounts) = require_admin(&*server, &parts)?;
    let days = number(&parts, "days")?.unwrap_or(DEFAULT_DAYS);
    let today = Day::from_timestamp(now());
    let days = (0..days.clamp(1, accounts.retention_days)).map(|ago| today.before(ago));
    let read = days.map(|day| async move {
        let counts = accounts.usage.counters(Some(&day.subject())).await?;
        Ok((day, DailyUsage::from_counters(counts)))
    });
    let days = try_join_all(read).await;
    let days = days.map_err(|error| store_error(&error))?;
    ok_json(json!({
        "days": days.iter().map(|(day, used)| day_json(*day, used)).collect::<Vec<_>>(),
    }))
}

fn day_json(day: Day, used: &DailyUsage) -> Value {
    let get = |numbers: &BTreeMap<String, u64>, name: &str| {
        numbers.get(name).copied().unwrap_or_default()
    };
    let by_user = used.by_user.iter().map(|(user, numbers)| {
        let used = json!({
            "requests": get(numbers, REQUESTS),
            "dollars": dollars(get(numbers, MICRODOLLARS)),
        });
        (user.clone(), used)
    });
    let all = &used.totals;
    json!({
        "day": day.to_string(),
        "requests": get(all, REQUESTS),
        "errors": get(all, ERRORS),
        "tokens": get(all, TOKENS),
        "dollars": dollars(get(all, MICRODOLLARS)),
        "cacheHits": get(all, CACHE_HITS),
        "unpricedCalls": get(all, UNPRICED_CALLS),
        "byUser": by_user.collect::<serde_json::Map<_, _>>(),
    })
}

/// `GET /admin/state`: returns the current state of this server.
pub(super) async fn state<S: ServerState>(State(server): State<Arc<S>>, parts: Parts) -> ApiResult {
    require_admin(&*server, &parts)?;
    let owners = server.session_owners();
    let mut by_user: BTreeMap<&str, u64> = BTreeMap::new();
    for owner in &owners {
        *by_user.entry(user_name(owner)).or_default() += 1;
    }
    let mut tasks = server.tasks().await.unwrap_or_default();
    for state in ["working", "completed", "failed", "cancelled"] {
        tasks.entry(state.to_owned()).or_default();
    }
    let keys = server.keys().map(|keys| keys.counts());
    let mut keys: BTreeMap<&str, usize> = keys.into_iter().flatten().collect();
    keys.insert("total", keys.values().sum());
    ok_json(json!({
        "sessions": {"open": owners.len(), "byUser": by_user},
        "tasks": tasks,
        "store": store_json(&*server).await,
        "keys": keys,
        "uptimeSeconds": server.uptime().as_secs(),
        "version": env!("CARGO_PKG_VERSION"),
    }))
}

async fn store_json<S: ServerState>(server: &S) -> Value {
    let location = match timeout(STORE_TIMEOUT, server.store().check()).await {
        Ok(Ok(location)) => Ok(location),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("The store does not respond.".to_owned()),
    };
    match location {
        Ok(location) => json!({
            "status": "ok",
            "location": location,
            "place": location, // deprecated: removed in 0.3
            "shared": server.store().is_shared(),
        }),
        Err(problem) => json!({"status": "unavailable", "problem": problem}),
    }
}

/// Returns the display name of an owner.
fn user_name(owner: &Identity) -> &str {
    owner.as_str().strip_prefix("user:").unwrap_or(ANONYMOUS)
}

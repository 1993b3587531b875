//! What an operator looks at: `/admin/audit`, `/admin/usage` and `/admin/state`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use futures_util::future::try_join_all;
use http::request::Parts;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::query::number;
use super::{Answered, ServerState, admin, looked, unreadable};
use exa_mcp_accounts::audit::AuditEntry;
use exa_mcp_accounts::daily::{
    ANONYMOUS, CACHE_HITS, DailyUsage, Day, ERRORS, MICRODOLLARS, TOKENS, UNPRICED_CALLS, dollars,
};
use exa_mcp_accounts::usage::REQUESTS;
use exa_mcp_accounts::{TokenDirectory, now};
use exa_mcp_model::Identity;
use exa_mcp_model::time::format_timestamp;

/// Entries of the log that are told at once, and at most.
const USUAL_ENTRIES: u64 = 100;
const MOST_ENTRIES: u64 = 1_000;

/// Days that are told without being asked for.
const USUAL_DAYS: u64 = 30;

/// How long the store may take to say how it is.
const PATIENCE: Duration = Duration::from_secs(2);

/// `GET /admin/audit?limit=&before=`: what happened, the newest first.
pub(super) async fn audit<S: ServerState>(State(server): State<Arc<S>>, parts: Parts) -> Answered {
    let (_, pool) = admin(&*server, &parts)?;
    let limit = number(&parts, "limit")?.unwrap_or(USUAL_ENTRIES);
    let limit = limit.clamp(1, MOST_ENTRIES) as usize;
    let before = number(&parts, "before")?;
    let entries = pool.audit.entries(before, limit).await;
    let entries = entries.map_err(|error| unreadable(&error))?;
    let next = entries.last().filter(|_| entries.len() == limit);
    looked(json!({
        "next": next.map(|entry| entry.sequence),
        "entries": entries.iter().map(|told| entry(told, &pool.directory)).collect::<Vec<_>>(),
    }))
}

fn entry(entry: &AuditEntry, directory: &TokenDirectory) -> Value {
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

/// `GET /admin/usage?days=30`: what was used by day, the newest first.
pub(super) async fn usage<S: ServerState>(State(server): State<Arc<S>>, parts: Parts) -> Answered {
    let (_, pool) = admin(&*server, &parts)?;
    let days = number(&parts, "days")?.unwrap_or(USUAL_DAYS);
    let today = Day::of(now());
    let days = (0..days.clamp(1, pool.retention_days)).map(|ago| today.before(ago));
    let read = days.map(|day| async move {
        let counts = pool.usage.counters(Some(&day.subject())).await?;
        Ok((day, DailyUsage::from_counters(counts)))
    });
    let days = try_join_all(read).await;
    let days = days.map_err(|error| unreadable(&error))?;
    looked(json!({
        "days": days.iter().map(|(day, used)| day_used(*day, used)).collect::<Vec<_>>(),
    }))
}

fn day_used(day: Day, used: &DailyUsage) -> Value {
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

/// `GET /admin/state`: what goes on at this server.
pub(super) async fn state<S: ServerState>(State(server): State<Arc<S>>, parts: Parts) -> Answered {
    admin(&*server, &parts)?;
    let owners = server.session_owners();
    let mut by_user: BTreeMap<&str, u64> = BTreeMap::new();
    for owner in &owners {
        *by_user.entry(person(owner)).or_default() += 1;
    }
    let mut tasks = server.tasks().await.unwrap_or_default();
    for state in ["working", "completed", "failed", "cancelled"] {
        tasks.entry(state.to_owned()).or_default();
    }
    let keys = server.keys().map(|keys| keys.counts());
    let mut keys: BTreeMap<&str, usize> = keys.into_iter().flatten().collect();
    keys.insert("total", keys.values().sum());
    looked(json!({
        "sessions": {"open": owners.len(), "byUser": by_user},
        "tasks": tasks,
        "store": store(&*server).await,
        "keys": keys,
        "uptimeSeconds": server.uptime().as_secs(),
        "version": env!("CARGO_PKG_VERSION"),
    }))
}

async fn store<S: ServerState>(server: &S) -> Value {
    let place = match timeout(PATIENCE, server.store().check()).await {
        Ok(Ok(place)) => Ok(place),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("The store does not answer.".to_owned()),
    };
    match place {
        Ok(place) => json!({"status": "ok", "place": place, "shared": server.store().is_shared()}),
        Err(problem) => json!({"status": "unavailable", "problem": problem}),
    }
}

/// The name of whoever something belongs to.
fn person(owner: &Identity) -> &str {
    owner.as_str().strip_prefix("user:").unwrap_or(ANONYMOUS)
}

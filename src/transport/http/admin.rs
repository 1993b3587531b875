//! `/mcp/usage` and `/admin/tokens`: who used how much.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use http::request::Parts;
use http::{Request, Response, StatusCode};
use rmcp::model::ErrorCode;
use serde_json::{Map, Value, json};

use super::Mcp;
use super::answers::{denied, json_answer, refuse};
use super::gate::Gate;
use super::mcp::address;
use super::state::Shared;
use crate::accounts::usage::{LAST_USED, REQUESTS, Usage};
use crate::accounts::{Directory, Token, now, timestamp};
use crate::store::{Count, StoreError};

type Refused = Box<Response<Body>>;

/// The numbers of one token, by their names.
#[derive(Default)]
struct Numbers(BTreeMap<String, u64>);

impl Numbers {
    fn of(counts: impl IntoIterator<Item = Count>) -> Self {
        Self(
            counts
                .into_iter()
                .map(|count| (count.name, count.value))
                .collect(),
        )
    }

    fn get(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or_default()
    }

    fn last_used(&self) -> Option<String> {
        let at = Some(self.get(LAST_USED)).filter(|at| *at > 0);
        at.and_then(|at| i64::try_from(at).ok()).map(timestamp)
    }

    /// Everything else that is counted.
    fn details(&self) -> Map<String, Value> {
        let names = |name: &&String| *name != REQUESTS && *name != LAST_USED;
        let others = self.0.iter().filter(|(name, _)| names(name));
        others
            .map(|(name, value)| (name.clone(), json!(value)))
            .collect()
    }
}

/// Lets a holder of a token in.
fn holder<'a, M: Mcp>(
    shared: &'a Shared<M>,
    parts: &Parts,
) -> Result<(Arc<Token>, &'a Directory, &'a Usage), Refused> {
    let Gate::Pool { directory, usage } = &shared.gate else {
        let why = "There are no tokens here: every client brings its own Exa key";
        let code = ErrorCode::METHOD_NOT_FOUND.0;
        return Err(Box::new(refuse(StatusCode::NOT_FOUND, code, why)));
    };
    let entry = shared.gate.admit(parts, address(shared, parts))?;
    let token = entry.token.ok_or_else(|| {
        let unknown = crate::accounts::Denied::Unknown;
        Box::new(denied(unknown, false))
    })?;
    Ok((token, directory, usage))
}

fn unknown(error: &StoreError) -> Refused {
    tracing::warn!(%error, "usage could not be read");
    let why = "The store cannot be read now; try again later";
    let code = ErrorCode::INTERNAL_ERROR.0;
    Box::new(refuse(StatusCode::SERVICE_UNAVAILABLE, code, why))
}

/// `GET /mcp/usage`: what the holder of a token used.
pub(super) async fn own_usage<M: Mcp>(
    State(shared): State<Arc<Shared<M>>>,
    request: Request<Body>,
) -> Response<Body> {
    let (parts, _) = request.into_parts();
    let told = async {
        let (token, _, usage) = holder(&shared, &parts)?;
        let counts = usage.counts(Some(&token.id)).await;
        let numbers = Numbers::of(counts.map_err(|error| unknown(&error))?);
        Ok(json!({
            "userId": token.user,
            "role": token.role.as_str(),
            "expiresAt": token.expires_at(),
            "isExpired": token.is_expired(now()),
            "usageCount": numbers.get(REQUESTS),
            "lastUsedAt": numbers.last_used(),
            "details": numbers.details(),
        }))
    };
    answer(told.await)
}

/// `GET /admin/tokens`: what everybody used.
pub(super) async fn tokens<M: Mcp>(
    State(shared): State<Arc<Shared<M>>>,
    request: Request<Body>,
) -> Response<Body> {
    let (parts, _) = request.into_parts();
    let told = async {
        let (token, directory, usage) = holder(&shared, &parts)?;
        token.admit_admin().map_err(|why| {
            tracing::info!(
                token = token.id,
                path = parts.uri.path(),
                "denied: no admin"
            );
            Box::new(denied(why, true))
        })?;
        let counts = usage.counts(None).await.map_err(|error| unknown(&error))?;
        Ok(statistics(directory, counts))
    };
    answer(told.await)
}

fn answer(told: Result<Value, Refused>) -> Response<Body> {
    match told {
        Ok(told) => json_answer(StatusCode::OK, &told),
        Err(refused) => *refused,
    }
}

fn statistics(directory: &Directory, counts: Vec<Count>) -> Value {
    let now = now();
    let mut by_token: HashMap<String, Vec<Count>> = HashMap::new();
    for count in counts {
        by_token
            .entry(count.subject.clone())
            .or_default()
            .push(count);
    }
    let mut by_user: BTreeMap<&str, u64> = BTreeMap::new();
    let mut total = 0;
    let mut expired = 0;
    let mut listed = Vec::new();
    for token in directory.tokens() {
        let numbers = Numbers::of(by_token.remove(&token.id).unwrap_or_default());
        *by_user
            .entry(token.user.as_deref().unwrap_or("anonymous"))
            .or_default() += 1;
        total += numbers.get(REQUESTS);
        expired += usize::from(token.is_expired(now));
        listed.push(shown(token, &numbers, now));
    }
    let all = directory.tokens().len();
    json!({
        "stats": {
            "totalTokens": all,
            "activeTokens": all - expired,
            "expiredTokens": expired,
            "totalUsage": total,
            "tokensByUser": by_user,
        },
        "tokens": listed,
    })
}

fn shown(token: &Token, numbers: &Numbers, now: i64) -> Value {
    let expired = token.is_expired(now);
    json!({
        "tokenPrefix": token.prefix,
        "userId": token.user,
        "role": token.role.as_str(),
        "expiresAt": token.expires_at(),
        "isActive": !expired,
        "isExpired": expired,
        "usageCount": numbers.get(REQUESTS),
        "lastUsedAt": numbers.last_used(),
        "details": numbers.details(),
    })
}

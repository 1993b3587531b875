//! Tokens at run time: `POST /admin/tokens`, `PATCH /admin/tokens/{id}`, and what can be done with one.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, State};
use http::request::Parts;
use http::{Request, StatusCode, header};
use rmcp::model::ErrorCode;
use serde_json::{Map, Value, json};

use super::tokens::{Numbers, shown};
use super::{Answered, Refused, ServerState, address, admin, unreadable};
use crate::http_response::{FORBIDDEN, JsonResponse, error_response, invalid_params};
use exa_mcp_accounts::audit::AuditEvent;
use exa_mcp_accounts::{
    Accounts, NewToken, Token, TokenLimits, TokenRole, TokenServiceError, TokenUpdate, now,
    parse_expiry, validate_user,
};
use exa_mcp_model::time::format_timestamp;

/// The longest time that a renewed token may still be used.
const LONGEST_GRACE: u64 = 3_600;

/// What every handler here is given.
type Given<S> = State<Arc<S>>;

/// An admin with what they want.
pub(super) struct Wish<'a> {
    actor: Arc<Token>,
    pub(super) pool: &'a Accounts,
    address: String,
    fields: Map<String, Value>,
}

/// `POST /admin/tokens`: makes a token.
pub(super) async fn create<S: ServerState>(
    State(server): Given<S>,
    request: Request<Body>,
) -> Answered {
    let wish = wish(
        &*server,
        request,
        &["userId", "expiresAt", "role", "limits"],
    )
    .await?;
    let new = NewToken {
        user: wish.user()?.flatten(),
        role: wish.role()?,
        expires: wish.expires()?.flatten(),
        limits: wish.limits(&*server)?,
    };
    let made = wish.pool.token_service.create(new).await;
    let (text, token) = made.map_err(refused)?;
    let detail = json!({ "userId": token.user, "role": token.role.as_str(), "expiresAt": token.expires_at(), "limits": set(&token.limits), });
    wish.note("token.create", &token.id, detail).await;
    Ok(wish.told(StatusCode::CREATED, &token, Some(text)).await)
}

/// `PATCH /admin/tokens/{id}`: changes what is known about a token.
pub(super) async fn amend<S: ServerState>(
    State(server): Given<S>,
    Path(id): Path<String>,
    request: Request<Body>,
) -> Answered {
    let wish = wish(&*server, request, &["userId", "expiresAt", "limits"]).await?;
    wish.limits(&*server)?;
    let amendment = TokenUpdate {
        user: wish.user()?,
        expires: wish.expires()?,
        limits: wish.fields.get("limits").cloned(),
    };
    let changed = wish.pool.token_service.update(&id, amendment).await;
    let token = changed.map_err(refused)?;
    let detail = Value::Object(wish.fields.clone());
    wish.note("token.change", &token.id, detail).await;
    Ok(wish.told(StatusCode::OK, &token, None).await)
}

/// `POST /admin/tokens/{id}/rotate`: gives a token another text.
pub(super) async fn rotate<S: ServerState>(
    State(server): Given<S>,
    Path(id): Path<String>,
    request: Request<Body>,
) -> Answered {
    let wish = wish(&*server, request, &["graceSeconds"]).await?;
    let seconds = wish.fields.get("graceSeconds");
    let grace = match seconds.filter(|seconds| !seconds.is_null()) {
        None => Some(0),
        Some(seconds) => seconds.as_u64().filter(|seconds| *seconds <= LONGEST_GRACE),
    };
    let grace = grace.ok_or_else(|| unfit("graceSeconds must be a whole number up to 3600"))?;
    let grace_time = Duration::from_secs(grace);
    let renewed = wish.pool.token_service.rotate(&id, grace_time).await;
    let (text, token) = renewed.map_err(refused)?;
    let detail = json!({"graceSeconds": grace});
    wish.note("token.rotate", &token.id, detail).await;
    Ok(wish.told(StatusCode::OK, &token, Some(text)).await)
}

/// `POST /admin/tokens/{id}/revoke`: takes a token back.
pub(super) async fn revoke<S: ServerState>(
    State(server): Given<S>,
    Path(id): Path<String>,
    request: Request<Body>,
) -> Answered {
    let wish = wish(&*server, request, &[]).await?;
    let revoked = wish.pool.token_service.revoke(&id).await;
    let token = revoked.map_err(refused)?;
    wish.note("token.revoke", &token.id, Value::Null).await;
    Ok(wish.told(StatusCode::OK, &token, None).await)
}

/// `POST /admin/tokens/{id}/expire`: sets the end of a token; without one it ends now.
pub(super) async fn expire<S: ServerState>(
    State(server): Given<S>,
    Path(id): Path<String>,
    request: Request<Body>,
) -> Answered {
    let wish = wish(&*server, request, &["expiresAt"]).await?;
    let expires = wish.expires()?.unwrap_or(Some(now()));
    let amendment = TokenUpdate {
        expires: Some(expires),
        ..TokenUpdate::default()
    };
    let changed = wish.pool.token_service.update(&id, amendment).await;
    let token = changed.map_err(refused)?;
    let detail = json!({"expiresAt": expires.map(format_timestamp)});
    wish.note("token.expire", &token.id, detail).await;
    Ok(wish.told(StatusCode::OK, &token, None).await)
}

/// Lets an admin in, and reads what they want.
pub(super) async fn wish<'a, S: ServerState>(
    server: &'a S,
    request: Request<Body>,
    known: &[&str],
) -> Result<Wish<'a>, Refused> {
    let (parts, body) = request.into_parts();
    let (actor, pool) = admin(server, &parts)?;
    let fields = fields(server, &parts, body).await?;
    if let Some(name) = fields.keys().find(|name| !known.contains(&name.as_str())) {
        let shown: String = name.chars().take(100).collect();
        let why = match known {
            [] => format!("`{shown}` is not known here; nothing is"),
            known => format!(
                "`{shown}` is not known here; known are {}",
                known.join(", ")
            ),
        };
        return Err(unfit(&why));
    }
    Ok(Wish {
        actor,
        pool,
        address: address(server, &parts),
        fields,
    })
}

/// The fields of a body; there need not be one.
async fn fields<S: ServerState>(
    server: &S,
    parts: &Parts,
    body: Body,
) -> Result<Map<String, Value>, Refused> {
    let length = parts.headers.get(header::CONTENT_LENGTH);
    let chunked = parts.headers.contains_key(header::TRANSFER_ENCODING);
    if !chunked && length.is_none_or(|length| length == "0") {
        return Ok(Map::new());
    }
    match server.read_json(parts, body).await? {
        Value::Object(fields) => Ok(fields),
        _ => Err(unfit("the body must be a JSON object")),
    }
}

impl Wish<'_> {
    /// The user, if one is named; `null` is nobody.
    fn user(&self) -> Result<Option<Option<String>>, Refused> {
        let user = match self.fields.get("userId") {
            None => return Ok(None),
            Some(Value::Null) => return Ok(Some(None)),
            Some(Value::String(user)) => user.trim(),
            Some(_) => return Err(unfit("userId must be text")),
        };
        validate_user(user).map_err(unfit)?;
        Ok(Some(Some(user.to_owned()).filter(|user| !user.is_empty())))
    }

    /// The end, if one is named; `null` is never.
    fn expires(&self) -> Result<Option<Option<i64>>, Refused> {
        match self.fields.get("expiresAt") {
            None => Ok(None),
            Some(Value::Null) => Ok(Some(None)),
            Some(Value::String(text)) => parse_expiry(text.trim()).map(Some).map_err(unfit),
            Some(_) => Err(unfit("expiresAt must be text such as 2030-12-31, or null")),
        }
    }

    fn role(&self) -> Result<TokenRole, Refused> {
        match self.fields.get("role") {
            None | Some(Value::Null) => Ok(TokenRole::User),
            Some(role) if role == "user" => Ok(TokenRole::User),
            Some(role) if role == "admin" => Ok(TokenRole::Admin),
            Some(_) => Err(unfit("role must be \"user\" or \"admin\"")),
        }
    }

    /// The limits that are named, on their own.
    fn limits<S: ServerState>(&self, server: &S) -> Result<TokenLimits, Refused> {
        let Some(limits) = self.fields.get("limits") else {
            return Ok(TokenLimits::default());
        };
        let limits = TokenLimits::default().with_changes(limits);
        let limits = limits.map_err(|error| unfit(&error.to_string()))?;
        if let Some(list) = limits.tool_list() {
            let checked = server.check_tools(&list);
            checked.map_err(|why| unfit(&format!("limits: tools: {why}")))?;
        }
        Ok(limits)
    }

    /// Keeps what was done.
    pub(super) async fn note(&self, action: &str, target: &str, detail: Value) {
        let event = AuditEvent {
            actor: Some(self.actor.id.clone()),
            actor_user: self.actor.user.clone(),
            action: action.to_owned(),
            target: Some(target.to_owned()),
            detail: Some(detail).filter(|detail| !detail.is_null()),
            address: Some(self.address.clone()),
            ..AuditEvent::default()
        };
        if let Err(error) = self.pool.audit.record(event).await {
            tracing::warn!(%error, action, "what an admin did could not be kept in the audit log");
        }
    }

    /// The token as it is now; a new text is told this once.
    async fn told(&self, status: StatusCode, token: &Token, text: Option<String>) -> JsonResponse {
        // The token is made or changed already: numbers that cannot be read must not hide its text.
        let numbers = Numbers::read(&self.pool.usage, token).await;
        let mut told = Map::new();
        told.extend(text.map(|text| ("token".to_owned(), json!(text))));
        if let Value::Object(shown) = shown(token, &numbers.unwrap_or_default()) {
            told.extend(shown);
        }
        JsonResponse(status, Value::Object(told))
    }
}

/// The limits that are set.
fn set(limits: &TokenLimits) -> Value {
    let mut value = serde_json::to_value(limits).unwrap_or_default();
    if let Value::Object(fields) = &mut value {
        fields.retain(|_, value| !value.is_null());
    }
    value
}

fn unfit(why: &str) -> Refused {
    Box::new(invalid_params(why))
}

fn refused(error: TokenServiceError) -> Refused {
    let why = error.to_string();
    match &error {
        TokenServiceError::Unknown => {
            Box::new(error_response(StatusCode::NOT_FOUND, FORBIDDEN, why))
        }
        TokenServiceError::Immutable(_) => {
            Box::new(error_response(StatusCode::CONFLICT, FORBIDDEN, why))
        }
        TokenServiceError::Limits(_) => unfit(&why),
        TokenServiceError::Store(error) => unreadable(error),
        TokenServiceError::Randomness(_) => {
            let code = ErrorCode::INTERNAL_ERROR.0;
            Box::new(error_response(StatusCode::INTERNAL_SERVER_ERROR, code, why))
        }
    }
}

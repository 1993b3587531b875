//! Token management: `POST /admin/tokens`, `PATCH /admin/tokens/{id}`, and the actions on a token.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, State};
use http::request::Parts;
use http::{Request, StatusCode, header};
use rmcp::model::ErrorCode;
use serde_json::{Map, Value, json};

use super::tokens::{TokenUsage, token_json};
use super::{ApiResult, HttpRejection, ServerState, address, require_admin, store_error};
use crate::http_response::{FORBIDDEN, JsonResponse, error_without_id, invalid_params};
use exa_mcp_accounts::audit::AuditEvent;
use exa_mcp_accounts::{
    Accounts, NewToken, Token, TokenLimits, TokenRole, TokenServiceError, TokenUpdate, now,
    parse_expiry, validate_user,
};
use exa_mcp_model::time::format_timestamp;

/// The maximum time that the old value of a rotated token stays valid.
const MAX_GRACE_SECONDS: u64 = 3_600;

/// An authenticated admin request.
pub(super) struct AdminRequest<'a> {
    actor: Arc<Token>,
    pub(super) accounts: &'a Accounts,
    address: String,
    fields: Map<String, Value>,
}

/// `POST /admin/tokens`: creates a token.
pub(super) async fn create<S: ServerState>(
    State(server): State<Arc<S>>,
    request: Request<Body>,
) -> ApiResult {
    let admin = AdminRequest::read(
        &*server,
        request,
        &["userId", "expiresAt", "role", "limits"],
    )
    .await?;
    let new = NewToken {
        user: admin.user()?.flatten(),
        role: admin.role()?,
        expires: admin.expires()?.flatten(),
        limits: admin.limits(&*server)?,
    };
    let created = admin.accounts.token_service.create(new).await;
    let (text, token) = created.map_err(service_error)?;
    let detail = json!({
        "userId": token.user, "role": token.role.as_str(), "expiresAt": token.expires_at(),
        "limits": set_limits(&token.limits),
    });
    admin.record_audit("token.create", &token.id, detail).await;
    Ok(admin
        .token_response(StatusCode::CREATED, &token, Some(text))
        .await)
}

/// `PATCH /admin/tokens/{id}`: updates a token.
pub(super) async fn update<S: ServerState>(
    State(server): State<Arc<S>>,
    Path(id): Path<String>,
    request: Request<Body>,
) -> ApiResult {
    let admin = AdminRequest::read(&*server, request, &["userId", "expiresAt", "limits"]).await?;
    admin.limits(&*server)?;
    let update = TokenUpdate {
        user: admin.user()?,
        expires: admin.expires()?,
        limits: admin.fields.get("limits").cloned(),
    };
    let changed = admin.accounts.token_service.update(&id, update).await;
    let token = changed.map_err(service_error)?;
    let detail = Value::Object(admin.fields.clone());
    admin.record_audit("token.change", &token.id, detail).await;
    Ok(admin.token_response(StatusCode::OK, &token, None).await)
}

/// `POST /admin/tokens/{id}/rotate`: replaces the value of a token.
pub(super) async fn rotate<S: ServerState>(
    State(server): State<Arc<S>>,
    Path(id): Path<String>,
    request: Request<Body>,
) -> ApiResult {
    let admin = AdminRequest::read(&*server, request, &["graceSeconds"]).await?;
    let seconds = admin.fields.get("graceSeconds");
    let grace = match seconds.filter(|seconds| !seconds.is_null()) {
        None => Some(0),
        Some(seconds) => seconds
            .as_u64()
            .filter(|seconds| *seconds <= MAX_GRACE_SECONDS),
    };
    let grace =
        grace.ok_or_else(|| invalid_parameter("graceSeconds must be an integer up to 3600"))?;
    let grace_time = Duration::from_secs(grace);
    let renewed = admin.accounts.token_service.rotate(&id, grace_time).await;
    let (text, token) = renewed.map_err(service_error)?;
    let detail = json!({"graceSeconds": grace});
    admin.record_audit("token.rotate", &token.id, detail).await;
    Ok(admin
        .token_response(StatusCode::OK, &token, Some(text))
        .await)
}

/// `POST /admin/tokens/{id}/revoke`: revokes a token.
pub(super) async fn revoke<S: ServerState>(
    State(server): State<Arc<S>>,
    Path(id): Path<String>,
    request: Request<Body>,
) -> ApiResult {
    let admin = AdminRequest::read(&*server, request, &[]).await?;
    let revoked = admin.accounts.token_service.revoke(&id).await;
    let token = revoked.map_err(service_error)?;
    admin
        .record_audit("token.revoke", &token.id, Value::Null)
        .await;
    Ok(admin.token_response(StatusCode::OK, &token, None).await)
}

/// `POST /admin/tokens/{id}/expire`: sets the expiry of a token, by default to now.
pub(super) async fn expire<S: ServerState>(
    State(server): State<Arc<S>>,
    Path(id): Path<String>,
    request: Request<Body>,
) -> ApiResult {
    let admin = AdminRequest::read(&*server, request, &["expiresAt"]).await?;
    let expires = admin.expires()?.unwrap_or(Some(now()));
    let update = TokenUpdate {
        expires: Some(expires),
        ..TokenUpdate::default()
    };
    let changed = admin.accounts.token_service.update(&id, update).await;
    let token = changed.map_err(service_error)?;
    let detail = json!({"expiresAt": expires.map(format_timestamp)});
    admin.record_audit("token.expire", &token.id, detail).await;
    Ok(admin.token_response(StatusCode::OK, &token, None).await)
}

/// Reads the fields of the optional body.
async fn read_fields<S: ServerState>(
    server: &S,
    parts: &Parts,
    body: Body,
) -> Result<Map<String, Value>, HttpRejection> {
    let length = parts.headers.get(header::CONTENT_LENGTH);
    let chunked = parts.headers.contains_key(header::TRANSFER_ENCODING);
    if !chunked && length.is_none_or(|length| length == "0") {
        return Ok(Map::new());
    }
    match server.read_json(parts, body).await? {
        Value::Object(fields) => Ok(fields),
        _ => Err(invalid_parameter("the body must be a JSON object")),
    }
}

impl<'a> AdminRequest<'a> {
    /// Authenticates an admin and reads the request, which may only have the `allowed` fields.
    pub(super) async fn read<S: ServerState>(
        server: &'a S,
        request: Request<Body>,
        allowed: &[&str],
    ) -> Result<Self, HttpRejection> {
        let (parts, body) = request.into_parts();
        let (actor, accounts) = require_admin(server, &parts)?;
        let fields = read_fields(server, &parts, body).await?;
        if let Some(name) = fields.keys().find(|name| !allowed.contains(&name.as_str())) {
            let name: String = name.chars().take(100).collect();
            let reason = match allowed {
                [] => format!("unknown field `{name}`; this request takes no fields"),
                allowed => format!(
                    "unknown field `{name}`; known fields: {}",
                    allowed.join(", ")
                ),
            };
            return Err(invalid_parameter(&reason));
        }
        Ok(Self {
            actor,
            accounts,
            address: address(server, &parts),
            fields,
        })
    }

    /// Returns the user, if given. `null` means no user.
    fn user(&self) -> Result<Option<Option<String>>, HttpRejection> {
        let user = match self.fields.get("userId") {
            None => return Ok(None),
            Some(Value::Null) => return Ok(Some(None)),
            Some(Value::String(user)) => user.trim(),
            Some(_) => return Err(invalid_parameter("userId must be a string")),
        };
        validate_user(user).map_err(invalid_parameter)?;
        Ok(Some(Some(user.to_owned()).filter(|user| !user.is_empty())))
    }

    /// Returns the expiry, if given. `null` means never.
    fn expires(&self) -> Result<Option<Option<i64>>, HttpRejection> {
        match self.fields.get("expiresAt") {
            None => Ok(None),
            Some(Value::Null) => Ok(Some(None)),
            Some(Value::String(text)) => parse_expiry(text.trim())
                .map(Some)
                .map_err(invalid_parameter),
            Some(_) => Err(invalid_parameter(
                "expiresAt must be a string such as 2030-12-31, or null",
            )),
        }
    }

    fn role(&self) -> Result<TokenRole, HttpRejection> {
        match self.fields.get("role") {
            None | Some(Value::Null) => Ok(TokenRole::User),
            Some(role) if role == "user" => Ok(TokenRole::User),
            Some(role) if role == "admin" => Ok(TokenRole::Admin),
            Some(_) => Err(invalid_parameter("role must be \"user\" or \"admin\"")),
        }
    }

    /// Returns the limits that are given.
    fn limits<S: ServerState>(&self, server: &S) -> Result<TokenLimits, HttpRejection> {
        let Some(limits) = self.fields.get("limits") else {
            return Ok(TokenLimits::default());
        };
        let limits = TokenLimits::default().with_changes(limits);
        let limits = limits.map_err(|error| invalid_parameter(&error.to_string()))?;
        if let Some(list) = limits.tool_list() {
            let checked = server.check_tools(&list);
            checked.map_err(|reason| invalid_parameter(&format!("limits: tools: {reason}")))?;
        }
        Ok(limits)
    }

    /// Records the action in the audit log.
    pub(super) async fn record_audit(&self, action: &str, target: &str, detail: Value) {
        let event = AuditEvent {
            actor: Some(self.actor.id.clone()),
            actor_user: self.actor.user.clone(),
            action: action.to_owned(),
            target: Some(target.to_owned()),
            detail: Some(detail).filter(|detail| !detail.is_null()),
            address: Some(self.address.clone()),
            ..AuditEvent::default()
        };
        if let Err(error) = self.accounts.audit.record(event).await {
            tracing::warn!(%error, action, "failed to write an admin action to the audit log");
        }
    }

    /// Returns the token in its new state. A new token value is shown only in this response.
    async fn token_response(
        &self,
        status: StatusCode,
        token: &Token,
        text: Option<String>,
    ) -> JsonResponse {
        // The token has already changed: a failure to read its usage must not hide its value.
        let usage = TokenUsage::read(&self.accounts.usage, token).await;
        let mut body = Map::new();
        body.extend(text.map(|text| ("token".to_owned(), json!(text))));
        if let Value::Object(fields) = token_json(token, &usage.unwrap_or_default()) {
            body.extend(fields);
        }
        JsonResponse(status, Value::Object(body))
    }
}

/// Returns the limits that are not null.
fn set_limits(limits: &TokenLimits) -> Value {
    let mut value = serde_json::to_value(limits).unwrap_or_default();
    if let Value::Object(fields) = &mut value {
        fields.retain(|_, value| !value.is_null());
    }
    value
}

fn invalid_parameter(reason: &str) -> HttpRejection {
    Box::new(invalid_params(reason))
}

fn service_error(error: TokenServiceError) -> HttpRejection {
    let reason = error.to_string();
    match &error {
        TokenServiceError::Unknown => {
            Box::new(error_without_id(StatusCode::NOT_FOUND, FORBIDDEN, reason))
        }
        TokenServiceError::Immutable(_) => {
            Box::new(error_without_id(StatusCode::CONFLICT, FORBIDDEN, reason))
        }
        TokenServiceError::Limits(_) => invalid_parameter(&reason),
        TokenServiceError::Store(error) => store_error(error),
        TokenServiceError::Randomness(_) => {
            let code = ErrorCode::INTERNAL_ERROR.0;
            Box::new(error_without_id(
                StatusCode::INTERNAL_SERVER_ERROR,
                code,
                reason,
            ))
        }
    }
}

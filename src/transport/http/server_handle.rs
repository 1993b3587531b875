//! The view of the running server for other layers.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use exa_mcp_model::Identity;
use exa_mcp_store::{Store, StoreError};
use http::request::Parts;
use serde_json::Value;

use super::auth::AuthMode;
use super::state::HttpState;
use super::{McpBackend, admission, body, body_json, request_metrics};
use crate::http_response::{HttpRejection, invalid_params};
use crate::telemetry::Gauges;
use exa_mcp_accounts::{Accounts, Token};
use exa_mcp_exa_client::KeyPool;

impl<M: McpBackend> HttpState<M> {
    pub(crate) fn mode(&self) -> &'static str {
        self.auth_mode.mode()
    }

    pub(crate) fn accounts(&self) -> Option<&Accounts> {
        match &self.auth_mode {
            AuthMode::Pool(accounts) => Some(accounts),
            AuthMode::Passthrough { .. } => None,
        }
    }

    pub(crate) fn authenticate(&self, parts: &Parts) -> Result<Option<Arc<Token>>, HttpRejection> {
        let auth = self
            .auth_mode
            .authenticate(parts, self.client_address(parts))?;
        Ok(auth.token)
    }

    pub(crate) fn client_address(&self, parts: &Parts) -> IpAddr {
        admission::client_address(self, parts)
    }

    pub(crate) async fn read_json(
        &self,
        parts: &Parts,
        body: Body,
    ) -> Result<Value, HttpRejection> {
        let body = body::read_json_body(self, parts, body).await?;
        let parsed = body_json::parse(body.bytes, self.config.limits.body).await;
        parsed.map_err(|error| Box::new(invalid_params(&error.message)))
    }

    pub(crate) fn check_tools(&self, list: &str) -> Result<(), String> {
        // Admins choose the tools of others, too.
        self.mcp.check_tools(list, true)
    }

    pub(crate) fn session_owners(&self) -> Vec<Identity> {
        let mut owners = self.sessions.owners();
        owners.extend(self.sse_connections.owners());
        owners
    }

    pub(crate) fn session_count(&self) -> usize {
        self.sessions.count() + self.sse_connections.count()
    }

    pub(crate) fn request_count(&self) -> usize {
        self.in_flight.count()
    }

    pub(crate) async fn tasks(&self) -> Result<BTreeMap<String, u64>, StoreError> {
        self.mcp.tasks().await
    }

    pub(crate) fn keys(&self) -> Option<KeyPool> {
        self.mcp.keys()
    }

    pub(crate) fn gauges(&self) -> Gauges {
        self.mcp.gauges()
    }

    pub(crate) fn store(&self) -> &dyn Store {
        &*self.store
    }

    pub(crate) async fn is_store_healthy(&self) -> bool {
        self.store_health.is_healthy(&*self.store).await
    }

    pub(crate) fn uptime(&self) -> Duration {
        self.started.elapsed()
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.is_cancelled()
    }

    pub(crate) fn is_local_request(&self, parts: &Parts) -> bool {
        request_metrics::is_local(parts)
    }

    pub(crate) fn has_public_metrics(&self) -> bool {
        self.config.public_metrics
    }
}

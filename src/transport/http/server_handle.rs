//! What other layers may see of the running server.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use exa_mcp_model::Identity;
use exa_mcp_store::{Store, StoreError};
use http::Response;
use http::request::Parts;
use serde_json::Value;

use super::gate::Gate;
use super::state::Shared;
use super::{Mcp, admission, body, observe, parsing};
use crate::http_response::invalid_params;
use crate::telemetry::Gauges;
use exa_mcp_accounts::{Accounts, Token};
use exa_mcp_exa_client::KeyPool;

type Refused = Box<Response<Body>>;

impl<M: Mcp> Shared<M> {
    pub(crate) fn mode(&self) -> &'static str {
        self.gate.mode()
    }

    pub(crate) fn pool(&self) -> Option<&Accounts> {
        match &self.gate {
            Gate::Pool(pool) => Some(pool),
            Gate::Passthrough { .. } => None,
        }
    }

    pub(crate) fn authenticate(&self, parts: &Parts) -> Result<Option<Arc<Token>>, Refused> {
        let entry = self.gate.admit(parts, self.client_address(parts))?;
        Ok(entry.token)
    }

    pub(crate) fn client_address(&self, parts: &Parts) -> IpAddr {
        admission::address(self, parts)
    }

    pub(crate) async fn read_json(&self, parts: &Parts, body: Body) -> Result<Value, Refused> {
        let body = body::read(self, parts, body).await?;
        let parsed = parsing::parse(body.bytes, self.config.limits.body).await;
        parsed.map_err(|error| Box::new(invalid_params(&error.message)))
    }

    pub(crate) fn check_tools(&self, list: &str) -> Result<(), String> {
        self.mcp.check_tools(list)
    }

    pub(crate) fn session_owners(&self) -> Vec<Identity> {
        let mut owners = self.sessions.owners();
        owners.extend(self.streams.owners());
        owners
    }

    pub(crate) fn session_count(&self) -> usize {
        self.sessions.count() + self.streams.count()
    }

    pub(crate) fn request_count(&self) -> usize {
        self.flights.count()
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
        observe::is_from_here(parts)
    }

    pub(crate) fn has_public_metrics(&self) -> bool {
        self.config.open_metrics
    }
}

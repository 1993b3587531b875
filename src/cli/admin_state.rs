//! Connects the admin layer to the HTTP transport.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use exa_mcp_model::Identity;
use exa_mcp_store::{Store, StoreError};
use http::request::Parts;
use serde_json::Value;

use crate::admin::ServerState;
use crate::http_response::HttpRejection;
use crate::telemetry::Gauges;
use crate::transport::http::{HttpState, McpBackend};
use exa_mcp_accounts::{Accounts, Token};
use exa_mcp_exa_client::KeyPool;

impl<M: McpBackend> ServerState for HttpState<M> {
    fn mode(&self) -> &'static str {
        self.mode()
    }

    fn accounts(&self) -> Option<&Accounts> {
        self.accounts()
    }

    fn authenticate(&self, parts: &Parts) -> Result<Option<Arc<Token>>, HttpRejection> {
        self.authenticate(parts)
    }

    fn client_address(&self, parts: &Parts) -> IpAddr {
        self.client_address(parts)
    }

    async fn read_json(&self, parts: &Parts, body: Body) -> Result<Value, HttpRejection> {
        self.read_json(parts, body).await
    }

    fn check_tools(&self, list: &str) -> Result<(), String> {
        self.check_tools(list)
    }

    fn session_owners(&self) -> Vec<Identity> {
        self.session_owners()
    }

    fn session_count(&self) -> usize {
        self.session_count()
    }

    fn request_count(&self) -> usize {
        self.request_count()
    }

    async fn tasks(&self) -> Result<BTreeMap<String, u64>, StoreError> {
        self.tasks().await
    }

    fn keys(&self) -> Option<KeyPool> {
        self.keys()
    }

    fn gauges(&self) -> Gauges {
        self.gauges()
    }

    fn store(&self) -> &dyn Store {
        self.store()
    }

    async fn is_store_healthy(&self) -> bool {
        self.is_store_healthy().await
    }

    fn uptime(&self) -> Duration {
        self.uptime()
    }

    fn is_draining(&self) -> bool {
        self.is_draining()
    }

    fn is_local_request(&self, parts: &Parts) -> bool {
        self.is_local_request(parts)
    }

    fn has_public_metrics(&self) -> bool {
        self.has_public_metrics()
    }
}

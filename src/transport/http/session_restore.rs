//! Restores sessions that started on another server.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderValue, Method, Request, header};
use http_body_util::Full;
use rmcp::transport::streamable_http_server::session::{
    SessionId, SessionState, SessionStore, SessionStoreError,
};
use serde_json::{Value, json};
use tokio::sync::broadcast::error::RecvError;

use super::McpBackend;
use super::response::extract_response;
use super::session_store::SessionChanged;
use super::sessions::{SessionDelta, Sessions};
use super::state::HttpState;
use crate::mcp::request::{Replayed, SESSION_HEADER, SharedSubscriptions};
use exa_mcp_accounts::Requester;
use exa_mcp_store::StoreMessage;

/// The id of internal requests. No client may use the same id concurrently.
const REPLAY_REQUEST_ID: &str = "exa-mcp-server: replay";

/// Replays to rmcp what it needs to know before the next request of a session.
pub(super) async fn apply_delta<M: McpBackend>(
    state: &Arc<HttpState<M>>,
    id: &str,
    requester: &Requester,
    delta: SessionDelta,
) {
    if delta.is_empty() {
        return;
    }
    let (state, id) = (Arc::clone(state), SessionId::from(id));
    let requester = requester.clone();
    // Spawned, so that a disconnecting client cannot leave a half-restored session.
    let applied = tokio::spawn(async move {
        let _guard = state.sessions.restore_lock.lock().await;
        if delta.needs_start && !state.sessions.runs_here(&id) {
            // rmcp notices that the session is not running and loads its parameters.
            let ping = json!({"jsonrpc": "2.0", "id": REPLAY_REQUEST_ID, "method": "ping"});
            if send_to_rmcp(&state, &id, &requester, &ping).await {
                state.sessions.mark_started(&id);
            }
        }
        if delta.needs_initialized {
            let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
            send_to_rmcp(&state, &id, &requester, &initialized).await;
            state.sessions.mark_ready(&id);
        }
        for (method, params) in replayed_requests(delta) {
            let message = json!({"jsonrpc": "2.0", "id": REPLAY_REQUEST_ID, "method": method, "params": params});
            send_to_rmcp(&state, &id, &requester, &message).await;
        }
    });
    let _ = applied.await;
}

/// Returns the requests that the client sent to another server, to be repeated here.
fn replayed_requests(delta: SessionDelta) -> impl Iterator<Item = (&'static str, Value)> {
    let level = delta.level.into_iter();
    let level = level.map(|level| ("logging/setLevel", json!({"level": level})));
    let subscribe = delta.subscribe.into_iter();
    let subscribe = subscribe.map(|uri| ("resources/subscribe", json!({"uri": uri})));
    let unsubscribe = delta.unsubscribe.into_iter();
    let unsubscribe = unsubscribe.map(|uri| ("resources/unsubscribe", json!({"uri": uri})));
    let list = delta.list.then(|| ("resources/list", json!({})));
    level.chain(subscribe).chain(unsubscribe).chain(list)
}

impl SharedSubscriptions for Sessions {
    fn record<'a>(&'a self, session: &'a str, uri: &'a str, subscribed: bool) -> BoxFuture<'a, ()> {
        Box::pin(self.record_subscription(session, uri, subscribed))
    }

    fn record_list<'a>(&'a self, session: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(self.record_listing(session))
    }
}

/// Reloads sessions that run here whenever another server announces a change. Never returns while the store
/// has a change feed.
pub(super) async fn watch_changes<M: McpBackend>(state: Arc<HttpState<M>>) {
    let Some(mut messages) = state
        .store
        .subscribe()
        .filter(|_| state.sessions.are_shared())
    else {
        return;
    };
    loop {
        let changed = match messages.recv().await {
            Ok(StoreMessage::Received(message)) => {
                match serde_json::from_str::<SessionChanged>(&message) {
                    Ok(message) => vec![SessionId::from(message.session)],
                    // Messages of other kinds.
                    Err(_) => continue,
                }
            }
            Ok(StoreMessage::Missed) | Err(RecvError::Lagged(_)) => state.sessions.active_ids(),
            Err(RecvError::Closed) => return,
        };
        for id in changed {
            if let Some((owner, delta)) = state.sessions.reload(&id).await {
                apply_delta(&state, &id, &Requester::new(owner), delta).await;
            }
        }
    }
}

/// Sends a message to rmcp. Returns whether rmcp accepted it.
async fn send_to_rmcp<M: McpBackend>(
    state: &HttpState<M>,
    id: &SessionId,
    requester: &Requester,
    message: &Value,
) -> bool {
    let body = Full::new(Bytes::from(message.to_string()));
    let mut request = Request::new(body);
    *request.method_mut() = Method::POST;
    let headers = request.headers_mut();
    // rmcp rejects requests without a host.
    headers.insert(header::HOST, HeaderValue::from_static("localhost"));
    let both = HeaderValue::from_static("application/json, text/event-stream");
    headers.insert(header::ACCEPT, both);
    let json = HeaderValue::from_static("application/json");
    headers.insert(header::CONTENT_TYPE, json);
    if let Ok(id) = HeaderValue::from_str(id) {
        headers.insert(SESSION_HEADER, id);
    }
    request.extensions_mut().insert(requester.clone());
    request.extensions_mut().insert(Replayed);
    let response = state.mcp.handle(request).await;
    let accepted = response.status().is_success();
    extract_response(response.into_body(), &json!(REPLAY_REQUEST_ID)).await;
    accepted
}

/// Provides rmcp with the parameters of sessions that it does not run. Ownership was checked before.
pub(crate) struct InitializeParamsStore(pub(crate) Arc<Sessions>);

#[async_trait::async_trait]
impl SessionStore for InitializeParamsStore {
    async fn load(&self, id: &str) -> Result<Option<SessionState>, SessionStoreError> {
        Ok(self.0.initialize_params(id).map(SessionState::new))
    }

    async fn store(&self, id: &str, state: &SessionState) -> Result<(), SessionStoreError> {
        self.0.share(id, state.initialize_params.clone()).await;
        Ok(())
    }

    /// The session is removed before rmcp calls this.
    async fn delete(&self, _id: &str) -> Result<(), SessionStoreError> {
        Ok(())
    }
}

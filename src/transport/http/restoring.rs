//! Beginning a session here that was begun at another server.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, header};
use http_body_util::Full;
use rmcp::transport::streamable_http_server::session::{
    SessionId, SessionState, SessionStore, SessionStoreError,
};
use serde_json::{Value, json};

use super::Mcp;
use super::outgoing::only_answer;
use super::sessions::{Behind, Sessions};
use super::state::Shared;
use crate::accounts::Requester;

/// Tells rmcp what it must know before a request of a session.
pub(super) async fn catch_up<M: Mcp>(
    shared: &Arc<Shared<M>>,
    id: &str,
    requester: &Requester,
    behind: Behind,
) {
    if !behind.not_here && behind.level.is_none() {
        return;
    }
    let (shared, id) = (Arc::clone(shared), SessionId::from(id));
    let requester = requester.clone();
    // A client that goes away must not leave a session behind that has half begun.
    let told = tokio::spawn(async move {
        let _turn = shared.sessions.restoring.lock().await;
        if behind.not_here && !shared.sessions.runs_here(&id) {
            // rmcp finds that it does not run the session and asks for its introduction.
            let ping = json!({"jsonrpc": "2.0", "id": 0, "method": "ping"});
            if tell(&shared, &id, &requester, &ping).await {
                shared.sessions.has_begun(&id);
            }
        }
        if let Some(level) = behind.level {
            let params = json!({"level": level});
            let choose =
                json!({"jsonrpc": "2.0", "id": 0, "method": "logging/setLevel", "params": params});
            tell(&shared, &id, &requester, &choose).await;
        }
    });
    let _ = told.await;
}

/// Tells rmcp something; says whether it was taken well.
async fn tell<M: Mcp>(
    shared: &Shared<M>,
    id: &SessionId,
    requester: &Requester,
    message: &Value,
) -> bool {
    let body = Full::new(Bytes::from(message.to_string()));
    let mut request = Request::new(body);
    *request.method_mut() = Method::POST;
    let headers = request.headers_mut();
    let both = HeaderValue::from_static("application/json, text/event-stream");
    headers.insert(header::ACCEPT, both);
    let json = HeaderValue::from_static("application/json");
    headers.insert(header::CONTENT_TYPE, json);
    if let Ok(id) = HeaderValue::from_str(id) {
        headers.insert(super::mcp::SESSION, id);
    }
    request.extensions_mut().insert(requester.clone());
    let answer = shared.mcp.answer(request).await;
    let taken = answer.status().is_success();
    only_answer(answer.into_body(), &json!(0)).await;
    taken
}

/// What rmcp asks about sessions that it does not run. Whose they are is known before it asks.
pub(crate) struct Introductions(pub(crate) Arc<Sessions>);

#[async_trait::async_trait]
impl SessionStore for Introductions {
    async fn load(&self, id: &str) -> Result<Option<SessionState>, SessionStoreError> {
        Ok(self.0.introduction(id).map(SessionState::new))
    }

    async fn store(&self, id: &str, state: &SessionState) -> Result<(), SessionStoreError> {
        self.0.share(id, state.initialize_params.clone()).await;
        Ok(())
    }

    /// Done before rmcp hears of it.
    async fn delete(&self, _id: &str) -> Result<(), SessionStoreError> {
        Ok(())
    }
}

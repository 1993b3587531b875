//! Beginning a session here that was begun at another server.

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

use super::Mcp;
use super::kept_sessions::Word;
use super::outgoing::only_answer;
use super::sessions::{Behind, Sessions};
use super::state::Shared;
use crate::mcp::request::{Replayed, SESSION_HEADER, SharedSubscriptions};
use exa_mcp_accounts::Requester;
use exa_mcp_store::StoreMessage;

/// The id of requests of the server's own; no client may have one of the same name under way.
const OWN: &str = "exa-mcp-server: played again";

/// Tells rmcp what it must know before a request of a session.
pub(super) async fn catch_up<M: Mcp>(
    shared: &Arc<Shared<M>>,
    id: &str,
    requester: &Requester,
    behind: Behind,
) {
    if behind.is_nothing() {
        return;
    }
    let (shared, id) = (Arc::clone(shared), SessionId::from(id));
    let requester = requester.clone();
    // A client that goes away must not leave a session behind that has half begun.
    let told = tokio::spawn(async move {
        let _turn = shared.sessions.restoring.lock().await;
        if behind.not_here && !shared.sessions.runs_here(&id) {
            // rmcp finds that it does not run the session and asks for its introduction.
            let ping = json!({"jsonrpc": "2.0", "id": OWN, "method": "ping"});
            if tell(&shared, &id, &requester, &ping).await {
                shared.sessions.has_begun(&id);
            }
        }
        if behind.not_ready {
            let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
            tell(&shared, &id, &requester, &ready).await;
            shared.sessions.is_ready(&id);
        }
        for (method, params) in requests(behind) {
            let message = json!({"jsonrpc": "2.0", "id": OWN, "method": method, "params": params});
            tell(&shared, &id, &requester, &message).await;
        }
    });
    let _ = told.await;
}

/// What the client has asked of another server, and this one must do as well.
fn requests(behind: Behind) -> impl Iterator<Item = (&'static str, Value)> {
    let level = behind.level.into_iter();
    let level = level.map(|level| ("logging/setLevel", json!({"level": level})));
    let follow = behind.follow.into_iter();
    let follow = follow.map(|uri| ("resources/subscribe", json!({"uri": uri})));
    let leave = behind.leave.into_iter();
    let leave = leave.map(|uri| ("resources/unsubscribe", json!({"uri": uri})));
    level.chain(follow).chain(leave)
}

impl SharedSubscriptions for Sessions {
    fn record<'a>(&'a self, session: &'a str, uri: &'a str, subscribed: bool) -> BoxFuture<'a, ()> {
        Box::pin(self.note_followed(session, uri, subscribed))
    }
}

/// Looks at sessions that run here whenever another server says that they are others now, for ever.
pub(super) async fn follow_others<M: Mcp>(shared: Arc<Shared<M>>) {
    let Some(mut news) = shared
        .store
        .subscribe()
        .filter(|_| shared.sessions.are_shared())
    else {
        return;
    };
    loop {
        let changed = match news.recv().await {
            Ok(StoreMessage::Received(word)) => match serde_json::from_str::<Word>(&word) {
                Ok(word) => vec![SessionId::from(word.session)],
                // Other words are for others.
                Err(_) => continue,
            },
            Ok(StoreMessage::Missed) | Err(RecvError::Lagged(_)) => shared.sessions.open(),
            Err(RecvError::Closed) => return,
        };
        for id in changed {
            if let Some((owner, behind)) = shared.sessions.look_again(&id).await {
                catch_up(&shared, &id, &Requester::new(owner), behind).await;
            }
        }
    }
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
    // rmcp takes no request that names no host, whichever it is.
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
    let answer = shared.mcp.answer(request).await;
    let taken = answer.status().is_success();
    only_answer(answer.into_body(), &json!(OWN)).await;
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

//! Request streams in the shared store, which a client can resume on another server.
//!
//! A long-running request is recorded when it starts, and its events when it ends. A server that the client
//! reconnects to waits for the events. If a server dies, the records of its requests expire, and the
//! clients get an error.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rmcp::model::{ErrorData, RequestId};
use rmcp::transport::streamable_http_server::session::SessionId;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::{mpsc, oneshot};

use super::request_stream::RequestStream;
use super::session_store::storage_owner;
use exa_mcp_model::Identity;
use exa_mcp_store::{DocumentKey, ExpectedRevision, Store, StoreError, WriteOptions};

const COLLECTION: &str = "streams";

/// The version of the stored format.
const FORMAT: u32 = 1;

/// How long the events of a completed request are stored.
const COMPLETED_TTL: Duration = Duration::from_secs(60);

/// How long the record of a running request is valid, and how often it is renewed.
const RUNNING_TTL: Duration = Duration::from_secs(20);
const RENEWAL_INTERVAL: Duration = Duration::from_secs(5);

/// How long a response is held back until its stream is recorded: a client may lose the connection right after the first
/// event.
const RECORD_TIMEOUT: Duration = Duration::from_millis(500);

/// How often to check whether a request has completed on another server.
const POLL_INTERVAL: Duration = Duration::from_millis(400);

/// The maximum number of streams per owner, and the maximum size of a stream. Others are not shared.
const MAX_STREAMS: usize = 100;
const MAX_BYTES: usize = 256 * 1024;

/// The stored record of a stream.
#[derive(Serialize, Deserialize)]
struct SharedStream {
    format: u32,
    request: RequestId,
    /// `None` while the request runs.
    events: Option<Vec<SharedEvent>>,
}

#[derive(Serialize, Deserialize)]
struct SharedEvent {
    index: u64,
    text: String,
}

/// The streams of all servers that share a store.
#[derive(Clone)]
pub(super) struct SharedReplay(Arc<dyn Store>);

impl SharedReplay {
    /// Returns the streams of a store, if it is shared.
    pub(super) fn new(store: &Arc<dyn Store>) -> Option<Self> {
        let store = Arc::clone(store);
        store.is_remote().then_some(Self(store))
    }

    /// Records a stream for other servers, now and when it has ended. Returns when it can be resumed there, or when the
    /// store is slow.
    pub(super) async fn publish(
        &self,
        owner: &Identity,
        session: &SessionId,
        request: RequestId,
        stream: Arc<RequestStream>,
    ) {
        let replay = self.clone();
        let key = document_key(owner, session, &stream.id());
        let (recorded, is_recorded) = oneshot::channel::<()>();
        tokio::spawn(async move {
            let mut recorded = Some(recorded);
            let mut shared = SharedStream {
                format: FORMAT,
                request,
                events: None,
            };
            loop {
                // Without the store the client can only resume on this server.
                let _ = replay.put(&key, &shared).await;
                drop(recorded.take());
                if tokio::time::timeout(RENEWAL_INTERVAL, stream.wait_until_ended())
                    .await
                    .is_ok()
                {
                    break;
                }
            }
            if stream.bytes() > MAX_BYTES {
                return;
            }
            let events = stream.events().into_iter().map(|event| SharedEvent {
                index: event.index,
                text: String::from_utf8_lossy(&event.text()).into_owned(),
            });
            shared.events = Some(events.collect());
            let _ = replay.put(&key, &shared).await;
        });
        // The sender is dropped without a value.
        let _ = tokio::time::timeout(RECORD_TIMEOUT, is_recorded).await;
    }

    async fn put(&self, key: &DocumentKey, stream: &SharedStream) -> Result<(), StoreError> {
        let body = serde_json::to_string(stream).unwrap_or_default();
        let time_to_live = if stream.events.is_some() {
            COMPLETED_TTL
        } else {
            RUNNING_TTL
        };
        let rules = WriteOptions {
            time_to_live: Some(time_to_live),
            max_documents: Some(MAX_STREAMS),
            expected: ExpectedRevision::Any,
        };
        self.0.put(key.clone(), body, rules).await.map(drop)
    }

    async fn get(&self, key: &DocumentKey) -> Result<Option<SharedStream>, StoreError> {
        let document = self.0.get(key.clone()).await?;
        let read = |body: &str| serde_json::from_str::<SharedStream>(body).ok();
        let stream = document.and_then(|document| read(&document.body));
        Ok(stream.filter(|stream| stream.format == FORMAT))
    }

    /// Returns the events after an event of a stream that started on another server.
    pub(super) async fn find(
        &self,
        owner: &Identity,
        session: &SessionId,
        event_id: &str,
    ) -> Option<SharedEvents> {
        let (stream_id, index) = event_id.rsplit_once('-')?;
        let index = index.parse().ok()?;
        let key = document_key(owner, session, stream_id);
        let stream = self.get(&key).await.ok()??;
        let replay = self.clone();
        let (sender, events) = mpsc::channel(1);
        tokio::spawn(async move {
            tokio::select! {
                () = replay.forward(&key, stream, index, &sender) => {}
                () = sender.closed() => {}
            }
        });
        Some(SharedEvents(events))
    }

    /// Sends the events after `index` once the stream has ended.
    async fn forward(
        &self,
        key: &DocumentKey,
        mut stream: SharedStream,
        index: u64,
        sender: &mpsc::Sender<Bytes>,
    ) {
        let events = loop {
            if let Some(events) = stream.events {
                break events;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
            match self.get(key).await {
                Ok(Some(found)) => stream = found,
                Ok(None) => {
                    let _ = sender.send(lost_request_event(&stream.request)).await;
                    return;
                }
                // The store may recover.
                Err(_) => {}
            }
        };
        for event in events.into_iter().filter(|event| event.index > index) {
            let _ = sender.send(event.text.into()).await;
        }
    }
}

/// Only the owner of a session finds its streams.
fn document_key(owner: &Identity, session: &SessionId, stream_id: &str) -> DocumentKey {
    DocumentKey {
        owner: storage_owner(owner),
        collection: COLLECTION,
        id: format!("{session}/{stream_id}"),
    }
}

/// The remaining events of a stream that started on another server.
pub(super) struct SharedEvents(mpsc::Receiver<Bytes>);

impl SharedEvents {
    /// Returns the next event. This method is cancel safe.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        self.0.recv().await
    }
}

/// Returns the error event for a request that was lost with its server.
fn lost_request_event(request: &RequestId) -> Bytes {
    let reason = "The result is not available: the server that ran this request stopped, or the result is too \
               large to share between servers. Repeat the request if that is safe.";
    let error = ErrorData::internal_error(reason, None);
    let message = json!({"jsonrpc": "2.0", "id": request, "error": error});
    format!("data: {message}\n\n").into()
}

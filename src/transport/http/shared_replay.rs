//! Streams of requests that a client may come back to at another server, in the store that they share.
//!
//! A request that takes its time is noted there when it begins, and its events when it ends. The server to
//! which the client comes waits for them. One that dies takes its requests with it: its note runs out,
//! and the client gets an error.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rmcp::model::{ErrorData, RequestId};
use rmcp::transport::streamable_http_server::session::SessionId;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::mpsc;

use super::kept_sessions::shelf;
use super::request_stream::RequestStream;
use exa_mcp_model::Identity;
use exa_mcp_store::{DocumentKey, ExpectedRevision, Store, StoreError, WriteOptions};

const COLLECTION: &str = "streams";

/// Changes with what is written.
const FORMAT: u32 = 1;

/// How long the events of a request stay.
const LIFE: Duration = Duration::from_secs(60);

/// How long a note of a running request stays, and how often it is written anew.
const RUNNING_LIFE: Duration = Duration::from_secs(20);
const RENEWAL: Duration = Duration::from_secs(5);

/// How often it is looked whether a request has ended at another server.
const POLL: Duration = Duration::from_millis(400);

/// The most streams of one owner, and the most bytes of one. Others are known to one server alone.
const MAX_STREAMS: usize = 100;
const MAX_BYTES: usize = 256 * 1024;

/// What other servers know of a stream.
#[derive(Serialize, Deserialize)]
struct SharedStream {
    format: u32,
    request: RequestId,
    /// None while the request runs.
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
    /// The streams in a store, if it is one that others share.
    pub(super) fn new(store: &Arc<dyn Store>) -> Option<Self> {
        let store = Arc::clone(store);
        store.is_remote().then_some(Self(store))
    }

    /// Lets other servers know of a stream, now and when it has ended.
    pub(super) fn publish(
        &self,
        owner: &Identity,
        session: &SessionId,
        request: RequestId,
        stream: Arc<RequestStream>,
    ) {
        let replay = self.clone();
        let place = place(owner, session, &stream.id());
        tokio::spawn(async move {
            let mut shared = SharedStream {
                format: FORMAT,
                request,
                events: None,
            };
            loop {
                // Without the store a client comes back to this server, or loses the rest.
                let _ = replay.put(&place, &shared).await;
                if tokio::time::timeout(RENEWAL, stream.ended()).await.is_ok() {
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
            let _ = replay.put(&place, &shared).await;
        });
    }

    async fn put(&self, place: &DocumentKey, stream: &SharedStream) -> Result<(), StoreError> {
        let body = serde_json::to_string(stream).unwrap_or_default();
        let life = if stream.events.is_some() {
            LIFE
        } else {
            RUNNING_LIFE
        };
        let rules = WriteOptions {
            time_to_live: Some(life),
            max_documents: Some(MAX_STREAMS),
            expected: ExpectedRevision::Any,
        };
        self.0.put(place.clone(), body, rules).await.map(drop)
    }

    async fn get(&self, place: &DocumentKey) -> Result<Option<SharedStream>, StoreError> {
        let document = self.0.get(place.clone()).await?;
        let read = |body: &str| serde_json::from_str::<SharedStream>(body).ok();
        let stream = document.and_then(|document| read(&document.body));
        Ok(stream.filter(|stream| stream.format == FORMAT))
    }

    /// What follows an event of a stream that began at another server.
    pub(super) async fn find(
        &self,
        owner: &Identity,
        session: &SessionId,
        event_id: &str,
    ) -> Option<SharedEvents> {
        let (stream_id, index) = event_id.rsplit_once('-')?;
        let index = index.parse().ok()?;
        let place = place(owner, session, stream_id);
        let stream = self.get(&place).await.ok()??;
        let replay = self.clone();
        let (sender, events) = mpsc::channel(1);
        tokio::spawn(async move {
            tokio::select! {
                () = replay.forward(&place, stream, index, &sender) => {}
                () = sender.closed() => {}
            }
        });
        Some(SharedEvents(events))
    }

    /// Sends the events after one of them, once the stream has ended.
    async fn forward(
        &self,
        place: &DocumentKey,
        mut stream: SharedStream,
        index: u64,
        sender: &mpsc::Sender<Bytes>,
    ) {
        let events = loop {
            if let Some(events) = stream.events {
                break events;
            }
            tokio::time::sleep(POLL).await;
            match self.get(place).await {
                Ok(Some(found)) => stream = found,
                Ok(None) => {
                    let _ = sender.send(lost(&stream.request)).await;
                    return;
                }
                // The store may come back.
                Err(_) => {}
            }
        };
        for event in events.into_iter().filter(|event| event.index > index) {
            let _ = sender.send(event.text.into()).await;
        }
    }
}

/// Only the owner of a session finds its streams.
fn place(owner: &Identity, session: &SessionId, stream_id: &str) -> DocumentKey {
    DocumentKey {
        owner: shelf(owner),
        collection: COLLECTION,
        id: format!("{session}/{stream_id}"),
    }
}

/// The rest of a stream that began at another server.
pub(super) struct SharedEvents(mpsc::Receiver<Bytes>);

impl SharedEvents {
    /// The next event; a call that is given up loses none.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        self.0.recv().await
    }
}

/// What a client gets whose request was lost with its server.
fn lost(request: &RequestId) -> Bytes {
    let why = "The result is not available: the server that ran this request ended, or the result is too \
               large to be read from another server. Make the request again if that does no harm.";
    let error = ErrorData::internal_error(why, None);
    let message = json!({"jsonrpc": "2.0", "id": request, "error": error});
    format!("data: {message}\n\n").into()
}

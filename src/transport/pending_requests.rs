//! Requests without a response.
//!
//! rmcp keys requests by id and loses responses when two requests in flight share one. Each request
//! therefore gets an internal id, which is replaced by the client's id in the response. This module also
//! collects the responses to a batch, which are sent as one array.

use std::{
    collections::{BTreeSet, HashMap},
    io,
    sync::Arc,
};

use rmcp::model::{ErrorData, RequestId};
use serde::Serialize;
use serde_json::Value;

use super::{backlog::Backlog, line_writer::to_json};

/// Identifies a batch in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct BatchId(u64);

/// The requests without a response, and the batches they belong to.
#[derive(Default)]
pub(super) struct PendingRequests {
    last_request: i64,
    last_batch: u64,
    open: HashMap<i64, PendingRequest>,
    batches: HashMap<BatchId, Batch>,
    /// The pending requests that stay open as subscriptions.
    subscriptions: BTreeSet<i64>,
    backlog: Arc<Backlog>,
}

struct PendingRequest {
    id: Value,
    batch: Option<BatchId>,
}

#[derive(Default)]
struct Batch {
    outstanding: usize,
    responses: Vec<Vec<u8>>,
}

/// The payload of a JSON-RPC response.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ResponsePayload<R> {
    Result(R),
    Error(ErrorData),
}

#[derive(Serialize)]
struct Envelope<'a, R> {
    jsonrpc: &'static str,
    id: &'a Value,
    #[serde(flatten)]
    payload: &'a ResponsePayload<R>,
}

impl PendingRequests {
    /// Creates an empty set that publishes its size in `backlog`.
    pub(super) fn new(backlog: Arc<Backlog>) -> Self {
        Self {
            backlog,
            ..Self::default()
        }
    }

    /// Adds a request and returns its internal id.
    pub(super) fn register(&mut self, id: Value, batch: Option<BatchId>) -> RequestId {
        self.last_request += 1;
        if let Some(batch) = batch.and_then(|batch| self.batches.get_mut(&batch)) {
            batch.outstanding += 1;
        }
        self.open
            .insert(self.last_request, PendingRequest { id, batch });
        self.update_backlog();
        RequestId::Number(self.last_request)
    }

    fn update_backlog(&self) {
        self.backlog.set_open_requests(self.open.len());
    }

    /// Returns the number of requests without a response, excluding subscriptions.
    pub(super) fn unanswered_count(&self) -> usize {
        self.open.len().saturating_sub(self.subscriptions.len())
    }

    /// Returns the client's id of a pending request.
    pub(super) fn id(&self, request: &RequestId) -> Option<&Value> {
        match request {
            RequestId::Number(number) => self.open.get(number).map(|open| &open.id),
            RequestId::String(_) => None,
        }
    }

    /// Marks a request as a subscription.
    pub(super) fn subscribe(&mut self, request: &RequestId) {
        if let RequestId::Number(number) = request {
            self.subscriptions.insert(*number);
        }
    }

    /// Removes all subscriptions and returns their internal ids.
    pub(super) fn remove_subscriptions(&mut self) -> Vec<RequestId> {
        let numbers = std::mem::take(&mut self.subscriptions);
        let ended = numbers
            .into_iter()
            .filter(|number| self.open.remove(number).is_some())
            .map(RequestId::Number)
            .collect();
        self.update_backlog();
        ended
    }

    /// Completes a request and returns the bytes to write now: none if the request was cancelled or its
    /// batch is incomplete.
    pub(super) fn complete<R: Serialize>(
        &mut self,
        request: &RequestId,
        payload: &ResponsePayload<R>,
    ) -> io::Result<Option<Vec<u8>>> {
        let RequestId::Number(number) = request else {
            return Ok(None);
        };
        let Some(PendingRequest { id, batch }) = self.open.remove(number) else {
            return Ok(None);
        };
        self.update_backlog();
        self.subscriptions.remove(number);
        let text = envelope(&id, payload)?;
        Ok(match batch {
            None => Some(text),
            Some(batch) => self.complete_batch_member(batch, Some(text)),
        })
    }

    /// Removes all pending requests with this id. Returns their internal ids and the batches that are now
    /// complete.
    pub(super) fn cancel(&mut self, id: &Value) -> (Vec<RequestId>, Vec<Vec<u8>>) {
        let cancelled: Vec<_> = self.open.extract_if(|_, open| open.id == *id).collect();
        self.update_backlog();
        for (number, _) in &cancelled {
            self.subscriptions.remove(number);
        }
        let batches: Vec<_> = cancelled
            .iter()
            .filter_map(|(_, open)| open.batch)
            .collect();
        let complete = batches
            .into_iter()
            .filter_map(|batch| self.complete_batch_member(batch, None));
        let complete = complete.collect();
        let numbers = cancelled.into_iter().map(|(n, _)| RequestId::Number(n));
        (numbers.collect(), complete)
    }

    /// Starts a batch.
    pub(super) fn open_batch(&mut self) -> BatchId {
        self.last_batch += 1;
        let number = BatchId(self.last_batch);
        self.batches.insert(number, Batch::default());
        number
    }

    /// Adds the error response to an invalid batch member.
    pub(super) fn add_batch_error(
        &mut self,
        number: BatchId,
        id: &Value,
        error: ErrorData,
    ) -> io::Result<()> {
        let text = error_response(id, error)?;
        if let Some(batch) = self.batches.get_mut(&number) {
            batch.responses.push(text);
        }
        Ok(())
    }

    /// Marks the batch as fully read. Returns its response if nothing is outstanding.
    pub(super) fn seal_batch(&mut self, number: BatchId) -> Option<Vec<u8>> {
        let outstanding = self.batches.get(&number)?.outstanding;
        if outstanding > 0 {
            return None;
        }
        let batch = self.batches.remove(&number)?;
        (!batch.responses.is_empty()).then(|| array(&batch.responses))
    }

    /// Records that one member of the batch has completed.
    fn complete_batch_member(&mut self, number: BatchId, text: Option<Vec<u8>>) -> Option<Vec<u8>> {
        let batch = self.batches.get_mut(&number)?;
        batch.outstanding = batch.outstanding.saturating_sub(1);
        batch.responses.extend(text);
        self.seal_batch(number)
    }
}

/// Serializes an error response.
pub(super) fn error_response(id: &Value, error: ErrorData) -> io::Result<Vec<u8>> {
    envelope(id, &ResponsePayload::<()>::Error(error))
}

fn envelope<R: Serialize>(id: &Value, payload: &ResponsePayload<R>) -> io::Result<Vec<u8>> {
    to_json(&Envelope {
        jsonrpc: "2.0",
        id,
        payload,
    })
}

fn array(members: &[Vec<u8>]) -> Vec<u8> {
    let mut text = b"[".to_vec();
    text.extend(members.join(&b','));
    text.push(b']');
    text
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use serde_json::json;

    use super::*;

    fn value(text: &[u8]) -> Value {
        serde_json::from_slice(text).unwrap()
    }

    fn complete(
        pending: &mut PendingRequests,
        request: &RequestId,
        result: Value,
    ) -> Option<Value> {
        let written = pending
            .complete(request, &ResponsePayload::Result(result))
            .unwrap();
        written.map(|text| value(&text))
    }

    #[test]
    fn a_response_carries_the_clients_id_once() {
        let mut pending = PendingRequests::default();
        let first = pending.register(json!("a"), None);
        let second = pending.register(json!("a"), None);
        let expected = json!({"jsonrpc": "2.0", "id": "a", "result": 1});
        assert_eq!(complete(&mut pending, &first, json!(1)), Some(expected));
        assert_eq!(complete(&mut pending, &first, json!(1)), None);
        let expected = json!({"jsonrpc": "2.0", "id": "a", "result": 2});
        assert_eq!(complete(&mut pending, &second, json!(2)), Some(expected));
    }

    #[test]
    fn a_cancelled_request_gets_no_response() {
        let mut pending = PendingRequests::default();
        let other = pending.register(json!(2), None);
        let request = pending.register(json!(1), None);
        assert_eq!(pending.cancel(&json!(9)), (vec![], vec![]));
        assert_eq!(pending.cancel(&json!(1)), (vec![request.clone()], vec![]));
        assert_eq!(complete(&mut pending, &request, json!(1)), None);
        assert!(complete(&mut pending, &other, json!(1)).is_some());
    }

    #[test]
    fn subscriptions_end_with_the_connection() {
        let mut pending = PendingRequests::default();
        let call = pending.register(json!(1), None);
        let listens: Vec<_> = [json!("a"), json!("b"), json!("c")]
            .map(|id| pending.register(id, None))
            .into();
        listens.iter().for_each(|listen| pending.subscribe(listen));
        assert_eq!(pending.unanswered_count(), 1);
        assert_eq!(pending.id(&listens[1]), Some(&json!("b")));
        pending.cancel(&json!("a"));
        assert_eq!(pending.id(&listens[0]), None);
        assert!(complete(&mut pending, &listens[1], json!(1)).is_some());
        assert_eq!(pending.remove_subscriptions(), [listens[2].clone()]);
        assert_eq!(pending.remove_subscriptions(), []);
        assert_eq!(complete(&mut pending, &listens[2], json!(1)), None);
        assert!(complete(&mut pending, &call, json!(1)).is_some());
    }

    #[test]
    fn sends_a_batch_after_its_last_response() {
        let mut pending = PendingRequests::default();
        let batch = pending.open_batch();
        let first = pending.register(json!(1), Some(batch));
        let second = pending.register(json!(2), Some(batch));
        let error = ErrorData::invalid_request("no", None);
        let added = pending.add_batch_error(batch, &Value::Null, error);
        added.unwrap();
        assert_eq!(pending.seal_batch(batch), None);
        assert_eq!(complete(&mut pending, &second, json!("b")), None);
        let payload = complete(&mut pending, &first, json!("a")).unwrap();
        let ids = payload.as_array().unwrap().iter().map(|a| a["id"].clone());
        let ids: Vec<_> = ids.collect();
        assert_eq!(ids, [json!(null), json!(2), json!(1)]);
    }

    #[test]
    fn a_cancelled_member_does_not_block_its_batch() {
        let mut pending = PendingRequests::default();
        let batch = pending.open_batch();
        let first = pending.register(json!(1), Some(batch));
        pending.register(json!(2), Some(batch));
        assert_eq!(pending.seal_batch(batch), None);
        assert_eq!(complete(&mut pending, &first, json!("a")), None);
        let (_, complete) = pending.cancel(&json!(2));
        let expected = json!([{"jsonrpc": "2.0", "id": 1, "result": "a"}]);
        assert_eq!(value(&complete.concat()), expected);
    }

    #[test]
    fn a_batch_without_requests_has_no_response() {
        let mut pending = PendingRequests::default();
        let batch = pending.open_batch();
        assert_eq!(pending.seal_batch(batch), None);
        let batch = pending.open_batch();
        pending.register(json!(1), Some(batch));
        assert_eq!(pending.seal_batch(batch), None);
        assert_eq!(pending.cancel(&json!(1)).1, Vec::<Vec<u8>>::new());
    }
}

//! Who is owed an answer.
//!
//! rmcp keys its requests by id and loses answers when two in flight share one. So every request gets
//! a number of our own, and its answer gets the client's id back on the way out. The ledger also
//! gathers the answers of a batch, which leave as one array.

use std::{
    collections::{BTreeSet, HashMap},
    io,
    sync::Arc,
};

use rmcp::model::{ErrorData, RequestId};
use serde::Serialize;
use serde_json::Value;

use super::{backlog::Backlog, output::json};

/// Names a batch while it is being answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct BatchNumber(u64);

/// The requests without an answer and the batches that wait for some.
#[derive(Default)]
pub(super) struct Ledger {
    last_request: i64,
    last_batch: u64,
    open: HashMap<i64, Open>,
    batches: HashMap<BatchNumber, Batch>,
    /// Those of the open requests that stay open to tell of changes.
    subscriptions: BTreeSet<i64>,
    backlog: Arc<Backlog>,
}

struct Open {
    id: Value,
    batch: Option<BatchNumber>,
}

#[derive(Default)]
struct Batch {
    owed: usize,
    answers: Vec<Vec<u8>>,
}

/// The content of an answer.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Answer<R> {
    /// What was asked for.
    Result(R),
    /// Why there is none.
    Error(ErrorData),
}

#[derive(Serialize)]
struct Envelope<'a, R> {
    jsonrpc: &'static str,
    id: &'a Value,
    #[serde(flatten)]
    answer: &'a Answer<R>,
}

impl Ledger {
    /// Returns an empty ledger that keeps the number of its open requests in `backlog`.
    pub(super) fn new(backlog: Arc<Backlog>) -> Self {
        Self {
            backlog,
            ..Self::default()
        }
    }

    /// Enters a request and gives the number it has on our side.
    pub(super) fn enter(&mut self, id: Value, batch: Option<BatchNumber>) -> RequestId {
        self.last_request += 1;
        if let Some(batch) = batch.and_then(|batch| self.batches.get_mut(&batch)) {
            batch.owed += 1;
        }
        self.open.insert(self.last_request, Open { id, batch });
        self.count_open();
        RequestId::Number(self.last_request)
    }

    fn count_open(&self) {
        self.backlog.set_open_requests(self.open.len());
    }

    /// How many requests have no answer yet, apart from those that want none soon.
    pub(super) fn unanswered(&self) -> usize {
        self.open.len().saturating_sub(self.subscriptions.len())
    }

    /// The client's id of an open request.
    pub(super) fn id(&self, request: &RequestId) -> Option<&Value> {
        match request {
            RequestId::Number(number) => self.open.get(number).map(|open| &open.id),
            RequestId::String(_) => None,
        }
    }

    /// Notes that a request stays open to tell of changes.
    pub(super) fn subscribe(&mut self, request: &RequestId) {
        if let RequestId::Number(number) = request {
            self.subscriptions.insert(*number);
        }
    }

    /// Strikes out the requests that stay open, and gives their numbers.
    pub(super) fn end_subscriptions(&mut self) -> Vec<RequestId> {
        let numbers = std::mem::take(&mut self.subscriptions);
        let ended = numbers
            .into_iter()
            .filter(|number| self.open.remove(number).is_some())
            .map(RequestId::Number)
            .collect();
        self.count_open();
        ended
    }

    /// Takes the answer to a request and gives what is to be written now: nothing if the request was
    /// cancelled or its batch is not complete.
    pub(super) fn answer<R: Serialize>(
        &mut self,
        request: &RequestId,
        answer: &Answer<R>,
    ) -> io::Result<Option<Vec<u8>>> {
        let RequestId::Number(number) = request else {
            return Ok(None);
        };
        let Some(Open { id, batch }) = self.open.remove(number) else {
            return Ok(None);
        };
        self.count_open();
        self.subscriptions.remove(number);
        let text = envelope(&id, answer)?;
        Ok(match batch {
            None => Some(text),
            Some(batch) => self.settle(batch, Some(text)),
        })
    }

    /// Strikes out all open requests with this id. Gives their numbers, and the batches that are
    /// complete now.
    pub(super) fn cancel(&mut self, id: &Value) -> (Vec<RequestId>, Vec<Vec<u8>>) {
        let struck: Vec<_> = self.open.extract_if(|_, open| open.id == *id).collect();
        self.count_open();
        for (number, _) in &struck {
            self.subscriptions.remove(number);
        }
        let batches: Vec<_> = struck.iter().filter_map(|(_, open)| open.batch).collect();
        let complete = batches
            .into_iter()
            .filter_map(|batch| self.settle(batch, None));
        let complete = complete.collect();
        let numbers = struck.into_iter().map(|(n, _)| RequestId::Number(n));
        (numbers.collect(), complete)
    }

    /// Opens a batch.
    pub(super) fn open_batch(&mut self) -> BatchNumber {
        self.last_batch += 1;
        let number = BatchNumber(self.last_batch);
        self.batches.insert(number, Batch::default());
        number
    }

    /// Adds the refusal of a member that was never entered.
    pub(super) fn refuse_in_batch(
        &mut self,
        number: BatchNumber,
        id: &Value,
        error: ErrorData,
    ) -> io::Result<()> {
        let text = refusal(id, error)?;
        if let Some(batch) = self.batches.get_mut(&number) {
            batch.answers.push(text);
        }
        Ok(())
    }

    /// All members of the batch are entered; gives its answer if nothing is owed.
    pub(super) fn seal(&mut self, number: BatchNumber) -> Option<Vec<u8>> {
        let owed = self.batches.get(&number)?.owed;
        if owed > 0 {
            return None;
        }
        let batch = self.batches.remove(&number)?;
        (!batch.answers.is_empty()).then(|| array(&batch.answers))
    }

    /// One member less is owed.
    fn settle(&mut self, number: BatchNumber, text: Option<Vec<u8>>) -> Option<Vec<u8>> {
        let batch = self.batches.get_mut(&number)?;
        batch.owed = batch.owed.saturating_sub(1);
        batch.answers.extend(text);
        self.seal(number)
    }
}

/// Writes the answer that refuses a message.
pub(super) fn refusal(id: &Value, error: ErrorData) -> io::Result<Vec<u8>> {
    envelope(id, &Answer::<()>::Error(error))
}

fn envelope<R: Serialize>(id: &Value, answer: &Answer<R>) -> io::Result<Vec<u8>> {
    json(&Envelope {
        jsonrpc: "2.0",
        id,
        answer,
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

    fn give(ledger: &mut Ledger, request: &RequestId, result: Value) -> Option<Value> {
        let written = ledger.answer(request, &Answer::Result(result)).unwrap();
        written.map(|text| value(&text))
    }

    #[test]
    fn an_answer_carries_the_clients_id_once() {
        let mut ledger = Ledger::default();
        let first = ledger.enter(json!("a"), None);
        let second = ledger.enter(json!("a"), None);
        let expected = json!({"jsonrpc": "2.0", "id": "a", "result": 1});
        assert_eq!(give(&mut ledger, &first, json!(1)), Some(expected));
        assert_eq!(give(&mut ledger, &first, json!(1)), None);
        let expected = json!({"jsonrpc": "2.0", "id": "a", "result": 2});
        assert_eq!(give(&mut ledger, &second, json!(2)), Some(expected));
    }

    #[test]
    fn a_cancelled_request_is_not_answered() {
        let mut ledger = Ledger::default();
        let kept = ledger.enter(json!(2), None);
        let request = ledger.enter(json!(1), None);
        assert_eq!(ledger.cancel(&json!(9)), (vec![], vec![]));
        assert_eq!(ledger.cancel(&json!(1)), (vec![request.clone()], vec![]));
        assert_eq!(give(&mut ledger, &request, json!(1)), None);
        assert!(give(&mut ledger, &kept, json!(1)).is_some());
    }

    #[test]
    fn requests_that_stay_open_end_with_the_connection() {
        let mut ledger = Ledger::default();
        let call = ledger.enter(json!(1), None);
        let listens: Vec<_> = [json!("a"), json!("b"), json!("c")]
            .map(|id| ledger.enter(id, None))
            .into();
        listens.iter().for_each(|listen| ledger.subscribe(listen));
        assert_eq!(ledger.unanswered(), 1);
        assert_eq!(ledger.id(&listens[1]), Some(&json!("b")));
        ledger.cancel(&json!("a"));
        assert_eq!(ledger.id(&listens[0]), None);
        assert!(give(&mut ledger, &listens[1], json!(1)).is_some());
        assert_eq!(ledger.end_subscriptions(), [listens[2].clone()]);
        assert_eq!(ledger.end_subscriptions(), []);
        assert_eq!(give(&mut ledger, &listens[2], json!(1)), None);
        assert!(give(&mut ledger, &call, json!(1)).is_some());
    }

    #[test]
    fn a_batch_leaves_when_its_last_answer_is_there() {
        let mut ledger = Ledger::default();
        let batch = ledger.open_batch();
        let first = ledger.enter(json!(1), Some(batch));
        let second = ledger.enter(json!(2), Some(batch));
        let error = ErrorData::invalid_request("no", None);
        let refused = ledger.refuse_in_batch(batch, &Value::Null, error);
        refused.unwrap();
        assert_eq!(ledger.seal(batch), None);
        assert_eq!(give(&mut ledger, &second, json!("b")), None);
        let answer = give(&mut ledger, &first, json!("a")).unwrap();
        let ids = answer.as_array().unwrap().iter().map(|a| a["id"].clone());
        let ids: Vec<_> = ids.collect();
        assert_eq!(ids, [json!(null), json!(2), json!(1)]);
    }

    #[test]
    fn a_cancelled_member_does_not_hold_up_its_batch() {
        let mut ledger = Ledger::default();
        let batch = ledger.open_batch();
        let first = ledger.enter(json!(1), Some(batch));
        ledger.enter(json!(2), Some(batch));
        assert_eq!(ledger.seal(batch), None);
        assert_eq!(give(&mut ledger, &first, json!("a")), None);
        let (_, complete) = ledger.cancel(&json!(2));
        let expected = json!([{"jsonrpc": "2.0", "id": 1, "result": "a"}]);
        assert_eq!(value(&complete.concat()), expected);
    }

    #[test]
    fn a_batch_that_owes_nothing_gives_nothing() {
        let mut ledger = Ledger::default();
        let batch = ledger.open_batch();
        assert_eq!(ledger.seal(batch), None);
        let batch = ledger.open_batch();
        ledger.enter(json!(1), Some(batch));
        assert_eq!(ledger.seal(batch), None);
        assert_eq!(ledger.cancel(&json!(1)).1, Vec::<Vec<u8>>::new());
    }
}

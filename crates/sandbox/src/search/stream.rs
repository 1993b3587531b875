//! Streams of searches and answers.

use serde_json::{Value, json};

use super::cost::Cost;
use crate::call::Call;
use crate::http::stream::{data, done};
use crate::json::set;

/// Number of words in a chunk.
const WORDS: usize = 6;

/// The parts of a search that its stream sends.
pub(super) struct SearchParts {
    pub(super) output: Value,
    pub(super) results: Value,
    pub(super) warnings: Vec<Value>,
    pub(super) search_time: u64,
}

/// Returns the events of a search: text, grounding, results, warnings, and the end with the whole output.
pub(super) fn search(call: &Call, parts: SearchParts, cost: &Cost) -> Vec<String> {
    let content = parts.output.get("content").unwrap_or(&Value::Null);
    let mut events: Vec<Value> = pieces(content)
        .into_iter()
        .map(|piece| {
            let delta = json!({ "role": "assistant", "content": piece });
            json!({ "type": "text-delta", "delta": piece, "choices": choices(delta, Value::Null) })
        })
        .collect();
    let grounding = parts.output.get("grounding");
    events.push(json!({ "type": "grounding", "grounding": grounding }));
    events.push(json!({ "type": "results", "results": parts.results }));
    if !parts.warnings.is_empty() {
        events.push(json!({ "type": "warnings", "warnings": parts.warnings }));
    }
    events.push(json!({
        "type": "done",
        "output": parts.output,
        "searchTime": parts.search_time,
        "costDollars": cost.to_json(),
        "choices": choices(json!({}), "stop".into()),
    }));
    for event in &mut events {
        set(event, "requestId", call.request_id.as_str());
    }
    finish(events)
}

/// Returns the events of an answer: chunks of a chat completion, the citations, and the cost.
pub(super) fn answer(
    call: &Call,
    answer: &Value,
    citations: Vec<Value>,
    cost: &Cost,
) -> Vec<String> {
    let chunk = |delta: Value, finish: Value| {
        json!({
            "id": call.request_id,
            "object": "chat.completion.chunk",
            "choices": choices(delta, finish),
        })
    };
    let pieces = pieces(answer).into_iter();
    let mut events: Vec<Value> = pieces
        .map(|piece| {
            chunk(
                json!({ "role": "assistant", "content": piece }),
                Value::Null,
            )
        })
        .collect();
    events.push(chunk(json!({}), "stop".into()));
    events.push(json!({ "citations": citations }));
    events.push(json!({ "costDollars": cost.to_json(), "requestId": call.request_id }));
    finish(events)
}

fn choices(delta: Value, finish: Value) -> Value {
    json!([{ "index": 0, "delta": delta, "finish_reason": finish }])
}

/// Splits a text, or the text of a structured value.
fn pieces(content: &Value) -> Vec<String> {
    let text = content.as_str();
    let text = text.map_or_else(|| content.to_string(), str::to_owned);
    let words: Vec<&str> = text.split_inclusive(' ').collect();
    words.chunks(WORDS).map(|words| words.concat()).collect()
}

fn finish(events: Vec<Value>) -> Vec<String> {
    let events = events.into_iter().map(data);
    events.chain([done()]).collect()
}

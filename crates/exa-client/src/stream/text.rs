//! Assembles streams of text: searches and answers.
//!
//! There are two formats of events, and one event can use both: chat completion chunks
//! (`choices[0].delta.content`), and events with a `type`.

use serde_json::{Map, Value, json};

use super::{Assembler, ErrorBody, StreamKind, StreamState, StreamUpdate, failure};
use crate::text;

/// The maximum length of an incomplete text in an error, in characters.
const MAX_PARTIAL_TEXT: usize = 3_000;

/// The maximum number of pages in an error.
const MAX_PAGES: usize = 8;

/// The maximum length of the title or URL of such a page, in characters.
const MAX_PAGE_FIELD: usize = 200;

/// Fields of events that are not part of the response.
const EVENT_FIELDS: [&str; 14] = [
    "choices",
    "created",
    "delta",
    "finish_reason",
    "id",
    "index",
    "model",
    "object",
    "service_tier",
    "streamReset",
    "system_fingerprint",
    "text",
    "type",
    "usage",
];

/// Assembles a text with its sources.
pub(super) struct TextAssembler {
    kind: StreamKind,
    structured: bool,
    text: String,
    /// Whether the text comes from the field `answer`, either in pieces or repeated and growing.
    from_answers: bool,
    /// Whether an event has marked the text as complete.
    finished: bool,
    citations: Vec<Value>,
    grounding: Vec<Value>,
    /// All other fields of the response.
    other_fields: Map<String, Value>,
}

impl TextAssembler {
    pub(super) fn new(kind: StreamKind, structured: bool) -> Self {
        Self {
            kind,
            structured,
            text: String::new(),
            from_answers: false,
            finished: false,
            citations: Vec::new(),
            grounding: Vec::new(),
            other_fields: Map::new(),
        }
    }

    fn add_text(&mut self, kind: &str, data: &Map<String, Value>) -> Option<StreamUpdate> {
        let piece = piece(kind, data).map(str::to_owned).or_else(|| {
            let answer = data.get("answer")?.as_str()?;
            self.from_answers |= self.text.is_empty();
            let piece = answer.strip_prefix(&self.text).unwrap_or(answer);
            self.from_answers.then(|| piece.to_owned())
        })?;
        self.text.push_str(&piece);
        (!piece.is_empty()).then_some(StreamUpdate::Text(piece))
    }

    /// Adds citations, which may be spread over several events or repeated in each.
    fn add_citations(&mut self, citations: Option<&Value>) {
        for citation in citations.and_then(Value::as_array).into_iter().flatten() {
            if !self.citations.contains(citation) {
                self.citations.push(citation.clone());
            }
        }
    }

    fn add_other_fields(&mut self, data: Map<String, Value>) {
        for (name, value) in data {
            let known = EVENT_FIELDS.contains(&name.as_str())
                || ["answer", "citations", "grounding"].contains(&name.as_str());
            // A structured answer arrives as a whole.
            let is_structured = name == "answer" && value.is_object();
            if value.is_null() || (known && !is_structured) {
                continue;
            }
            match (self.other_fields.get_mut(&name), value) {
                (Some(Value::Array(all)), Value::Array(more)) if name == "warnings" => {
                    all.extend(more);
                }
                (_, value) => drop(self.other_fields.insert(name, value)),
            }
        }
    }

    /// Takes the text, parsed if structured output was requested.
    fn content(&mut self) -> Value {
        let text = std::mem::take(&mut self.text);
        let data = serde_json::from_str(&text).ok().filter(|_| self.structured);
        data.filter(|data: &Value| data.is_object() || data.is_array())
            .unwrap_or(Value::String(text))
    }

    fn into_search(mut self) -> Map<String, Value> {
        let mut output = match self.other_fields.shift_remove("output") {
            Some(Value::Object(output)) => output,
            _ => Map::new(),
        };
        if !self.text.is_empty() && !output.contains_key("content") {
            let content = self.content();
            output.insert("content".to_owned(), content);
        }
        if !self.grounding.is_empty() && !output.contains_key("grounding") {
            output.insert("grounding".to_owned(), self.grounding.into());
        }
        let mut response = Map::new();
        match self.other_fields.shift_remove("results") {
            Some(results) => {
                response.insert("results".to_owned(), results);
                if !self.citations.is_empty() {
                    response.insert("citations".to_owned(), self.citations.into());
                }
            }
            // The cited pages are the only known results.
            None => drop(response.insert("results".to_owned(), self.citations.into())),
        }
        if !output.is_empty() {
            response.insert("output".to_owned(), output.into());
        }
        response.extend(self.other_fields);
        response
    }

    fn into_answer(mut self) -> Map<String, Value> {
        let content = self.content();
        let whole = self.other_fields.shift_remove("answer");
        let mut response = Map::new();
        let content = whole.filter(|_| content == "").unwrap_or(content);
        response.insert("answer".to_owned(), content);
        response.insert("citations".to_owned(), self.citations.into());
        if !self.grounding.is_empty() {
            response.insert("grounding".to_owned(), self.grounding.into());
        }
        response.extend(self.other_fields);
        response
    }
}

impl Assembler for TextAssembler {
    fn take(
        &mut self,
        name: &str,
        data: Map<String, Value>,
    ) -> Result<StreamState, Box<ErrorBody>> {
        if let Some(error) = failure(name, &data) {
            return Err(error);
        }
        let kind = data.get("type").and_then(Value::as_str).unwrap_or(name);
        let kind = kind.to_owned();
        if kind == "stream-reset" || data.get("streamReset") == Some(&Value::Bool(true)) {
            // The text starts again; the pages stay.
            self.text.clear();
            self.grounding.clear();
            self.finished = false;
            return Ok(StreamState::More(None));
        }
        let choice = data.get("choices").and_then(|choices| choices.get(0));
        let reason = choice.and_then(|choice| choice.get("finish_reason"));
        self.finished |= reason.is_some_and(|reason| !reason.is_null());
        let inner = choice.and_then(|choice| choice.pointer("/delta/citations"));
        self.add_citations(inner);
        self.add_citations(data.get("citations"));
        if let Some(Value::Array(grounding)) = data.get("grounding") {
            self.grounding.clone_from(grounding);
        }
        let update = self.add_text(&kind, &data);
        self.add_other_fields(data);
        match kind.as_str() {
            "done" => Ok(StreamState::Complete),
            _ => Ok(StreamState::More(update)),
        }
    }

    /// Searches report when they are done. For answers, a proper end of the stream is sufficient.
    fn may_end(&self) -> bool {
        self.finished || (self.kind == StreamKind::Answer && !self.text.is_empty())
    }

    fn received(&self) -> Option<Value> {
        let results = self.other_fields.get("results").and_then(Value::as_array);
        let pages: Vec<Value> = results
            .unwrap_or(&self.citations)
            .iter()
            .take(MAX_PAGES)
            .map(|page| json!({"title": short(page, "title"), "url": short(page, "url")}))
            .collect();
        if self.text.is_empty() && pages.is_empty() {
            return None;
        }
        let shown = text::cut(&text::printable(&self.text), MAX_PARTIAL_TEXT);
        let mut received = json!({"partialText": shown, "characters": self.text.chars().count()});
        if let (Value::Object(received), false) = (&mut received, pages.is_empty()) {
            received.insert("pages".to_owned(), pages.into());
        }
        Some(received)
    }

    fn continuing_job(&self) -> Option<String> {
        None
    }

    fn into_response(self: Box<Self>, unreadable: usize) -> Value {
        let mut response = match self.kind {
            StreamKind::Answer => self.into_answer(),
            _ => self.into_search(),
        };
        if unreadable > 0 {
            let warnings = response.entry("warnings").or_insert_with(|| json!([]));
            if let Value::Array(warnings) = warnings {
                let message = format!(
                    "{unreadable} events of the stream could not be read and were skipped, so the text may have gaps."
                );
                warnings.push(json!({"code": "UNREADABLE_EVENTS", "message": message}));
            }
        }
        Value::Object(response)
    }
}

/// Returns a truncated text field of a page.
fn short(page: &Value, name: &str) -> Option<String> {
    let value = page.get(name)?.as_str()?;
    Some(text::cut(&text::clean(value), MAX_PAGE_FIELD))
}

/// Returns the text that an event adds. An event may contain it twice, once in either format.
fn piece<'a>(kind: &str, data: &'a Map<String, Value>) -> Option<&'a str> {
    let own = ["delta", "text"].into_iter().find_map(|name| {
        let named = name == "delta" || kind == "text-delta";
        data.get(name).filter(|_| named)?.as_str()
    });
    own.or_else(|| {
        let delta = data.get("choices")?.get(0)?.get("delta")?;
        ["content", "refusal"]
            .into_iter()
            .find_map(|name| delta.get(name)?.as_str())
    })
}

#[cfg(test)]
#[path = "../tests/stream_text.rs"]
mod tests;

//! Assembles streams that write a text: searches and answers.
//!
//! Two forms of events are about, and one event can have both: pieces as chat completions send them
//! (`choices[0].delta.content`), and events with a `type`.

use serde_json::{Map, Value, json};

use super::{Assembler, ErrorBody, StreamForm, StreamState, StreamUpdate, failure};
use crate::text;

/// Characters of a text that broke off, and pages with so many characters, that an error tells.
const MOST_CHARACTERS: usize = 3_000;
const MOST_PAGES: usize = 8;
const MOST_OF_PAGE: usize = 200;

/// Fields that belong to the events, not to the answer.
const OF_EVENTS: [&str; 14] = [
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

/// A text with its sources.
pub(super) struct TextAssembler {
    form: StreamForm,
    structured: bool,
    text: String,
    /// The text came as whole answers, each longer than the one before, or in pieces of them.
    from_answers: bool,
    /// The text has been said to be complete.
    finished: bool,
    citations: Vec<Value>,
    grounding: Vec<Value>,
    /// Everything else that the events told of the answer.
    rest: Map<String, Value>,
}

impl TextAssembler {
    pub(super) fn new(form: StreamForm, structured: bool) -> Self {
        Self {
            form,
            structured,
            text: String::new(),
            from_answers: false,
            finished: false,
            citations: Vec::new(),
            grounding: Vec::new(),
            rest: Map::new(),
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

    /// Citations may come all at once, in several events, or in every event all over again.
    fn add_citations(&mut self, citations: Option<&Value>) {
        for citation in citations.and_then(Value::as_array).into_iter().flatten() {
            if !self.citations.contains(citation) {
                self.citations.push(citation.clone());
            }
        }
    }

    fn add_rest(&mut self, data: Map<String, Value>) {
        for (name, value) in data {
            let known = OF_EVENTS.contains(&name.as_str())
                || ["answer", "citations", "grounding"].contains(&name.as_str());
            // An answer that is data has no pieces.
            let whole = name == "answer" && value.is_object();
            if value.is_null() || (known && !whole) {
                continue;
            }
            match (self.rest.get_mut(&name), value) {
                (Some(Value::Array(all)), Value::Array(more)) if name == "warnings" => {
                    all.extend(more);
                }
                (_, value) => drop(self.rest.insert(name, value)),
            }
        }
    }

    /// The text, as data if that was asked for.
    fn content(&mut self) -> Value {
        let text = std::mem::take(&mut self.text);
        let data = serde_json::from_str(&text).ok().filter(|_| self.structured);
        data.filter(|data: &Value| data.is_object() || data.is_array())
            .unwrap_or(Value::String(text))
    }

    fn into_search(mut self) -> Map<String, Value> {
        let mut output = match self.rest.shift_remove("output") {
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
        let mut answer = Map::new();
        match self.rest.shift_remove("results") {
            Some(results) => {
                answer.insert("results".to_owned(), results);
                if !self.citations.is_empty() {
                    answer.insert("citations".to_owned(), self.citations.into());
                }
            }
            // The pages that the text is based on are all that is known of those found.
            None => drop(answer.insert("results".to_owned(), self.citations.into())),
        }
        if !output.is_empty() {
            answer.insert("output".to_owned(), output.into());
        }
        answer.extend(self.rest);
        answer
    }

    fn into_answer(mut self) -> Map<String, Value> {
        let content = self.content();
        let whole = self.rest.shift_remove("answer");
        let mut answer = Map::new();
        let content = whole.filter(|_| content == "").unwrap_or(content);
        answer.insert("answer".to_owned(), content);
        answer.insert("citations".to_owned(), self.citations.into());
        if !self.grounding.is_empty() {
            answer.insert("grounding".to_owned(), self.grounding.into());
        }
        answer.extend(self.rest);
        answer
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
            // The text begins anew; what is known of the pages stays.
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
        let heard = self.add_text(&kind, &data);
        self.add_rest(data);
        match kind.as_str() {
            "done" => Ok(StreamState::Complete),
            _ => Ok(StreamState::More(heard)),
        }
    }

    /// Searches say when they are done. Answers need not: there, an end in good order is one.
    fn may_end(&self) -> bool {
        self.finished || (self.form == StreamForm::Answer && !self.text.is_empty())
    }

    fn so_far(&self) -> Option<Value> {
        let results = self.rest.get("results").and_then(Value::as_array);
        let pages: Vec<Value> = results
            .unwrap_or(&self.citations)
            .iter()
            .take(MOST_PAGES)
            .map(|page| json!({"title": short(page, "title"), "url": short(page, "url")}))
            .collect();
        if self.text.is_empty() && pages.is_empty() {
            return None;
        }
        let shown = text::cut(&text::printable(&self.text), MOST_CHARACTERS);
        let mut told = json!({"partialText": shown, "characters": self.text.chars().count()});
        if let (Value::Object(told), false) = (&mut told, pages.is_empty()) {
            told.insert("pages".to_owned(), pages.into());
        }
        Some(told)
    }

    fn goes_on(&self) -> Option<String> {
        None
    }

    fn into_response(self: Box<Self>, unreadable: usize) -> Value {
        let mut answer = match self.form {
            StreamForm::Answer => self.into_answer(),
            _ => self.into_search(),
        };
        if unreadable > 0 {
            let warnings = answer.entry("warnings").or_insert_with(|| json!([]));
            if let Value::Array(warnings) = warnings {
                let message = format!(
                    "{unreadable} of the events of the stream could not be read and were left out, so the text \
                     may have gaps."
                );
                warnings.push(json!({"code": "UNREADABLE_EVENTS", "message": message}));
            }
        }
        Value::Object(answer)
    }
}

/// A text of a page, bounded.
fn short(page: &Value, name: &str) -> Option<String> {
    let told = page.get(name)?.as_str()?;
    Some(text::cut(&text::clean(told), MOST_OF_PAGE))
}

/// The text that an event adds. An event may tell it twice, once in either form.
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

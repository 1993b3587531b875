//! Assembles streams that follow a long-running job: agent runs and research tasks.

use serde_json::{Map, Value, json};

use super::{Assembler, ErrorBody, StreamForm, StreamState, StreamUpdate, failure};
use crate::text;

/// The longest words about a step, in characters.
const MOST_CHARACTERS: usize = 200;

/// States of a run, and the events of their names, after which nothing more happens.
const FINAL: [&str; 4] = ["completed", "failed", "cancelled", "canceled"];

/// A piece of work as far as its events have told it.
pub(super) struct JobAssembler {
    form: StreamForm,
    /// The operation that reads the work.
    get: Option<&'static str>,
    /// What is known of the run or the task.
    known: Map<String, Value>,
    events: usize,
}

impl JobAssembler {
    pub(super) fn new(form: StreamForm) -> Self {
        Self {
            form,
            get: None,
            known: Map::new(),
            events: 0,
        }
    }

    pub(super) fn with_get(self, get: Option<&'static str>) -> Self {
        Self { get, ..self }
    }

    fn id(&self) -> Option<&str> {
        let name = match self.form {
            StreamForm::Research => "researchId",
            _ => "id",
        };
        self.known.get(name)?.as_str()
    }

    /// An event about the run itself brings the run as it is now.
    fn take_run(&mut self, name: &str, data: Map<String, Value>) -> bool {
        let Some(stage) = name.strip_prefix("agent_run.") else {
            return false;
        };
        let run = match (data.get("run"), data.get("agentRun")) {
            (Some(Value::Object(run)), _) | (_, Some(Value::Object(run))) => run.clone(),
            _ => data,
        };
        let says = run.get("status").and_then(Value::as_str);
        let ended = FINAL.contains(&stage) || says.is_some_and(|status| FINAL.contains(&status));
        if ended && says.is_none() {
            self.known.insert("status".to_owned(), stage.into());
        }
        self.known.extend(run);
        ended
    }

    /// An event about a research task names the task, and the last one is its output.
    fn take_task(&mut self, name: &str, data: Map<String, Value>) -> bool {
        if let Some(id) = data.get("researchId") {
            self.known.insert("researchId".to_owned(), id.clone());
        }
        name == "research-output"
    }
}

impl Assembler for JobAssembler {
    fn take(
        &mut self,
        name: &str,
        data: Map<String, Value>,
    ) -> Result<StreamState, Box<ErrorBody>> {
        let (name, data) = unwrapped(name, data);
        // A run that failed has an error and is an answer all the same.
        let about_run = name.starts_with("agent_run.");
        if let Some(error) = failure(&name, &data).filter(|_| !about_run) {
            return Err(error);
        }
        self.events += 1;
        let step = step(&name, &data);
        let ended = match self.form {
            StreamForm::Research => self.take_task(&name, data),
            _ => self.take_run(&name, data),
        };
        if ended {
            Ok(StreamState::Complete)
        } else {
            Ok(StreamState::More(Some(StreamUpdate::Step(step))))
        }
    }

    /// JobAssembler is over when an event says so.
    fn may_end(&self) -> bool {
        false
    }

    fn so_far(&self) -> Option<Value> {
        let id = self.id()?;
        let status = self.known.get("status").unwrap_or(&Value::Null);
        Some(match self.form {
            StreamForm::Research => json!({"researchId": id, "events": self.events}),
            _ => json!({"runId": id, "status": status, "events": self.events}),
        })
    }

    fn started(&self) -> Option<Value> {
        self.id()?;
        Some(Value::Object(self.known.clone()))
    }

    fn goes_on(&self) -> Option<String> {
        let id = self.id()?;
        let (work, advice) = match self.form {
            StreamForm::Research => ("research task", "without `stream`"),
            _ => ("run", "instead of starting another"),
        };
        Some(match self.get {
            Some(get) => format!("The {work} {id} goes on at Exa; look at it with {get} {advice}."),
            None => format!("The {work} {id} goes on at Exa."),
        })
    }

    fn into_response(self: Box<Self>, _unreadable: usize) -> Value {
        Value::Object(self.known)
    }
}

/// Name and content of an event that may be wrapped as lists of events have it, `{event, data}`.
fn unwrapped(name: &str, mut data: Map<String, Value>) -> (String, Map<String, Value>) {
    let inner = data.get("event").or_else(|| data.get("eventType"));
    let name = inner.and_then(Value::as_str).unwrap_or(name).to_owned();
    match (data.contains_key("event"), data.get("data")) {
        (true, Some(Value::Object(_))) => match data.remove("data") {
            Some(Value::Object(inner)) => (name, inner),
            _ => (name, data),
        },
        _ => (name, data),
    }
}

/// An event in a few words: its name, and what it is about if that can be told.
fn step(name: &str, data: &Map<String, Value>) -> String {
    let places = [
        ("source", "/title"),
        ("source", "/url"),
        ("data", "/query"),
        ("data", "/type"),
        ("query", ""),
        ("title", ""),
        ("url", ""),
        ("message", ""),
        ("status", ""),
    ];
    let told = places
        .into_iter()
        .find_map(|(field, inner)| data.get(field)?.pointer(inner)?.as_str());
    let words = match told {
        Some(told) => format!("{name}: {told}"),
        None => name.to_owned(),
    };
    text::cut(&text::clean(&words), MOST_CHARACTERS)
}

#[cfg(test)]
#[path = "../tests/stream_job.rs"]
mod tests;

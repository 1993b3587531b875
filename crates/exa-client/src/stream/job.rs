//! Assembles streams that follow a long-running job: agent runs and research tasks.

use serde_json::{Map, Value, json};

use super::{Assembler, ErrorBody, StreamKind, StreamState, StreamUpdate, failure};
use crate::text;

/// The maximum length of the description of a step, in characters.
const MAX_STEP_LENGTH: usize = 200;

/// The final states of a run, which are also the names of its last events.
const FINAL_STATES: [&str; 4] = ["completed", "failed", "cancelled", "canceled"];

/// Assembles a job from its events.
pub(super) struct JobAssembler {
    kind: StreamKind,
    /// The operation that reads the job.
    get: Option<&'static str>,
    /// The known fields of the run or task.
    known: Map<String, Value>,
    events: usize,
}

impl JobAssembler {
    pub(super) fn new(kind: StreamKind) -> Self {
        Self {
            kind,
            get: None,
            known: Map::new(),
            events: 0,
        }
    }

    pub(super) fn with_get(self, get: Option<&'static str>) -> Self {
        Self { get, ..self }
    }

    fn id(&self) -> Option<&str> {
        let name = match self.kind {
            StreamKind::Research => "researchId",
            _ => "id",
        };
        self.known.get(name)?.as_str()
    }

    /// Handles an event about a run, most of which carry its current state. Returns whether it is final.
    fn take_run(&mut self, name: &str, data: Map<String, Value>) -> bool {
        let Some(stage) = name.strip_prefix("agent_run.") else {
            return false;
        };
        let run = match (data.get("run"), data.get("agentRun")) {
            (Some(Value::Object(run)), _) | (_, Some(Value::Object(run))) => run.clone(),
            // Events such as `source.added` and `search_trace` are about a part of the run.
            _ if stage.contains(['.', '_']) => return false,
            _ => data,
        };
        let status = run.get("status").and_then(Value::as_str);
        let is_final = FINAL_STATES.contains(&stage)
            || status.is_some_and(|status| FINAL_STATES.contains(&status));
        if is_final && status.is_none() {
            self.known.insert("status".to_owned(), stage.into());
        }
        self.known.extend(run);
        is_final
    }

    /// Handles an event about a research task. Returns whether it is the last one, which is the output.
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
        let (name, data) = unwrap_event(name, data);
        // A failed run has an error, but it is still a complete response.
        let about_run = name.starts_with("agent_run.");
        if let Some(error) = failure(&name, &data).filter(|_| !about_run) {
            return Err(error);
        }
        self.events += 1;
        let step = describe_step(&name, &data);
        let is_complete = match self.kind {
            StreamKind::Research => self.take_task(&name, data),
            _ => self.take_run(&name, data),
        };
        if is_complete {
            Ok(StreamState::Complete)
        } else {
            Ok(StreamState::More(Some(StreamUpdate::Step(step))))
        }
    }

    /// Only an event ends a job.
    fn may_end(&self) -> bool {
        false
    }

    fn received(&self) -> Option<Value> {
        let id = self.id()?;
        let status = self.known.get("status").unwrap_or(&Value::Null);
        Some(match self.kind {
            StreamKind::Research => json!({"researchId": id, "events": self.events}),
            _ => json!({"runId": id, "status": status, "events": self.events}),
        })
    }

    fn started(&self) -> Option<Value> {
        self.id()?;
        Some(Value::Object(self.known.clone()))
    }

    fn continuing_job(&self) -> Option<String> {
        let id = self.id()?;
        let (job, advice) = match self.kind {
            StreamKind::Research => ("research task", "without `stream`"),
            _ => ("run", "instead of starting another"),
        };
        Some(match self.get {
            Some(get) => format!("The {job} {id} continues at Exa; read it with {get} {advice}."),
            None => format!("The {job} {id} continues at Exa."),
        })
    }

    fn into_response(self: Box<Self>, _unreadable: usize) -> Value {
        Value::Object(self.known)
    }
}

/// Returns the name and data of an event that may be wrapped as `{event, data}`, as in lists of events.
fn unwrap_event(name: &str, mut data: Map<String, Value>) -> (String, Map<String, Value>) {
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

/// Describes an event: its name, and its subject if known.
fn describe_step(name: &str, data: &Map<String, Value>) -> String {
    let candidates = [
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
    let subject = candidates
        .into_iter()
        .find_map(|(field, inner)| data.get(field)?.pointer(inner)?.as_str());
    let description = match subject {
        Some(subject) => format!("{name}: {subject}"),
        None => name.to_owned(),
    };
    text::cut(&text::clean(&description), MAX_STEP_LENGTH)
}

#[cfg(test)]
#[path = "../tests/stream_job.rs"]
mod tests;

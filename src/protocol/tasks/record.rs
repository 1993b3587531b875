//! A task as it is kept.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use chrono::{DateTime, SecondsFormat};
use rmcp::model::{DetailedTask, ErrorData, JsonObject, Task, TaskPayload, TaskStatus};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::questions::{Answer, Questions};
use crate::operations::client::Question;
use crate::surface::Work;

/// How often a client should ask, in milliseconds.
const POLL_INTERVAL: u64 = 2_000;

/// The longest end of a life, see [`Record::grace`].
const LONGEST_GRACE: Duration = Duration::from_secs(60);

/// Everything that is known about a task. It is kept in the store as JSON, so that it outlives the
/// process.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in super::super) struct Record {
    pub(super) id: String,
    pub(super) tool: String,
    pub(super) arguments: JsonObject,
    pub(super) status: TaskStatus,
    pub(super) message: String,
    /// Milliseconds since 1970.
    pub(super) created: u64,
    pub(super) updated: u64,
    /// Milliseconds.
    pub(super) ttl: u64,
    /// The process that runs it.
    #[serde(default)]
    pub(super) runner: String,
    /// What goes on at Exa, from the moment that Exa confirmed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) work: Option<Work>,
    /// Exa has yet to be told to stop.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) stopping: bool,
    /// What it asks its client.
    #[serde(default, skip_serializing_if = "Questions::is_nothing")]
    pub(super) questions: Questions,
    /// The result of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) result: Option<JsonObject>,
    /// Why there is no result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<ErrorData>,
}

impl Record {
    /// A task that begins now.
    pub(super) fn new(
        id: String,
        tool: String,
        arguments: JsonObject,
        ttl: Duration,
        runner: String,
    ) -> Self {
        let now = now();
        Self {
            message: running(&tool),
            id,
            tool,
            arguments,
            status: TaskStatus::Working,
            created: now,
            updated: now,
            ttl: u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX),
            runner,
            work: None,
            stopping: false,
            questions: Questions::default(),
            result: None,
            error: None,
        }
    }

    /// Whether nothing can change any more.
    pub(in super::super) fn is_final(&self) -> bool {
        self.status.is_terminal()
    }

    /// Whether there is something left to do for it.
    pub(super) fn is_open(&self) -> bool {
        !self.is_final() || self.stopping
    }

    /// How much of its life is left.
    pub(super) fn left(&self) -> Duration {
        let end = self.created.saturating_add(self.ttl);
        Duration::from_millis(end.saturating_sub(now()))
    }

    /// The end of its life, in which it only tells how far it came.
    pub(super) fn grace(&self) -> Duration {
        Duration::from_millis(self.ttl / 10).min(LONGEST_GRACE)
    }

    /// Moves on; a final state stays.
    pub(super) fn move_to(&mut self, status: TaskStatus, message: String) -> bool {
        if self.is_final() {
            return false;
        }
        self.status = status;
        self.message = message;
        self.updated = now();
        if self.is_final() {
            self.questions = Questions::default();
        }
        true
    }

    /// Waits for an answer, unless it is there.
    pub(super) fn ask(&mut self, key: &str, question: &Question, is_first: bool) -> bool {
        let untouched = is_first && self.work.is_none();
        let asks = !self.is_final() && self.questions.ask(key, question, untouched);
        asks && self.move_to(TaskStatus::InputRequired, self.questions.in_words())
    }

    /// Takes answers, and goes on after the last one.
    pub(super) fn take_answers(&mut self, answers: &[(String, Answer)]) -> bool {
        let mut taken = false;
        for (key, answer) in answers {
            taken |= self.questions.take(key, answer);
        }
        let (status, message) = match self.questions.are_open() {
            true => (TaskStatus::InputRequired, self.questions.in_words()),
            false => (TaskStatus::Working, running(&self.tool)),
        };
        taken && self.move_to(status, message)
    }

    /// Asks nothing more, because the process that asked has ended. Says whether it had sent nothing to
    /// Exa, so that its call can be made as if it were the first.
    pub(super) fn take_back(&mut self) -> bool {
        let asked = self.status == TaskStatus::InputRequired;
        let untouched = self.questions.leave();
        asked && self.move_to(TaskStatus::Working, running(&self.tool)) && untouched
    }

    /// The form of 2025-11-25.
    pub(super) fn legacy(&self) -> Value {
        json!({
            "taskId": self.id,
            "status": self.status,
            "statusMessage": self.message,
            "createdAt": timestamp(self.created),
            "lastUpdatedAt": timestamp(self.updated),
            "ttl": self.ttl,
            "pollInterval": POLL_INTERVAL,
        })
    }

    /// The form of the extension of 2026-07-28.
    pub(in super::super) fn task(&self) -> Task {
        let created = timestamp(self.created);
        let task = Task::new(&self.id, self.status, created, timestamp(self.updated));
        task.with_status_message(&self.message)
            .with_ttl_ms(self.ttl)
            .with_poll_interval_ms(POLL_INTERVAL)
    }

    /// The same with what came of it. There a call that failed in words is complete.
    pub(in super::super) fn detailed(&self) -> DetailedTask {
        let payload = match (self.status, &self.result) {
            (TaskStatus::Cancelled, _) => TaskPayload::Cancelled,
            (TaskStatus::Completed | TaskStatus::Failed, Some(result)) => TaskPayload::Completed {
                result: result.clone(),
            },
            (TaskStatus::Completed | TaskStatus::Failed, None) => TaskPayload::Failed {
                error: self.error_object(),
            },
            (TaskStatus::InputRequired, _) => TaskPayload::InputRequired {
                input_requests: self.questions.requests(),
            },
            _ => TaskPayload::Working,
        };
        DetailedTask::new(self.task(), payload)
    }

    fn error_object(&self) -> JsonObject {
        let unknown = || ErrorData::internal_error("The task ended without a result", None);
        let error = self.error.clone().unwrap_or_else(unknown);
        match serde_json::to_value(error) {
            Ok(Value::Object(error)) => error,
            _ => JsonObject::new(),
        }
    }
}

/// What is told of a task before anything else is known.
fn running(tool: &str) -> String {
    format!("{tool} is running")
}

/// Milliseconds since 1970.
pub(super) fn now() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn timestamp(milliseconds: u64) -> String {
    let time = i64::try_from(milliseconds)
        .ok()
        .and_then(DateTime::from_timestamp_millis);
    time.unwrap_or_default()
        .to_rfc3339_opts(SecondsFormat::Millis, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_final_state_stays() {
        let arguments = JsonObject::new();
        let ttl = Duration::from_secs(60);
        let mut record = Record::new(
            "t".to_owned(),
            "x".to_owned(),
            arguments,
            ttl,
            String::new(),
        );
        assert!(record.move_to(TaskStatus::Cancelled, "cancelled".to_owned()));
        assert!(!record.move_to(TaskStatus::Completed, "done".to_owned()));
        assert_eq!(record.status, TaskStatus::Cancelled);
        assert_eq!(record.legacy().get("status"), Some(&json!("cancelled")));
        assert!(record.left() <= ttl);
    }
}

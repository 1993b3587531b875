//! A task as it is kept.

use std::time::Duration;

use rmcp::model::{DetailedTask, ErrorData, JsonObject, Task, TaskPayload, TaskStatus};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::input::{Answer, Questions};
use crate::operations::client::Question;
use crate::tools::WorkHandle;
use exa_mcp_model::time::{format_timestamp, now};
use exa_mcp_store::format::Format;

/// How often a client should ask, in milliseconds.
const POLL_INTERVAL: u64 = 2_000;

/// The longest end of a life, see [`Record::grace`].
const LONGEST_GRACE: Duration = Duration::from_secs(60);

/// Everything that is known about a task. It is kept in the store as JSON, so that it outlives the
/// process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in super::super) struct Record {
    #[serde(rename = "id")]
    pub(super) id: String,
    #[serde(rename = "tool")]
    pub(super) tool: String,
    #[serde(rename = "arguments")]
    pub(super) arguments: JsonObject,
    #[serde(rename = "status")]
    pub(super) status: TaskStatus,
    #[serde(rename = "message")]
    pub(super) message: String,
    /// Milliseconds since 1970.
    #[serde(rename = "created")]
    pub(super) created: u64,
    #[serde(rename = "updated")]
    pub(super) updated: u64,
    /// Milliseconds.
    #[serde(rename = "ttl")]
    pub(super) ttl: u64,
    /// The process that runs it.
    #[serde(rename = "runner", default)]
    pub(super) runner: String,
    /// What goes on at Exa, from the moment that Exa confirmed it.
    #[serde(rename = "work", default, skip_serializing_if = "Option::is_none")]
    pub(super) work: Option<WorkHandle>,
    /// Exa has yet to be told to stop.
    #[serde(
        rename = "stopping",
        default,
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub(super) stopping: bool,
    /// The token whose holder pays for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) payer: Option<String>,
    /// What it asks its client.
    #[serde(
        rename = "questions",
        default,
        skip_serializing_if = "Questions::is_nothing"
    )]
    pub(super) questions: Questions,
    /// The result of the call.
    #[serde(rename = "result", default, skip_serializing_if = "Option::is_none")]
    pub(super) result: Option<JsonObject>,
    /// Why there is no result.
    #[serde(rename = "error", default, skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<ErrorData>,
}

impl Format for Record {
    const KIND: &'static str = "task";
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
            payer: None,
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
        let untouched = self.questions.leave();
        if self.status == TaskStatus::InputRequired {
            self.move_to(TaskStatus::Working, running(&self.tool));
        }
        untouched
    }

    /// The form of 2025-11-25.
    pub(in super::super) fn legacy(&self) -> Value {
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

fn timestamp(milliseconds: u64) -> String {
    format_timestamp(i64::try_from(milliseconds).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::operations::client::{
        ClientCapabilities, Form, NoReply, Sampling, SamplingTool, Visit,
    };
    use exa_mcp_store::format::{decode, encode};

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

    fn object(value: Value) -> JsonObject {
        value.as_object().unwrap().clone()
    }

    fn fixed() -> Record {
        Record {
            message: "m".to_owned(),
            created: 1,
            updated: 2,
            ..Record::new(
                "t1".to_owned(),
                "exa_api".to_owned(),
                object(json!({"operation": "research.create"})),
                Duration::from_millis(3),
                "r1".to_owned(),
            )
        }
    }

    /// The format of tasks in stores. Whoever changes it breaks the stores of others: see
    /// docs/upgrading.md.
    #[test]
    fn the_format_of_a_stored_task_does_not_change() {
        let start = r#"{"v":1,"id":"t1","tool":"exa_api","arguments":{"operation":"research.create"},"status":"#;
        let rest = r#""message":"m","created":1,"updated":2,"ttl":3,"runner":"r1""#;
        assert_eq!(encode(&fixed()), format!(r#"{start}"working",{rest}}}"#));
        let record = Record {
            status: TaskStatus::Cancelled,
            work: Some(WorkHandle {
                get: "research.get".to_owned(),
                arguments: object(json!({"researchId": "x"})),
            }),
            stopping: true,
            ..fixed()
        };
        let work =
            r#""work":{"get":"research.get","arguments":{"researchId":"x"}},"stopping":true"#;
        assert_eq!(
            encode(&record),
            format!(r#"{start}"cancelled",{rest},{work}}}"#)
        );
        let record = Record {
            status: TaskStatus::Completed,
            result: Some(object(json!({"isError": false}))),
            ..fixed()
        };
        let result = r#""result":{"isError":false}"#;
        assert_eq!(
            encode(&record),
            format!(r#"{start}"completed",{rest},{result}}}"#)
        );
        let record = Record {
            status: TaskStatus::Failed,
            error: Some(ErrorData::internal_error("no", None)),
            ..fixed()
        };
        let error = r#""error":{"code":-32603,"message":"no"}"#;
        let failed = format!(r#"{start}"failed",{rest},{error}}}"#);
        assert_eq!(encode(&record), failed);
        // What was written before there was a version is read alike.
        let before: Record = decode(&failed.replacen(r#""v":1,"#, "", 1)).unwrap();
        assert_eq!(encode(&before), failed);
    }

    #[test]
    fn the_format_of_stored_questions_does_not_change() {
        let text = |text: &str| text.to_owned();
        let mut record = fixed();
        record.questions = Questions::of(ClientCapabilities {
            sampling: true,
            sampling_with_tools: true,
            forms: true,
            urls: true,
            roots: true,
        });
        for (key, answer) in [
            ("a", Ok(json!({"action": "accept"}))),
            ("b", Err(NoReply::Unable)),
            ("c", Err(NoReply::Declined)),
            ("d", Err(NoReply::Cancelled)),
            ("e", Err(NoReply::TimedOut)),
            ("f", Err(NoReply::Failed(text("x")))),
        ] {
            record.questions.ask(key, &Question::Roots, true);
            record.questions.take(key, &answer);
        }
        record.questions.ask("left", &Question::Roots, true);
        record.take_back();
        let questions = [
            Question::Form(Form {
                message: text("m"),
                schema: object(json!({"type": "object"})),
            }),
            Question::Roots,
            Question::Sample(Sampling {
                system: text("s"),
                message: text("m"),
                tool: Some(SamplingTool {
                    name: text("n"),
                    description: text("d"),
                    input_schema: object(json!({})),
                }),
                max_tokens: 9,
            }),
            Question::Visit(Visit {
                message: text("m"),
                url: text("https://x.example"),
                id: text("i"),
            }),
        ];
        for (number, question) in questions.iter().enumerate() {
            record.ask(&format!("q{number}"), question, true);
        }
        let kept = serde_json::to_string(&record.questions).unwrap();
        assert_eq!(
            kept,
            concat!(
                r#"{"powers":{"sampling":true,"samplingWithTools":true,"forms":true,"urls":true,"roots":true},"#,
                r#""open":{"q0":{"kind":"form","message":"m","schema":{"type":"object"}},"q1":{"kind":"roots"},"#,
                r#""q2":{"kind":"sample","system":"s","message":"m","tool":{"name":"n","description":"d","input_schema":{}},"max_tokens":9},"#,
                r#""q3":{"kind":"visit","message":"m","url":"https://x.example","id":"i"}},"left":["left"],"#,
                r#""answers":{"a":{"Ok":{"action":"accept"}},"b":{"Err":"Unable"},"c":{"Err":"Declined"},"#,
                r#""d":{"Err":"Cancelled"},"e":{"Err":"TimedOut"},"f":{"Err":{"Failed":"x"}}},"untouched":true}"#,
            )
        );
        assert!(encode(&record).contains(r#""status":"input_required""#));
        assert!(encode(&record).contains(&format!(r#""questions":{kept}"#)));
    }
}

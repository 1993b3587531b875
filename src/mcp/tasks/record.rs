//! The stored record of a task.

use std::time::Duration;

use rmcp::model::{DetailedTask, ErrorData, JsonObject, Task, TaskPayload, TaskStatus};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::input::{RawResponse, TaskInput};
use crate::operations::interaction::InputRequest;
use crate::tools::JobHandle;
use exa_mcp_model::time::{format_timestamp, now};
use exa_mcp_store::format::DocumentFormat;

/// The poll interval for clients, in milliseconds.
const POLL_INTERVAL: u64 = 2_000;

/// The longest grace period, see [`TaskRecord::grace`].
const MAX_GRACE: Duration = Duration::from_secs(60);

/// A task. It is stored as JSON, so that it outlives the process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in super::super) struct TaskRecord {
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
    /// The job at Exa, once Exa has confirmed it.
    #[serde(rename = "work", default, skip_serializing_if = "Option::is_none")]
    pub(super) job: Option<JobHandle>,
    /// The job has yet to be cancelled at Exa.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) stopping: bool,
    /// The token whose account pays for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) payer: Option<String>,
    /// The input requests to its client.
    #[serde(
        rename = "questions",
        default,
        skip_serializing_if = "TaskInput::is_empty"
    )]
    pub(super) input: TaskInput,
    /// The result of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) result: Option<JsonObject>,
    /// Why there is no result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<ErrorData>,
}

impl DocumentFormat for TaskRecord {
    const KIND: &'static str = "task";
}

impl TaskRecord {
    /// Creates the record of a new task.
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
            job: None,
            stopping: false,
            payer: None,
            input: TaskInput::default(),
            result: None,
            error: None,
        }
    }

    /// Returns whether the task has ended.
    pub(in super::super) fn is_final(&self) -> bool {
        self.status.is_terminal()
    }

    /// Returns whether a process must still run the task, or cancel its job.
    pub(super) fn is_open(&self) -> bool {
        !self.is_final() || self.stopping
    }

    /// Returns the remaining lifetime.
    pub(super) fn remaining(&self) -> Duration {
        let end = self.created.saturating_add(self.ttl);
        Duration::from_millis(end.saturating_sub(now()))
    }

    /// Returns the grace period at the end of its lifetime, in which the task only reports its state.
    pub(super) fn grace(&self) -> Duration {
        Duration::from_millis(self.ttl / 10).min(MAX_GRACE)
    }

    /// Sets the status, unless the task has ended; returns whether it did.
    pub(super) fn set_status(&mut self, status: TaskStatus, message: String) -> bool {
        if self.is_final() {
            return false;
        }
        self.status = status;
        self.message = message;
        self.updated = now();
        if self.is_final() {
            self.input = TaskInput::default();
        }
        true
    }

    /// Adds an input request, unless its response is stored already.
    pub(super) fn request_input(
        &mut self,
        key: &str,
        request: &InputRequest,
        is_first: bool,
    ) -> bool {
        let untouched = is_first && self.job.is_none();
        let is_added = !self.is_final() && self.input.request(key, request, untouched);
        is_added && self.set_status(TaskStatus::InputRequired, self.input.description())
    }

    /// Adds responses; after the last one, the task is working again.
    pub(super) fn add_responses(&mut self, responses: &[(String, RawResponse)]) -> bool {
        let mut is_changed = false;
        for (key, response) in responses {
            is_changed |= self.input.respond(key, response);
        }
        let (status, message) = if self.input.is_pending() {
            (TaskStatus::InputRequired, self.input.description())
        } else {
            (TaskStatus::Working, running(&self.tool))
        };
        is_changed && self.set_status(status, message)
    }

    /// Withdraws the input requests of a process that has ended. Returns whether it had sent nothing to Exa, so that the
    /// call can be repeated as a first attempt.
    pub(super) fn withdraw_requests(&mut self) -> bool {
        let untouched = self.input.orphan();
        if self.status == TaskStatus::InputRequired {
            self.set_status(TaskStatus::Working, running(&self.tool));
        }
        untouched
    }

    /// Returns the task in the form of 2025-11-25.
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

    /// Returns the task in the form of 2026-07-28.
    pub(in super::super) fn task(&self) -> Task {
        let created = timestamp(self.created);
        let task = Task::new(&self.id, self.status, created, timestamp(self.updated));
        task.with_status_message(&self.message)
            .with_ttl_ms(self.ttl)
            .with_poll_interval_ms(POLL_INTERVAL)
    }

    /// Returns the task of 2026-07-28 with its result. A failed tool call counts as completed there.
    pub(in super::super) fn to_detailed_task(&self) -> DetailedTask {
        let payload = match (self.status, &self.result) {
            (TaskStatus::Cancelled, _) => TaskPayload::Cancelled,
            (TaskStatus::Completed | TaskStatus::Failed, Some(result)) => TaskPayload::Completed {
                result: result.clone(),
            },
            (TaskStatus::Completed | TaskStatus::Failed, None) => TaskPayload::Failed {
                error: self.error_object(),
            },
            (TaskStatus::InputRequired, _) => TaskPayload::InputRequired {
                input_requests: self.input.requests(),
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

/// Returns the initial status message.
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
    use crate::operations::interaction::{
        ClientCapabilities, FormRequest, InputError, SamplingRequest, SamplingTool, UrlRequest,
    };
    use exa_mcp_store::format::{decode, encode};

    #[test]
    fn a_final_status_does_not_change() {
        let arguments = JsonObject::new();
        let ttl = Duration::from_secs(60);
        let mut record = TaskRecord::new(
            "t".to_owned(),
            "x".to_owned(),
            arguments,
            ttl,
            String::new(),
        );
        assert!(record.set_status(TaskStatus::Cancelled, "cancelled".to_owned()));
        assert!(!record.set_status(TaskStatus::Completed, "done".to_owned()));
        assert_eq!(record.status, TaskStatus::Cancelled);
        assert_eq!(record.legacy().get("status"), Some(&json!("cancelled")));
        assert!(record.remaining() <= ttl);
    }

    fn object(value: Value) -> JsonObject {
        value.as_object().unwrap().clone()
    }

    fn fixed() -> TaskRecord {
        TaskRecord {
            message: "m".to_owned(),
            created: 1,
            updated: 2,
            ..TaskRecord::new(
                "t1".to_owned(),
                "exa_api".to_owned(),
                object(json!({"operation": "research.create"})),
                Duration::from_millis(3),
                "r1".to_owned(),
            )
        }
    }

    /// The format of stored tasks. Changing it breaks existing stores: see docs/upgrading.md.
    #[test]
    fn format_of_stored_tasks_is_stable() {
        let start = r#"{"v":1,"id":"t1","tool":"exa_api","arguments":{"operation":"research.create"},"status":"#;
        let rest = r#""message":"m","created":1,"updated":2,"ttl":3,"runner":"r1""#;
        assert_eq!(encode(&fixed()), format!(r#"{start}"working",{rest}}}"#));
        let record = TaskRecord {
            status: TaskStatus::Cancelled,
            job: Some(JobHandle {
                get: "research.get".to_owned(),
                arguments: object(json!({"researchId": "x"})),
            }),
            stopping: true,
            ..fixed()
        };
        let job = r#""work":{"get":"research.get","arguments":{"researchId":"x"}},"stopping":true"#;
        assert_eq!(
            encode(&record),
            format!(r#"{start}"cancelled",{rest},{job}}}"#)
        );
        let record = TaskRecord {
            status: TaskStatus::Completed,
            result: Some(object(json!({"isError": false}))),
            ..fixed()
        };
        let result = r#""result":{"isError":false}"#;
        assert_eq!(
            encode(&record),
            format!(r#"{start}"completed",{rest},{result}}}"#)
        );
        let record = TaskRecord {
            status: TaskStatus::Failed,
            error: Some(ErrorData::internal_error("no", None)),
            ..fixed()
        };
        let error = r#""error":{"code":-32603,"message":"no"}"#;
        let failed = format!(r#"{start}"failed",{rest},{error}}}"#);
        assert_eq!(encode(&record), failed);
        // Records from before the version field are still read.
        let before: TaskRecord = decode(&failed.replacen(r#""v":1,"#, "", 1)).unwrap();
        assert_eq!(encode(&before), failed);
    }

    #[test]
    fn format_of_stored_input_requests_is_stable() {
        let text = |text: &str| text.to_owned();
        let mut record = fixed();
        record.input = TaskInput::new(ClientCapabilities {
            sampling: true,
            sampling_with_tools: true,
            forms: true,
            urls: true,
            roots: true,
        });
        for (key, response) in [
            ("a", Ok(json!({"action": "accept"}))),
            ("b", Err(InputError::Unable)),
            ("c", Err(InputError::Declined)),
            ("d", Err(InputError::Cancelled)),
            ("e", Err(InputError::TimedOut)),
            ("f", Err(InputError::Failed(text("x")))),
        ] {
            record.input.request(key, &InputRequest::Roots, true);
            record.input.respond(key, &response);
        }
        record.input.request("left", &InputRequest::Roots, true);
        record.withdraw_requests();
        let requests = [
            InputRequest::Form(FormRequest {
                message: text("m"),
                schema: object(json!({"type": "object"})),
            }),
            InputRequest::Roots,
            InputRequest::Sampling(SamplingRequest {
                system: text("s"),
                message: text("m"),
                tool: Some(SamplingTool {
                    name: text("n"),
                    description: text("d"),
                    input_schema: object(json!({})),
                }),
                max_tokens: 9,
            }),
            InputRequest::Url(UrlRequest {
                message: text("m"),
                url: text("https://x.example"),
                id: text("i"),
            }),
        ];
        for (number, request) in requests.iter().enumerate() {
            record.request_input(&format!("q{number}"), request, true);
        }
        let stored = serde_json::to_string(&record.input).unwrap();
        assert_eq!(
            stored,
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
        assert!(encode(&record).contains(&format!(r#""questions":{stored}"#)));
    }
}

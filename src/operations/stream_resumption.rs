//! Resumes a stream that has broken off: the operation that replays its events continues it after the last one.

use std::pin::pin;
use std::time::Duration;

use exa_mcp_exa_client::{ApiKey, CallError, ExaResponse, ResumePoint, StreamOptions};
use exa_mcp_model::{Operation, StreamResumption, Streaming};
use serde_json::{Map, Value};
use tokio::time::sleep;

use super::executor::OperationExecutor;
use super::spend::observe_job;
use super::stream::StreamProgress;
use super::{ProgressReporter, find};

/// The pause before the first attempt to resume a stream. It doubles until an event arrives.
const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// The longest pause between two attempts.
const MAX_PAUSE: Duration = Duration::from_secs(8);

/// How many attempts in a row may bring no event.
const MAX_IDLE_ATTEMPTS: u32 = 8;

/// How often a stream is resumed at all.
const MAX_ATTEMPTS: u32 = 100;

impl OperationExecutor {
    /// Sends a request whose response is a stream, and resumes the stream where it breaks off.
    pub(super) async fn request_stream(
        &self,
        key: &ApiKey,
        operation: &'static Operation,
        arguments: &Map<String, Value>,
        streaming: &'static Streaming,
        reporter: &ProgressReporter,
    ) -> Result<ExaResponse, CallError> {
        let progress = StreamProgress::new(reporter, key.clone());
        let stream = progress.stream(streaming, arguments);
        let call = async {
            let request = self.request(key, operation, arguments.clone(), Some(stream.clone()));
            match (request.await, &streaming.resume) {
                (Err(error), Some(resume)) if !self.without_retries => {
                    self.resume(key, operation, arguments, resume, &stream, error)
                        .await
                }
                (outcome, _) => outcome,
            }
        };
        progress.during(pin!(call)).await
    }

    /// Resumes a stream after `error` until it is complete. Returns the last error of the stream if that is not possible.
    async fn resume(
        &self,
        key: &ApiKey,
        operation: &'static Operation,
        arguments: &Map<String, Value>,
        resume: &StreamResumption,
        stream: &StreamOptions,
        mut error: CallError,
    ) -> Result<ExaResponse, CallError> {
        let mut pauses = Pauses::default();
        while let Some(point) = stream.resume_point()
            && let Some((replay, replayed)) = replay_call(operation, arguments, resume, &point)
            && let Some(pause) = pauses.next(&point)
        {
            tracing::info!(
                operation = operation.name,
                wait_milliseconds = pause.as_millis(),
                "stream broke off; resuming"
            );
            sleep(pause).await;
            let outcome = self
                .request(key, replay, replayed, Some(stream.clone()))
                .await;
            let broken_again = stream.resume_point();
            match outcome {
                Ok(response) if broken_again.is_none() => {
                    observe_job(&self.guard, operation, arguments, &response.value).await;
                    return Ok(response);
                }
                Err(next) if broken_again.is_some_and(|it| it.responses > point.responses) => {
                    error = next;
                }
                // The replay is not available, which says nothing about the job.
                _ => break,
            }
        }
        Err(error)
    }
}

/// Returns the operation that replays the events after this point, with its arguments.
fn replay_call(
    operation: &'static Operation,
    arguments: &Map<String, Value>,
    resume: &StreamResumption,
    point: &ResumePoint,
) -> Option<(&'static Operation, Map<String, Value>)> {
    let replay = find(&resume.operation)?;
    let mut replayed = if replay.name == operation.name {
        arguments.clone()
    } else {
        Map::new()
    };
    for (argument, field) in &resume.arguments {
        replayed.insert(argument.clone(), point.job.get(field)?.clone());
    }
    replayed.insert(resume.after.clone(), point.last_event_id.clone().into());
    Some((replay, replayed))
}

/// The pauses between attempts to resume one stream.
#[derive(Default)]
struct Pauses {
    attempts: u32,
    idle: u32,
    last_event_id: Option<String>,
}

impl Pauses {
    /// Returns the pause before the next attempt, if one is left.
    fn next(&mut self, point: &ResumePoint) -> Option<Duration> {
        if self.last_event_id.as_ref() != Some(&point.last_event_id) {
            self.last_event_id = Some(point.last_event_id.clone());
            self.idle = 0;
        }
        if self.idle >= MAX_IDLE_ATTEMPTS || self.attempts >= MAX_ATTEMPTS {
            return None;
        }
        let pause = FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(self.idle));
        self.idle += 1;
        self.attempts += 1;
        Some(pause.min(MAX_PAUSE))
    }
}

#[allow(clippy::unwrap_used)]
#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn point(last_event_id: &str) -> ResumePoint {
        ResumePoint {
            job: json!({"id": "agent_run_1"}),
            last_event_id: last_event_id.to_owned(),
            responses: 1,
        }
    }

    #[test]
    fn attempts_are_bounded_and_pauses_start_again_with_each_event() {
        let mut pauses = Pauses::default();
        let mut waits: Vec<u128> = Vec::new();
        while let Some(pause) = pauses.next(&point("1")) {
            waits.push(pause.as_millis());
        }
        assert_eq!(waits, [250, 500, 1_000, 2_000, 4_000, 8_000, 8_000, 8_000]);
        assert_eq!(pauses.next(&point("2")), Some(FIRST_PAUSE));
        let more = (3..500).filter_map(|id| pauses.next(&point(&id.to_string())));
        assert_eq!(more.count(), 91);
    }

    #[test]
    fn a_run_is_replayed_after_its_last_event() {
        let create = find("agent.runs.create").unwrap();
        let resume = create.behavior.stream.as_ref().unwrap().resume.as_ref();
        let arguments = json!({"query": "q", "stream": true});
        let call = replay_call(
            create,
            arguments.as_object().unwrap(),
            resume.unwrap(),
            &point("7"),
        );
        let (replay, arguments) = call.unwrap();
        assert_eq!(replay.name, "agent.runs.events.list");
        let expected = json!({"runId": "agent_run_1", "lastEventId": "7"});
        assert_eq!(Value::Object(arguments), expected);
    }
}

//! Failing calls, corrected calls, and their messages.

mod api;
mod arguments;
mod conflicts;
mod corrections;
mod domain_rules;
mod synonyms;

use serde_json::{Value, json};

use crate::support::{Failure, McpServer, RecordedRequest, Recorder, Response};

/// A server with the dispatchers, and a recorder as its upstream.
struct Fixture {
    recorder: Recorder,
    server: McpServer,
}

impl Fixture {
    fn start() -> Self {
        Self::with_response(Response::json(200, &json!({"data": [], "ok": true})))
    }

    fn with_response(response: Response) -> Self {
        let recorder = Recorder::always(response);
        let server = McpServer::with_recorder(&recorder, &[]);
        Self { recorder, server }
    }

    /// Calls a Websets operation that must be rejected before anything is sent.
    #[track_caller]
    fn call_rejected(&mut self, operation: &str, args: Value) -> Failure {
        let failure = self.call_failing("manage_websets", operation, args);
        failure.assert_code(-32602, "INVALID_PARAMS");
        assert_eq!(failure.error["operation"], operation);
        assert!(self.recorder.take().is_empty(), "nothing may be sent");
        failure
    }

    #[track_caller]
    fn call_failing(&mut self, tool: &str, operation: &str, args: Value) -> Failure {
        let call = json!({"operation": operation, "args": args});
        self.server.call(tool, call).failure()
    }

    /// Makes a call that must succeed; returns the request and the corrections.
    #[track_caller]
    fn call_recorded(&mut self, tool: &str, call: Value) -> (RecordedRequest, Vec<String>) {
        let body = self.server.call(tool, call).success();
        assert_eq!(body["ok"], true, "{body}");
        let corrections = body.get("corrections").and_then(Value::as_array);
        let notes = corrections.into_iter().flatten().filter_map(Value::as_str);
        (
            self.recorder.only_request(),
            notes.map(str::to_owned).collect(),
        )
    }
}

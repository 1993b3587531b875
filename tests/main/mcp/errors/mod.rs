//! Calls that fail, slightly wrong calls that do not have to, and what is said about both.

mod api;
mod arguments;
mod corrections;
mod domain_rules;

use serde_json::{Value, json};

use crate::support::{Failure, McpServer, Recorder, Reply, Seen};

/// The dispatchers in front of a server that records what they send.
struct Dispatch {
    recorder: Recorder,
    server: McpServer,
}

impl Dispatch {
    fn start() -> Self {
        Self::answering(Reply::json(200, &json!({"data": [], "ok": true})))
    }

    fn answering(reply: Reply) -> Self {
        let recorder = Recorder::always(reply);
        let server = McpServer::recorded(&recorder, &[]);
        Self { recorder, server }
    }

    /// A call of an operation of the websets that is refused before anything is sent.
    #[track_caller]
    fn refused(&mut self, operation: &str, args: Value) -> Failure {
        let failure = self.failed("manage_websets", operation, args);
        failure.assert_code(-32602, "INVALID_PARAMS");
        assert_eq!(failure.error["operation"], operation);
        assert!(self.recorder.take().is_empty(), "nothing may be sent");
        failure
    }

    #[track_caller]
    fn failed(&mut self, tool: &str, operation: &str, args: Value) -> Failure {
        let call = json!({"operation": operation, "args": args});
        self.server.call(tool, call).failure()
    }

    /// A call as it is given that works: what was sent, and what was put right.
    #[track_caller]
    fn sent(&mut self, tool: &str, call: Value) -> (Seen, Vec<String>) {
        let answer = self.server.call(tool, call).success();
        assert_eq!(answer["ok"], true, "{answer}");
        let corrections = answer.get("corrections").and_then(Value::as_array);
        let notes = corrections.into_iter().flatten().filter_map(Value::as_str);
        (self.recorder.only(), notes.map(str::to_owned).collect())
    }
}

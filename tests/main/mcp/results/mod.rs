//! Results: content levels, formats, limits, filters and the cache.

mod budget;
mod cache;
mod columns;
mod consistency;
mod contents;
mod corpus;
mod every_operation;
mod expansion;
mod filters;
mod header;
mod invalid_options;
mod json;
mod levels;
mod markdown;
#[cfg(target_os = "linux")]
mod memory;
mod official_tokens;
mod pages;
mod parsed_markdown;
mod requests;
mod samples;
mod snapshots;
mod structured;
mod untrusted_text;

use exa_mcp_server::operations::find;
use serde_json::{Value, json};

use super::operations::dispatcher;
use crate::support::{DEFAULT_VERSION, McpServer, Outcome, Program, Recorder, Response};

/// A server, and a recorder as its upstream.
struct Fixture {
    recorder: Recorder,
    server: McpServer,
}

impl Fixture {
    /// Starts a server with the default tools; the upstream always sends this response.
    fn with_response(response: &Value) -> Self {
        Self::with(Recorder::always(Response::json(200, response)), &[], &[])
    }

    /// Starts a server with these tools; the upstream always sends this response.
    fn with_tools(tools: &str, response: &Value) -> Self {
        let recorder = Recorder::always(Response::json(200, response));
        Self::with(recorder, &["--tools", tools], &[])
    }

    /// Starts a server with these flags and variables for this upstream.
    fn with(recorder: Recorder, flags: &[&str], variables: &[(&str, &str)]) -> Self {
        let program = Program::new(flags.iter().copied()).env("EXA_BASE_URL", &recorder.url());
        let program = variables
            .iter()
            .fold(program, |program, (name, value)| program.env(name, value));
        let server = McpServer::connect(program, DEFAULT_VERSION);
        Self { recorder, server }
    }

    /// Makes a fixed search through the dispatcher with these options.
    #[track_caller]
    fn search(&mut self, options: Value) -> Outcome {
        self.call_operation("search", json!({"query": "q"}), options)
    }

    /// Calls an operation through its dispatcher with these options.
    #[track_caller]
    fn call_operation(&mut self, operation: &str, args: Value, options: Value) -> Outcome {
        let tool = dispatcher(find(operation).expect("an operation"));
        let call = merge(json!({"operation": operation, "args": args}), &options);
        self.server.call_raw(tool, call)
    }

    /// Returns the number of requests since the last call.
    fn take_request_count(&self) -> usize {
        self.recorder.take().len()
    }
}

/// Adds the fields of another object.
fn merge(mut object: Value, more: &Value) -> Value {
    let fields = object.as_object_mut().expect("an object");
    fields.extend(more.as_object().expect("an object").clone());
    object
}

/// Returns the id of the cached result.
#[track_caller]
fn cache_id(envelope: &Value) -> String {
    let id = envelope["metadata"]["cacheId"].as_str();
    id.unwrap_or_else(|| panic!("no cache id in {envelope}"))
        .to_owned()
}

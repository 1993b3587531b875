//! Answers as their callers see them: how much of them, in which form, and from where.

mod budget;
mod cache;
mod corpus;
mod every_operation;
mod filters;
mod header;
mod invalid_options;
mod json;
mod levels;
mod markdown;
#[cfg(target_os = "linux")]
mod memory;
mod pages;
mod reading;
mod requests;
mod same;
mod snapshots;
mod specimens;
mod untrusted_text;

use exa_mcp_server::operations::find;
use serde_json::{Value, json};

use super::operations::dispatcher;
use crate::support::{McpServer, Outcome, Program, Recorder, Reply, USUAL};

/// A server in front of an upstream that records what it is asked.
struct Desk {
    recorder: Recorder,
    server: McpServer,
}

impl Desk {
    /// The default tools; every request gets this answer.
    fn answering(answer: &Value) -> Self {
        Self::with(Recorder::always(Reply::json(200, answer)), &[], &[])
    }

    /// Another set of tools with the same answer to every request.
    fn offering(tools: &str, answer: &Value) -> Self {
        let recorder = Recorder::always(Reply::json(200, answer));
        Self::with(recorder, &["--tools", tools], &[])
    }

    /// A server with these flags and variables in front of this upstream.
    fn with(recorder: Recorder, flags: &[&str], variables: &[(&str, &str)]) -> Self {
        let program = Program::new(flags.iter().copied()).env("EXA_BASE_URL", &recorder.url());
        let program = variables
            .iter()
            .fold(program, |program, (name, value)| program.env(name, value));
        let server = McpServer::connect(program, USUAL);
        Self { recorder, server }
    }

    /// Searches through the dispatcher, always for the same, with options beside.
    #[track_caller]
    fn search(&mut self, options: Value) -> Outcome {
        self.operate("search", json!({"query": "q"}), options)
    }

    /// Calls an operation through its dispatcher with options beside.
    #[track_caller]
    fn operate(&mut self, operation: &str, args: Value, options: Value) -> Outcome {
        let tool = dispatcher(find(operation).expect("an operation"));
        let call = joined(json!({"operation": operation, "args": args}), &options);
        self.server.call_plainly(tool, call)
    }

    /// How often the upstream was asked since the last time.
    fn asked(&self) -> usize {
        self.recorder.take().len()
    }
}

/// An object with the fields of another one added.
fn joined(mut object: Value, more: &Value) -> Value {
    let fields = object.as_object_mut().expect("an object");
    fields.extend(more.as_object().expect("an object").clone());
    object
}

/// The id under which an answer is kept.
#[track_caller]
fn cache_id(envelope: &Value) -> String {
    let id = envelope["metadata"]["cacheId"].as_str();
    id.unwrap_or_else(|| panic!("no cache id in {envelope}"))
        .to_owned()
}

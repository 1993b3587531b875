//! Requests of the server to its client, with sessions and stateless, and the handling of every kind of response.

mod delete_confirmation;
mod elicitation;
mod key_prompt;
mod logging;
mod multi_round_trip;
mod no_capabilities;
mod roots;
mod sampling;
mod tasks;

use serde_json::{Value, json};

use crate::support::{DEFAULT_VERSION, McpServer, Outcome, Program, STATELESS_VERSION};

/// One version with server requests and one with multi-round-trip requests.
const VERSIONS: [&str; 2] = [DEFAULT_VERSION, STATELESS_VERSION];

/// The maximum number of rounds of a call.
const MAX_ROUNDS: usize = 20;

/// How the client responds to a request.
enum ClientResponse {
    /// A result.
    Result(Value),
    /// An error with this code; a stateless client leaves the response out.
    Error(i64),
    /// No response.
    Silence,
}

/// A client that responds by a script and records the server's requests.
struct ScriptedClient {
    server: McpServer,
    /// Method and parameters of every request.
    requests: Vec<(String, Value)>,
    /// Method and parameters of every notification.
    notifications: Vec<(String, Value)>,
}

impl ScriptedClient {
    fn new(program: Program, version: &str, capabilities: Value) -> Self {
        Self {
            server: McpServer::connect_with(program, version, capabilities),
            requests: Vec::new(),
            notifications: Vec::new(),
        }
    }

    /// Starts a server with its own sandbox that waits one second for responses.
    fn sandboxed(tools: &str, version: &str, capabilities: Value) -> Self {
        let program = Program::new(["--sandbox", "--tools", tools]);
        let program = program.env("EXA_MCP_CLIENT_TIMEOUT", "1");
        Self::new(program, version, capabilities)
    }

    /// Calls a tool, responds to the server's requests, and returns the whole response.
    fn request(
        &mut self,
        tool: &str,
        arguments: Value,
        mut script: impl FnMut(&str, &Value) -> ClientResponse,
    ) -> Value {
        let call = json!({"name": tool, "arguments": arguments});
        if self.server.is_stateless() {
            self.call_stateless(call, &mut script)
        } else {
            self.call_in_session("tools/call", call, &mut script)
        }
    }

    /// Like [`Self::request`], for a call that must have a result.
    #[track_caller]
    fn call(
        &mut self,
        tool: &str,
        arguments: Value,
        script: impl FnMut(&str, &Value) -> ClientResponse,
    ) -> Outcome {
        Outcome::from_response(&self.request(tool, arguments, script))
    }

    fn call_in_session(
        &mut self,
        request: &str,
        params: Value,
        script: &mut impl FnMut(&str, &Value) -> ClientResponse,
    ) -> Value {
        let id = self.server.send(request, params);
        loop {
            let message = self.server.next();
            let Some(method) = message.get("method").and_then(Value::as_str) else {
                assert_eq!(message["id"], id, "{message}");
                return message;
            };
            let Some(question) = message.get("id") else {
                let notification = (method.to_owned(), message["params"].clone());
                self.notifications.push(notification);
                continue;
            };
            let reply = match self.respond(method, &message["params"], script) {
                ClientResponse::Result(result) => json!({"result": result}),
                ClientResponse::Error(code) => json!({"error": {"code": code, "message": "no"}}),
                ClientResponse::Silence => continue,
            };
            let mut reply = reply;
            reply["jsonrpc"] = json!("2.0");
            reply["id"] = question.clone();
            self.server.write(reply.to_string().as_bytes());
        }
    }

    fn call_stateless(
        &mut self,
        call: Value,
        script: &mut impl FnMut(&str, &Value) -> ClientResponse,
    ) -> Value {
        let mut next = call.clone();
        for _ in 0..MAX_ROUNDS {
            let body = self.server.request("tools/call", next);
            if body["result"]["resultType"] != "input_required" {
                return body;
            }
            let requests = body["result"]["inputRequests"].as_object();
            let mut responses = json!({});
            for (key, request) in requests.expect("input requests") {
                let method = request["method"].as_str().expect("a method");
                if let ClientResponse::Result(result) =
                    self.respond(method, &request["params"], script)
                {
                    responses[key] = result;
                }
            }
            next = call.clone();
            next["requestState"] = body["result"]["requestState"].clone();
            next["inputResponses"] = responses;
        }
        panic!("more than {MAX_ROUNDS} rounds");
    }

    fn respond(
        &mut self,
        method: &str,
        params: &Value,
        script: &mut impl FnMut(&str, &Value) -> ClientResponse,
    ) -> ClientResponse {
        self.requests.push((method.to_owned(), params.clone()));
        script(method, params)
    }

    /// Returns the methods of all requests so far.
    fn methods(&self) -> Vec<&str> {
        self.requests.iter().map(|(method, _)| &**method).collect()
    }
}

/// A script that fails on any request.
fn no_requests(method: &str, params: &Value) -> ClientResponse {
    panic!("unexpected request: {method} {params}");
}

/// Returns the response of a user who fills in a form.
fn accept(content: Value) -> ClientResponse {
    ClientResponse::Result(json!({"action": "accept", "content": content}))
}

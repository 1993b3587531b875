//! What the server asks of its client, in both eras, and what becomes of every kind of answer.

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

use crate::support::{McpServer, Outcome, Program, STATELESS, USUAL};

/// Both ways in which a client is asked.
const BOTH: [&str; 2] = [USUAL, STATELESS];

/// Rounds of a call after which a test gives up.
const MOST_ROUNDS: usize = 20;

/// How a client answers a question.
enum Answer {
    /// With this.
    Result(Value),
    /// With an error of this code; a stateless client then leaves the answer out.
    Error(i64),
    /// Not at all.
    Silence,
}

/// A client that answers by a script and remembers what it was asked.
struct Scripted {
    server: McpServer,
    /// Method and parameters of every question.
    asked: Vec<(String, Value)>,
    /// Method and parameters of everything that was told meanwhile.
    told: Vec<(String, Value)>,
}

impl Scripted {
    fn new(program: Program, version: &str, capabilities: Value) -> Self {
        Self {
            server: McpServer::connect_with(program, version, capabilities),
            asked: Vec::new(),
            told: Vec::new(),
        }
    }

    /// A server with a sandbox of its own, which waits a second for answers.
    fn sandboxed(tools: &str, version: &str, capabilities: Value) -> Self {
        let program = Program::new(["--sandbox", "--tools", tools]);
        let program = program.env("EXA_MCP_CLIENT_TIMEOUT", "1");
        Self::new(program, version, capabilities)
    }

    /// Calls a tool, answers what is asked meanwhile, and gives the whole answer.
    fn ask(
        &mut self,
        tool: &str,
        arguments: Value,
        mut script: impl FnMut(&str, &Value) -> Answer,
    ) -> Value {
        let call = json!({"name": tool, "arguments": arguments});
        match self.server.is_stateless() {
            true => self.in_rounds(call, &mut script),
            false => self.in_session("tools/call", call, &mut script),
        }
    }

    /// The same for a call that must have a result.
    #[track_caller]
    fn call(
        &mut self,
        tool: &str,
        arguments: Value,
        script: impl FnMut(&str, &Value) -> Answer,
    ) -> Outcome {
        Outcome::of(&self.ask(tool, arguments, script))
    }

    fn in_session(
        &mut self,
        request: &str,
        params: Value,
        script: &mut impl FnMut(&str, &Value) -> Answer,
    ) -> Value {
        let id = self.server.send(request, params);
        loop {
            let message = self.server.next();
            let Some(method) = message.get("method").and_then(Value::as_str) else {
                assert_eq!(message["id"], id, "{message}");
                return message;
            };
            let Some(question) = message.get("id") else {
                let told = (method.to_owned(), message["params"].clone());
                self.told.push(told);
                continue;
            };
            let reply = match self.hear(method, &message["params"], script) {
                Answer::Result(result) => json!({"result": result}),
                Answer::Error(code) => json!({"error": {"code": code, "message": "no"}}),
                Answer::Silence => continue,
            };
            let mut reply = reply;
            reply["jsonrpc"] = json!("2.0");
            reply["id"] = question.clone();
            self.server.write(reply.to_string().as_bytes());
        }
    }

    fn in_rounds(&mut self, call: Value, script: &mut impl FnMut(&str, &Value) -> Answer) -> Value {
        let mut next = call.clone();
        for _ in 0..MOST_ROUNDS {
            let answer = self.server.ask("tools/call", next);
            if answer["result"]["resultType"] != "input_required" {
                return answer;
            }
            let requests = answer["result"]["inputRequests"].as_object();
            let mut responses = json!({});
            for (key, request) in requests.expect("questions") {
                let method = request["method"].as_str().expect("a method");
                if let Answer::Result(result) = self.hear(method, &request["params"], script) {
                    responses[key] = result;
                }
            }
            next = call.clone();
            next["requestState"] = answer["result"]["requestState"].clone();
            next["inputResponses"] = responses;
        }
        panic!("asked more than {MOST_ROUNDS} times");
    }

    fn hear(
        &mut self,
        method: &str,
        params: &Value,
        script: &mut impl FnMut(&str, &Value) -> Answer,
    ) -> Answer {
        self.asked.push((method.to_owned(), params.clone()));
        script(method, params)
    }

    /// The methods of all questions so far.
    fn methods(&self) -> Vec<&str> {
        self.asked.iter().map(|(method, _)| &**method).collect()
    }
}

/// A script for questions that must not be asked.
fn never(method: &str, params: &Value) -> Answer {
    panic!("asked {method} {params}");
}

/// What a user gives by a form.
fn accepted(content: Value) -> Answer {
    Answer::Result(json!({"action": "accept", "content": content}))
}

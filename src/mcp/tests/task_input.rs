//! Tasks that wait for an answer, and the end of the server.

use std::{future::Future, sync::Arc, time::Duration};

use rmcp::model::{InputResponses, JsonObject, TaskStatus};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::super::{
    tasks::{Tasks, Watcher},
    tools::Tools,
};
use super::PlainCall;
use crate::{
    operations::client::{ClientCapabilities, Form},
    tools::{TaskLimits, ToolContext, ToolDefinition, ToolOutcome},
};
use exa_mcp_model::Identity;
use exa_mcp_store::MemoryStore;

/// How long a start is on its way.
const START: Duration = Duration::from_secs(10);

/// A tool that asks, and then starts something.
#[derive(Clone)]
struct Asks;

impl Tools for Asks {
    type Call = PlainCall;

    fn instructions(&self) -> String {
        String::new()
    }

    fn definitions(&self) -> Vec<ToolDefinition> {
        vec![super::definition("ask".to_owned())]
    }

    fn has(&self, name: &str) -> bool {
        name == "ask"
    }

    fn parse(&self, name: &str, arguments: JsonObject) -> PlainCall {
        PlainCall {
            name: name.to_owned(),
            arguments,
            starts_work: true,
        }
    }

    fn run(
        &self,
        _call: PlainCall,
        context: ToolContext,
    ) -> impl Future<Output = ToolOutcome> + Send + 'static {
        ask(context)
    }
}

async fn ask(call: ToolContext) -> ToolOutcome {
    let schema = json!({"type": "object", "properties": {"it": {"type": "string"}}});
    let form = Form {
        message: "Which?".to_owned(),
        schema: schema.as_object().unwrap().clone(),
    };
    let filled = call.client.fill(form).await;
    sleep(START).await;
    super::outcome(format!("{filled:?}"), JsonObject::new(), filled.is_err())
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ends_waits_for_starts_but_not_for_answers() {
    let store = Arc::new(MemoryStore::default());
    let tasks = Tasks::new(Asks, store, TaskLimits::default(), None);
    let owner = Identity::local();
    let forms = ClientCapabilities {
        forms: true,
        ..ClientCapabilities::default()
    };
    let watcher = Watcher {
        capabilities: forms,
        ..Watcher::nobody()
    };
    let call = Asks.parse("ask", JsonObject::new());
    let task = tasks.create(&owner, call, None, watcher);
    let id = task.await.unwrap().task().task_id;
    let state = loop {
        let state = tasks.get(&owner, &id).await.unwrap();
        if state.task().status == TaskStatus::InputRequired {
            break serde_json::to_value(state.detailed()).unwrap();
        }
        tokio::task::yield_now().await;
    };
    let long = START * 100;
    let began = Instant::now();
    tasks.settle(long).await;
    assert_eq!(began.elapsed(), Duration::ZERO);

    let key = state["inputRequests"].as_object().unwrap().keys().next();
    let answer = json!({"action": "accept", "content": {"it": "this"}});
    let responses = InputResponses::from_iter([(key.unwrap().clone(), answer)]);
    tasks.update(&owner, &id, responses).await.unwrap();
    // The call goes on.
    while tasks.get(&owner, &id).await.unwrap().task().status == TaskStatus::InputRequired {
        tokio::task::yield_now().await;
    }
    sleep(START / 10).await;
    tasks.settle(long).await;
    assert_eq!(began.elapsed(), START);
    while !tasks.get(&owner, &id).await.unwrap().is_final() {
        tokio::task::yield_now().await;
    }
    let state = tasks.get(&owner, &id).await.unwrap();
    assert_eq!(state.task().status, TaskStatus::Completed);
}

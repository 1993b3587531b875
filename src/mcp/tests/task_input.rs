//! Tasks that wait for input during a shutdown.

use std::{future::Future, sync::Arc, time::Duration};

use rmcp::model::{InputResponses, JsonObject, TaskStatus};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::super::{
    tasks::{TaskObserver, Tasks},
    tools::Tools,
};
use super::PlainCall;
use crate::{
    operations::interaction::{ClientCapabilities, FormRequest},
    tools::{TaskLimits, ToolContext, ToolDefinition, ToolOutcome},
};
use exa_mcp_model::Identity;
use exa_mcp_store::MemoryStore;

/// How long Exa takes to respond to a start.
const START: Duration = Duration::from_secs(10);

/// A tool that requests input, and then starts a job.
#[derive(Clone)]
struct InteractiveTool;

impl Tools for InteractiveTool {
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
            starts_job: true,
        }
    }

    fn run(
        &self,
        _call: PlainCall,
        context: ToolContext,
    ) -> impl Future<Output = ToolOutcome> + Send + 'static {
        request_and_start(context)
    }
}

async fn request_and_start(context: ToolContext) -> ToolOutcome {
    let schema = json!({"type": "object", "properties": {"it": {"type": "string"}}});
    let form = FormRequest {
        message: "Which?".to_owned(),
        schema: schema.as_object().unwrap().clone(),
    };
    let filled = context.client.fill_form(form).await;
    sleep(START).await;
    super::outcome(format!("{filled:?}"), JsonObject::new(), filled.is_err())
}

#[tokio::test(start_paused = true)]
async fn shutdown_waits_for_starts_but_not_for_input() {
    let store = Arc::new(MemoryStore::default());
    let tasks = Tasks::new(InteractiveTool, store, TaskLimits::default(), None);
    let owner = Identity::local();
    let forms = ClientCapabilities {
        forms: true,
        ..ClientCapabilities::default()
    };
    let observer = TaskObserver {
        capabilities: forms,
        ..TaskObserver::none()
    };
    let call = InteractiveTool.parse("ask", JsonObject::new());
    let task = tasks.create(&owner, call, None, observer);
    let id = task.await.unwrap().task().task_id;
    let state = loop {
        let state = tasks.get(&owner, &id).await.unwrap();
        if state.task().status == TaskStatus::InputRequired {
            break serde_json::to_value(state.to_detailed_task()).unwrap();
        }
        tokio::task::yield_now().await;
    };
    let long = START * 100;
    let start = Instant::now();
    tasks.settle(long).await;
    assert_eq!(start.elapsed(), Duration::ZERO);

    let key = state["inputRequests"].as_object().unwrap().keys().next();
    let response = json!({"action": "accept", "content": {"it": "this"}});
    let responses = InputResponses::from_iter([(key.unwrap().clone(), response)]);
    tasks.update(&owner, &id, responses).await.unwrap();
    // The call continues.
    while tasks.get(&owner, &id).await.unwrap().task().status == TaskStatus::InputRequired {
        tokio::task::yield_now().await;
    }
    sleep(START / 10).await;
    tasks.settle(long).await;
    assert_eq!(start.elapsed(), START);
    while !tasks.get(&owner, &id).await.unwrap().is_final() {
        tokio::task::yield_now().await;
    }
    let state = tasks.get(&owner, &id).await.unwrap();
    assert_eq!(state.task().status, TaskStatus::Completed);
}

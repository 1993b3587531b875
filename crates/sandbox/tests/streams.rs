//! Server-sent events.

use serde_json::{Value, json};

use crate::support::{HttpResponse, Server};
use exa_mcp_sandbox::{MARKER, Options};

/// Returns the events of a stream as (id, event, data).
fn events(response: &HttpResponse) -> Vec<(Option<String>, Option<String>, String)> {
    assert!(response.headers["content-type"].starts_with("text/event-stream"));
    assert!(response.is_complete);
    let text = response.text();
    let events = text
        .split("\n\n")
        .filter(|event| !event.is_empty() && !event.starts_with(':'));
    events
        .map(|event| {
            let field = |name: &str| {
                event
                    .lines()
                    .find_map(|line| line.strip_prefix(name))
                    .map(str::to_owned)
            };
            (field("id: "), field("event: "), field("data: ").unwrap())
        })
        .collect()
}

fn chunks(response: &HttpResponse) -> (String, Vec<Value>) {
    let events = events(response);
    assert_eq!(events.last().unwrap().2, "[DONE]");
    let chunks: Vec<Value> = events
        .iter()
        .take(events.len() - 1)
        .map(|event| serde_json::from_str(&event.2).unwrap())
        .collect();
    assert!(chunks.iter().all(|chunk| chunk["sandbox"] == MARKER));
    let text = chunks
        .iter()
        .filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str())
        .collect();
    (text, chunks)
}

#[tokio::test]
async fn answers_stream_in_chunks() {
    let server = Server::start().await;
    let client = server.client();
    let whole = client
        .ok("answer", json!({ "query": "Why heat pumps?" }))
        .await;
    let response = client
        .call(
            "answer",
            json!({ "query": "Why heat pumps?", "stream": true }),
        )
        .await;
    let (text, chunks) = chunks(&response);
    assert_eq!(text, whole["answer"]);
    assert!(chunks.len() > 3);
    let part = |name: &str| {
        chunks
            .iter()
            .find(|chunk| chunk.get(name).is_some())
            .unwrap()
    };
    assert_eq!(part("citations")["citations"], whole["citations"]);
    assert_eq!(part("costDollars")["costDollars"], whole["costDollars"]);
    assert!(part("costDollars")["requestId"].is_string());
}

#[tokio::test]
async fn searches_stream_in_chunks() {
    let server = Server::start().await;
    let response = server
        .client()
        .call(
            "search",
            json!({ "query": "heat pumps", "stream": true, "numResults": 3 }),
        )
        .await;
    let (text, chunks) = chunks(&response);
    assert!(text.starts_with("Heat pumps"));
    let types: Vec<&str> = chunks
        .iter()
        .map(|chunk| chunk["type"].as_str().unwrap())
        .collect();
    assert_eq!(types[types.len() - 3..], ["grounding", "results", "done"]);
    assert!(
        types[..types.len() - 3]
            .iter()
            .all(|name| *name == "text-delta")
    );
    let results = &chunks[chunks.len() - 2]["results"];
    assert_eq!(results.as_array().unwrap().len(), 3);
    let done = chunks.last().unwrap();
    assert_eq!(done["output"]["content"], text);
    assert_eq!(done["costDollars"]["total"], 0.007);
}

#[tokio::test]
async fn agent_run_stream_lasts_until_completion() {
    let server = Server::with(Options {
        time_scale: 20.0,
        ..Options::default()
    })
    .await;
    let client = server.client().header("accept", "text/event-stream");
    let response = client
        .call("agent.runs.create", json!({ "query": "Find makers" }))
        .await;
    let events = events(&response);
    let names: Vec<&str> = events
        .iter()
        .map(|event| event.1.as_deref().unwrap())
        .collect();
    assert_eq!(names[..2], ["agent_run.created", "agent_run.started"]);
    assert_eq!(names.last(), Some(&"agent_run.completed"));
    assert!(names.contains(&"agent_run.source.added"));
    let last: Value = serde_json::from_str(&events.last().unwrap().2).unwrap();
    assert_eq!(last["status"], "completed");
    assert!(last["output"]["text"].is_string());
    let listed = server
        .client()
        .ok("agent.runs.events.list", json!({ "runId": last["id"] }))
        .await;
    let ids: Vec<&str> = listed["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["id"].as_str().unwrap())
        .collect();
    let streamed: Vec<&str> = events
        .iter()
        .map(|event| event.0.as_deref().unwrap())
        .collect();
    assert_eq!(ids, streamed);
}

#[tokio::test]
async fn research_stream_lasts_until_completion() {
    let server = Server::with(Options {
        time_scale: 20.0,
        with_research: true,
        ..Options::default()
    })
    .await;
    let client = server.client();
    let task = client
        .ok(
            "research.create",
            json!({ "instructions": "Compare heat pumps" }),
        )
        .await;
    let response = client
        .call(
            "research.get",
            json!({ "researchId": task["researchId"], "stream": true }),
        )
        .await;
    let names: Vec<String> = events(&response)
        .into_iter()
        .map(|event| event.1.unwrap())
        .collect();
    assert_eq!(names.first().unwrap(), "research-definition");
    assert_eq!(names.last().unwrap(), "research-output");
    for name in [
        "plan-definition",
        "plan-operation",
        "plan-output",
        "task-definition",
        "task-operation",
        "task-output",
    ] {
        assert!(names.iter().any(|seen| seen == name), "{name}");
    }
}

#[tokio::test]
async fn deleting_a_run_ends_its_stream() {
    let server = Server::start().await;
    let following = {
        let client = server.client().header("accept", "text/event-stream");
        tokio::spawn(async move {
            client
                .call(
                    "agent.runs.create",
                    json!({ "query": "x", "effort": "high" }),
                )
                .await
        })
    };
    let run = loop {
        let runs = server.client().ok("agent.runs.list", json!({})).await;
        if let Some(run) = runs["data"].as_array().unwrap().first() {
            break run["id"].clone();
        }
    };
    server
        .client()
        .ok("agent.runs.delete", json!({ "runId": run }))
        .await;
    assert!(following.await.unwrap().is_complete);
}

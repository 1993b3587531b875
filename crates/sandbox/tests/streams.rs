//! Server-sent events.

use serde_json::{Value, json};

use crate::support::{Answer, Server};
use exa_mcp_sandbox::{MARKER, Options};

/// The blocks of a stream as (id, event, data).
fn blocks(answer: &Answer) -> Vec<(Option<String>, Option<String>, String)> {
    assert!(answer.headers["content-type"].starts_with("text/event-stream"));
    assert!(answer.whole);
    let text = answer.text();
    let blocks = text
        .split("\n\n")
        .filter(|block| !block.is_empty() && !block.starts_with(':'));
    blocks
        .map(|block| {
            let field = |name: &str| {
                block
                    .lines()
                    .find_map(|line| line.strip_prefix(name))
                    .map(str::to_owned)
            };
            (field("id: "), field("event: "), field("data: ").unwrap())
        })
        .collect()
}

fn chunks(answer: &Answer) -> (String, Vec<Value>) {
    let blocks = blocks(answer);
    assert_eq!(blocks.last().unwrap().2, "[DONE]");
    let chunks: Vec<Value> = blocks
        .iter()
        .take(blocks.len() - 1)
        .map(|block| serde_json::from_str(&block.2).unwrap())
        .collect();
    assert!(chunks.iter().all(|chunk| chunk["sandbox"] == MARKER));
    let text = chunks
        .iter()
        .filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str())
        .collect();
    (text, chunks)
}

#[tokio::test]
async fn answers_stream_in_pieces() {
    let server = Server::start().await;
    let client = server.client();
    let whole = client
        .ok("answer", json!({ "query": "Why heat pumps?" }))
        .await;
    let answer = client
        .call(
            "answer",
            json!({ "query": "Why heat pumps?", "stream": true }),
        )
        .await;
    let (text, chunks) = chunks(&answer);
    assert_eq!(text, whole["answer"]);
    assert!(chunks.len() > 3);
    assert_eq!(chunks.last().unwrap()["citations"], whole["citations"]);
}

#[tokio::test]
async fn searches_stream_too() {
    let server = Server::start().await;
    let answer = server
        .client()
        .call(
            "search",
            json!({ "query": "heat pumps", "stream": true, "numResults": 3 }),
        )
        .await;
    let (text, chunks) = chunks(&answer);
    assert!(text.starts_with("Heat pumps"));
    assert_eq!(
        chunks.last().unwrap()["citations"]
            .as_array()
            .unwrap()
            .len(),
        3
    );
}

#[tokio::test]
async fn agent_runs_are_followed_to_their_end() {
    let server = Server::with(Options {
        time_scale: 20.0,
        ..Options::default()
    })
    .await;
    let client = server.client().header("accept", "text/event-stream");
    let answer = client
        .call("agent.runs.create", json!({ "query": "Find makers" }))
        .await;
    let blocks = blocks(&answer);
    let names: Vec<&str> = blocks
        .iter()
        .map(|block| block.1.as_deref().unwrap())
        .collect();
    assert_eq!(names[..2], ["agent_run.created", "agent_run.started"]);
    assert_eq!(names.last(), Some(&"agent_run.completed"));
    assert!(names.contains(&"source.added"));
    let last: Value = serde_json::from_str(&blocks.last().unwrap().2).unwrap();
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
    let streamed: Vec<&str> = blocks
        .iter()
        .map(|block| block.0.as_deref().unwrap())
        .collect();
    assert_eq!(ids, streamed);
}

#[tokio::test]
async fn research_is_followed_to_its_end() {
    let server = Server::with(Options {
        time_scale: 20.0,
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
    let answer = client
        .call(
            "research.get",
            json!({ "researchId": task["researchId"], "stream": true }),
        )
        .await;
    let names: Vec<String> = blocks(&answer)
        .into_iter()
        .map(|block| block.1.unwrap())
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
async fn a_deleted_run_ends_its_stream() {
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
    assert!(following.await.unwrap().whole);
}

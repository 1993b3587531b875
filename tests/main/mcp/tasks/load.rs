//! Many concurrent tasks.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{connect, research, start_task};
use crate::support::{McpServer, Program, Recorder, Response, Sandbox};

const TASKS: usize = 1_000;

fn poll_tasks(server: &mut McpServer, count: usize) -> Vec<String> {
    let requests: Vec<Value> = (0..count)
        .map(|number| {
            let mut call = research(&format!("subject number {number}"));
            call["task"] = json!({});
            server.send("tools/call", call)
        })
        .collect();
    let id = |request: &Value| {
        let body = server.response(request);
        let id = body["result"]["task"]["taskId"].as_str();
        id.unwrap_or_else(|| panic!("{body}")).to_owned()
    };
    requests.iter().map(id).collect()
}

#[test]
fn a_thousand_tasks_use_bounded_memory() {
    let sandbox = Sandbox::start();
    let folder = tempfile::tempdir().expect("a folder");
    let stores = [
        "memory:".to_owned(),
        format!("sqlite:{}", folder.path().join("store.db").display()),
    ];
    for (round, store) in stores.iter().enumerate() {
        let program = Program::new([])
            .env("EXA_BASE_URL", &sandbox.url())
            .env("EXA_MCP_STORE", store);
        let mut server = connect(program);
        let before = sandbox.request_count();
        let ids = poll_tasks(&mut server, TASKS);
        let results: Vec<Value> = ids
            .iter()
            .map(|id| server.send("tasks/result", json!({"taskId": id})))
            .collect();
        for request in results {
            let body = server.response(&request);
            let structured = &body["result"]["structuredContent"];
            assert_eq!(structured["results"][0]["status"], "completed", "{body}");
        }
        let made = sandbox.count("research");
        assert_eq!(made, ((round + 1) * TASKS) as u64, "{store}");
        let requests = sandbox.request_count() - before;
        usage(&server, requests, store);
    }
}

/// Asserts that memory and CPU time of the server are bounded.
#[cfg(target_os = "linux")]
fn usage(server: &McpServer, requests: u64, store: &str) {
    let process = server.process_id();
    let read = |file: &str| {
        let text = std::fs::read_to_string(format!("/proc/{process}/{file}"));
        text.expect("a running process")
    };
    let status = read("status");
    let kilobytes = |name: &str| {
        let value = status.lines().find_map(|line| line.strip_prefix(name));
        let value = value.and_then(|value| value.trim().strip_suffix(" kB"));
        let value: Option<u64> = value.and_then(|value| value.parse().ok());
        value.expect("a number")
    };
    // The pages of an unoptimized program are several times those of a release and say nothing about tasks.
    let peak = kilobytes("VmHWM:").saturating_sub(kilobytes("RssFile:"));
    // CPU time in hundredths of a second, after the name, which may contain anything.
    let stat = read("stat");
    let (_, fields) = stat.rsplit_once(')').expect("a name");
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let ticks: u64 = [11, 12]
        .map(|at| fields[at].parse::<u64>().expect("a number"))
        .iter()
        .sum();
    eprintln!("{store}: {peak} kB at most, {ticks} ticks for {requests} requests");
    // Storing each task twice would exceed this.
    assert!(peak < 100_000, "{store}: {peak} kB at most");
    // Even without optimization a request takes a few milliseconds; a busy loop would take
    // all the CPU time.
    assert!(
        ticks < 2 * requests,
        "{store}: {ticks} ticks for {requests} requests"
    );
}

#[cfg(not(target_os = "linux"))]
fn usage(_server: &McpServer, _requests: u64, _store: &str) {}

#[test]
fn tasks_poll_at_most_once_a_second() {
    // The times of the requests by id.
    type Times = Mutex<HashMap<String, Vec<Instant>>>;
    let times: Arc<Times> = Arc::default();
    let recorded = Arc::clone(&times);
    let recorder = Recorder::start(move |request, before| {
        let mut times = recorded.lock().expect("the times");
        let id = match request.method.as_str() {
            "POST" => format!("r{before}"),
            _ => request.path().rsplit('/').next().expect("an id").to_owned(),
        };
        let request_times = times.entry(id.clone()).or_default();
        request_times.push(Instant::now());
        // Some errors, which must not increase the polling rate.
        match request_times.len() {
            3 => Response::new(500),
            4 => Response::disconnect(),
            7.. => Response::json(200, &json!({"researchId": id, "status": "completed"})),
            _ => Response::json(200, &json!({"researchId": id, "status": "running"})),
        }
    });
    let mut server = McpServer::with_recorder(&recorder, &[]);
    let ids: Vec<String> = (0..20)
        .map(|_| start_task(&mut server, research("x")))
        .collect();
    for id in ids {
        let body = server.request("tasks/result", json!({"taskId": id}));
        assert_eq!(body["result"]["isError"], false, "{body}");
    }
    let times = times.lock().expect("the times");
    assert_eq!(times.len(), 20);
    for (id, request_times) in times.iter() {
        assert_eq!(request_times.len(), 7, "{id}");
        for sandbox_and_server in request_times.windows(2) {
            // The pause starts after the response, so the interval is never shorter.
            let pause = sandbox_and_server[1] - sandbox_and_server[0];
            assert!(pause >= Duration::from_secs(1), "{id}: {pause:?}");
        }
    }
}

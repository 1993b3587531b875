//! Many tasks at once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{begin, connect, research};
use crate::support::{McpServer, Program, Recorder, Reply, Sandbox};

const TASKS: usize = 1_000;

fn ask_for_tasks(server: &mut McpServer, count: usize) -> Vec<String> {
    let requests: Vec<Value> = (0..count)
        .map(|number| {
            let mut call = research(&format!("subject number {number}"));
            call["task"] = json!({});
            server.send("tools/call", call)
        })
        .collect();
    let id = |request: &Value| {
        let answer = server.answer(request);
        let id = answer["result"]["task"]["taskId"].as_str();
        id.unwrap_or_else(|| panic!("{answer}")).to_owned()
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
        let before = sandbox.total();
        let ids = ask_for_tasks(&mut server, TASKS);
        let results: Vec<Value> = ids
            .iter()
            .map(|id| server.send("tasks/result", json!({"taskId": id})))
            .collect();
        for request in results {
            let answer = server.answer(&request);
            let structured = &answer["result"]["structuredContent"];
            assert_eq!(structured["results"][0]["status"], "completed", "{answer}");
        }
        let made = sandbox.count("research");
        assert_eq!(made, ((round + 1) * TASKS) as u64, "{store}");
        let requests = sandbox.total() - before;
        usage(&server, requests, store);
    }
}

/// Memory and work of the server stay within bounds.
#[cfg(target_os = "linux")]
fn usage(server: &McpServer, requests: u64, store: &str) {
    let process = server.process();
    let read = |file: &str| {
        let text = std::fs::read_to_string(format!("/proc/{process}/{file}"));
        text.expect("a running process")
    };
    let status = read("status");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.and_then(|peak| peak.trim().strip_suffix(" kB"));
    let peak: u64 = peak.and_then(|peak| peak.parse().ok()).expect("a number");
    // The time on a processor, in hundredths of a second, after the name, which may hold anything.
    let stat = read("stat");
    let (_, fields) = stat.rsplit_once(')').expect("a name");
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let ticks: u64 = [11, 12]
        .map(|at| fields[at].parse::<u64>().expect("a number"))
        .iter()
        .sum();
    eprintln!("{store}: {peak} kB at most, {ticks} ticks for {requests} requests");
    // A release stays below 100 MB. Without optimisation the program itself is some forty larger; what a task
    // holds twice would show.
    assert!(peak < 140_000, "{store}: {peak} kB at most");
    // Even without optimisation a request takes a few milliseconds; a loop that never rests would take
    // all the time there is.
    assert!(
        ticks < 2 * requests,
        "{store}: {ticks} ticks for {requests} requests"
    );
}

#[cfg(not(target_os = "linux"))]
fn usage(_server: &McpServer, _requests: u64, _store: &str) {}

#[test]
fn tasks_poll_at_most_once_a_second() {
    // When each piece of work was asked for, counted from its start.
    type Times = Mutex<HashMap<String, Vec<Instant>>>;
    let times: Arc<Times> = Arc::default();
    let seen = Arc::clone(&times);
    let recorder = Recorder::start(move |request, before| {
        let mut times = seen.lock().expect("the times");
        let id = match request.method.as_str() {
            "POST" => format!("r{before}"),
            _ => request.path().rsplit('/').next().expect("an id").to_owned(),
        };
        let asked = times.entry(id.clone()).or_default();
        asked.push(Instant::now());
        // Some trouble on the way, which is no reason to hurry.
        match asked.len() {
            3 => Reply::new(500),
            4 => Reply::hang_up(),
            7.. => Reply::json(200, &json!({"researchId": id, "status": "completed"})),
            _ => Reply::json(200, &json!({"researchId": id, "status": "running"})),
        }
    });
    let mut server = McpServer::recorded(&recorder, &[]);
    let ids: Vec<String> = (0..20).map(|_| begin(&mut server, research("x"))).collect();
    for id in ids {
        let answer = server.ask("tasks/result", json!({"taskId": id}));
        assert_eq!(answer["result"]["isError"], false, "{answer}");
    }
    let times = times.lock().expect("the times");
    assert_eq!(times.len(), 20);
    for (id, asked) in times.iter() {
        assert_eq!(asked.len(), 7, "{id}");
        for pair in asked.windows(2) {
            // The server begins to wait after it has its answer, so the pause is never shorter.
            let pause = pair[1] - pair[0];
            assert!(pause >= Duration::from_secs(1), "{id}: {pause:?}");
        }
    }
}

//! Tasks survive repeated crashes.

use std::thread::sleep;
use std::time::Duration;

use serde_json::{Value, json};

use super::{connect, durable, research, result, single_result, state};
use crate::support::Sandbox;

const TASKS: usize = 100;
const CRASHES: usize = 10;

/// Returns a random number between zero and one.
fn random_fraction() -> f64 {
    let mut bytes = [0; 4];
    getrandom::fill(&mut bytes).expect("random numbers");
    f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX)
}

#[test]
fn a_hundred_tasks_survive_ten_crashes() {
    let sandbox = Sandbox::start();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("store.db");
    // Responses to starts are slow, so that many crashes happen before the response.
    let rule = json!({"match": "research.create", "times": "always", "fault": "hold=400"});
    sandbox.add_fault(&rule);
    // Work takes three seconds of the sandbox's time, so the first tasks end during the crashes.
    sandbox.freeze(true);
    let mut ids = Vec::new();
    for crash in 1..=CRASHES {
        let mut server = connect(durable(&sandbox, &file));
        let until = TASKS / 2 + TASKS / 2 * crash / CRASHES;
        let requests: Vec<Value> = (ids.len()..until)
            .map(|number| {
                let mut call = research(&instructions(number));
                call["arguments"]["output_format"] = json!("json");
                call["task"] = json!({});
                server.send("tools/call", call)
            })
            .collect();
        for request in requests {
            let body = server.response(&request);
            let id = body["result"]["task"]["taskId"].as_str();
            ids.push(id.expect("an id").to_owned());
        }
        sleep(Duration::from_secs_f64(random_fraction() * 2.0));
        sandbox.advance(500);
        sleep(Duration::from_secs_f64(random_fraction()));
        server.kill();
    }
    assert_eq!(ids.len(), TASKS);
    sandbox.clear_faults();
    sandbox.freeze(false);
    let mut server = connect(durable(&sandbox, &file));
    for (number, id) in ids.iter().enumerate() {
        let result = result(&mut server, id);
        assert_eq!(result["isError"], false, "{result}");
        assert_eq!(single_result(&result)["status"], "completed");
        // The task's own result, not that of another task.
        assert_eq!(single_result(&result)["instructions"], instructions(number));
        assert_eq!(state(&mut server, id)["status"], "completed");
    }
    assert_eq!(sandbox.count("research"), TASKS as u64);
}

fn instructions(number: usize) -> String {
    format!("subject number {number}")
}

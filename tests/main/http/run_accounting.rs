//! Runs whose start fails or is interrupted: they are charged, counted, and stay with their owner.

use std::io::Write;
use std::net::Shutdown;
use std::sync::{Arc, Mutex, mpsc};
use std::thread::{scope, sleep};
use std::time::Duration;

use chrono::{SecondsFormat, Utc};
use serde_json::{Value, json};

use super::admin::{Admin, store};
use super::bearer;
use crate::support::{
    HttpServer, HttpSession, Part, RecordedRequest, Recorder, Response, eventually,
};

const ADMIN: (&str, &str) = ("MCP_AUTH_TOKEN", "the-admin-secret-of-the-tests");

/// The cost of a completed run.
const COST: f64 = 0.3;

/// How the mock responds to the next start.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Start {
    /// Responds with the run.
    Success,
    /// Creates the run, but a gateway responds with this status.
    Gateway(u16),
    /// Responds with the run, after this time.
    Delayed(Duration),
    /// Creates nothing and responds with this status.
    Rejected(u16),
    /// Closes the event stream after the first event.
    CutStream,
    /// Keeps the event stream open after the first event.
    SilentStream,
}

/// A mock of Exa.
#[derive(Clone)]
struct MockExa(Arc<Mutex<State>>);

struct State {
    start: Start,
    /// The request of each run.
    runs: Vec<Value>,
    are_over: bool,
}

impl MockExa {
    fn start() -> (Self, Recorder) {
        let state = State {
            start: Start::Success,
            runs: Vec::new(),
            are_over: false,
        };
        let exa = Self(Arc::new(Mutex::new(state)));
        let own = exa.clone();
        let recorder = Recorder::start(move |request, _| own.respond(request));
        (exa, recorder)
    }

    fn with<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(&mut self.0.lock().expect("the state"))
    }

    fn set(&self, start: Start) {
        self.with(|state| state.start = start);
    }

    fn runs(&self) -> usize {
        self.with(|state| state.runs.len())
    }

    fn end_runs(&self) {
        self.with(|state| state.are_over = true);
    }

    fn respond(&self, request: &RecordedRequest) -> Response {
        self.with(|state| {
            let path = request.path().to_owned();
            if request.method == "POST" && path == "/search" {
                return Response::json(200, &json!({"results": [], "costDollars": {"total": 0}}));
            }
            if request.method == "POST" && path.ends_with("/agent/runs") {
                return state.start_run(request);
            }
            if path.ends_with("/agent/runs") {
                let all: Vec<Value> = (0..state.runs.len()).rev().map(|n| state.show(n)).collect();
                return Response::json(200, &json!({"data": all, "hasMore": false}));
            }
            let number = path.rsplit('_').next().and_then(|n| n.parse().ok());
            match number.filter(|number| *number < state.runs.len()) {
                Some(number) => Response::json(200, &state.show(number)),
                None => Response::json(404, &json!({"error": "no such run"})),
            }
        })
    }
}

impl State {
    fn start_run(&mut self, request: &RecordedRequest) -> Response {
        if let Start::Rejected(status) = self.start {
            return Response::json(status, &json!({"error": "gateway"}));
        }
        let created = Utc::now().to_rfc3339_opts(SecondsFormat::Millis, true);
        let request = request.json();
        self.runs
            .push(json!({"createdAt": created, "request": request}));
        let run = self.show(self.runs.len() - 1);
        let event = || {
            let data = json!({"run": run});
            Part::text(format!("event: agent_run.created\ndata: {data}\n\n"))
        };
        match self.start {
            Start::Gateway(status) => Response::json(status, &json!({"error": "gateway"})),
            Start::CutStream => Response::events([event(), Part::Disconnect]),
            Start::SilentStream => {
                let (disconnected, _) = mpsc::channel();
                Response::events([event(), Part::WaitForClose(disconnected)])
            }
            Start::Delayed(pause) => Response::slow_json(pause, &run),
            Start::Success | Start::Rejected(_) => Response::json(200, &run),
        }
    }

    fn show(&self, number: usize) -> Value {
        let mut run = self.runs[number].clone();
        run["id"] = json!(format!("agent_run_{number}"));
        run["object"] = json!("agent_run");
        run["status"] = json!("running");
        if self.are_over {
            run["status"] = json!("completed");
            run["output"] = json!({"text": format!("made of {}", run["request"])});
            run["costDollars"] = json!({"total": COST});
        }
        run
    }
}

fn server(recorder: &Recorder, variables: &[(&str, &str)]) -> HttpServer {
    let variables = [&[ADMIN], variables].concat();
    HttpServer::with_upstream(&recorder.url(), &variables)
}

fn api(server: &HttpServer, token: &str, operation: &str, args: Value) -> Value {
    let authorization = bearer(token);
    let response = server.send_stateless(
        &[("authorization", &authorization)],
        "tools/call",
        call(operation, args),
    );
    assert_eq!(response.status, 200, "{}", response.text());
    response.json()["result"].clone()
}

fn call(operation: &str, args: Value) -> Value {
    json!({"name": "exa_api", "arguments": {"operation": operation, "args": args}})
}

/// Starts a run as a task and returns its id.
fn start_run(session: &mut HttpSession<'_>, args: Value) -> Value {
    let mut call = call("agent.runs.create", args);
    call["task"] = json!({"ttl": 600_000});
    let task = session.request("tools/call", call);
    let id = task["result"]["task"]["taskId"].clone();
    assert!(id.is_string(), "{task}");
    id
}

fn money(admin: &Admin<'_>, id: &str) -> (f64, f64) {
    let usage = admin.token(id)["usage"].clone();
    let number = |name: &str| usage[name].as_f64().expect(name);
    (number("dollarsToday"), number("reservedToday"))
}

#[track_caller]
fn limit(result: &Value) -> &Value {
    &result["structuredContent"]["error"]["limit"]
}

#[test]
fn run_start_behind_a_gateway_error_is_charged() {
    let (exa, recorder) = MockExa::start();
    let server = server(&recorder, &[]);
    let admin = Admin(&server);
    for (status, cost) in [
        (408, 0.5),
        (502, 0.5),
        (504, 0.5),
        (520, 0.5),
        (527, 0.5),
        (302, 0.5),
        (500, 0.0),
        (400, 0.0),
        (404, 0.0),
    ] {
        let (token, id) = admin.create(&json!({"limits": {"dollarsPerDay": 1}}));
        exa.set(Start::Gateway(status));
        let run = json!({"query": format!("q{status}"), "effort": "high"});
        let result = api(&server, &token, "agent.runs.create", run);
        assert_eq!(result["isError"], true, "{status}: {result}");
        eventually(&format!("{status}"), || money(&admin, &id) == (cost, 0.0));
        // Such a response charges nothing else.
        exa.set(Start::Success);
    }
    let (token, id) = admin.create(&json!({"limits": {"dollarsPerDay": 1}}));
    let missing = json!({"runId": "agent_run_999"});
    api(&server, &token, "agent.runs.get", missing);
    assert_eq!(money(&admin, &id), (0.0, 0.0));
}

#[test]
fn recovered_run_is_charged_its_real_cost() {
    let (exa, recorder) = MockExa::start();
    let server = server(&recorder, &[]);
    let admin = Admin(&server);
    let (token, id) = admin.create(&json!({"limits": {"dollarsPerDay": 1}}));
    let authorization = bearer(&token);
    let mut session = HttpSession::new(&server, &[("authorization", &authorization)]);
    exa.set(Start::Gateway(504));
    let task = start_run(&mut session, json!({"query": "q", "effort": "high"}));
    eventually("the run is created", || exa.runs() == 1);
    exa.set(Start::Success);
    exa.end_runs();
    let result = session.request("tasks/result", json!({"taskId": task}));
    assert_eq!(result["result"]["isError"], false, "{result}");
    assert_eq!(exa.runs(), 1, "started once");
    eventually("the cost is charged", || money(&admin, &id) == (COST, 0.0));
}

#[test]
fn run_with_a_cut_stream_is_followed_for_billing() {
    let (exa, recorder) = MockExa::start();
    let server = server(&recorder, &[]);
    let admin = Admin(&server);
    let limits = json!({"dollarsPerDay": 20, "concurrentCalls": 1});
    let (token, id) = admin.create(&json!({"limits": limits}));
    exa.set(Start::CutStream);
    let run = json!({"query": "q", "stream": true});
    let result = api(&server, &token, "agent.runs.create", run);
    assert_eq!(result["isError"], true, "{result}");
    assert_eq!(
        money(&admin, &id),
        (0.0, 5.0),
        "the run keeps its reservation"
    );
    exa.set(Start::Success);
    let another = json!({"query": "another", "effort": "low"});
    let refused = api(&server, &token, "agent.runs.create", another.clone());
    assert_eq!(limit(&refused), "concurrentCalls", "{refused}");
    exa.end_runs();
    eventually("the actual cost is charged", || {
        money(&admin, &id) == (COST, 0.0)
    });
    let result = api(&server, &token, "agent.runs.create", another);
    assert_eq!(result["isError"], false, "{result}");
}

#[test]
fn run_is_charged_after_the_client_disconnects() {
    let (exa, recorder) = MockExa::start();
    let server = server(&recorder, &[]);
    let admin = Admin(&server);
    let limits = json!({"dollarsPerDay": 20, "concurrentCalls": 1});
    let (token, id) = admin.create(&json!({"limits": limits}));
    exa.set(Start::SilentStream);
    let authorization = bearer(&token);
    let run = call("agent.runs.create", json!({"query": "q", "stream": true}));
    let request = server.stateless_request(&[("authorization", &authorization)], "tools/call", run);
    let mut client = server.connect();
    client.write_all(&request).expect("a request");
    eventually("the run is started", || exa.runs() == 1);
    // The first event arrives immediately.
    sleep(Duration::from_millis(500));
    client.shutdown(Shutdown::Both).expect("an open connection");
    drop(client);
    exa.set(Start::Success);
    // The call has ended once other calls are accepted again.
    eventually("the call has ended", || {
        api(&server, &token, "search", json!({"query": "q"}))["isError"] == false
    });
    assert_eq!(
        money(&admin, &id),
        (0.0, 5.0),
        "the run keeps its reservation"
    );
    let another = json!({"query": "another", "effort": "low"});
    let refused = api(&server, &token, "agent.runs.create", another);
    assert_eq!(limit(&refused), "concurrentCalls", "{refused}");
    exa.end_runs();
    eventually("the actual cost is charged", || {
        money(&admin, &id) == (COST, 0.0)
    });
}

/// Recovers a task whose start was lost, after another user has started a similar run.
fn recover_after_other_user(
    has_store: bool,
    is_task: bool,
    others: Value,
    own: Value,
) -> (Value, usize) {
    let (exa, recorder) = MockExa::start();
    let folder = tempfile::tempdir().expect("a folder");
    let store = store(&folder);
    let variables = [("EXA_MCP_STORE", store.as_str())];
    let variables = if has_store { &variables[..] } else { &[] };
    let server = server(&recorder, variables);
    let admin = Admin(&server);
    let [ann, bob] = ["ann", "bob"].map(|user| admin.create(&json!({"userId": user})).0);
    if is_task {
        let authorization = bearer(&bob);
        let mut session = HttpSession::new(&server, &[("authorization", &authorization)]);
        start_run(&mut session, others);
    } else {
        let result = api(&server, &bob, "agent.runs.create", others);
        assert_eq!(result["isError"], false, "{result}");
    }
    eventually("the run is started", || exa.runs() == 1);
    sleep(Duration::from_millis(500));
    exa.set(Start::Rejected(502));
    let authorization = bearer(&ann);
    let mut session = HttpSession::new(&server, &[("authorization", &authorization)]);
    let task = start_run(&mut session, own);
    let result = session.request("tasks/result", json!({"taskId": task}));
    (result["result"].clone(), exa.runs())
}

#[test]
fn recovery_ignores_runs_of_other_users() {
    let of = |name: &str| json!({"query": "q", "effort": "low", "input": {"data": [{"n": name}]}});
    let cases = [
        (false, false, of("bob")),
        (false, true, of("bob")),
        (true, false, of("bob")),
        (true, true, of("bob")),
        (false, false, of("ann")),
        (false, false, json!({"query": "q", "effort": "low"})),
    ];
    scope(|scope| {
        for (has_store, is_task, own) in cases {
            scope.spawn(move || {
                let (result, runs) =
                    recover_after_other_user(has_store, is_task, of("bob"), own.clone());
                let case = format!("{own} {has_store} {is_task}: {result}");
                assert_eq!(result["isError"], true, "{case}");
                assert!(result.to_string().contains("502"), "{case}");
                assert_eq!(runs, 1, "{case}");
            });
        }
    });
}

/// A run is listed before its starter knows it; an identical start that never arrived does not take it.
#[test]
fn recovery_leaves_a_run_to_its_starter() {
    let (exa, recorder) = MockExa::start();
    let server = server(&recorder, &[]);
    let admin = Admin(&server);
    let limits = json!({"dollarsPerDay": 1});
    let create = |user: &str| admin.create(&json!({"userId": user, "limits": limits}));
    let ((ann, ann_id), (bob, bob_id)) = (create("ann"), create("bob"));
    let run = json!({"query": "q", "effort": "high"});
    exa.set(Start::Delayed(Duration::from_secs(4)));
    scope(|scope| {
        let of_bob = scope.spawn(|| api(&server, &bob, "agent.runs.create", run.clone()));
        eventually("the run is created", || exa.runs() == 1);
        exa.set(Start::Rejected(502));
        let authorization = bearer(&ann);
        let mut session = HttpSession::new(&server, &[("authorization", &authorization)]);
        let task = start_run(&mut session, run.clone());
        let of_ann = session.request("tasks/result", json!({"taskId": task}));
        assert_eq!(of_ann["result"]["isError"], true, "{of_ann}");
        let of_bob = of_bob.join().expect("a result");
        assert_eq!(of_bob["isError"], false, "{of_bob}");
    });
    exa.end_runs();
    eventually("the run is charged to its starter", || {
        money(&admin, &bob_id) == (COST, 0.0)
    });
    // A gateway's response to a start counts as a lost response.
    assert_eq!(money(&admin, &ann_id), (0.5, 0.0));
}

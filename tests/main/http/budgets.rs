//! Budgets: money is reserved before a call and settled after it, across all servers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::thread::scope;
use std::time::Duration;

use serde_json::{Value, json};

use super::admin::{Admin, store};
use super::bearer;
use crate::support::{
    HttpServer, HttpSession, Program, RecordedRequest, Recorder, RedisServer, Response, eventually,
    signal,
};

const ADMIN: (&str, &str) = ("MCP_AUTH_TOKEN", "the-admin-secret-of-the-tests");

/// A mock of Exa that records what it charged.
#[derive(Clone, Default)]
struct MockExa(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    searches: usize,
    /// The cost of a search.
    cost: f64,
    pause: Duration,
    /// Runs, with their costs once they have ended.
    runs: HashMap<String, Option<f64>>,
}

impl MockExa {
    fn start(cost: f64, pause: Duration) -> (Self, Recorder) {
        let exa = Self::default();
        exa.with(|state| {
            state.cost = cost;
            state.pause = pause;
        });
        let own = exa.clone();
        let recorder = Recorder::start(move |request, _| own.respond(request));
        (exa, recorder)
    }

    fn with<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(&mut self.0.lock().expect("the state"))
    }

    fn runs(&self) -> usize {
        self.with(|state| state.runs.len())
    }

    /// Ends all runs.
    fn end_runs(&self, cost: f64) {
        self.with(|state| {
            state.runs.values_mut().for_each(|end| {
                end.get_or_insert(cost);
            });
        });
    }

    fn respond(&self, request: &RecordedRequest) -> Response {
        self.with(|state| {
            let path = request.path().to_owned();
            if request.method == "POST" && path == "/search" {
                state.searches += 1;
                let found = json!({"results": [], "costDollars": {"total": state.cost}});
                return Response::slow_json(state.pause, &found);
            }
            if request.method == "POST" && path.ends_with("/agent/runs") {
                let id = format!("run_{}", state.runs.len());
                state.runs.insert(id.clone(), None);
                return Response::json(200, &run(&id, None));
            }
            let id = path.rsplit('/').next().unwrap_or_default();
            match state.runs.get(id) {
                Some(end) => Response::json(200, &run(id, *end)),
                None => Response::json(404, &json!({"error": "no such run"})),
            }
        })
    }
}

fn run(id: &str, cost: Option<f64>) -> Value {
    let status = if cost.is_some() {
        "completed"
    } else {
        "running"
    };
    let mut run = json!({"id": id, "object": "agent_run", "status": status, "createdAt": "2026-11-17T00:00:00Z"});
    if let Some(cost) = cost {
        run["costDollars"] = json!({"total": cost});
    }
    run
}

fn start(recorder: &Recorder, variables: &[(&str, &str)]) -> HttpServer {
    let mut all = vec![ADMIN];
    all.extend_from_slice(variables);
    HttpServer::with_upstream(&recorder.url(), &all)
}

fn api(server: &HttpServer, token: &str, operation: &str, args: Value) -> Value {
    let authorization = bearer(token);
    let arguments = json!({"operation": operation, "args": args});
    let params = json!({"name": "exa_api", "arguments": arguments});
    let response =
        server.send_stateless(&[("authorization", &authorization)], "tools/call", params);
    assert_eq!(response.status, 200, "{}", response.text());
    response.json()["result"].clone()
}

fn start_run(server: &HttpServer, token: &str, effort: &str) -> Value {
    api(
        server,
        token,
        "agent.runs.create",
        json!({"query": "q", "effort": effort}),
    )
}

#[track_caller]
fn money(admin: &Admin<'_>, id: &str) -> (f64, f64) {
    let usage = admin.token(id)["usage"].clone();
    let number = |name: &str| usage[name].as_f64().expect(name);
    assert_eq!(usage["dollarsToday"], usage["dollarsThisMonth"]);
    (number("dollarsToday"), number("reservedToday"))
}

#[test]
fn runs_reserve_budget_before_they_finish() {
    let (exa, recorder) = MockExa::start(0.0, Duration::ZERO);
    let server = start(&recorder, &[]);
    let admin = Admin(&server);
    let (token, id) = admin.create(&json!({"limits": {"dollarsPerDay": 1}}));
    // A run with the default effort may cost five dollars.
    let refused = api(&server, &token, "agent.runs.create", json!({"query": "q"}));
    let error = &refused["structuredContent"]["error"];
    assert_eq!(
        (&error["limit"], &error["wouldCost"], &error["left"]),
        (&json!("dollarsPerDay"), &json!(5.0), &json!(1.0)),
        "{refused}"
    );
    assert!(error["retryAfter"].as_u64() > Some(0), "{refused}");
    let text = refused["content"][0]["text"].as_str().expect("text");
    for part in ["$5.0000", "$1.0000 of $1 per day", "renews at", "(UTC)"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(exa.runs(), 0);
    for _ in 0..200 {
        start_run(&server, &token, "high");
    }
    assert_eq!(exa.runs(), 2, "two times fifty cents");
    assert_eq!(money(&admin, &id), (0.0, 1.0));
    exa.end_runs(0.2);
    eventually("both runs are charged", || money(&admin, &id) == (0.4, 0.0));
    assert_eq!(start_run(&server, &token, "high")["isError"], false);
    assert_eq!(exa.runs(), 3);
}

#[test]
fn run_is_charged_once_to_its_starter() {
    let (exa, recorder) = MockExa::start(0.0, Duration::ZERO);
    let server = start(&recorder, &[]);
    let admin = Admin(&server);
    let (one, own) = admin.create(&json!({"limits": {"dollarsPerDay": 20}}));
    let (two, others) = admin.create(&json!({"limits": {"dollarsPerDay": 20}}));
    let (three, free) = admin.create(&json!({}));
    start_run(&server, &one, "auto");
    start_run(&server, &three, "auto");
    exa.end_runs(5.0);
    for token in [&one, &one, &one, &two, &two] {
        let read = api(&server, token, "agent.runs.get", json!({"runId": "run_0"}));
        assert_eq!(read["isError"], false, "{read}");
    }
    assert_eq!(money(&admin, &own), (5.0, 0.0), "the usage of the owner");
    assert_eq!(money(&admin, &others), (0.0, 0.0));
    eventually("a run without a budget counts", || {
        money(&admin, &free) == (5.0, 0.0)
    });
}

/// Makes concurrent searches, and returns how many succeeded.
fn search_concurrently(servers: &[HttpServer], token: &str, calls: usize) -> usize {
    scope(|scope| {
        let threads: Vec<_> = (0..calls)
            .map(|n| {
                let server = &servers[n % servers.len()];
                scope.spawn(move || {
                    let found = api(server, token, "search", json!({"query": format!("q{n}")}));
                    if found["isError"] == true {
                        let error = &found["structuredContent"]["error"];
                        assert_eq!(error["limit"], "dollarsPerDay", "{found}");
                        assert!(error["wouldCost"].is_number(), "{found}");
                    }
                    usize::from(found["isError"] == false)
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|one| one.join().expect("a call"))
            .sum()
    })
}

#[test]
fn concurrent_calls_stay_within_budget() {
    for replicas in [1, 3] {
        let (exa, recorder) = MockExa::start(0.007, Duration::from_millis(300));
        let redis = RedisServer::start();
        let url = redis.url();
        let servers: Vec<HttpServer> = (0..replicas)
            .map(|_| start(&recorder, &[("EXA_MCP_STORE", &url)]))
            .collect();
        let admin = Admin(&servers[0]);
        let (token, id) = admin.create(&json!({"limits": {"dollarsPerDay": 0.1}}));
        // The other servers learn about the token a moment later.
        std::thread::sleep(Duration::from_secs(3));
        let answered = search_concurrently(&servers, &token, 200);
        assert_eq!(answered, 14, "ten cents pay for 14 searches");
        assert_eq!(exa.with(|state| state.searches), 14);
        eventually("all reservations are settled", || {
            money(&admin, &id) == (0.098, 0.0)
        });
    }
}

#[test]
fn tasks_and_runs_hold_permits_across_replicas() {
    let (exa, recorder) = MockExa::start(0.0, Duration::ZERO);
    let redis = RedisServer::start();
    let url = redis.url();
    let servers: Vec<HttpServer> = (0..3)
        .map(|_| start(&recorder, &[("EXA_MCP_STORE", &url)]))
        .collect();
    let admin = Admin(&servers[0]);
    let (token, _) = admin.create(&json!({"limits": {"concurrentCalls": 1}}));
    std::thread::sleep(Duration::from_secs(3));
    let authorization = bearer(&token);
    let arguments =
        json!({"operation": "agent.runs.create", "args": {"query": "q", "effort": "low"}});
    let call = json!({"name": "exa_api", "arguments": arguments, "task": {"ttl": 600_000}});
    let begun: usize = scope(|scope| {
        let threads: Vec<_> = servers
            .iter()
            .map(|server| {
                let (authorization, call) = (&authorization, &call);
                scope.spawn(move || {
                    let mut session = HttpSession::new(server, &[("authorization", authorization)]);
                    let begun = |_| session.request("tools/call", call.clone())["error"].is_null();
                    (0..17).map(begun).filter(|begun| *begun).count()
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|one| one.join().expect("a client"))
            .sum()
    });
    assert_eq!((begun, exa.runs()), (1, 1));
    let refused = api(&servers[1], &token, "search", json!({"query": "q"}));
    let error = &refused["structuredContent"]["error"];
    assert_eq!(error["limit"], "concurrentCalls", "{refused}");
    exa.end_runs(0.01);
    eventually("the permit is free when the task has ended", || {
        api(&servers[2], &token, "search", json!({"query": "q"}))["isError"] == false
    });
    // A run that no call waits for counts against starts, but not against reads.
    eventually("another run can be started", || {
        start_run(&servers[1], &token, "low")["isError"] == false
    });
    let refused = start_run(&servers[2], &token, "low");
    assert_eq!(
        refused["structuredContent"]["error"]["limit"],
        "concurrentCalls"
    );
    let read = api(
        &servers[0],
        &token,
        "agent.runs.get",
        json!({"runId": "run_1"}),
    );
    assert_eq!(read["isError"], false, "{read}");
    // A killed server releases its permits, except those of runs.
    signal(servers[1].process_id(), "KILL");
    let refused = start_run(&servers[2], &token, "low");
    assert_eq!(
        refused["structuredContent"]["error"]["limit"],
        "concurrentCalls"
    );
    exa.end_runs(0.01);
    eventually("another server follows the run to its end", || {
        start_run(&servers[2], &token, "low")["isError"] == false
    });
}

#[test]
fn killed_server_leaves_no_permit_or_reservation() {
    let (_, recorder) = MockExa::start(0.007, Duration::from_secs(60));
    let redis = RedisServer::start();
    let url = redis.url();
    let servers = [0, 1].map(|_| start(&recorder, &[("EXA_MCP_STORE", &url)]));
    let admin = Admin(&servers[0]);
    let limits = json!({"concurrentCalls": 1, "dollarsPerDay": 1});
    let (token, id) = admin.create(&json!({"limits": limits}));
    std::thread::sleep(Duration::from_secs(3));
    scope(|scope| {
        scope.spawn(|| {
            let authorization = bearer(&token);
            let arguments = json!({"operation": "search", "args": {"query": "slow"}});
            let params = json!({"name": "exa_api", "arguments": arguments});
            let headers = [("authorization", authorization.as_str())];
            let response = servers[1].try_send_stateless(&headers, "tools/call", params);
            assert!(matches!(response, Ok(None)), "{response:?}");
        });
        let reserved = || money(&admin, &id).1 > 0.0;
        eventually("the call is running", reserved);
        signal(servers[1].process_id(), "KILL");
    });
    eventually("the call is charged at its reservation", || {
        money(&admin, &id) == (0.007, 0.0)
    });
}

#[test]
fn lost_calls_are_charged_and_rejected_calls_are_not() {
    let next = Arc::new(Mutex::new(Response::disconnect()));
    let response = Arc::clone(&next);
    let recorder = Recorder::start(move |_, _| response.lock().expect("a reply").clone());
    let server = start(&recorder, &[]);
    let admin = Admin(&server);
    let (token, id) = admin.create(&json!({"limits": {"dollarsPerDay": 1}}));
    let mut sum = 0;
    let costless = json!({"results": []});
    for (response, cost) in [
        (Response::disconnect(), 17),
        (Response::json(400, &json!({"error": "no"})), 0),
        (Response::json(500, &json!({"error": "no"})), 0),
        (Response::new(200).body("<html>"), 17),
        (Response::json(200, &costless), 17),
        (
            Response::json(
                200,
                &json!({"results": [], "costDollars": {"total": 0.003}}),
            ),
            3,
        ),
    ] {
        *next.lock().expect("a reply") = response;
        api(
            &server,
            &token,
            "search",
            json!({"query": format!("q{sum}"), "numResults": 20}),
        );
        sum += cost;
        let expected = f64::from(sum) / 1_000.0;
        eventually(&format!("{expected} is spent"), || {
            money(&admin, &id) == (expected, 0.0)
        });
    }
}

#[test]
fn full_redis_rejects_budgeted_calls() {
    for policy in ["deny", "allow"] {
        let (exa, recorder) = MockExa::start(0.007, Duration::ZERO);
        let redis = RedisServer::start();
        let url = redis.url();
        let server = start(
            &recorder,
            &[
                ("EXA_MCP_STORE", &url),
                ("EXA_MCP_BUDGET_ON_STORE_FAILURE", policy),
            ],
        );
        let admin = Admin(&server);
        let (poor, id) = admin.create(&json!({"limits": {"dollarsPerDay": 1}}));
        let (rich, _) = admin.create(&json!({}));
        assert_eq!(
            api(&server, &poor, "search", json!({"query": "a"}))["isError"],
            false
        );
        redis
            .command(&["CONFIG", "SET", "maxmemory", "1"])
            .expect("a full Redis");
        let found = api(&server, &poor, "search", json!({"query": "b"}));
        assert_eq!(found["isError"], policy == "deny", "{found}");
        if policy == "deny" {
            let text = found["content"][0]["text"].as_str().expect("text");
            assert!(text.contains("cannot be checked"), "{text}");
        }
        let found = api(&server, &rich, "search", json!({"query": "c"}));
        assert_eq!(found["isError"], false, "{found}");
        redis
            .command(&["CONFIG", "SET", "maxmemory", "0"])
            .expect("room");
        let calls = if policy == "deny" { 1 } else { 2 };
        eventually("the calls are counted", || {
            money(&admin, &id) == (0.007 * f64::from(calls), 0.0)
        });
        assert_eq!(exa.with(|state| state.searches), calls as usize + 1);
    }
}

#[test]
fn unpriced_operations_are_counted_separately() {
    for policy in [None, Some("allow")] {
        let made = json!({"id": "webset_1", "status": "idle", "object": "webset"});
        let recorder = Recorder::always(Response::json(200, &made));
        let variables: Vec<(&str, &str)> = policy
            .map(|policy| ("EXA_MCP_BUDGET_UNPRICED", policy))
            .into_iter()
            .collect();
        let server = start(&recorder, &variables);
        let admin = Admin(&server);
        let (token, id) = admin.create(&json!({"limits": {"dollarsPerDay": 1}}));
        let arguments =
            json!({"operation": "websets.create", "args": {"search": {"query": "q", "count": 5}}});
        let params = json!({"name": "manage_websets", "arguments": arguments});
        let authorization = bearer(&token);
        let response =
            server.send_stateless(&[("authorization", &authorization)], "tools/call", params);
        let result = response.json()["result"].clone();
        assert_eq!(result["isError"], policy.is_none(), "{result}");
        let usage = admin.token(&id)["usage"].clone();
        let counted = u64::from(policy.is_some());
        assert_eq!(usage["unpricedCalls"], counted, "{usage}");
        assert_eq!(money(&admin, &id), (0.0, 0.0));
    }
}

#[test]
fn cli_has_a_budget() {
    let (exa, recorder) = MockExa::start(0.004, Duration::ZERO);
    let folder = tempfile::tempdir().expect("a folder");
    let store = store(&folder);
    let call = |operation: &str, arguments: Value| {
        Program::call(&recorder, operation, &arguments)
            .env("EXA_MCP_STORE", &store)
            .env("EXA_MCP_DOLLARS_PER_DAY", "0.03")
            .run()
    };
    call("search", json!({"query": "a"})).json();
    call("search", json!({"query": "b", "numResults": 20})).json();
    let over = call("search", json!({"query": "c", "numResults": 30}));
    over.assert_failed(2, &["$0.0270", "$0.0220 of $0.03 per day", "renews at"]);
    // A later command charges the run.
    call(
        "agent.runs.create",
        json!({"query": "q", "effort": "minimal"}),
    )
    .json();
    let over = call("search", json!({"query": "c", "numResults": 15}));
    over.assert_failed(2, &["$0.0120", "$0.0100 of", "$0.0120 reserved"]);
    exa.end_runs(0.001);
    call("search", json!({"query": "c", "numResults": 15})).json();
    assert_eq!(exa.with(|state| state.searches), 3);
}

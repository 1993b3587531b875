//! Many calls by many payers on three servers with one Redis, while servers and Redis are killed: no budget is
//! exceeded at any moment, nothing stays reserved, and spending equals what Exa charged, with lost responses
//! counted at their reservation.
//!
//! The default is a thousand calls; `EXA_MCP_FULL_TESTS=1` makes ten thousand.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::bearer;
use crate::support::{HttpServer, RecordedRequest, Recorder, RedisServer, Response, signal};

const REPLICAS: usize = 3;
const CLIENTS: usize = 32;
const PAYERS: usize = 10;

/// The longest that a server takes to reconnect to Redis.
const RECONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The duration of an agent run.
const RUN_DURATION: Duration = Duration::from_millis(1_500);

/// One request to Exa with its cost and outcome.
#[derive(Clone, Debug)]
struct Request {
    estimate: u64,
    /// What Exa charges. All costs differ from each other and from all estimates.
    cost: u64,
    outcome: RequestOutcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestOutcome {
    Answered,
    /// Charged, but the response is lost.
    Lost,
    /// Not charged.
    Refused,
}

/// A mock of Exa that records what it charged.
#[derive(Clone, Default)]
struct MockExa(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// By query, which is unique for each call.
    requests: HashMap<String, Vec<Request>>,
    costs: HashSet<u64>,
    runs: HashMap<String, (Instant, u64)>,
}

/// Returns the expected estimate of a call, in millionths of a dollar.
fn estimate(arguments: &Value) -> u64 {
    if let Some(effort) = arguments["effort"].as_str() {
        return match effort {
            "minimal" => 12_000,
            _ => 25_000,
        };
    }
    let base = match arguments["type"].as_str() {
        Some("deep") => 12_000,
        _ => 7_000,
    };
    base + arguments["numResults"]
        .as_u64()
        .unwrap_or(10)
        .saturating_sub(10)
        * 1_000
}

impl MockExa {
    fn respond(&self, request: &RecordedRequest) -> Response {
        let mut state = self.0.lock().expect("the state");
        let Some(body) = request.json().filter(|_| request.method == "POST") else {
            let id = request
                .path()
                .rsplit('/')
                .next()
                .unwrap_or_default()
                .to_owned();
            return match state.runs.get(&id) {
                Some((began, cost)) => {
                    Response::json(200, &run(&id, began.elapsed() > RUN_DURATION, *cost))
                }
                None => Response::json(404, &json!({"error": "no such run"})),
            };
        };
        let estimate = estimate(&body);
        let cost = loop {
            let cost = fastrand::u64(1..=estimate);
            if !cost.is_multiple_of(1_000) && state.costs.insert(cost) {
                break cost;
            }
        };
        let is_run = request.path().ends_with("/agent/runs");
        let outcome = match fastrand::u32(0..100) {
            0..=2 => RequestOutcome::Lost,
            3..=5 => RequestOutcome::Refused,
            _ => RequestOutcome::Answered,
        };
        let request = Request {
            estimate,
            cost,
            outcome,
        };
        let query = body["query"].as_str().expect("a query").to_owned();
        state.requests.entry(query).or_default().push(request);
        match outcome {
            RequestOutcome::Lost => Response::disconnect(),
            RequestOutcome::Refused => Response::json(400, &json!({"error": "no"})),
            RequestOutcome::Answered if is_run => {
                let id = format!("run_{cost}");
                state.runs.insert(id.clone(), (Instant::now(), cost));
                Response::json(200, &run(&id, false, cost))
            }
            RequestOutcome::Answered => {
                let found = json!({"results": [], "costDollars": {"total": cost as f64 / 1e6}});
                Response::slow_json(Duration::from_millis(fastrand::u64(1..60)), &found)
            }
        }
    }
}

fn run(id: &str, has_ended: bool, cost: u64) -> Value {
    let status = if has_ended { "completed" } else { "running" };
    let mut run = json!({"id": id, "status": status, "createdAt": "2026-11-17T00:00:00Z"});
    if has_ended {
        run["costDollars"] = json!({"total": cost as f64 / 1e6});
    }
    run
}

/// Returns the strings in a Redis reply.
fn texts(answer: &str) -> Vec<String> {
    let mut lines = answer.split("\r\n");
    let mut texts = Vec::new();
    while let Some(line) = lines.next() {
        match line.split_at_checked(1) {
            Some(("$", "-1")) | Some(("*", _)) | None => {}
            Some(("$", _)) => texts.extend(lines.next().map(str::to_owned)),
            Some((_, rest)) => texts.push(rest.to_owned()),
        }
    }
    texts
}

/// Returns what each payer has spent and reserved this month.
fn money(redis: &RedisServer) -> Option<BTreeMap<String, (u64, u64)>> {
    let keys = texts(&redis.command(&["KEYS", "exa-mcp:count:spent*"])?);
    let mut money = BTreeMap::new();
    for key in keys {
        let found = texts(&redis.command(&["HGETALL", &key])?);
        let number = |name: &str| {
            let mut pairs = found.chunks_exact(2);
            let pair = pairs.find(|pair| pair[0] == name);
            pair.map_or(0, |pair| pair[1].parse::<u64>().expect("a number"))
        };
        money.insert(key, (number("month"), number("reserved:month")));
    }
    Some(money)
}

/// Returns the amounts of the settled reservations.
fn settled(redis: &RedisServer) -> Vec<u64> {
    let keys = texts(&redis.command(&["KEYS", "exa-mcp:settled:*"]).expect("keys"));
    let mut amounts = Vec::new();
    for some in keys.chunks(500) {
        let mut words = vec!["MGET"];
        words.extend(some.iter().map(String::as_str));
        for mark in texts(&redis.command(&words).expect("marks")) {
            let mut parts = mark.split(' ');
            let month = parts.find_map(|part| part.strip_prefix("month="));
            amounts.extend(month.map(|amount| amount.parse::<u64>().expect("an amount")));
        }
    }
    amounts
}

/// The outcome of a call.
struct CallOutcome {
    args: Value,
    /// Whether the call succeeded; `None` if that is unknown.
    is_success: Option<bool>,
    /// The process id of the server.
    server: u32,
    ended: Instant,
}

/// What was killed, and when.
#[derive(Default)]
struct Kills {
    servers: HashMap<u32, (Instant, Arc<HttpServer>)>,
    /// The periods in which Redis was down.
    redis: Vec<(Instant, Instant)>,
}

impl Kills {
    /// Returns whether the server of a call was killed before it could settle the call, because Redis was down when
    /// the call ended. Such a call is charged at its reservation, although the client got the response.
    fn prevented_settling(&self, outcome: &CallOutcome) -> bool {
        let Some((killed, _)) = self.servers.get(&outcome.server) else {
            return false;
        };
        let mut outages = self.redis.iter();
        outages.any(|(from, to)| {
            (*from..*to + RECONNECT_TIMEOUT).contains(&outcome.ended) && outcome.ended < *killed
        })
    }

    /// Returns the number of settlements that a killed server failed to write at first, according to its log.
    fn unwritten_settlements(&self, server: u32) -> usize {
        let (_, server) = &self.servers[&server];
        server.log().matches("cannot settle").count()
    }
}

struct Fixture {
    exa: MockExa,
    servers: RwLock<Vec<Arc<HttpServer>>>,
    redis: RwLock<RedisServer>,
    kills: Mutex<Kills>,
    budget: u64,
}

impl Fixture {
    fn server(recorder: &Recorder, store: &str, budget: u64) -> Arc<HttpServer> {
        let users: Vec<String> = (0..PAYERS).map(|n| format!("token-{n}:user-{n}")).collect();
        let (users, limits) = (
            users.join(","),
            json!({"dollarsPerDay": budget as f64 / 1e6}).to_string(),
        );
        let variables = [
            ("USER_TOKENS", users.as_str()),
            ("EXA_API_KEYS", "pool-key-one"),
            ("EXA_MCP_TOKEN_LIMITS", &limits),
            ("EXA_MCP_STORE", store),
            ("EXA_MCP_LOG_LEVEL", "info"),
        ];
        Arc::new(HttpServer::with_upstream(&recorder.url(), &variables))
    }

    /// Makes a random call.
    fn call(&self, number: usize) -> CallOutcome {
        let authorization = bearer(&format!("token-{}", fastrand::usize(0..PAYERS)));
        let query = format!("q{number}");
        let (operation, args) = if fastrand::u32(0..10) == 0 {
            let effort = fastrand::choice(["minimal", "low"]);
            (
                "agent.runs.create",
                json!({"query": query, "effort": effort}),
            )
        } else {
            let kind = fastrand::choice(["auto", "deep"]);
            let results = fastrand::u64(1..25);
            (
                "search",
                json!({"query": query, "type": kind, "numResults": results}),
            )
        };
        let arguments = json!({"operation": operation, "args": args});
        let params = json!({"name": "exa_api", "arguments": arguments});
        let headers = [("authorization", authorization.as_str())];
        loop {
            let server = {
                let servers = self.servers.read().expect("the servers");
                Arc::clone(&servers[fastrand::usize(0..servers.len())])
            };
            let is_success = match server.try_send_stateless(&headers, "tools/call", params.clone())
            {
                Ok(response) => {
                    response.map(|response| response.json()["result"]["isError"] == false)
                }
                // The server was killed before it received the call.
                Err(_) => {
                    thread::sleep(Duration::from_millis(20));
                    continue;
                }
            };
            return CallOutcome {
                args,
                is_success,
                server: server.process_id(),
                ended: Instant::now(),
            };
        }
    }

    /// Asserts that no budget is exceeded at this moment.
    fn check(&self) {
        if let Some(money) = money(&self.redis.read().expect("Redis")) {
            for (payer, (spent, reserved)) in money {
                assert!(
                    spent + reserved <= self.budget,
                    "{payer}: {spent} + {reserved}"
                );
            }
        }
    }
}

#[test]
fn no_budget_is_exceeded_when_servers_are_killed() {
    let is_full = std::env::var("EXA_MCP_FULL_TESTS").is_ok_and(|value| value == "1");
    let (calls, kills) = if is_full { (10_000, 12) } else { (1_000, 3) };
    // About half of what all calls together would cost.
    let budget = calls as u64 * 500;
    let exa = MockExa::default();
    let own = exa.clone();
    let recorder = Recorder::start(move |request, _| own.respond(request));
    let redis = RedisServer::with_options(&["--appendfsync", "always"]);
    let store = redis.url();
    let servers = (0..REPLICAS).map(|_| Fixture::server(&recorder, &store, budget));
    let fixture = Fixture {
        exa,
        servers: RwLock::new(servers.collect()),
        redis: RwLock::new(redis),
        kills: Mutex::default(),
        budget,
    };
    let (next, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let outcomes = Mutex::new(HashMap::new());
    thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                scope.spawn(|| {
                    loop {
                        let number = next.fetch_add(1, Ordering::SeqCst);
                        if number >= calls {
                            return;
                        }
                        let outcome = fixture.call(number);
                        let mut outcomes = outcomes.lock().expect("outcomes");
                        outcomes.insert(format!("q{number}"), outcome);
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                fixture.check();
                thread::sleep(Duration::from_millis(50));
            }
        });
        for kill in 1..=kills {
            while next.load(Ordering::SeqCst) < calls * kill / (kills + 1) {
                thread::sleep(Duration::from_millis(10));
            }
            if kill % 3 == 2 {
                let mut redis = fixture.redis.write().expect("Redis");
                let from = Instant::now();
                redis.kill();
                thread::sleep(Duration::from_millis(300));
                redis.restart();
                let outage = (from, Instant::now());
                fixture.kills.lock().expect("the kills").redis.push(outage);
            } else {
                let index = kill % REPLICAS;
                let old = Arc::clone(&fixture.servers.read().expect("the servers")[index]);
                signal(old.process_id(), "KILL");
                let mut kills = fixture.kills.lock().expect("the kills");
                kills
                    .servers
                    .insert(old.process_id(), (Instant::now(), Arc::clone(&old)));
                drop(kills);
                let new = Fixture::server(&recorder, &store, budget);
                fixture.servers.write().expect("the servers")[index] = new;
            }
        }
        for client in clients {
            client.join().expect("a client");
        }
        is_over.store(true, Ordering::SeqCst);
    });
    let deadline = Instant::now() + Duration::from_secs(120);
    let redis = fixture.redis.read().expect("Redis");
    let open = || {
        texts(
            &redis
                .command(&["HVALS", "exa-mcp:reservations"])
                .expect("Redis"),
        )
    };
    while !open().is_empty() {
        assert!(Instant::now() < deadline, "still reserved: {:?}", open());
        fixture.check();
        thread::sleep(Duration::from_millis(200));
    }
    let outcomes = outcomes.into_inner().expect("outcomes");
    let state = fixture.exa.0.lock().expect("the state");
    let kills = fixture.kills.lock().expect("the kills");
    audit(&redis, budget, &state, &outcomes, &kills);
}

/// Compares what Exa charged with what the servers counted.
fn audit(
    redis: &RedisServer,
    budget: u64,
    state: &State,
    outcomes: &HashMap<String, CallOutcome>,
    kills: &Kills,
) {
    let money = money(redis).expect("Redis");
    for (payer, (spent, reserved)) in &money {
        assert_eq!(*reserved, 0, "{payer}");
        assert!(*spent <= budget, "{payer}: {spent}");
    }
    let spent: u64 = money.values().map(|(spent, _)| spent).sum();
    let amounts = settled(redis);
    assert_eq!(
        amounts.iter().sum::<u64>(),
        spent,
        "all spending was settled once"
    );
    let actual: HashSet<u64> = amounts.iter().copied().filter(|a| a % 1_000 != 0).collect();
    let mut in_full: HashMap<u64, i64> = HashMap::new();
    for amount in amounts.iter().filter(|amount| *amount % 1_000 == 0) {
        *in_full.entry(*amount).or_default() += 1;
    }
    let exact = amounts.iter().filter(|amount| *amount % 1_000 != 0).count();
    assert_eq!(exact, actual.len(), "no cost is charged twice");
    let (mut charged, mut lost, mut hung_up) = (0, 0, 0);
    let mut unwritten: HashMap<u32, usize> = HashMap::new();
    // Reservations that may be charged in full although Exa charged nothing.
    let mut unreleased: HashMap<u64, i64> = HashMap::new();
    let mut requests = 0;
    for (query, sent) in &state.requests {
        requests += sent.len();
        for request in sent {
            match request.outcome {
                RequestOutcome::Refused => {
                    assert!(!actual.contains(&request.cost), "{query}");
                    // The server may have been killed before it could release the reservation.
                    let outcome = &outcomes[query];
                    if outcome.is_success.is_none() || kills.prevented_settling(outcome) {
                        *unreleased.entry(request.estimate).or_default() += 1;
                    }
                }
                RequestOutcome::Answered if actual.contains(&request.cost) => {
                    charged += request.cost
                }
                other => {
                    *in_full.entry(request.estimate).or_default() -= 1;
                    charged += request.estimate;
                    hung_up += usize::from(other == RequestOutcome::Lost);
                    lost += usize::from(other == RequestOutcome::Answered);
                    let outcome = &outcomes[query];
                    let is_run = outcome.args["effort"].is_string();
                    if outcome.is_success == Some(true) && !is_run {
                        let is_explained = kills.prevented_settling(outcome);
                        assert!(is_explained, "{query} was answered: {request:?}");
                        *unwritten.entry(outcome.server).or_default() += 1;
                    }
                }
            }
        }
    }
    for (server, count) in unwritten {
        let most = kills.unwritten_settlements(server);
        assert!(count <= most, "{count} calls, but {most} were not written");
    }
    // The remaining reservations belong to servers that were killed before they sent the request, or before they could
    // release a reservation whose confirmation was lost.
    let never_sent = outcomes.iter().filter(|(query, outcome)| {
        let is_open = outcome.is_success.is_none() || kills.prevented_settling(outcome);
        is_open && !state.requests.contains_key(*query)
    });
    for (_, outcome) in never_sent {
        *unreleased.entry(estimate(&outcome.args)).or_default() += 1;
    }
    for (amount, count) in in_full.into_iter().filter(|(_, count)| *count != 0) {
        let most = unreleased.get(&amount).copied().unwrap_or_default();
        assert!(
            (0..=most).contains(&count),
            "{count} times {amount}, at most {most}"
        );
        charged += amount * count as u64;
    }
    assert_eq!(charged, spent, "spending equals what Exa charged");
    let answered = outcomes
        .values()
        .filter(|outcome| outcome.is_success == Some(true))
        .count();
    eprintln!(
        "{} calls, {requests} reached Exa, {answered} answered, {hung_up} hung up, {lost} answers lost in kills, \
         ${:.6} spent",
        outcomes.len(),
        spent as f64 / 1e6
    );
    assert!(answered > outcomes.len() / 5, "too few calls succeeded");
}

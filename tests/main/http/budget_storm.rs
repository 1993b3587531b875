//! Many calls of many payers over three servers on one Redis, while servers and Redis are killed: no budget is
//! exceeded at any moment, nothing stays reserved, and what is spent is what Exa charged, with lost answers
//! counted at their reservation.
//!
//! A thousand calls in the ordinary run; ten thousand with `EXA_MCP_FULL_TESTS=1`.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::bearer;
use crate::support::{HttpServer, Recorder, RedisServer, Reply, Seen, signal};

const REPLICAS: usize = 3;
const CLIENTS: usize = 32;
const PAYERS: usize = 10;

/// How long a server takes at most to find out that Redis is back.
const RECONNECTING: Duration = Duration::from_secs(5);

/// How long a run takes.
const RUN: Duration = Duration::from_millis(1_500);

/// What one request to Exa came to.
#[derive(Clone, Debug)]
struct Request {
    worst: u64,
    /// What Exa charges; no two are the same, and none looks like an estimate.
    cost: u64,
    fate: Fate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Answered,
    /// It is charged, but the answer never comes.
    Lost,
    /// It is not charged.
    Refused,
}

/// A stand-in for Exa that knows what it charged.
#[derive(Clone, Default)]
struct Exa(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// By the query, which is another one for each call.
    requests: HashMap<String, Vec<Request>>,
    costs: HashSet<u64>,
    runs: HashMap<String, (Instant, u64)>,
}

/// What the estimate of a call must be, in millionths of a dollar.
fn worst(arguments: &Value) -> u64 {
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

impl Exa {
    fn answer(&self, seen: &Seen) -> Reply {
        let mut state = self.0.lock().expect("the state");
        let Some(body) = seen.json().filter(|_| seen.method == "POST") else {
            let id = seen
                .path()
                .rsplit('/')
                .next()
                .unwrap_or_default()
                .to_owned();
            return match state.runs.get(&id) {
                Some((began, cost)) => Reply::json(200, &run(&id, began.elapsed() > RUN, *cost)),
                None => Reply::json(404, &json!({"error": "no such run"})),
            };
        };
        let worst = worst(&body);
        let cost = loop {
            let cost = fastrand::u64(1..=worst);
            if !cost.is_multiple_of(1_000) && state.costs.insert(cost) {
                break cost;
            }
        };
        let is_run = seen.path().ends_with("/agent/runs");
        let fate = match fastrand::u32(0..100) {
            0..=2 => Fate::Lost,
            3..=5 => Fate::Refused,
            _ => Fate::Answered,
        };
        let request = Request { worst, cost, fate };
        let query = body["query"].as_str().expect("a query").to_owned();
        state.requests.entry(query).or_default().push(request);
        match fate {
            Fate::Lost => Reply::hang_up(),
            Fate::Refused => Reply::json(400, &json!({"error": "no"})),
            Fate::Answered if is_run => {
                let id = format!("run_{cost}");
                state.runs.insert(id.clone(), (Instant::now(), cost));
                Reply::json(200, &run(&id, false, cost))
            }
            Fate::Answered => {
                let found = json!({"results": [], "costDollars": {"total": cost as f64 / 1e6}});
                Reply::slow_json(Duration::from_millis(fastrand::u64(1..60)), &found)
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

/// The texts of an answer of Redis.
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

/// What each payer spent and reserved in the month.
fn money(redis: &RedisServer) -> Option<BTreeMap<String, (u64, u64)>> {
    let keys = texts(&redis.say(&["KEYS", "exa-mcp:count:spent*"])?);
    let mut money = BTreeMap::new();
    for key in keys {
        let found = texts(&redis.say(&["HGETALL", &key])?);
        let number = |name: &str| {
            let mut pairs = found.chunks_exact(2);
            let pair = pairs.find(|pair| pair[0] == name);
            pair.map_or(0, |pair| pair[1].parse::<u64>().expect("a number"))
        };
        money.insert(key, (number("month"), number("reserved:month")));
    }
    Some(money)
}

/// What the settled reservations were settled with.
fn settled(redis: &RedisServer) -> Vec<u64> {
    let keys = texts(&redis.say(&["KEYS", "exa-mcp:settled:*"]).expect("keys"));
    let mut amounts = Vec::new();
    for some in keys.chunks(500) {
        let mut words = vec!["MGET"];
        words.extend(some.iter().map(String::as_str));
        for mark in texts(&redis.say(&words).expect("marks")) {
            let mut parts = mark.split(' ');
            let month = parts.find_map(|part| part.strip_prefix("month="));
            amounts.extend(month.map(|amount| amount.parse::<u64>().expect("an amount")));
        }
    }
    amounts
}

/// What became of a call.
struct Outcome {
    args: Value,
    /// Whether it was answered well; `None` if nobody knows what became of it.
    is_success: Option<bool>,
    /// The process that served it.
    server: u32,
    ended: Instant,
}

/// What was killed, and when.
#[derive(Default)]
struct Kills {
    servers: HashMap<u32, (Instant, Arc<HttpServer>)>,
    /// From when to when Redis was away.
    redis: Vec<(Instant, Instant)>,
}

impl Kills {
    /// Whether the server of a call was killed before it could write what the call cost: Redis was away when
    /// the call ended. Such a call is charged at its reservation, although it was answered.
    fn prevented_settling(&self, outcome: &Outcome) -> bool {
        let Some((killed, _)) = self.servers.get(&outcome.server) else {
            return false;
        };
        let mut outages = self.redis.iter();
        outages.any(|(from, to)| {
            (*from..*to + RECONNECTING).contains(&outcome.ended) && outcome.ended < *killed
        })
    }

    /// How many settlements a killed server could not write at first, as its log tells.
    fn unwritten(&self, server: u32) -> usize {
        let (_, server) = &self.servers[&server];
        server.log().matches("cannot settle").count()
    }
}

struct Stage {
    exa: Exa,
    servers: RwLock<Vec<Arc<HttpServer>>>,
    redis: RwLock<RedisServer>,
    kills: Mutex<Kills>,
    budget: u64,
}

impl Stage {
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
        Arc::new(HttpServer::upstream(&recorder.url(), &variables))
    }

    /// Makes a call.
    fn call(&self, number: usize) -> Outcome {
        let shown = bearer(&format!("token-{}", fastrand::usize(0..PAYERS)));
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
        let headers = [("authorization", shown.as_str())];
        loop {
            let server = {
                let servers = self.servers.read().expect("the servers");
                Arc::clone(&servers[fastrand::usize(0..servers.len())])
            };
            let is_success = match server.try_stateless(&headers, "tools/call", params.clone()) {
                Ok(reply) => reply.map(|reply| reply.json()["result"]["isError"] == false),
                // It was killed before the call came.
                Err(_) => {
                    thread::sleep(Duration::from_millis(20));
                    continue;
                }
            };
            return Outcome {
                args,
                is_success,
                server: server.id(),
                ended: Instant::now(),
            };
        }
    }

    /// No budget is exceeded at this moment.
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
    // About half of what is wanted.
    let budget = calls as u64 * 500;
    let exa = Exa::default();
    let own = exa.clone();
    let recorder = Recorder::start(move |seen, _| own.answer(seen));
    let redis = RedisServer::with(&["--appendfsync", "always"]);
    let store = redis.url();
    let servers = (0..REPLICAS).map(|_| Stage::server(&recorder, &store, budget));
    let stage = Stage {
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
                        let outcome = stage.call(number);
                        let mut outcomes = outcomes.lock().expect("outcomes");
                        outcomes.insert(format!("q{number}"), outcome);
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                stage.check();
                thread::sleep(Duration::from_millis(50));
            }
        });
        for kill in 1..=kills {
            while next.load(Ordering::SeqCst) < calls * kill / (kills + 1) {
                thread::sleep(Duration::from_millis(10));
            }
            if kill % 3 == 2 {
                let mut redis = stage.redis.write().expect("Redis");
                let from = Instant::now();
                redis.kill();
                thread::sleep(Duration::from_millis(300));
                redis.restart();
                let outage = (from, Instant::now());
                stage.kills.lock().expect("the kills").redis.push(outage);
            } else {
                let place = kill % REPLICAS;
                let old = Arc::clone(&stage.servers.read().expect("the servers")[place]);
                signal(old.id(), "KILL");
                let mut kills = stage.kills.lock().expect("the kills");
                kills
                    .servers
                    .insert(old.id(), (Instant::now(), Arc::clone(&old)));
                drop(kills);
                let new = Stage::server(&recorder, &store, budget);
                stage.servers.write().expect("the servers")[place] = new;
            }
        }
        for client in clients {
            client.join().expect("a client");
        }
        is_over.store(true, Ordering::SeqCst);
    });
    let deadline = Instant::now() + Duration::from_secs(120);
    let redis = stage.redis.read().expect("Redis");
    let open = || {
        texts(
            &redis
                .say(&["HVALS", "exa-mcp:reservations"])
                .expect("Redis"),
        )
    };
    while !open().is_empty() {
        assert!(Instant::now() < deadline, "still reserved: {:?}", open());
        stage.check();
        thread::sleep(Duration::from_millis(200));
    }
    let outcomes = outcomes.into_inner().expect("outcomes");
    let state = stage.exa.0.lock().expect("the state");
    let kills = stage.kills.lock().expect("the kills");
    audit(&redis, budget, &state, &outcomes, &kills);
}

/// Compares what Exa charged with what the servers counted.
fn audit(
    redis: &RedisServer,
    budget: u64,
    state: &State,
    outcomes: &HashMap<String, Outcome>,
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
        "all that is spent was settled once"
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
    for (query, seen) in &state.requests {
        requests += seen.len();
        for request in seen {
            match request.fate {
                Fate::Refused => {
                    assert!(!actual.contains(&request.cost), "{query}");
                    // Its server may have been killed before it could release the reservation.
                    let outcome = &outcomes[query];
                    if outcome.is_success.is_none() || kills.prevented_settling(outcome) {
                        *unreleased.entry(request.worst).or_default() += 1;
                    }
                }
                Fate::Answered if actual.contains(&request.cost) => charged += request.cost,
                fate => {
                    *in_full.entry(request.worst).or_default() -= 1;
                    charged += request.worst;
                    hung_up += usize::from(fate == Fate::Lost);
                    lost += usize::from(fate == Fate::Answered);
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
        let most = kills.unwritten(server);
        assert!(count <= most, "{count} calls, but {most} were not written");
    }
    // The rest of what is left was reserved by a server that was killed before it sent anything.
    let never_sent = outcomes.iter().filter(|(query, outcome)| {
        outcome.is_success.is_none() && !state.requests.contains_key(*query)
    });
    for (_, outcome) in never_sent {
        *unreleased.entry(worst(&outcome.args)).or_default() += 1;
    }
    for (amount, count) in in_full.into_iter().filter(|(_, count)| *count != 0) {
        let most = unreleased.get(&amount).copied().unwrap_or_default();
        assert!(
            (0..=most).contains(&count),
            "{count} times {amount}, at most {most}"
        );
        charged += amount * count as u64;
    }
    assert_eq!(charged, spent, "what is spent is what Exa charged");
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
    assert!(
        answered > outcomes.len() / 5,
        "most calls had nothing to spend"
    );
}

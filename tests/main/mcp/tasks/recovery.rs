//! Tasks of a server that was killed before Exa confirmed the start, with long lists at Exa.

use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{connect, research, result, start_task, state};
use crate::support::{McpServer, Part, Program, RecordedRequest, Recorder, Response};

/// How long a recovery may take: it starts after a pause of ten seconds.
const TIMEOUT: Duration = Duration::from_secs(90);

/// The page size, whatever the request says.
const PAGE: usize = 10;

/// How the mock's list behaves.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Listing {
    NewestFirst,
    OldestFirst,
    /// In random order.
    Shuffled,
    /// Each page succeeds only after some attempts.
    Flaky,
    /// A page in the middle always fails.
    Refused,
    /// The cursor of a page in the middle leads back to the first page.
    Cycle,
    /// A page in the middle has a next page, but no cursor.
    NoCursor,
    /// A page in the middle has no list of entries.
    NoEntries,
    /// The newest entries are missing in the first reading.
    Late,
}

#[derive(Default)]
struct Account {
    /// Oldest first.
    entries: Vec<Value>,
    starts: usize,
    /// The number of list requests.
    lists: usize,
    /// The number of complete readings of the list.
    readings: usize,
}

impl Account {
    fn add(&mut self, time: DateTime<Utc>, instructions: &str) -> Value {
        let id = format!("r{}", self.entries.len());
        let time = time.to_rfc3339_opts(SecondsFormat::Millis, true);
        let entry = json!({"researchId": id, "createdAt": time, "model": "exa-research",
            "instructions": instructions, "status": "completed", "output": {"content": "done"}});
        self.entries.push(entry.clone());
        entry
    }

    /// Adds work of others of this age, some of it almost identical.
    fn add_others(&mut self, count: usize, ago: i64) {
        let now = Utc::now();
        for number in 0..count {
            let ago = ago * 1000 - number as i64;
            let time = now - chrono::Duration::milliseconds(ago);
            self.add(time, &format!("subject {number}"));
        }
    }

    fn list(&mut self, request: &RecordedRequest, listing: Listing) -> Response {
        self.lists += 1;
        let query = request.query();
        let cursor = query.iter().find(|(name, _)| name == "cursor");
        let page: usize = cursor.map_or(0, |(_, cursor)| cursor.parse().expect("a cursor"));
        self.readings += usize::from(page == 0);
        if listing == Listing::Flaky && self.lists % 7 == 3 {
            return Response::json(429, &json!({"error": "slow down"})).header("retry-after", "0");
        }
        let mut order: Vec<usize> = (0..self.entries.len()).collect();
        match listing {
            Listing::OldestFirst => {}
            Listing::Shuffled => order.sort_by_key(|number| number * 7919 % 1009),
            _ => order.reverse(),
        }
        if listing == Listing::Late && self.readings == 1 {
            order.retain(|number| self.entries[*number]["instructions"] != "wanted");
        }
        let more = order.len() > (page + 1) * PAGE;
        let page_numbers = order.iter().skip(page * PAGE).take(PAGE);
        let entries: Vec<Value> = page_numbers
            .map(|number| self.entries[*number].clone())
            .collect();
        let mut response = json!({"data": entries, "hasMore": more,
            "nextCursor": more.then(|| (page + 1).to_string())});
        if page == 60 {
            match listing {
                Listing::Refused => return Response::json(400, &json!({"error": "bad cursor"})),
                Listing::Cycle => response["nextCursor"] = json!("1"),
                Listing::NoCursor => response["nextCursor"] = Value::Null,
                Listing::NoEntries => response = json!({"nextCursor": "61", "hasMore": true}),
                _ => {}
            }
        }
        Response::json(200, &response)
    }
}

/// A mock of Exa with a long list, and a store in a file.
struct Fixture {
    account: Arc<Mutex<Account>>,
    exa: Recorder,
    folder: TempDir,
}

impl Fixture {
    /// `arrives` is whether the first start takes effect before its response is lost.
    fn new(listing: Listing, arrives: bool) -> Self {
        let account = Arc::new(Mutex::new(Account::default()));
        let shared = Arc::clone(&account);
        let exa = Recorder::start(move |request, _| {
            let mut account = shared.lock().expect("the account");
            let id = request.path().strip_prefix("/research/v1/");
            match (request.method.as_str(), id) {
                ("POST", _) => {
                    account.starts += 1;
                    if account.starts == 1 {
                        if arrives {
                            account.add(Utc::now(), "wanted");
                        }
                        let (disconnected, _) = mpsc::channel();
                        return Response::events([Part::WaitForClose(disconnected)]);
                    }
                    Response::json(201, &account.add(Utc::now(), "wanted"))
                }
                (_, Some(id)) => {
                    let number: usize = id[1..].parse().expect("an id");
                    Response::json(200, &account.entries[number])
                }
                (_, None) => account.list(request, listing),
            }
        });
        let folder = tempfile::tempdir().expect("a folder");
        Self {
            account,
            exa,
            folder,
        }
    }

    fn account(&self) -> std::sync::MutexGuard<'_, Account> {
        self.account.lock().expect("the account")
    }

    fn server(&self) -> McpServer {
        let file = self.folder.path().join("store.db");
        let program = Program::new(["--tools", "default,toolhost"])
            .env("EXA_BASE_URL", &self.exa.url())
            .env("EXA_MCP_STORE", &format!("sqlite:{}", file.display()));
        connect(program)
    }

    /// Starts work, kills the server before the response, adds work of others, and restarts the server.
    fn recover(&self, before: usize, after: usize) -> Value {
        self.account().add_others(before, 3600);
        let mut server = self.server();
        let mut call = research("wanted");
        call["arguments"]["args"]["model"] = json!("exa-research");
        let id = start_task(&mut server, call);
        while self.account().starts == 0 {
            thread::sleep(Duration::from_millis(10));
        }
        server.kill();
        self.account().add_others(after, 0);
        let mut server = self.server();
        let deadline = Instant::now() + TIMEOUT;
        while state(&mut server, &id)["status"] == "working" && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(200));
        }
        result(&mut server, &id)
    }
}

/// Runs cases in parallel, because they mostly wait.
fn in_parallel<C: Send>(cases: impl IntoIterator<Item = C>, check: impl Fn(C) + Sync) {
    thread::scope(|scope| {
        for case in cases {
            scope.spawn(|| check(case));
        }
    });
}

#[test]
fn recovery_finds_work_far_down_a_list() {
    let cases = [
        (Listing::NewestFirst, 500, 3_000),
        (Listing::OldestFirst, 2_500, 700),
        (Listing::Shuffled, 700, 700),
        (Listing::Flaky, 20, 800),
        (Listing::Late, 20, 600),
    ];
    in_parallel(cases, |(listing, before, after)| {
        let fixture = Fixture::new(listing, true);
        let result = fixture.recover(before, after);
        assert_eq!(result["isError"], false, "{listing:?}: {result}");
        let found = &result["structuredContent"]["results"][0];
        assert_eq!(found["id"], format!("r{before}"), "{listing:?}: {result}");
        let account = fixture.account();
        assert_eq!(account.starts, 1, "{listing:?}: started twice");
        if listing == Listing::NewestFirst {
            // The search stops where older work begins.
            assert!(account.lists <= 302, "{} pages", account.lists);
        }
    });
}

#[test]
fn recovery_starts_work_absent_from_a_list() {
    let cases = [
        (Listing::NewestFirst, 30, 900),
        (Listing::OldestFirst, 900, 30),
        (Listing::NewestFirst, 0, 0),
    ];
    in_parallel(cases, |(listing, before, after)| {
        let fixture = Fixture::new(listing, false);
        let result = fixture.recover(before, after);
        assert_eq!(result["isError"], false, "{listing:?}: {result}");
        assert_eq!(fixture.account().starts, 2, "{listing:?}");
    });
}

#[test]
fn recovery_does_not_restart_unlistable_work() {
    let cases = [
        (Listing::Refused, "400 Bad Request"),
        (Listing::Cycle, "leads back"),
        (Listing::NoCursor, "but no cursor"),
        (Listing::NoEntries, "no entries"),
    ];
    in_parallel(cases, |(listing, why)| {
        let fixture = Fixture::new(listing, true);
        let result = fixture.recover(20, 900);
        let error = &result["structuredContent"]["error"];
        assert_eq!(error["name"], "UNCONFIRMED", "{listing:?}: {result}");
        let message = error["message"].as_str().expect("a message");
        for part in [why, "research.list", "may exist at Exa", "research.create"] {
            assert!(
                message.contains(part),
                "{listing:?}: no {part:?} in {message}"
            );
        }
        assert_eq!(error["checkWith"]["operation"], "research.list", "{error}");
        assert_eq!(fixture.account().starts, 1, "{listing:?}: started twice");
    });
}

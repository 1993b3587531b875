//! Every operation through the real program, by tables of expected requests.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::support::{API_KEY, Program, RecordedRequest, Recorder, Response};

/// The headers that only some requests have.
const SPECIAL_HEADERS: [&str; 4] = [
    "exa-beta",
    "x-exa-websets-priority",
    "idempotency-key",
    "last-event-id",
];

/// One call and the request that it must become.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Case {
    operation: String,
    #[serde(default)]
    args: Map<String, Value>,
    method: String,
    /// The encoded path.
    path: String,
    /// The decoded query, in any order.
    #[serde(default)]
    query: Vec<(String, String)>,
    /// The special headers; others must be absent.
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// The arguments that are not part of the body, which consists of all others. Without this there is
    /// no body.
    not_in_body: Option<Vec<String>>,
    #[serde(default = "ok")]
    status: u16,
    response: Value,
}

fn ok() -> u16 {
    200
}

macro_rules! tables {
    ($($name:ident),+ $(,)?) => {
        /// The tables, each checked by its own test so that they run in parallel.
        const TABLES: &[&str] = &[$(include_str!(concat!("cases/", stringify!($name), ".json"))),+];
        $(
            #[test]
            fn $name() {
                check(include_str!(concat!("cases/", stringify!($name), ".json")));
            }
        )+
    };
}

tables!(
    agent_monitors,
    agent_runs,
    batches,
    enrichments,
    imports_events,
    items_searches,
    monitors,
    search,
    search_monitors,
    team,
    webhooks,
    websets,
);

/// Returns the operations that have a case, sorted and without duplicates.
pub(crate) fn covered_operations() -> Vec<String> {
    let cases = TABLES.iter().flat_map(|table| read(table));
    let mut names: Vec<String> = cases.map(|case| case.operation).collect();
    names.sort();
    names.dedup();
    names
}

fn read(table: &str) -> Vec<Case> {
    serde_json::from_str(table).expect("a table of cases")
}

fn check(table: &str) {
    for (index, case) in read(table).iter().enumerate() {
        let server = Recorder::always(Response::json(case.status, &case.response));
        let arguments = Value::Object(case.args.clone());
        let program = Program::call_unchecked(&server, &case.operation, &arguments.to_string())
            .env("EXA_ADMIN_BASE_URL", &server.url())
            .env("EXA_SERVICE_KEY", API_KEY);
        let output = program.run();
        let name = format!("case {index}, {}", case.operation);
        assert_eq!(output.code, Some(0), "{name}: {output:#?}");
        assert_request(&name, case, &server.only_request());
        assert_eq!(output.json(), case.response, "{name}: the answer");
    }
}

fn assert_request(name: &str, case: &Case, request: &RecordedRequest) {
    assert_eq!(request.method, case.method, "{name}: the method");
    assert_eq!(request.path(), case.path, "{name}: the path");
    let mut query = case.query.clone();
    query.sort();
    assert_eq!(
        request.query(),
        query,
        "{name}: the query of {}",
        request.target
    );
    for header in SPECIAL_HEADERS {
        let wanted = case.headers.get(header).map(String::as_str);
        let wanted: Vec<&str> = wanted.into_iter().collect();
        assert_eq!(
            request.header(header),
            wanted,
            "{name}: the header {header}"
        );
    }
    assert_eq!(request.json(), body(name, case), "{name}: the body");
    let content_type: &[&str] = match case.not_in_body {
        Some(_) => &["application/json"],
        None => &[],
    };
    assert_eq!(
        request.header("content-type"),
        content_type,
        "{name}: the content type"
    );
    assert_own_headers(name, request);
}

fn body(name: &str, case: &Case) -> Option<Value> {
    let mut body = case.args.clone();
    for argument in case.not_in_body.as_ref()? {
        let removed = body.remove(argument);
        assert!(
            removed.is_some(),
            "{name}: the case has no argument {argument}"
        );
    }
    Some(Value::Object(body))
}

/// Asserts the headers that every request must or must not have.
fn assert_own_headers(name: &str, request: &RecordedRequest) {
    assert_eq!(request.header("x-api-key"), [API_KEY], "{name}");
    let agent = request.header("user-agent");
    assert_eq!(agent.len(), 1, "{name}: {agent:?}");
    assert!(agent[0].starts_with("exa-mcp-server/"), "{name}: {agent:?}");
    for unwanted in ["api-version", "authorization"] {
        assert_eq!(
            request.header(unwanted),
            Vec::<&str>::new(),
            "{name}: {unwanted}"
        );
    }
}

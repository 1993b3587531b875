//! Every operation through the real program, by tables written from the facts about the API.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::support::{KEY, Program, Recorder, Reply, Seen};

/// The headers that only some requests have.
const SPECIAL_HEADERS: [&str; 3] = ["exa-beta", "x-exa-websets-priority", "idempotency-key"];

/// One call and the request that it must become.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Case {
    operation: String,
    #[serde(default)]
    args: Map<String, Value>,
    method: String,
    /// The path as it is on the wire.
    path: String,
    /// The decoded pairs of the query in any order.
    #[serde(default)]
    query: Vec<(String, String)>,
    /// The special headers; those not named must not be there.
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// The arguments that do not go into the body, which is made of all others. Without this there is
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
        /// The tables, each checked by a test of its own so that they run side by side.
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
    enrichments,
    imports_events,
    items_searches,
    monitors,
    search,
    search_monitors,
    webhooks,
    websets,
);

/// The operations that have a case, in order and each once.
pub(crate) fn covered() -> Vec<String> {
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
        let server = Recorder::always(Reply::json(case.status, &case.response));
        let arguments = Value::Object(case.args.clone());
        let output = Program::call(&server, &case.operation, &arguments).run();
        let name = format!("case {index}, {}", case.operation);
        assert_eq!(output.code, Some(0), "{name}: {output:#?}");
        assert_request(&name, case, &server.only());
        assert_eq!(output.json(), case.response, "{name}: the answer");
    }
}

fn assert_request(name: &str, case: &Case, seen: &Seen) {
    assert_eq!(seen.method, case.method, "{name}: the method");
    assert_eq!(seen.path(), case.path, "{name}: the path");
    let mut query = case.query.clone();
    query.sort();
    assert_eq!(seen.query(), query, "{name}: the query of {}", seen.target);
    for header in SPECIAL_HEADERS {
        let wanted = case.headers.get(header).map(String::as_str);
        let wanted: Vec<&str> = wanted.into_iter().collect();
        assert_eq!(seen.header(header), wanted, "{name}: the header {header}");
    }
    assert_eq!(seen.json(), body(name, case), "{name}: the body");
    let content_type: &[&str] = match case.not_in_body {
        Some(_) => &["application/json"],
        None => &[],
    };
    assert_eq!(
        seen.header("content-type"),
        content_type,
        "{name}: the content type"
    );
    assert_own_headers(name, seen);
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

/// The headers that every request has or must not have.
fn assert_own_headers(name: &str, seen: &Seen) {
    assert_eq!(seen.header("x-api-key"), [KEY], "{name}");
    let agent = seen.header("user-agent");
    assert_eq!(agent.len(), 1, "{name}: {agent:?}");
    assert!(agent[0].starts_with("exa-mcp-server/"), "{name}: {agent:?}");
    for unwanted in ["api-version", "authorization"] {
        assert_eq!(
            seen.header(unwanted),
            Vec::<&str>::new(),
            "{name}: {unwanted}"
        );
    }
}

//! A value that Exa has learned since the last update of the spec reaches the API, with a note: wherever the enum is, and
//! whichever way the operation is called.

use std::collections::BTreeMap;

use exa_mcp_model::Operation;
use exa_mcp_server::operations::all;
use serde_json::{Value, json};

use super::operations::dispatcher;
use crate::support::{
    API_KEY, EnumPlace, McpServer, Outcome, Program, RecordedRequest, Recorder, Response,
    assert_no_problems, enum_places,
};

/// A value that no enum lists and that resembles none.
const NEW: &str = "newly_learned";

/// Returns an Exa API whose responses end every job and take every upload.
fn exa() -> Recorder {
    Recorder::start(|request, _| {
        let upload = format!("http://{}/upload", request.header("host").concat());
        let body = json!({
            "id": "x_1", "status": "completed", "uploadUrl": upload, "data": [], "results": [],
        });
        Response::json(200, &body)
    })
}

fn program(exa: &Recorder, arguments: &[&str]) -> Program {
    Program::new(arguments.iter().copied())
        .env("EXA_BASE_URL", &exa.url())
        .env("EXA_ADMIN_BASE_URL", &exa.url())
        .env("EXA_SERVICE_KEY", API_KEY)
}

/// Returns the example of every operation that has a dispatcher.
fn examples(server: &mut McpServer) -> BTreeMap<&'static str, Value> {
    let dispatched = all().iter().filter(|operation| !operation.api.admin_only);
    dispatched
        .map(|operation| {
            let call = json!({"operation": "describe", "args": {"operation": operation.name}});
            let description = server.call(dispatcher(operation), call).success();
            (operation.name, description["example"]["args"].clone())
        })
        .collect()
}

/// Returns every enum in the arguments of every operation.
fn places(server: &mut McpServer) -> Vec<(&'static Operation, EnumPlace)> {
    let examples = examples(server);
    let places = all().iter().flat_map(|operation| {
        let schema: Value = serde_json::from_str(operation.input_schema).expect("a schema");
        let example = examples.get(operation.name).unwrap_or(&Value::Null);
        let found = enum_places(&schema, example).into_iter();
        found.map(move |place| (operation, place))
    });
    let places: Vec<_> = places.collect();
    // Enums at the top level, in objects, in lists and in unions.
    for part in ["", ".", "[]"] {
        let has = |(_, place): &(_, EnumPlace)| place.path.contains(part);
        assert!(places.iter().any(has), "no enum with {part:?}");
    }
    places
}

/// Returns everything of the first request that a caller can set.
fn sent(exa: &Recorder) -> Option<String> {
    let request: RecordedRequest = exa.take().into_iter().next()?;
    let query = json!(request.query());
    let priority = request.header("x-exa-websets-priority").concat();
    Some(format!(
        "{query} {priority} {}",
        String::from_utf8_lossy(&request.body)
    ))
}

/// Says what is wrong with the request or the note for the new value, if anything is.
fn problem(exa: &Recorder, place: &EnumPlace, failed: bool, output: &str) -> Option<String> {
    let sent = sent(exa);
    let is_noted = output.contains(&format!("`{NEW}` is not a known value"));
    let arrived = sent.as_ref().map(|sent| sent.matches(NEW).count());
    // Where any text is allowed, a new one is nothing special.
    let is_right = arrived == Some(1) && is_noted != place.is_open && !failed;
    (!is_right).then(|| format!("sent {sent:?}, answered {output}"))
}

/// Calls an operation in each way that a server offers.
fn calls(
    server: &mut McpServer,
    operation: &Operation,
    arguments: &Value,
    mut check: impl FnMut(&str, Outcome),
) {
    let mut own = arguments.clone();
    own["wait_seconds"] = json!(0);
    let tool = operation.name.replace('.', "_");
    let outcome = server.call(&tool, own);
    check(&tool, outcome);
    if !operation.api.admin_only {
        let call = json!({"operation": operation.name, "args": arguments, "wait_seconds": 0});
        let outcome = server.call(dispatcher(operation), call);
        check(dispatcher(operation), outcome);
    }
}

#[test]
fn new_values_of_every_enum_are_sent_by_every_tool() {
    let exa = exa();
    let tools = program(&exa, &["--tools", "default,granular,team"]);
    let mut server = McpServer::connect(tools, crate::support::DEFAULT_VERSION);
    let mut problems = Vec::new();
    for (operation, place) in places(&mut server) {
        let name = format!("{} of {}", place.path, operation.name);
        exa.take();
        // A listed value shows that nothing else is wrong with the call.
        let listed = place.with(&place.texts[0]);
        calls(&mut server, operation, &listed, |tool, outcome| {
            if sent(&exa).is_none() {
                problems.push(format!(
                    "{name}, {tool}: not sent with a listed value: {}",
                    outcome.text
                ));
            }
        });
        calls(&mut server, operation, &place.with(NEW), |tool, outcome| {
            let found = problem(&exa, &place, outcome.is_error, &outcome.text);
            problems.extend(found.map(|text| format!("{name}, {tool}: {text}")));
        });
    }
    assert_no_problems(&problems);
}

#[test]
fn new_values_of_every_enum_are_sent_by_the_command_line() {
    let exa = exa();
    let mut server = McpServer::with_recorder(&exa, &[]);
    let places = places(&mut server);
    let mut problems = Vec::new();
    for (operation, place) in places {
        let arguments = place.with(NEW).to_string();
        let output = program(&exa, &["call", operation.name, &arguments]).run();
        let failed = output.code != Some(0);
        let found = problem(&exa, &place, failed, &output.stderr);
        problems.extend(found.map(|text| format!("{} of {}: {text}", place.path, operation.name)));
    }
    assert_no_problems(&problems);
}

/// Otherwise a slip of the pen would be a value that Exa may have learned.
#[test]
fn misspelled_values_are_not_sent_as_new_ones() {
    let exa = exa();
    let tools = program(&exa, &["--tools", "default,granular,team"]);
    let mut server = McpServer::connect(tools, crate::support::DEFAULT_VERSION);
    let mut problems = Vec::new();
    let mut tried = 0;
    for (operation, place) in places(&mut server) {
        for given in place.misspelled() {
            exa.take();
            tried += 1;
            let mut arguments = place.with(&given);
            arguments["wait_seconds"] = json!(0);
            let outcome = server.call(&operation.name.replace('.', "_"), arguments);
            let quoted = format!("\"{given}\"");
            let is_sent = sent(&exa).is_some_and(|sent| sent.contains(&quoted));
            let is_noted = outcome.text.contains("did you mean `");
            let is_right = if place.is_open { is_sent } else { !is_sent };
            if !is_right || (!is_noted && (is_sent || outcome.is_error)) {
                problems.push(format!(
                    "{given} for {} of {}: sent: {is_sent}: {}",
                    place.path, operation.name, outcome.text
                ));
            }
        }
    }
    assert!(tried > 100, "only {tried} values");
    assert_no_problems(&problems);
}

/// The values of these arguments are the tool's own, which it translates.
const OWN_VALUES: [(&str, &str); 1] = [("deep_researcher_start", "model")];

#[test]
fn new_values_are_sent_by_named_tools() {
    let exa = exa();
    let tools = program(&exa, &["--tools", "default,classic,legacy"]);
    let mut server = McpServer::connect(tools, crate::support::DEFAULT_VERSION);
    let mut problems = Vec::new();
    let mut tried = 0;
    for tool in server.tools() {
        let name = tool["name"].as_str().expect("a name");
        let schema = &tool["inputSchema"];
        // Dispatchers are tested above.
        if schema["properties"].get("operation").is_some() {
            continue;
        }
        let mut example = json!({"cron": "0 9 * * 1", "query": "banks"});
        let properties = schema["properties"].as_object().expect("properties");
        let fields = example.as_object_mut().expect("an object");
        fields.retain(|field, _| properties.contains_key(field));
        for place in enum_places(schema, &example) {
            // Options of this server have values that only it knows.
            if ["content_level", "output_format"].contains(&place.path.as_str()) {
                continue;
            }
            tried += 1;
            exa.take();
            let mut arguments = place.with(NEW);
            arguments["wait_seconds"] = json!(0);
            let outcome = server.call(name, arguments);
            let is_own = OWN_VALUES.contains(&(name, &place.path));
            let found = if is_own {
                let is_refused = outcome.text.contains("must be one of") && exa.take().is_empty();
                (!is_refused).then(|| format!("not refused: {}", outcome.text))
            } else {
                problem(&exa, &place, outcome.is_error, &outcome.text)
            };
            problems.extend(found.map(|text| format!("{} of {name}: {text}", place.path)));
        }
    }
    assert!(tried > 5, "only {tried} enums");
    assert_no_problems(&problems);
}

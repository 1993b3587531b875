//! Every construct of `fixtures/constructs.yaml` is generated, compiled and called.

use codegen::load;
use serde_json::{Value, json};

use crate::project::{Project, Request, serve_once, stderr};
use crate::support::{DesignCopy, repository, snapshot};

/// The number of operations in the fixture.
pub const COUNT: usize = 19;

/// Adds the fixture to a spec.
pub fn add(spec: &mut Value) {
    let folder = repository().join("codegen/tests/fixtures");
    let fixture = load::load(&folder, "constructs.yaml").unwrap().root;
    merge(spec, &fixture);
    // The servers of upstream's paths are their own.
    spec["servers"] = json!([{"url": "https://api.exa.ai/websets"}]);
}

fn merge(target: &mut Value, addition: &Value) {
    match addition {
        Value::Object(map) if target.is_object() => {
            for (key, value) in map {
                merge(&mut target[key], value);
            }
        }
        other => *target = other.clone(),
    }
}

#[test]
fn no_construct_is_left_out() {
    let copy = DesignCopy::new();
    copy.edit("exa-websets-spec.yaml", add);
    let output = copy.generate().unwrap().into_strict().unwrap();
    let paths = output.files.keys();
    let added = paths.filter(|path| {
        let text = &output.files[*path];
        path.starts_with("codegen-snapshots/operations/") && text.contains("/v0/constructs/")
    });
    assert_eq!(added.count(), COUNT);
    let notices: Vec<String> = output.notices.iter().map(ToString::to_string).collect();
    for method in ["HEAD", "OPTIONS", "TRACE"] {
        let expected = format!("{method} is not an operation; omitted");
        assert!(notices.iter().any(|notice| notice.contains(&expected)));
    }
}

#[test]
fn demands_on_the_whole_body_are_published_but_not_listed() {
    let copy = DesignCopy::new();
    copy.edit("exa-websets-spec.yaml", add);
    let output = copy.generate().unwrap();
    let rules = &snapshot(&output, "constructs.rules")["inputSchema"];
    let text = rules.to_string();
    for keyword in [
        "anyOf",
        "dependentRequired",
        "not",
        "if",
        "then",
        "patternProperties",
    ] {
        assert!(
            text.contains(&format!("\"{keyword}\":")),
            "{keyword} is missing in {text}"
        );
    }
    let tool: Value =
        serde_json::from_str(&output.files["codegen-snapshots/tools/constructs_rules.json"])
            .unwrap();
    let keys: Vec<&String> = tool["definition"]["inputSchema"]
        .as_object()
        .unwrap()
        .keys()
        .collect();
    assert_eq!(keys, ["properties", "required", "type"]);
    let tree = &snapshot(&output, "constructs.tree")["inputSchema"];
    assert_eq!(tree["properties"].get("id"), None);
    assert_eq!(
        tree["$defs"]["Tree"]["required"],
        json!(["name", "child", "left", "right"])
    );
}

#[test]
fn arguments_are_checked_against_demands_on_the_whole_body() {
    let copy = DesignCopy::new();
    copy.edit("exa-websets-spec.yaml", add);
    let output = copy.generate().unwrap();
    let is_valid = |operation: &str, arguments: &Value| {
        let schema = &snapshot(&output, operation)["inputSchema"];
        jsonschema::is_valid(schema, arguments)
    };
    let rules = [
        (true, json!({"ruleId": "x_1", "url": "abc"})),
        (
            true,
            json!({"ruleId": "i", "text": "t", "lang": "en", "x_n": 3}),
        ),
        (false, json!({"ruleId": "i"})),
        (false, json!({"ruleId": "i", "url": "abc", "text": "t"})),
        (false, json!({"ruleId": "i", "url": "abc", "lang": "en"})),
        (false, json!({"ruleId": "i", "url": "a"})),
        (false, json!({"ruleId": "i", "text": "t", "x_n": "many"})),
        (false, json!({"ruleId": "i", "text": "t", "other": 1})),
    ];
    for (expected, arguments) in rules {
        assert_eq!(
            is_valid("constructs.rules", &arguments),
            expected,
            "{arguments}"
        );
    }
    let unions = [
        (true, json!({"unionId": "i", "kind": "b", "b": "x"})),
        (false, json!({"unionId": "i", "kind": "b", "a": "x"})),
        (
            false,
            json!({"unionId": "i", "kind": "a", "a": "x", "b": "x"}),
        ),
    ];
    for (expected, arguments) in unions {
        assert_eq!(
            is_valid("constructs.union", &arguments),
            expected,
            "{arguments}"
        );
    }
}

/// Calls the operations in a compiled project.
pub fn check(project: &Project) {
    check_queries(project);
    check_names(project);
    check_rules(project);
    check_bodies(project);
    check_responses(project);
}

/// Calls an operation and returns the request and the response.
fn call(project: &Project, operation: &str, arguments: Value) -> (Request, Value) {
    call_with(
        project,
        operation,
        arguments,
        "application/json",
        b"{\"ok\":true}",
    )
}

fn call_with(
    project: &Project,
    operation: &str,
    arguments: Value,
    media_type: &'static str,
    body: &'static [u8],
) -> (Request, Value) {
    let (url, request) = serve_once("200 OK", media_type, body);
    let called = project.program(
        &["call", "--unchecked", operation, &arguments.to_string()],
        &url,
    );
    assert!(called.status.success(), "{operation}: {}", stderr(&called));
    let response = serde_json::from_slice(&called.stdout).unwrap();
    (request.join().unwrap(), response)
}

/// Returns the message of a call that is not made.
fn rejected(project: &Project, operation: &str, arguments: Value) -> String {
    let arguments = arguments.to_string();
    let called = project.program(
        &["call", "--unchecked", operation, &arguments],
        "http://127.0.0.1:1",
    );
    assert_eq!(
        called.status.code(),
        Some(2),
        "{operation}: {}",
        stderr(&called)
    );
    stderr(&called)
}

fn sorted_pairs(request: &Request) -> Vec<String> {
    let query = request
        .target()
        .split_once('?')
        .map_or("", |(_, query)| query);
    let mut pairs: Vec<String> = query.split('&').map(str::to_owned).collect();
    pairs.sort();
    pairs
}

fn check_queries(project: &Project) {
    let arguments =
        json!({"q": "a b", "size": 3, "exact": true, "tags": ["x", "y"], "requestid": "r"});
    let (request, _) = call(project, "constructs.required", arguments);
    assert_eq!(
        sorted_pairs(&request),
        ["exact=true", "q=a+b", "size=3", "tags=x", "tags=y"]
    );
    assert!(
        request.headers.contains("x-requestid: r"),
        "{}",
        request.headers
    );
    let message = rejected(project, "constructs.required", json!({"q": "a"}));
    assert!(
        message.contains("`size`") && message.contains("`tags`"),
        "{message}"
    );

    let arguments = json!({"metadata": {"team": "a b", "tag": ["x", "y"]}, "point": {"x": 1, "y": 2},
        "box": {"w": 3}, "sort": [{"by": "n"}, {"by": "m"}], "ids": ["1", "2"]});
    let (request, _) = call(project, "constructs.objects", arguments);
    let expected = [
        "box=w%2C3",
        "ids=1",
        "ids=2",
        "metadata%5Btag%5D=x",
        "metadata%5Btag%5D=y",
        "metadata%5Bteam%5D=a+b",
        "sort=%7B%22by%22%3A%22m%22%7D",
        "sort=%7B%22by%22%3A%22n%22%7D",
        "x=1",
        "y=2",
    ];
    assert_eq!(sorted_pairs(&request), expected);
}

fn check_names(project: &Project) {
    let arguments = json!({"baseUrl": "b", "self": "s", "list": ["l", "m"], "client": "c", "context": 1,
        "type": "t", "fooBar": "1", "foo_bar": "2", "info": "i"});
    let (request, _) = call(project, "new", arguments);
    let (path, _) = request.target().split_once('?').unwrap();
    assert_eq!(path, "/websets/v0/constructs/b/s/l,m");
    let pairs = ["client=c", "context=1", "fooBar=1", "foo_bar=2", "type=t"];
    assert_eq!(sorted_pairs(&request), pairs);
    assert!(request.headers.contains("\ninfo: i") || request.headers.starts_with("info: i"));

    let body = json!({"extra": 1, "fooBar": "a", "foo_bar": "b", "self": "s", "type": "t",
        "client": {"name": "n"}, "+1": 3, "$ref": "r", "unknown": null});
    let (request, _) = call(project, "exec", body.clone());
    assert_eq!(request.json(), body);
    let (request, _) = call(project, "websets.constructs.finish.create", json!({}));
    assert_eq!(request.target(), "/websets/v0/constructs/finish");
}

fn check_rules(project: &Project) {
    for valid in [
        json!({"url": "abc"}),
        json!({"text": "t", "lang": "en", "x_n": 3}),
    ] {
        let mut arguments = valid.clone();
        arguments["id"] = json!("x_1");
        let (request, _) = call(project, "constructs.rules", arguments);
        assert_eq!(request.json(), valid);
    }
    let (request, _) = call(
        project,
        "constructs.union",
        json!({"id": "i", "kind": "b", "b": "x"}),
    );
    assert_eq!(request.json(), json!({"kind": "b", "b": "x"}));
}

fn check_bodies(project: &Project) {
    let leaf = json!({"name": "l", "left": [], "right": {}, "child": {}});
    let tree = json!({"name": "n", "child": leaf, "left": [leaf], "right": {"k": leaf}});
    let message = rejected(project, "constructs.tree", tree);
    assert!(message.contains("child"), "{message}");

    let arguments =
        json!({"file": "AP8=", "name": "n", "labels": ["a", "b"], "options": {"deep": true}});
    let (request, _) = call(project, "constructs.multipart", arguments);
    assert!(
        request
            .headers
            .contains("content-type: multipart/form-data; boundary=")
    );
    let body = String::from_utf8_lossy(&request.body);
    for part in [
        "name=\"file\"; filename=\"file\"",
        "\r\n\r\na\r\n",
        "\r\n\r\nb\r\n",
        "{\"deep\":true}",
    ] {
        assert!(body.contains(part), "{part} is missing in {body}");
    }
    assert!(request.body.windows(4).any(|it| it == b"\x00\xff\r\n"));
    rejected(
        project,
        "constructs.multipart",
        json!({"file": "not base64!"}),
    );

    let (request, _) = call(
        project,
        "constructs.form",
        json!({"q": "a b", "tags": ["x", "y"]}),
    );
    assert_eq!(request.body, b"q=a+b&tags=x&tags=y");
    let (request, _) = call(project, "constructs.binary", json!({"body": "AP8="}));
    assert_eq!(request.body, b"\x00\xff");
    assert!(
        request
            .headers
            .contains("content-type: application/octet-stream")
    );
    let (request, _) = call_with(
        project,
        "constructs.vendor",
        json!({"a": null}),
        "application/vnd.exa.v1+json",
        b"{\"a\":\"x\"}",
    );
    assert_eq!(request.json(), json!({"a": null}));
    assert!(
        request
            .headers
            .contains("content-type: application/merge-patch+json")
    );
}

fn check_responses(project: &Project) {
    check_odd_responses(project);
    let (request, response) = call_with(
        project,
        "constructs.csv",
        json!({}),
        "text/csv",
        b"a,b\n1,2\n",
    );
    assert!(
        request.headers.contains("accept: text/csv"),
        "{}",
        request.headers
    );
    assert_eq!(response, json!("a,b\n1,2\n"));
    let (_, response) = call_with(
        project,
        "constructs.pdf",
        json!({}),
        "application/pdf",
        b"\x00\xff",
    );
    assert_eq!(
        response,
        json!({"contentType": "application/pdf", "base64": "AP8="})
    );
    let (_, response) = call_with(
        project,
        "constructs.events",
        json!({}),
        "text/event-stream",
        b"data: {\"a\":1}\n\nevent: end\ndata: x\n\n",
    );
    let events = json!([{"event": "message", "data": {"a": 1}}, {"event": "end", "data": "x"}]);
    assert_eq!(response, events);
    let (request, _) = call(project, "constructs.host", json!({}));
    assert_eq!(request.target(), "/v2/v0/constructs/host");
    assert!(
        request
            .headers
            .contains("authorization: bearer exa-test-key")
    );
    assert!(!request.headers.contains("x-api-key"));
}

/// Returns what the API sent, whatever its type: nothing is lost or rejected.
fn check_odd_responses(project: &Project) {
    let bodies: [&'static [u8]; 4] = [
        br#"{"view":"v","type":"new","big":18446744073709551615,"ratio":0.005,"event":{"type":"unknown"},"x":[{}]}"#,
        br#"{"id":7,"child":[],"left":{},"type":null,"event":"text","matrix":[[1,"a"],null],"+1":-9223372036854775808}"#,
        br#"[null,{"type":"tree.lost","event":{"type":"tree.added"}},[]]"#,
        br#""text""#,
    ];
    for operation in ["constructs.responses", "constructs.list", "constructs.text"] {
        for body in bodies {
            let (_, response) = call_with(project, operation, json!({}), "application/json", body);
            let expected: Value = serde_json::from_slice(body).unwrap();
            assert_eq!(response, expected, "{operation}");
        }
    }
}

#[test]
fn responses_have_types() {
    let copy = DesignCopy::new();
    copy.edit("exa-websets-spec.yaml", add);
    let output = copy.generate().unwrap();
    let types = &output.files["generated/websets/responses.rs"];
    for expected in [
        "response_object! {\n    ConstructsResponsesResponse<'a> {",
        "response_value! {\n    ConstructsListResponse<'a>(List<'a, OddEvent<'a>>)",
        "OddEvent<'a> by \"type\" {",
        "TreeRemoved(OddEventTreeRemoved<&'a Value>) = \"tree.removed\" | \"tree.lost\",",
        "maybe: Tree<&'a Value> = \"maybe\",",
        "matrix: List<'a, List<'a, f64>> = \"matrix\",",
        "big: i64 = \"big\",",
        "queued: bool = \"queued\",",
        "foo_bar3: &'a str = \"FooBar\",",
    ] {
        assert!(types.contains(expected), "{expected} is missing in {types}");
    }
    let client = &output.files["generated/websets.rs"];
    let expected = "ResponseValue<crate::websets::responses::ConstructsResponsesResponse>";
    assert!(client.contains(expected));
}

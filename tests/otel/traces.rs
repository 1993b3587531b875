//! Spans of requests and of calls of Exa.

use serde_json::json;

use crate::collector::{Collector, Span, exa, spans, stdio};
#[cfg(unix)]
use crate::support::signal;
use crate::support::{API_KEY, HttpServer, HttpSession, RecordedRequest, Recorder, Response};

const TRACE_ID: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

fn traceparent() -> String {
    format!("00-{TRACE_ID}-{PARENT}-01")
}

#[track_caller]
fn named<'a>(spans: &'a [Span], name: &str) -> &'a Span {
    let mut found = spans.iter().filter(|span| span.name == name);
    match (found.next(), found.next()) {
        (Some(span), None) => span,
        _ => panic!("one span {name}, not these: {spans:#?}"),
    }
}

#[track_caller]
fn assert_attributes(span: &Span, wanted: &[(&str, &str)]) {
    for (name, value) in wanted {
        let found = span.attributes.get(*name).map(String::as_str);
        assert_eq!(found, Some(*value), "{name} of {span:#?}");
    }
}

/// The header that Exa was sent names this span.
#[track_caller]
fn assert_sent(request: &RecordedRequest, span: &Span) {
    let header = format!("00-{}-{}-01", span.trace, span.id);
    assert_eq!(request.header("traceparent"), [header.as_str()]);
}

#[test]
fn otel_stdio_spans_propagate_from_client_to_exa() {
    let (exa, collector) = (exa(), Collector::start());
    let mut server = stdio(&exa, &collector.url(), &[]);
    let meta = json!({"traceparent": traceparent(), "tracestate": "vendor=1"});
    let arguments = json!({"query": "what nobody may know"});
    let call = json!({"name": "web_search_exa", "arguments": arguments, "_meta": meta});
    let id = server.send("tools/call", call);
    server.response(&id);
    let ended = server.shut_down();
    assert_eq!(ended.code, Some(0), "{ended:?}");

    let requests = collector.take();
    let spans = spans(&requests);
    let request = named(&spans, "tools/call web_search_exa");
    assert_eq!((&*request.trace, &*request.parent), (TRACE_ID, PARENT));
    assert_eq!((request.kind, request.status), (2, 0));
    assert_eq!(request.state, "vendor=1");
    assert_attributes(
        request,
        &[
            ("mcp.method.name", "tools/call"),
            ("mcp.protocol.version", "2025-11-25"),
            ("gen_ai.tool.name", "web_search_exa"),
            ("gen_ai.operation.name", "execute_tool"),
            ("jsonrpc.request.id", &id.to_string()),
            ("network.transport", "pipe"),
        ],
    );
    assert_eq!(request.resource["service.name"], "exa-mcp-server");

    let call = named(&spans, "POST /search");
    assert_eq!((&call.trace, &call.parent), (&request.trace, &request.id));
    assert_eq!((call.kind, call.status), (3, 0));
    assert_attributes(
        call,
        &[
            ("http.request.method", "POST"),
            ("http.response.status_code", "200"),
            ("server.address", "127.0.0.1"),
            ("url.template", "/search"),
            ("exa.operation", "search"),
        ],
    );
    let request = exa.only_request();
    assert_sent(&request, call);
    assert_eq!(request.header("tracestate"), ["vendor=1"]);

    // The handshake named no trace, and began one.
    let initialize = named(&spans, "initialize");
    assert_eq!(initialize.parent, "");
    assert_ne!(initialize.trace, TRACE_ID);
}

#[test]
fn otel_http_spans_contain_no_secrets() {
    let (exa, collector) = (exa(), Collector::start());
    let variables = [
        ("MCP_AUTH_TOKEN", "the-admins-token"),
        ("USER_TOKENS", "the-users-token:ann-of-accounts"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url()),
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=blue"),
    ];
    let mut server = HttpServer::with_upstream(&exa.url(), &variables);
    let bearer = "Bearer the-users-token";
    let trace = traceparent();
    let headers = [("authorization", bearer), ("traceparent", trace.as_str())];
    let mut session = HttpSession::new(&server, &headers);
    let session_id = session
        .headers()
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case("mcp-session-id"))
        .map(|(_, id)| (*id).to_owned())
        .expect("a session");
    let arguments = json!({"query": "what nobody may know"});
    session.call("web_search_exa", arguments);
    session.request(
        "tools/call",
        json!({"name": "a_tool_made_up", "arguments": {}}),
    );
    session.request("a/method/made/up", json!({}));
    session.request("resources/read", json!({"uri": "exa://made/up/address"}));
    session.request("prompts/get", json!({"name": "a_prompt_made_up"}));
    drop(session);
    #[cfg(unix)]
    {
        signal(server.process_id(), "TERM");
        assert_eq!(server.wait(), Some(0));
    }

    let requests = collector.take();
    let spans = spans(&requests);
    let request = named(&spans, "tools/call web_search_exa");
    assert_eq!((&*request.trace, &*request.parent), (TRACE_ID, PARENT));
    let transport = [
        ("network.transport", "tcp"),
        ("network.protocol.name", "http"),
    ];
    assert_attributes(request, &transport);
    let call = named(&spans, "POST /search");
    assert_eq!((&call.trace, &call.parent), (&request.trace, &request.id));
    assert_sent(&exa.only_request(), call);

    let unknown = named(&spans, "tools/call");
    assert_attributes(unknown, &[("error.type", "-32602")]);
    assert_attributes(unknown, &[("rpc.response.status_code", "-32602")]);
    assert_eq!(unknown.status, 2);
    assert_attributes(named(&spans, "_OTHER"), &[("error.type", "-32601")]);
    named(&spans, "prompts/get");

    for request in &requests {
        assert_eq!(request.header("x-tenant"), ["blue"]);
        let bytes = String::from_utf8_lossy(&request.body);
        for secret in [
            API_KEY,
            "the-admins-token",
            "the-users-token",
            "ann-of-accounts",
            "nobody may know",
            "made_up",
            "made/up",
            session_id.as_str(),
        ] {
            assert!(!bytes.contains(secret), "{secret} in {bytes}");
        }
    }
}

#[test]
fn otel_spans_record_errors() {
    let answer = json!({"error": "what Exa says of it", "tag": "INVALID_REQUEST_BODY"});
    let exa = Recorder::always(Response::json(400, &answer));
    let collector = Collector::start();
    let mut server = stdio(&exa, &collector.url(), &[]);
    let arguments = json!({"query": "x"});
    let call = json!({"name": "web_search_exa", "arguments": arguments});
    server.request("tools/call", call);
    server.request("prompts/list", json!({}));
    server.terminate();
    assert_eq!(server.wait().code, Some(0));

    let requests = collector.take();
    let spans = spans(&requests);
    let request = named(&spans, "tools/call web_search_exa");
    assert_attributes(request, &[("error.type", "tool_error")]);
    let call = named(&spans, "POST /search");
    assert_eq!((request.status, call.status), (2, 2));
    let wanted = [("error.type", "400"), ("http.response.status_code", "400")];
    assert_attributes(call, &wanted);
    assert_eq!(named(&spans, "prompts/list").status, 0);
    let bytes = requests
        .iter()
        .map(|one| String::from_utf8_lossy(&one.body));
    assert!(!bytes.collect::<String>().contains("what Exa says"));
}

#[test]
fn otel_honors_the_client_sampling_decision() {
    let (exa, collector) = (exa(), Collector::start());
    let mut server = stdio(&exa, &collector.url(), &[]);
    let unsampled = traceparent().replace("-01", "-00");
    let call = json!({"name": "web_search_exa", "arguments": {"query": "x"},
        "_meta": {"traceparent": unsampled}});
    server.request("tools/call", call);
    server.shut_down();
    let names: Vec<_> = spans(&collector.take())
        .into_iter()
        .map(|span| span.name)
        .collect();
    assert_eq!(names, ["initialize"]);
    let request = exa.only_request();
    let header = request.header("traceparent").concat();
    assert!(header.starts_with(&format!("00-{TRACE_ID}-")), "{header}");
    assert!(header.ends_with("-00"), "{header}");
}

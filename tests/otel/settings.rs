//! The variables of OpenTelemetry, and collectors that are not there.

use serde_json::json;

use crate::collector::{Collector, exa, spans, stdio};
use crate::support::{McpServer, Part, Recorder, Response};

const CALL: &str = "web_search_exa";

fn call(server: &mut McpServer) {
    let call = json!({"name": CALL, "arguments": {"query": "x"}});
    let response = server.request("tools/call", call);
    assert_eq!(response["result"]["isError"], false, "{response}");
}

#[test]
fn otel_variables_configure_the_exporter() {
    let (exa, collector) = (exa(), Collector::start());
    let variables = [
        ("OTEL_SERVICE_NAME", "search-of-blue"),
        (
            "OTEL_RESOURCE_ATTRIBUTES",
            "deployment.environment.name=test",
        ),
        ("OTEL_METRICS_EXPORTER", "none"),
    ];
    let mut server = stdio(&exa, &collector.url(), &variables);
    call(&mut server);
    server.shut_down();
    let requests = collector.take();
    assert!(requests.iter().all(|one| one.path() == "/v1/traces"));
    let spans = spans(&requests);
    let resource = &spans.first().expect("a span").resource;
    assert_eq!(resource["service.name"], "search-of-blue");
    assert_eq!(resource["deployment.environment.name"], "test");
    assert_eq!(resource["service.version"], env!("CARGO_PKG_VERSION"));
}

#[test]
fn otel_is_off_by_default() {
    let (exa, collector) = (exa(), Collector::start());
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    for disabled in [
        ("OTEL_SDK_DISABLED", "true"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", ""),
    ] {
        let mut server = stdio(&exa, &collector.url(), &[disabled]);
        let call = json!({"name": CALL, "arguments": {"query": "x"},
            "_meta": {"traceparent": trace}});
        server.request("tools/call", call);
        server.shut_down();
        assert!(collector.take().is_empty());
        // The server's span is not exported, so Exa gets the client's trace context.
        assert_eq!(exa.only_request().header("traceparent"), [trace]);
    }

    let sampler = ("OTEL_TRACES_SAMPLER", "always_off");
    let mut server = stdio(&exa, &collector.url(), &[sampler]);
    call(&mut server);
    server.shut_down();
    assert!(spans(&collector.take()).is_empty());
}

#[test]
fn otel_missing_collector_is_logged_once() {
    let exa = exa();
    let often = ("OTEL_BSP_SCHEDULE_DELAY", "10");
    let mut server = stdio(&exa, "http://127.0.0.1:1", &[often]);
    for _ in 0..20 {
        call(&mut server);
    }
    let ended = server.shut_down();
    assert_eq!(ended.code, Some(0));
    let warnings = ended.stderr.matches("OTEL_EXPORTER_OTLP_ENDPOINT").count();
    // Once for traces, once for metrics.
    assert_eq!(warnings, 2, "{}", ended.stderr);
}

#[test]
fn otel_unresponsive_collector_does_not_delay() {
    let exa = exa();
    let (closed, _receiver) = std::sync::mpsc::channel();
    let silent = Recorder::always(Response::events([Part::WaitForClose(closed)]));
    let often = ("OTEL_BSP_SCHEDULE_DELAY", "10");
    let mut server = stdio(&exa, &silent.url(), &[often]);
    for _ in 0..20 {
        call(&mut server);
    }
    // The support waits for the end with a limit of its own.
    let ended = server.shut_down();
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[test]
fn otel_invalid_settings_do_not_stop_the_server() {
    let exa = exa();
    let mut server = stdio(&exa, "collector:4317", &[]);
    call(&mut server);
    let ended = server.shut_down();
    assert!(
        ended.stderr.contains("OpenTelemetry export is disabled"),
        "{}",
        ended.stderr
    );
}

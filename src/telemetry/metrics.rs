//! Prometheus metrics.
//!
//! They are recorded only by servers that expose them over HTTP. No label contains client input: unknown names
//! count as `other`, so that clients cannot increase the number of series.

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

/// The histogram buckets of the OpenTelemetry conventions for MCP, in seconds.
pub(super) const BUCKETS: [f64; 14] = [
    0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0,
];

static METRICS: OnceLock<Metrics> = OnceLock::new();

/// Returns the metrics of this process, if they are recorded.
pub(crate) fn metrics() -> Option<&'static Metrics> {
    METRICS.get()
}

type Durations<L> = Family<L, Histogram, fn() -> Histogram>;

/// The metrics of this process.
pub(crate) struct Metrics {
    registry: Registry,
    http: Family<HttpLabels, Counter>,
    methods: Durations<MethodLabels>,
    operations: Durations<OperationLabels>,
    tokens: Counter,
    formats: Family<FormatLabels, Counter>,
    cache_hits: Counter,
    dollars: Counter<f64, AtomicU64>,
    gauges: GaugeMetrics,
}

/// Values read at the time of a scrape.
#[derive(Clone, Debug, Default)]
pub struct Gauges {
    /// The number of open sessions.
    pub sessions: usize,
    /// The number of requests in flight.
    pub requests: usize,
    /// The number of running tasks.
    pub tasks: usize,
    /// Whether the store responds.
    pub store: bool,
    /// Whether the last call to Exa got a response.
    pub upstream: Option<bool>,
    /// The number of Exa API keys in each state.
    pub keys: Vec<(&'static str, usize)>,
    /// How long the server has been running.
    pub uptime: Duration,
}

#[derive(Default)]
struct GaugeMetrics {
    sessions: Gauge,
    requests: Gauge,
    tasks: Gauge,
    store: Gauge,
    upstream: Gauge,
    keys: Family<KeyLabels, Gauge>,
    uptime: Gauge,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct HttpLabels {
    path: &'static str,
    status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct MethodLabels {
    mcp_method_name: String,
    gen_ai_tool_name: String,
    error_type: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FormatLabels {
    format: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OperationLabels {
    operation: &'static str,
    status: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KeyLabels {
    state: &'static str,
}

fn duration_histogram() -> Histogram {
    Histogram::new(BUCKETS)
}

impl Metrics {
    /// Returns the metrics of this process, starting to record them if necessary.
    pub(crate) fn start() -> &'static Self {
        METRICS.get_or_init(Self::new)
    }

    fn new() -> Self {
        let mut registry = Registry::default();
        let http = Family::default();
        let text = "HTTP requests handled";
        registry.register("exa_mcp_http_requests", text, http.clone());
        let methods: Durations<MethodLabels> = Family::new_with_constructor(duration_histogram);
        let text = "Duration of MCP requests";
        let name = "mcp_server_operation_duration";
        registry.register_with_unit(name, text, Unit::Seconds, methods.clone());
        let operations: Durations<OperationLabels> =
            Family::new_with_constructor(duration_histogram);
        let text = "Duration of calls to the Exa API";
        let name = "exa_mcp_upstream_duration";
        registry.register_with_unit(name, text, Unit::Seconds, operations.clone());
        let (tokens, cache_hits, dollars) =
            (Counter::default(), Counter::default(), Counter::default());
        let text = "Estimated tokens of tool results";
        registry.register("exa_mcp_result_tokens", text, tokens.clone());
        let text = "Deprecated, removed in 0.3: use exa_mcp_result_tokens";
        registry.register("exa_mcp_answer_tokens", text, tokens.clone());
        let text = "Tool results served from the cache";
        registry.register("exa_mcp_cache_hits", text, cache_hits.clone());
        let text = "Cost charged by Exa in dollars";
        registry.register("exa_mcp_cost_dollars", text, dollars.clone());
        let formats = Family::default();
        let text = "Tool results by the format of their text";
        registry.register("exa_mcp_results", text, formats.clone());
        let gauges = GaugeMetrics::default();
        gauges.register(&mut registry);
        Self {
            registry,
            http,
            methods,
            operations,
            tokens,
            formats,
            cache_hits,
            dollars,
            gauges,
        }
    }

    /// Records an HTTP request.
    pub(crate) fn record_http_request(&self, path: &'static str, status: u16) {
        self.http.get_or_create(&HttpLabels { path, status }).inc();
    }

    /// Records a completed MCP request. Method and tool must be known names.
    pub(crate) fn record_mcp_request(
        &self,
        method: &str,
        tool: Option<&str>,
        failed: bool,
        duration: Duration,
    ) {
        let labels = MethodLabels {
            mcp_method_name: method.to_owned(),
            gen_ai_tool_name: tool.unwrap_or_default().to_owned(),
            error_type: match (failed, tool) {
                (false, _) => "",
                (true, Some(_)) => "tool_error",
                (true, None) => "error",
            },
        };
        let histogram = self.methods.get_or_create(&labels);
        histogram.observe(duration.as_secs_f64());
    }

    /// Records a call to the Exa API. `status` is the HTTP status or the kind of failure.
    pub(crate) fn record_upstream_call(
        &self,
        operation: &'static str,
        status: impl fmt::Display,
        duration: Duration,
    ) {
        let status = status.to_string();
        let labels = OperationLabels { operation, status };
        let histogram = self.operations.get_or_create(&labels);
        histogram.observe(duration.as_secs_f64());
    }

    /// Records the format of a tool result.
    pub(crate) fn record_format(&self, format: &'static str) {
        self.formats.get_or_create(&FormatLabels { format }).inc();
    }

    /// Records a tool result.
    pub(crate) fn record_result(&self, tokens: u64, dollars: f64, cached: bool) {
        self.tokens.inc_by(tokens);
        if cached {
            self.cache_hits.inc();
        } else {
            self.dollars.inc_by(dollars);
        }
    }

    /// Returns all metrics in the OpenMetrics text format.
    pub(crate) fn encode_text(&self, gauges: &Gauges) -> String {
        self.gauges.set(gauges);
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

impl GaugeMetrics {
    fn register(&self, registry: &mut Registry) {
        let gauges = [
            ("sessions", "Open sessions", &self.sessions),
            ("requests_in_flight", "Requests in flight", &self.requests),
            (
                "requests_under_way",
                "Deprecated, removed in 0.3: use exa_mcp_requests_in_flight",
                &self.requests,
            ),
            ("tasks_running", "Running tasks", &self.tasks),
            (
                "tasks_under_way",
                "Deprecated, removed in 0.3: use exa_mcp_tasks_running",
                &self.tasks,
            ),
            ("store_up", "Whether the store responds", &self.store),
            (
                "upstream_up",
                "Whether the last call to Exa got a response; 1 before the first call",
                &self.upstream,
            ),
            ("uptime_seconds", "Uptime of the server", &self.uptime),
        ];
        for (name, text, gauge) in gauges {
            registry.register(format!("exa_mcp_{name}"), text, gauge.clone());
        }
        let text = "Exa API keys by state";
        registry.register("exa_mcp_keys", text, self.keys.clone());
    }

    fn set(&self, gauges: &Gauges) {
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.sessions.set(number(gauges.sessions));
        self.requests.set(number(gauges.requests));
        self.tasks.set(number(gauges.tasks));
        self.store.set(i64::from(gauges.store));
        self.upstream.set(i64::from(gauges.upstream != Some(false)));
        let uptime = gauges.uptime.as_secs();
        self.uptime.set(i64::try_from(uptime).unwrap_or(i64::MAX));
        for (state, count) in &gauges.keys {
            let labels = KeyLabels { state };
            self.keys.get_or_create(&labels).set(number(*count));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodes_recorded_values() {
        let metrics = Metrics::new();
        metrics.record_http_request("/mcp", 200);
        metrics.record_http_request("/mcp", 200);
        let duration = Duration::from_millis(30);
        metrics.record_mcp_request("tools/call", Some("web_search_exa"), true, duration);
        metrics.record_upstream_call("search", 200, duration);
        metrics.record_result(120, 0.005, false);
        metrics.record_result(80, 0.005, true);
        metrics.record_format("json");
        let gauges = Gauges {
            sessions: 3,
            requests: 4,
            keys: vec![("ready", 2), ("cooling_down", 0)],
            store: true,
            ..Gauges::default()
        };
        let text = metrics.encode_text(&gauges);
        for line in [
            r#"exa_mcp_http_requests_total{path="/mcp",status="200"} 2"#,
            r#"mcp_server_operation_duration_seconds_bucket{le="0.05",mcp_method_name="tools/call",gen_ai_tool_name="web_search_exa",error_type="tool_error"} 1"#,
            r#"exa_mcp_upstream_duration_seconds_count{operation="search",status="200"} 1"#,
            "exa_mcp_result_tokens_total 200",
            "exa_mcp_answer_tokens_total 200",
            "exa_mcp_cache_hits_total 1",
            r#"exa_mcp_results_total{format="json"} 1"#,
            "exa_mcp_cost_dollars_total 0.005",
            "exa_mcp_sessions 3",
            "exa_mcp_requests_in_flight 4",
            "exa_mcp_requests_under_way 4",
            "exa_mcp_tasks_running 0",
            "exa_mcp_tasks_under_way 0",
            "exa_mcp_store_up 1",
            r#"exa_mcp_keys{state="ready"} 2"#,
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}

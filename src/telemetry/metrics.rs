//! Numbers for Prometheus.
//!
//! They are kept only where someone can read them, which is over HTTP. No label holds what a client
//! wrote: names that are unknown here are counted as `other`, so that nobody can make them many.

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

/// The steps that the conventions for MCP name, in seconds.
pub(super) const STEPS: [f64; 14] = [
    0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0,
];

static METRICS: OnceLock<Metrics> = OnceLock::new();

/// The numbers of this process, once someone wants them.
pub(crate) fn metrics() -> Option<&'static Metrics> {
    METRICS.get()
}

type Durations<L> = Family<L, Histogram, fn() -> Histogram>;

/// The numbers of a process.
pub(crate) struct Metrics {
    registry: Registry,
    http: Family<HttpLabels, Counter>,
    methods: Durations<MethodLabels>,
    operations: Durations<OperationLabels>,
    tokens: Counter,
    cache_hits: Counter,
    dollars: Counter<f64, AtomicU64>,
    standing: Standing,
}

/// What is looked at when someone asks.
#[derive(Clone, Debug, Default)]
pub struct Gauges {
    /// Sessions that are open.
    pub sessions: usize,
    /// Requests under way.
    pub requests: usize,
    /// Tasks under way.
    pub tasks: usize,
    /// Whether the store answers.
    pub store: bool,
    /// Whether Exa answered when it was last called.
    pub upstream: Option<bool>,
    /// The Exa keys by state.
    pub keys: Vec<(&'static str, usize)>,
    /// How long the server has run.
    pub uptime: Duration,
}

#[derive(Default)]
struct Standing {
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
struct OperationLabels {
    operation: &'static str,
    status: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KeyLabels {
    state: &'static str,
}

fn steps() -> Histogram {
    Histogram::new(STEPS)
}

impl Metrics {
    /// Starts counting, or goes on.
    pub(crate) fn start() -> &'static Self {
        METRICS.get_or_init(Self::new)
    }

    fn new() -> Self {
        let mut registry = Registry::default();
        let http = Family::default();
        let text = "HTTP requests answered";
        registry.register("exa_mcp_http_requests", text, http.clone());
        let methods: Durations<MethodLabels> = Family::new_with_constructor(steps);
        let text = "How long requests of MCP took";
        let name = "mcp_server_operation_duration";
        registry.register_with_unit(name, text, Unit::Seconds, methods.clone());
        let operations: Durations<OperationLabels> = Family::new_with_constructor(steps);
        let text = "How long calls of the Exa API took";
        let name = "exa_mcp_upstream_duration";
        registry.register_with_unit(name, text, Unit::Seconds, operations.clone());
        let (tokens, cache_hits, dollars) =
            (Counter::default(), Counter::default(), Counter::default());
        let text = "Tokens of answers, as estimated";
        registry.register("exa_mcp_answer_tokens", text, tokens.clone());
        let text = "Answers out of the cache";
        registry.register("exa_mcp_cache_hits", text, cache_hits.clone());
        let text = "What Exa charged, in dollars";
        registry.register("exa_mcp_cost_dollars", text, dollars.clone());
        let standing = Standing::default();
        standing.register(&mut registry);
        Self {
            registry,
            http,
            methods,
            operations,
            tokens,
            cache_hits,
            dollars,
            standing,
        }
    }

    /// An HTTP request was answered.
    pub(crate) fn answered(&self, path: &'static str, status: u16) {
        self.http.get_or_create(&HttpLabels { path, status }).inc();
    }

    /// A request of MCP came to its end. Method and tool must be known ones.
    pub(crate) fn served(&self, method: &str, tool: Option<&str>, failed: bool, took: Duration) {
        let labels = MethodLabels {
            mcp_method_name: method.to_owned(),
            gen_ai_tool_name: tool.unwrap_or_default().to_owned(),
            error_type: match (failed, tool) {
                (false, _) => "",
                (true, Some(_)) => "tool_error",
                (true, None) => "error",
            },
        };
        let duration = self.methods.get_or_create(&labels);
        duration.observe(took.as_secs_f64());
    }

    /// Exa was called; `status` is what it answered, or what kept it from answering.
    pub(crate) fn called(
        &self,
        operation: &'static str,
        status: impl fmt::Display,
        took: Duration,
    ) {
        let status = status.to_string();
        let labels = OperationLabels { operation, status };
        let duration = self.operations.get_or_create(&labels);
        duration.observe(took.as_secs_f64());
    }

    /// An answer left, with this much in it.
    pub(crate) fn told(&self, tokens: u64, dollars: f64, cached: bool) {
        self.tokens.inc_by(tokens);
        if cached {
            self.cache_hits.inc();
        } else {
            self.dollars.inc_by(dollars);
        }
    }

    /// All of it, as text that Prometheus reads.
    pub(crate) fn text(&self, gauges: &Gauges) -> String {
        self.standing.set(gauges);
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

impl Standing {
    fn register(&self, registry: &mut Registry) {
        let gauges = [
            ("sessions", "Sessions that are open", &self.sessions),
            ("requests_under_way", "Requests under way", &self.requests),
            ("tasks_under_way", "Tasks under way", &self.tasks),
            ("store_up", "Whether the store answers", &self.store),
            (
                "upstream_up",
                "Whether Exa answered when it was last called; 1 before that",
                &self.upstream,
            ),
            (
                "uptime_seconds",
                "How long the server has run",
                &self.uptime,
            ),
        ];
        for (name, text, gauge) in gauges {
            registry.register(format!("exa_mcp_{name}"), text, gauge.clone());
        }
        let text = "Exa keys by state";
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
    fn what_happened_is_in_the_text() {
        let metrics = Metrics::new();
        metrics.answered("/mcp", 200);
        metrics.answered("/mcp", 200);
        let took = Duration::from_millis(30);
        metrics.served("tools/call", Some("web_search_exa"), true, took);
        metrics.called("search", 200, took);
        metrics.told(120, 0.005, false);
        metrics.told(80, 0.005, true);
        let gauges = Gauges {
            sessions: 3,
            keys: vec![("ready", 2), ("cooling_down", 0)],
            store: true,
            ..Gauges::default()
        };
        let text = metrics.text(&gauges);
        for line in [
            r#"exa_mcp_http_requests_total{path="/mcp",status="200"} 2"#,
            r#"mcp_server_operation_duration_seconds_bucket{le="0.05",mcp_method_name="tools/call",gen_ai_tool_name="web_search_exa",error_type="tool_error"} 1"#,
            r#"exa_mcp_upstream_duration_seconds_count{operation="search",status="200"} 1"#,
            "exa_mcp_answer_tokens_total 200",
            "exa_mcp_cache_hits_total 1",
            "exa_mcp_cost_dollars_total 0.005",
            "exa_mcp_sessions 3",
            "exa_mcp_store_up 1",
            r#"exa_mcp_keys{state="ready"} 2"#,
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}

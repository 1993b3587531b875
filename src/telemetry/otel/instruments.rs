//! OpenTelemetry instruments, named after the semantic conventions where those have a name.

use opentelemetry::InstrumentationScope;
use opentelemetry::metrics::{Counter, Histogram, Meter, MeterProvider};
use opentelemetry_sdk::metrics::SdkMeterProvider;

use super::super::metrics::BUCKETS;

/// The buckets of the conventions for HTTP, in seconds, extended for slow Exa operations.
const HTTP_BUCKETS: [f64; 17] = [
    0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 30.0, 60.0,
    120.0,
];

/// The instruments of this server.
pub(super) struct Instruments {
    /// The duration of MCP requests.
    pub(super) requests: Histogram<f64>,
    /// The duration of calls to the Exa API.
    pub(super) calls: Histogram<f64>,
    tokens: Counter<u64>,
    // deprecated: removed in 0.3
    answer_tokens: Counter<u64>,
    cache_hits: Counter<u64>,
    dollars: Counter<f64>,
}

impl Instruments {
    pub(super) fn new(provider: &SdkMeterProvider, scope: InstrumentationScope) -> Self {
        let meter = provider.meter_with_scope(scope);
        let seconds = |name: &'static str, text: &'static str, buckets: &[f64]| {
            seconds(&meter, name, text, buckets)
        };
        Self {
            requests: seconds(
                "mcp.server.operation.duration",
                "Duration of MCP requests",
                &BUCKETS,
            ),
            calls: seconds(
                "http.client.request.duration",
                "Duration of calls to the Exa API",
                &HTTP_BUCKETS,
            ),
            tokens: meter
                .u64_counter("exa_mcp.result.tokens")
                .with_unit("{token}")
                .with_description("Estimated tokens of tool results")
                .build(),
            answer_tokens: meter
                .u64_counter("exa_mcp.answer.tokens")
                .with_unit("{token}")
                .with_description("Deprecated, removed in 0.3: use exa_mcp.result.tokens")
                .build(),
            cache_hits: meter
                .u64_counter("exa_mcp.cache.hits")
                .with_unit("{result}")
                .with_description("Tool results served from the cache")
                .build(),
            dollars: meter
                .f64_counter("exa_mcp.cost")
                .with_unit("{USD}")
                .with_description("Cost charged by Exa in dollars")
                .build(),
        }
    }

    /// Records a tool result.
    pub(super) fn record_result(&self, tokens: u64, dollars: f64, cached: bool) {
        self.tokens.add(tokens, &[]);
        self.answer_tokens.add(tokens, &[]);
        if cached {
            self.cache_hits.add(1, &[]);
        } else {
            self.dollars.add(dollars, &[]);
        }
    }
}

fn seconds(
    meter: &Meter,
    name: &'static str,
    text: &'static str,
    buckets: &[f64],
) -> Histogram<f64> {
    meter
        .f64_histogram(name)
        .with_unit("s")
        .with_description(text)
        .with_boundaries(buckets.to_vec())
        .build()
}

//! Numbers for a collector, under the names of the conventions where they have some.

use opentelemetry::InstrumentationScope;
use opentelemetry::metrics::{Counter, Histogram, Meter, MeterProvider};
use opentelemetry_sdk::metrics::SdkMeterProvider;

use super::super::metrics::STEPS;

/// The steps that the conventions for HTTP name, in seconds, and more for Exa's long work.
const HTTP_STEPS: [f64; 17] = [
    0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 30.0, 60.0,
    120.0,
];

/// The numbers that are counted here.
pub(super) struct Numbers {
    /// How long requests of MCP took.
    pub(super) requests: Histogram<f64>,
    /// How long calls of Exa took.
    pub(super) calls: Histogram<f64>,
    tokens: Counter<u64>,
    cache_hits: Counter<u64>,
    dollars: Counter<f64>,
}

impl Numbers {
    pub(super) fn new(provider: &SdkMeterProvider, scope: InstrumentationScope) -> Self {
        let meter = provider.meter_with_scope(scope);
        let seconds = |name: &'static str, text: &'static str, steps: &[f64]| {
            seconds(&meter, name, text, steps)
        };
        Self {
            requests: seconds(
                "mcp.server.operation.duration",
                "How long requests of MCP took",
                &STEPS,
            ),
            calls: seconds(
                "http.client.request.duration",
                "How long calls of the Exa API took",
                &HTTP_STEPS,
            ),
            tokens: meter
                .u64_counter("exa_mcp.answer.tokens")
                .with_unit("{token}")
                .with_description("Tokens of answers, as estimated")
                .build(),
            cache_hits: meter
                .u64_counter("exa_mcp.cache.hits")
                .with_unit("{answer}")
                .with_description("Answers out of the cache")
                .build(),
            dollars: meter
                .f64_counter("exa_mcp.cost")
                .with_unit("{USD}")
                .with_description("What Exa charged, in dollars")
                .build(),
        }
    }

    /// An answer left, with this much in it.
    pub(super) fn told(&self, tokens: u64, dollars: f64, cached: bool) {
        self.tokens.add(tokens, &[]);
        if cached {
            self.cache_hits.add(1, &[]);
        } else {
            self.dollars.add(dollars, &[]);
        }
    }
}

fn seconds(meter: &Meter, name: &'static str, text: &'static str, steps: &[f64]) -> Histogram<f64> {
    meter
        .f64_histogram(name)
        .with_unit("s")
        .with_description(text)
        .with_boundaries(steps.to_vec())
        .build()
}

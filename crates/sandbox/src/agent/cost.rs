//! Usage and cost of an agent run by Exa's published prices.

use exa_mcp_model::MicroDollars;
use serde_json::{Map, Value, json};

use crate::json::{list, text};
use crate::rng::Rng;

/// Prices in millionths of a dollar.
const COMPUTE_UNIT: u64 = 100_000;
const SEARCH: u64 = 5_000;

/// Prices of one call of each data source.
const SOURCE_PRICES: [(&str, u64); 9] = [
    ("fiber", 20_000),
    ("financial_datasets", 10_000),
    ("similarweb", 300_000),
    ("baselayer", 150_000),
    ("affiliate", 15_000),
    ("particle", 15_000),
    ("jinko", 5_000),
    ("polymarket", 0),
    ("macrobond", 0),
];

/// Maximum compute units of a metered run, in tenths of a unit; high enough that some runs reach
/// their cap.
const MAX_TENTHS: u64 = 800;

/// What a run has used and cost so far.
pub(super) struct RunCost {
    /// Tenths of a compute unit.
    tenths: u64,
    searches: u64,
    /// Calls and cost by provider.
    sources: Vec<(String, u64, u64)>,
    compute: u64,
    search: u64,
    pub(super) total: MicroDollars,
    /// Whether a metered run has used its budget up.
    pub(super) reached_budget: bool,
}

/// Returns usage and cost of a run after some of its stages.
pub(super) fn of_run(
    request: &Value,
    query: &str,
    effort: &str,
    stage: u64,
    stages: u64,
) -> RunCost {
    let done = stage.min(stages);
    let tenths = Rng::new(0, &["compute", query, effort]).between(1, MAX_TENTHS);
    let tenths = tenths * done / stages.max(1);
    let mut reached_budget = false;
    let (compute, search) = match fixed_price(effort) {
        // A fixed price is charged when the run starts.
        Some(price) => (if done > 0 { price } else { 0 }, 0),
        None => {
            let cap = cost_cap(request, effort);
            let search = (done * SEARCH).min(cap);
            let compute = (tenths * COMPUTE_UNIT) / 10;
            reached_budget = compute + search >= cap;
            (compute.min(cap - search), search)
        }
    };
    let calls = done.min(1);
    let providers = list(request, "dataSources")
        .iter()
        .map(|source| text(source, "provider"));
    let sources: Vec<_> = providers
        .map(|provider| (provider.to_owned(), calls, calls * source_price(provider)))
        .collect();
    let on_top: u64 = sources.iter().map(|(_, _, cost)| cost).sum();
    RunCost {
        tenths,
        searches: done,
        sources,
        compute,
        search,
        total: MicroDollars::new(compute + search + on_top),
        reached_budget,
    }
}

impl RunCost {
    pub(super) fn usage(&self) -> Value {
        let calls = self
            .sources
            .iter()
            .map(|(name, calls, _)| (name.clone(), (*calls).into()));
        json!({
            "agentComputeUnits": dollars(self.tenths * 100_000),
            "searches": self.searches,
            "emails": 0,
            "phoneNumbers": 0,
            "dataSources": calls.collect::<Map<String, Value>>(),
        })
    }

    pub(super) fn dollars(&self) -> Value {
        let costs = self
            .sources
            .iter()
            .map(|(name, _, cost)| (name.clone(), dollars(*cost).into()));
        json!({
            "total": self.total.dollars(),
            "agentCompute": dollars(self.compute),
            "search": dollars(self.search),
            "emails": 0,
            "phoneNumbers": 0,
            "dataSources": costs.collect::<Map<String, Value>>(),
        })
    }
}

/// Whether the price of an effort depends on what a run uses.
pub(super) fn is_metered(effort: &str) -> bool {
    fixed_price(effort).is_none()
}

fn fixed_price(effort: &str) -> Option<u64> {
    match effort {
        "minimal" => Some(12_000),
        "low" => Some(25_000),
        "medium" => Some(100_000),
        "high" => Some(500_000),
        "xhigh" => Some(1_000_000),
        _ => None,
    }
}

/// Returns the price of one call of a data source.
fn source_price(provider: &str) -> u64 {
    let mut prices = SOURCE_PRICES.iter();
    let price = prices.find(|(name, _)| *name == provider);
    price.map_or(0, |(_, price)| *price)
}

/// Whether there is a data source of this provider.
pub(super) fn is_provider(name: &str) -> bool {
    SOURCE_PRICES.iter().any(|(provider, _)| *provider == name)
}

/// Returns the maximum cost of a metered run.
fn cost_cap(request: &Value, effort: &str) -> u64 {
    let default = if matches!(effort, "ultra" | "max") {
        20.0
    } else {
        5.0
    };
    let given = request.pointer("/budget/maxCostDollars");
    let dollars = given.and_then(Value::as_f64).unwrap_or(default);
    // A cast from a float saturates at both ends.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let micro = (dollars * 1_000_000.0).floor() as u64;
    micro
}

fn dollars(micro: u64) -> f64 {
    MicroDollars::new(micro).dollars()
}

//! Estimates the highest cost of a call before it is made.
//!
//! The prices are data: `data-design/prices.yaml`, checked and compiled in by the generator. An estimate is an
//! upper bound of the published part of the cost. Missing and malformed arguments count as the most expensive value.

mod recurring;
#[cfg(test)]
#[allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used)]
mod tests;

use serde_json::{Map, Value};

use exa_mcp_generated::tools::PRICES;
use exa_mcp_model::Operation;
use exa_mcp_model::price::{
    BasePrice, ContentPrice, CountArgument, PagePrices, Price, PriceRule, Rate, RunSchedule,
};
pub use exa_mcp_model::{MicroDollars, price::CostSource};
pub use recurring::Recurring;

/// The highest plausible cost of one call. Sums of it stay far below the largest number that a store can count.
const MAX_ACTUAL: MicroDollars = MicroDollars::new(1_000_000_000_000);

/// The estimated cost of a call, and how its actual cost becomes known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Estimate {
    /// The upper bound of the known part of the cost.
    pub worst: MicroDollars,
    /// Some or all of the cost is unknown.
    pub unpriced: bool,
    /// Where the actual cost is read, see [`actual`].
    pub charged: CostSource,
    /// The recurring cost that the call sets up.
    pub recurring: Option<Recurring>,
}

impl Estimate {
    const FREE: Self = Self {
        worst: MicroDollars::ZERO,
        unpriced: false,
        charged: CostSource::Nothing,
        recurring: None,
    };
}

/// Estimates the cost of a call from its validated arguments.
pub fn estimate(operation: &Operation, arguments: &Map<String, Value>) -> Estimate {
    match price(operation) {
        Some(Price::Free) => Estimate::FREE,
        Some(Price::Priced(rule)) => by_rule(rule, arguments),
        Some(Price::Unpriced(price)) => Estimate {
            unpriced: true,
            charged: price.charged,
            recurring: price.schedule.as_ref().and_then(|schedule| {
                recurring::recurring(schedule, arguments, MicroDollars::ZERO, true)
            }),
            ..Estimate::FREE
        },
        None => Estimate {
            unpriced: true,
            charged: CostSource::InResponse,
            ..Estimate::FREE
        },
    }
}

/// Returns the price of an operation; `None` if `prices.yaml` does not list it.
pub fn price(operation: &Operation) -> Option<&'static Price> {
    PRICES.operations.get(operation.name)
}

/// Returns whether the price of a request includes a kind of content for the first pages.
pub fn is_included(operation: &Operation, path: &str) -> bool {
    let Some(Price::Priced(rule)) = price(operation) else {
        return false;
    };
    let kinds = rule.pages.iter().flat_map(|pages| &pages.kinds);
    let mut kinds = kinds.filter(|kind| kind.argument.as_deref() == Some(path));
    kinds.any(|kind| kind.included > 0)
}

/// Returns what a call of an operation costs, in a few words.
pub fn cost_in_words(operation: &Operation) -> String {
    let price = price(operation);
    price.map_or_else(|| "no published price".to_owned(), Price::in_words)
}

/// Returns the cost that a response, or the state of a run, reports.
pub fn actual(response: &Value) -> Option<MicroDollars> {
    let (parent, field) = PRICES.cost.rsplit_once('.').unwrap_or((&PRICES.cost, ""));
    let found = parent
        .split('.')
        .try_fold(response, |value, name| value.get(name))?;
    // Some responses contain the total directly, others an object with its parts.
    let value = if found.is_number() {
        found
    } else {
        found.get(field)?
    };
    let dollars = value.as_f64().filter(|dollars| *dollars >= 0.0)?;
    let cost = MicroDollars::from_dollars(dollars);
    if cost > MAX_ACTUAL {
        tracing::warn!(
            dollars,
            "a response reports an implausible cost; {MAX_ACTUAL} is charged"
        );
    }
    Some(cost.min(MAX_ACTUAL))
}

fn by_rule(rule: &PriceRule, arguments: &Map<String, Value>) -> Estimate {
    let (base, base_unpriced) = base(rule.base.as_ref(), arguments);
    let pages = rule.pages.as_ref().map(|rule| pages(rule, arguments));
    let worst = base.saturating_add(pages.unwrap_or_default());
    let extra = rule
        .unpriced_with
        .iter()
        .any(|path| is_given(arguments, path));
    let unpriced = base_unpriced || extra;
    let Some(schedule) = &rule.schedule else {
        return Estimate {
            worst,
            unpriced,
            charged: rule.charged,
            recurring: None,
        };
    };
    Estimate {
        recurring: recurring::recurring(schedule, arguments, worst, unpriced),
        ..Estimate::FREE
    }
}

/// Returns the price of the request, and whether a part of it is unknown.
fn base(base: Option<&BasePrice>, arguments: &Map<String, Value>) -> (MicroDollars, bool) {
    let (argument, default, rates) = match base {
        None => return (MicroDollars::ZERO, false),
        Some(BasePrice::Fixed(price)) => return (*price, false),
        Some(BasePrice::ByValue {
            argument,
            default,
            rates,
        }) => (argument, default, rates),
    };
    let most_expensive = || {
        rates
            .values()
            .flatten()
            .map(|rate| self::rate(rate, arguments))
            .max()
            .unwrap_or_default()
    };
    let requested = match at(arguments, argument) {
        None => Some(default.as_str()),
        Some(value) => value.as_str(),
    };
    match requested.and_then(|value| rates.get(value)) {
        Some(Some(rate)) => (self::rate(rate, arguments), false),
        Some(None) => (most_expensive(), true),
        None => (most_expensive(), rates.values().any(Option::is_none)),
    }
}

fn rate(rate: &Rate, arguments: &Map<String, Value>) -> MicroDollars {
    match rate {
        Rate::Fixed(price) => *price,
        Rate::Metered {
            cap,
            default,
            least,
            most,
        } => match at(arguments, cap) {
            None => *default,
            // Exa rejects a cap above the maximum; the estimate does not rely on that.
            Some(value) => number(value).map_or(*most, |dollars| {
                MicroDollars::from_dollars(dollars).max(*least)
            }),
        },
    }
}

fn pages(rule: &PagePrices, arguments: &Map<String, Value>) -> MicroDollars {
    let count = match &rule.count {
        Some(count) => self::count(count, arguments),
        None => {
            let lengths = rule
                .lists
                .iter()
                .filter_map(|path| at(arguments, path).map(length));
            lengths.fold(0, u64::saturating_add)
        }
    };
    let requested: Vec<&ContentPrice> = rule
        .kinds
        .iter()
        .filter(|kind| is_requested(kind, arguments))
        .collect();
    let beyond = |included: u64| count.saturating_sub(included);
    let results = rule.each.saturating_mul(beyond(rule.included));
    let contents = if requested.is_empty() {
        rule.unasked.saturating_mul(count)
    } else {
        let kinds = requested
            .iter()
            .map(|kind| kind.each.saturating_mul(beyond(kind.included)));
        kinds.sum()
    };
    let subpages = rule
        .subpages
        .as_ref()
        .map_or(0, |it| self::count(it, arguments));
    // A subpage has at least one kind of content.
    let most_expensive = rule.kinds.iter().map(|kind| kind.each).max();
    let subpage = requested.iter().map(|kind| kind.each).sum::<MicroDollars>();
    let subpage = subpage.max(most_expensive.unwrap_or_default());
    let below = subpage.saturating_mul(count.saturating_mul(subpages));
    [results, contents, below].into_iter().sum()
}

fn is_requested(kind: &ContentPrice, arguments: &Map<String, Value>) -> bool {
    let value = kind.argument.as_ref().and_then(|path| get(arguments, path));
    match value {
        None => kind.assumed,
        Some(Value::Null | Value::Bool(false)) => false,
        Some(_) => true,
    }
}

/// Returns whether an argument is set: `false`, `null` and an empty list do not count.
fn is_given(arguments: &Map<String, Value>, path: &str) -> bool {
    match at(arguments, path) {
        None | Some(Value::Bool(false)) => false,
        Some(Value::Array(list)) => !list.is_empty(),
        Some(_) => true,
    }
}

fn count(rule: &CountArgument, arguments: &Map<String, Value>) -> u64 {
    let Some(value) = rule.argument.as_ref().and_then(|path| at(arguments, path)) else {
        return rule.default;
    };
    // A cast from a float saturates at both ends.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let number = number(value)
        .filter(|number| *number >= 0.0)
        .map(|number| number.ceil() as u64);
    number
        .filter(|number| *number >= rule.least)
        .unwrap_or(rule.most)
}

/// Parses a number, which may be written as text.
fn number(value: &Value) -> Option<f64> {
    let number = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    number.filter(|number| !number.is_nan())
}

/// Returns the number of entries of a list; text may be a list separated by commas, spaces or line breaks.
fn length(value: &Value) -> u64 {
    let entries = match value {
        Value::Array(list) => list.len(),
        Value::String(text) => 1 + text.matches([',', '\n', ' ']).count(),
        Value::Object(map) => map.len().max(1),
        _ => 1,
    };
    u64::try_from(entries).unwrap_or(u64::MAX)
}

/// Returns the value at a dotted path, unless it is `null`.
fn at<'a>(arguments: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    get(arguments, path).filter(|value| !value.is_null())
}

/// Returns the value at a dotted path, including `null`.
fn get<'a>(arguments: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    let mut names = path.split('.');
    let first = arguments.get(names.next()?)?;
    names.try_fold(first, |value, name| value.get(name))
}

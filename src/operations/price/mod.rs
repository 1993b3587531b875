//! What a call can cost at most, before it is made.
//!
//! The prices are data: `data-design/prices.yaml`, checked and compiled in by the generator. An estimate
//! is an upper bound of the published part of the cost. What the arguments leave open, and what
//! they say in a way that cannot be read, counts as the dearest that it can be.

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

/// The highest cost of one call that is believed. Nothing costs that much, and sums of it stay far below the largest
/// number that a store can count.
const MOST_ACTUAL: MicroDollars = MicroDollars::new(1_000_000_000_000);

/// What a call can cost, and how its actual cost becomes known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Estimate {
    /// The most that the known part of the cost can be.
    pub worst: MicroDollars,
    /// Some or all of the cost is unknown.
    pub unpriced: bool,
    /// Where the actual cost is read, see [`actual`].
    pub charged: CostSource,
    /// What the call sets up to be charged again and again.
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

/// Estimates a call from its arguments as they are sent: with the names of the schema.
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

/// What an operation costs; `None` for one that `prices.yaml` does not have.
pub fn price(operation: &Operation) -> Option<&'static Price> {
    PRICES.operations.get(operation.name)
}

/// The cost that a response, or the state of a run, reports.
pub fn actual(response: &Value) -> Option<MicroDollars> {
    let (place, field) = PRICES.cost.rsplit_once('.').unwrap_or((&PRICES.cost, ""));
    let found = place
        .split('.')
        .try_fold(response, |value, name| value.get(name))?;
    // Some responses hold the total itself where others hold its parts.
    let value = if found.is_number() {
        found
    } else {
        found.get(field)?
    };
    let dollars = value.as_f64().filter(|dollars| *dollars >= 0.0)?;
    let cost = MicroDollars::from_dollars(dollars);
    if cost > MOST_ACTUAL {
        tracing::warn!(
            dollars,
            "a response reports a cost that cannot be true; {MOST_ACTUAL} is counted"
        );
    }
    Some(cost.min(MOST_ACTUAL))
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

/// The price of the request, and whether some of it is unknown.
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
    let dearest = || {
        rates
            .values()
            .flatten()
            .map(|rate| self::rate(rate, arguments))
            .max()
            .unwrap_or_default()
    };
    let wanted = match at(arguments, argument) {
        None => Some(default.as_str()),
        Some(value) => value.as_str(),
    };
    match wanted.and_then(|value| rates.get(value)) {
        Some(Some(rate)) => (self::rate(rate, arguments), false),
        Some(None) => (dearest(), true),
        None => (dearest(), rates.values().any(Option::is_none)),
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
            // A cap above the highest is refused by Exa; the estimate does not rely on that.
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
    let asked: Vec<&ContentPrice> = rule
        .kinds
        .iter()
        .filter(|kind| is_asked(kind, arguments))
        .collect();
    let beyond = |included: u64| count.saturating_sub(included);
    let results = rule.each.saturating_mul(beyond(rule.included));
    let contents = if asked.is_empty() {
        rule.unasked.saturating_mul(count)
    } else {
        let kinds = asked
            .iter()
            .map(|kind| kind.each.saturating_mul(beyond(kind.included)));
        kinds.sum()
    };
    let subpages = rule
        .subpages
        .as_ref()
        .map_or(0, |it| self::count(it, arguments));
    // A subpage has at least one kind of content.
    let dearest = rule.kinds.iter().map(|kind| kind.each).max();
    let subpage = asked.iter().map(|kind| kind.each).sum::<MicroDollars>();
    let subpage = subpage.max(dearest.unwrap_or_default());
    let below = subpage.saturating_mul(count.saturating_mul(subpages));
    [results, contents, below].into_iter().sum()
}

fn is_asked(kind: &ContentPrice, arguments: &Map<String, Value>) -> bool {
    let value = kind
        .argument
        .as_ref()
        .and_then(|path| look(arguments, path));
    match value {
        None => kind.assumed,
        Some(Value::Null | Value::Bool(false)) => false,
        Some(_) => true,
    }
}

/// Whether an argument asks for something: `false`, `null` and an empty list do not.
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

/// A number, also where it is written as text.
fn number(value: &Value) -> Option<f64> {
    let number = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    number.filter(|number| !number.is_nan())
}

/// How many entries a list has; text may be a list that is written with commas or line ends.
fn length(value: &Value) -> u64 {
    let entries = match value {
        Value::Array(list) => list.len(),
        Value::String(text) => 1 + text.matches([',', '\n', ' ']).count(),
        Value::Object(map) => map.len().max(1),
        _ => 1,
    };
    u64::try_from(entries).unwrap_or(u64::MAX)
}

/// The value at a dotted path; `null` is no value.
fn at<'a>(arguments: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    look(arguments, path).filter(|value| !value.is_null())
}

/// The value at a dotted path, `null` included.
fn look<'a>(arguments: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    let mut names = path.split('.');
    let first = arguments.get(names.next()?)?;
    names.try_fold(first, |value, name| value.get(name))
}

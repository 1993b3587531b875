//! Reads `prices.yaml` and checks it against the existing operations.

use std::collections::BTreeMap;

use exa_mcp_model::price::{
    BasePrice, CostSource, Price, PriceList, PriceRule, Rate, RunSchedule, Unpriced,
};
use serde::Deserialize;
use serde_json::Value;

use crate::error::{Notice, Result};
use crate::load::{Document, escape};
use crate::model::Operation;
use crate::surface_check::{has_property, schemas_at};

/// The highest plausible price in dollars; anything above is a typing error.
const MAX_PRICE: f64 = 1_000.0;

/// Keys of a rule whose numbers are not amounts.
const COUNTS: &[&str] = &["count", "included", "subpages"];

/// The contents of `prices.yaml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceFile {
    /// The date when the prices were last compared with their sources. Required, but not used.
    #[serde(rename = "checked")]
    _checked: String,
    /// The currency of all prices.
    pub currency: String,
    /// Dotted path of the field with the cost of a response or of a finished run.
    pub cost: String,
    /// The sources by short name.
    #[serde(default)]
    pub sources: BTreeMap<String, String>,
    /// Operations with a price rule.
    pub priced: BTreeMap<String, PriceRule>,
    /// Operations without a published price.
    pub unpriced: BTreeMap<String, Unpriced>,
    /// Free operations.
    pub free: Vec<String>,
}

/// Assigns a price to every operation and reports mismatches.
///
/// An implausible price is an error. Upstream removals are notices: an operation whose rule names a
/// missing argument is unpriced, like one without a rule.
pub fn read(
    document: &Document,
    operations: &[Operation],
    notices: &mut Vec<Notice>,
) -> Result<PriceList> {
    let file: PriceFile = serde_json::from_value(document.root.clone())
        .map_err(|error| document.error("", error.to_string()))?;
    check_file(document, &file)?;
    let mut prices = BTreeMap::new();
    for (name, pointer, price) in price_entries(&file) {
        let Some(operation) = operations.iter().find(|operation| operation.name == name) else {
            let message = "the operation no longer exists; price ignored";
            notices.push(notice(&name, message.to_owned()));
            continue;
        };
        let price = check_price(&file.cost, operation, operations, price, notices);
        if prices.insert(name.clone(), price).is_some() {
            let message = format!("`{name}` has two prices; remove one of them");
            return Err(document.error(&pointer, message));
        }
    }
    for operation in operations {
        if !prices.contains_key(&operation.name) {
            let message = "the operation has no price; treated as unpriced".to_owned();
            notices.push(notice(&operation.name, message));
            let price = unpriced("not in prices.yaml".to_owned());
            prices.insert(operation.name.clone(), price);
        }
    }
    Ok(PriceList {
        cost: file.cost,
        operations: prices,
    })
}

/// Returns all prices of the file, each with the name of its operation and its JSON pointer.
fn price_entries(file: &PriceFile) -> Vec<(String, String, Price)> {
    let priced = file.priced.iter().map(|(name, rule)| {
        let pointer = format!("/priced/{}", escape(name));
        (name.clone(), pointer, Price::Priced(Box::new(rule.clone())))
    });
    let unpriced = file.unpriced.iter().map(|(name, unpriced)| {
        let pointer = format!("/unpriced/{}", escape(name));
        (name.clone(), pointer, Price::Unpriced(unpriced.clone()))
    });
    let free = file
        .free
        .iter()
        .enumerate()
        .map(|(index, name)| (name.clone(), format!("/free/{index}"), Price::Free));
    priced.chain(unpriced).chain(free).collect()
}

/// Checks the file independently of the operations.
fn check_file(document: &Document, file: &PriceFile) -> Result<()> {
    if file.currency != "USD" {
        let message = format!("prices must be in USD; got `{}`", file.currency);
        return Err(document.error("/currency", message));
    }
    if let Some(priced) = document.root.get("priced") {
        check_amounts(document, "/priced", priced)?;
    }
    for (name, rule) in &file.priced {
        let pointer = |field: &str| format!("/priced/{}/{field}", escape(name));
        check_rule(document, file, rule, pointer)?;
    }
    Ok(())
}

/// Rejects the first number at or below `pointer` that cannot be a price.
fn check_amounts(document: &Document, pointer: &str, value: &Value) -> Result<()> {
    match value {
        Value::Number(number) => {
            let dollars = number.as_f64().unwrap_or(f64::NAN);
            if !(0.0..=MAX_PRICE).contains(&dollars) {
                let message =
                    format!("must be a price from 0 to {MAX_PRICE} dollars; got {dollars}");
                return Err(document.error(pointer, message));
            }
            Ok(())
        }
        Value::Array(list) => list.iter().enumerate().try_for_each(|(index, value)| {
            check_amounts(document, &format!("{pointer}/{index}"), value)
        }),
        Value::Object(map) => map
            .iter()
            .filter(|(key, _)| !COUNTS.contains(&key.as_str()))
            .try_for_each(|(key, value)| {
                check_amounts(document, &format!("{pointer}/{}", escape(key)), value)
            }),
        _ => Ok(()),
    }
}

fn check_rule(
    document: &Document,
    file: &PriceFile,
    rule: &PriceRule,
    pointer: impl Fn(&str) -> String,
) -> Result<()> {
    for source in &rule.source {
        if !file.sources.contains_key(source) {
            let message = format!("unknown source `{source}`");
            return Err(document.error(&pointer("source"), message));
        }
    }
    let outside_limits = || "the default must be between `least` and `most`".to_owned();
    if let Some(BasePrice::ByValue { default, rates, .. }) = &rule.base {
        if !rates.contains_key(default) {
            let message = format!("the default `{default}` has no price");
            return Err(document.error(&pointer("base/default"), message));
        }
        for (value, rate) in rates {
            if let Some(Rate::Metered {
                default,
                least,
                most,
                ..
            }) = rate
                && !(least..=most).contains(&default)
            {
                let field = format!("base/prices/{value}");
                return Err(document.error(&pointer(&field), outside_limits()));
            }
        }
    }
    if let Some(pages) = &rule.pages {
        if pages.count.is_some() != pages.lists.is_empty() {
            let message = "must have either `count` or `lists`".to_owned();
            return Err(document.error(&pointer("pages"), message));
        }
        for count in [&pages.count, &pages.subpages].into_iter().flatten() {
            if !(count.least..=count.most).contains(&count.default) {
                return Err(document.error(&pointer("pages"), outside_limits()));
            }
        }
    }
    Ok(())
}

/// Returns the price, or an unpriced entry if the operation no longer fits it.
fn check_price(
    cost: &str,
    operation: &Operation,
    operations: &[Operation],
    price: Price,
    notices: &mut Vec<Notice>,
) -> Price {
    let (paths, charged) = match &price {
        Price::Free => return price,
        Price::Priced(rule) => (argument_paths(rule), rule.charged),
        Price::Unpriced(unpriced) => {
            let path = unpriced.schedule.as_ref().map(RunSchedule::argument);
            (path.into_iter().collect(), unpriced.charged)
        }
    };
    let problem = paths
        .iter()
        .find(|path| schemas_at(&operation.input_schema, path).is_empty())
        .map(|path| format!("the operation has no argument `{path}`"))
        .or_else(|| match charged {
            CostSource::AtEndOfJob => cost_problem(cost, operation, operations),
            CostSource::InResponse | CostSource::Nothing => None,
        });
    let Some(problem) = problem else {
        return price;
    };
    notices.push(notice(
        &operation.name,
        format!("{problem}; treated as unpriced"),
    ));
    unpriced(problem)
}

fn unpriced(why: String) -> Price {
    Price::Unpriced(Unpriced {
        why,
        ..Unpriced::default()
    })
}

/// Returns every argument path that a rule names, sorted.
fn argument_paths(rule: &PriceRule) -> Vec<&str> {
    let mut paths: Vec<&str> = rule.unpriced_with.iter().map(String::as_str).collect();
    if let Some(BasePrice::ByValue {
        argument, rates, ..
    }) = &rule.base
    {
        paths.push(argument);
        paths.extend(rates.values().filter_map(|rate| match rate {
            Some(Rate::Metered { cap, .. }) => Some(cap.as_str()),
            _ => None,
        }));
    }
    if let Some(pages) = &rule.pages {
        let counts = [&pages.count, &pages.subpages].into_iter().flatten();
        let counts = counts.map(|count| &count.argument);
        let kinds = pages.kinds.iter().map(|kind| &kind.argument);
        let arguments = counts.chain(kinds).flatten();
        paths.extend(arguments.chain(&pages.lists).map(String::as_str));
    }
    paths.extend(rule.schedule.as_ref().map(RunSchedule::argument));
    paths.sort_unstable();
    paths
}

/// Returns why the cost of a run cannot be read when it ends, if so.
fn cost_problem(cost: &str, operation: &Operation, operations: &[Operation]) -> Option<String> {
    let Some(marker) = &operation.behavior.long_running else {
        return Some("the operation no longer starts a run that can be polled".to_owned());
    };
    let field = cost.split('.').next().unwrap_or_default();
    let get = operations.iter().find(|other| other.name == marker.get);
    let has_cost = get.is_some_and(|get| has_property(&get.output_schema, field));
    (!has_cost).then(|| format!("the response of `{}` has no field `{field}`", marker.get))
}

fn notice(operation: &str, message: String) -> Notice {
    Notice {
        file: "prices.yaml".to_owned(),
        location: operation.to_owned(),
        message,
    }
}

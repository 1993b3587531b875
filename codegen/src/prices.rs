//! `prices.yaml`: what the operations cost, held against the operations that exist.

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

/// The dearest figure that is no slip of the keyboard, in dollars.
const DEAREST: f64 = 1_000.0;

/// Keys of a rule whose numbers are no amounts.
const COUNTS: &[&str] = &["count", "included", "subpages"];

/// The whole file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceFile {
    /// The day on which the figures were last compared with their sources.
    pub checked: String,
    /// The currency of all figures.
    pub currency: String,
    /// Dotted path of the field that holds the cost of a response or of a finished run.
    pub cost: String,
    /// What the short names of sources stand for.
    #[serde(default)]
    pub sources: BTreeMap<String, String>,
    /// Operations with a rule.
    pub priced: BTreeMap<String, PriceRule>,
    /// Operations whose price nobody publishes.
    pub unpriced: BTreeMap<String, Unpriced>,
    /// Operations that cost nothing.
    pub free: Vec<String>,
}

/// Gives every operation its price, and reports what does not fit.
///
/// A figure that cannot be a price is an error. What upstream took away is a notice: an operation
/// whose rule names an argument that is gone counts as unpriced, like one without a rule.
pub fn read(
    document: &Document,
    operations: &[Operation],
    notices: &mut Vec<Notice>,
) -> Result<PriceList> {
    let file: PriceFile = serde_json::from_value(document.root.clone())
        .map_err(|error| document.error("", error.to_string()))?;
    check_file(document, &file)?;
    let mut prices = BTreeMap::new();
    for (name, place, price) in entries(&file) {
        let Some(operation) = operations.iter().find(|operation| operation.name == name) else {
            let text = "no such operation any more; its price was left out";
            notices.push(notice(&name, text.to_owned()));
            continue;
        };
        let price = fitting(&file.cost, operation, operations, price, notices);
        if prices.insert(name.clone(), price).is_some() {
            let message = format!("`{name}` has a second price here; keep one of them");
            return Err(document.error(&place, message));
        }
    }
    for operation in operations {
        if !prices.contains_key(&operation.name) {
            let text = "the operation has no price; it counts as unpriced".to_owned();
            notices.push(notice(&operation.name, text));
            let price = unpriced("not in prices.yaml".to_owned());
            prices.insert(operation.name.clone(), price);
        }
    }
    Ok(PriceList {
        cost: file.cost,
        operations: prices,
    })
}

/// All prices of the file, each with the name of its operation and its place.
fn entries(file: &PriceFile) -> Vec<(String, String, Price)> {
    let priced = file.priced.iter().map(|(name, rule)| {
        let place = format!("/priced/{}", escape(name));
        (name.clone(), place, Price::Priced(Box::new(rule.clone())))
    });
    let unpriced = file.unpriced.iter().map(|(name, unpriced)| {
        let place = format!("/unpriced/{}", escape(name));
        (name.clone(), place, Price::Unpriced(unpriced.clone()))
    });
    let free = file
        .free
        .iter()
        .enumerate()
        .map(|(index, name)| (name.clone(), format!("/free/{index}"), Price::Free));
    priced.chain(unpriced).chain(free).collect()
}

/// What is wrong whatever the operations are.
fn check_file(document: &Document, file: &PriceFile) -> Result<()> {
    if file.currency != "USD" {
        let message = format!("prices are in USD; got `{}`", file.currency);
        return Err(document.error("/currency", message));
    }
    if let Some(priced) = document.root.get("priced") {
        check_amounts(document, "/priced", priced)?;
    }
    for (name, rule) in &file.priced {
        let place = |field: &str| format!("/priced/{}/{field}", escape(name));
        check_rule(document, file, rule, place)?;
    }
    Ok(())
}

/// Reports the first number at or below a place that cannot be an amount.
fn check_amounts(document: &Document, place: &str, value: &Value) -> Result<()> {
    match value {
        Value::Number(number) => {
            let dollars = number.as_f64().unwrap_or(f64::NAN);
            if !(0.0..=DEAREST).contains(&dollars) {
                let message = format!("must be a price from 0 to {DEAREST} dollars; got {dollars}");
                return Err(document.error(place, message));
            }
            Ok(())
        }
        Value::Array(list) => list.iter().enumerate().try_for_each(|(index, value)| {
            check_amounts(document, &format!("{place}/{index}"), value)
        }),
        Value::Object(map) => map
            .iter()
            .filter(|(key, _)| !COUNTS.contains(&key.as_str()))
            .try_for_each(|(key, value)| {
                check_amounts(document, &format!("{place}/{}", escape(key)), value)
            }),
        _ => Ok(()),
    }
}

fn check_rule(
    document: &Document,
    file: &PriceFile,
    rule: &PriceRule,
    place: impl Fn(&str) -> String,
) -> Result<()> {
    for source in &rule.source {
        if !file.sources.contains_key(source) {
            let message = format!("`{source}` is not one of the sources");
            return Err(document.error(&place("source"), message));
        }
    }
    let outside = || "the default must lie between `least` and `most`".to_owned();
    if let Some(BasePrice::ByValue { default, rates, .. }) = &rule.base {
        if !rates.contains_key(default) {
            let message = format!("the default `{default}` has no price");
            return Err(document.error(&place("base/default"), message));
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
                return Err(document.error(&place(&field), outside()));
            }
        }
    }
    if let Some(pages) = &rule.pages {
        if pages.count.is_some() != pages.lists.is_empty() {
            let message = "must have either `count` or `lists`".to_owned();
            return Err(document.error(&place("pages"), message));
        }
        for count in [&pages.count, &pages.subpages].into_iter().flatten() {
            if !(count.least..=count.most).contains(&count.default) {
                return Err(document.error(&place("pages"), outside()));
            }
        }
    }
    Ok(())
}

/// The price, as far as the operation still is what the price was written for.
fn fitting(
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
        .map(|path| format!("the operation has no argument `{path}` any more"))
        .or_else(|| match charged {
            CostSource::AtEndOfRun => cost_problem(cost, operation, operations),
            CostSource::InResponse | CostSource::Nothing => None,
        });
    let Some(problem) = problem else {
        return price;
    };
    notices.push(notice(
        &operation.name,
        format!("{problem}; it counts as unpriced"),
    ));
    unpriced(problem)
}

fn unpriced(why: String) -> Price {
    Price::Unpriced(Unpriced {
        why,
        ..Unpriced::default()
    })
}

/// Every argument path that a rule names, sorted.
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

/// Why the cost of a run cannot be read at its end.
fn cost_problem(cost: &str, operation: &Operation, operations: &[Operation]) -> Option<String> {
    let Some(marker) = &operation.behavior.long_running else {
        return Some("the operation starts nothing that can be followed any more".to_owned());
    };
    let field = cost.split('.').next().unwrap_or_default();
    let get = operations.iter().find(|other| other.name == marker.get);
    let has_cost = get.is_some_and(|get| has_property(&get.output_schema, field));
    (!has_cost).then(|| {
        format!(
            "the answer of `{}` has no field `{field}` any more",
            marker.get
        )
    })
}

fn notice(operation: &str, text: String) -> Notice {
    Notice {
        file: "prices.yaml".to_owned(),
        place: operation.to_owned(),
        text,
    }
}

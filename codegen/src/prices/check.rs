//! Holds the prices against the operations that exist.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Base, Charged, Price, Prices, Rate, Rule, Unpriced};
use crate::error::{Notice, Result};
use crate::load::{Document, escape};
use crate::model::Operation;
use crate::surface_check::has_property;

/// The dearest figure that is no slip of the keyboard, in dollars.
const DEAREST: f64 = 1_000.0;

/// Gives every operation its price, and reports what does not fit.
///
/// A figure that cannot be a price is an error. What upstream took away is a notice: an operation
/// whose rule names an argument that is gone counts as unpriced, like one without a rule.
pub fn check(
    document: &Document,
    prices: &Prices,
    operations: &[Operation],
    notices: &mut Vec<Notice>,
) -> Result<BTreeMap<String, Price>> {
    check_file(document, prices)?;
    let mut found: BTreeMap<String, Price> = BTreeMap::new();
    let entries = entries(prices);
    for (name, place, price) in entries {
        let Some(operation) = operations.iter().find(|operation| operation.name == name) else {
            let text = "no such operation any more; its price was left out";
            notices.push(notice(&name, text.to_owned()));
            continue;
        };
        let price = fitting(prices, operation, operations, price, notices);
        if found.insert(name.clone(), price).is_some() {
            let message = format!("`{name}` has a second price here; keep one of them");
            return Err(document.error(&place, message));
        }
    }
    for operation in operations {
        if !found.contains_key(&operation.name) {
            let text = "the operation has no price; it counts as unpriced".to_owned();
            notices.push(notice(&operation.name, text));
            let why = "not in prices.yaml".to_owned();
            let unpriced = Unpriced {
                why,
                ..Unpriced::default()
            };
            found.insert(operation.name.clone(), Price::Unpriced(unpriced));
        }
    }
    Ok(found)
}

/// All prices of the file, each with the name of its operation and its place.
fn entries(prices: &Prices) -> Vec<(String, String, Price)> {
    let priced = prices.priced.iter().map(|(name, rule)| {
        let place = format!("/priced/{}", escape(name));
        (name.clone(), place, Price::Priced(Box::new(rule.clone())))
    });
    let unpriced = prices.unpriced.iter().map(|(name, unpriced)| {
        let place = format!("/unpriced/{}", escape(name));
        (name.clone(), place, Price::Unpriced(unpriced.clone()))
    });
    let free = prices
        .free
        .iter()
        .enumerate()
        .map(|(index, name)| (name.clone(), format!("/free/{index}"), Price::Free));
    priced.chain(unpriced).chain(free).collect()
}

/// What is wrong whatever the operations are.
fn check_file(document: &Document, prices: &Prices) -> Result<()> {
    if prices.currency != "USD" {
        let message = format!("prices are in USD; got `{}`", prices.currency);
        return Err(document.error("/currency", message));
    }
    for (name, rule) in &prices.priced {
        let place = |field: &str| format!("/priced/{}/{field}", escape(name));
        for (field, figure) in rule.figures() {
            if !(0.0..=DEAREST).contains(&figure) {
                let message = format!("must be a price from 0 to {DEAREST} dollars; got {figure}");
                return Err(document.error(&place(&field), message));
            }
        }
        check_rule(document, prices, rule, place)?;
    }
    Ok(())
}

fn check_rule(
    document: &Document,
    prices: &Prices,
    rule: &Rule,
    place: impl Fn(&str) -> String,
) -> Result<()> {
    for source in &rule.source {
        if !prices.sources.contains_key(source) {
            let message = format!("`{source}` is not one of the sources");
            return Err(document.error(&place("source"), message));
        }
    }
    if let Some(Base::ByValue(by)) = &rule.base {
        if !by.prices.contains_key(&by.default) {
            let message = format!("the default `{}` has no price", by.default);
            return Err(document.error(&place("base/default"), message));
        }
        for (value, rate) in &by.prices {
            if let Some(Rate::Metered(cap)) = rate
                && !(cap.least <= cap.default && cap.default <= cap.most)
            {
                let message = "the default must lie between `least` and `most`".to_owned();
                return Err(document.error(&place(&format!("base/prices/{value}")), message));
            }
        }
    }
    if let Some(pages) = &rule.pages {
        if pages.count.is_some() != pages.lists.is_empty() {
            let message = "must have either `count` or `lists`".to_owned();
            return Err(document.error(&place("pages"), message));
        }
        for count in [&pages.count, &pages.subpages].into_iter().flatten() {
            if !(count.least <= count.default && count.default <= count.most) {
                let message = "the default must lie between `least` and `most`".to_owned();
                return Err(document.error(&place("pages"), message));
            }
        }
    }
    Ok(())
}

/// The price, as far as the operation still is what the price was written for.
fn fitting(
    prices: &Prices,
    operation: &Operation,
    operations: &[Operation],
    price: Price,
    notices: &mut Vec<Notice>,
) -> Price {
    let (paths, charged) = match &price {
        Price::Free => return price,
        Price::Priced(rule) => (rule.paths(), rule.charged),
        Price::Unpriced(unpriced) => {
            let path = unpriced.schedule.as_ref().map(|schedule| schedule.path());
            (path.into_iter().collect(), unpriced.charged)
        }
    };
    let problem = paths
        .iter()
        .find(|path| !has_path(&operation.input_schema, path))
        .map(|path| format!("the operation has no argument `{path}` any more"))
        .or_else(|| match charged {
            Charged::Response => None,
            Charged::EndOfRun => cost_problem(prices, operation, operations),
        });
    let Some(problem) = problem else {
        return price;
    };
    notices.push(notice(
        &operation.name,
        format!("{problem}; it counts as unpriced"),
    ));
    Price::Unpriced(Unpriced {
        why: problem,
        ..Unpriced::default()
    })
}

/// Why the cost of a run cannot be read at its end.
fn cost_problem(
    prices: &Prices,
    operation: &Operation,
    operations: &[Operation],
) -> Option<String> {
    let Some(marker) = &operation.behavior.long_running else {
        return Some("the operation starts nothing that can be followed any more".to_owned());
    };
    let field = prices.cost.split('.').next().unwrap_or_default();
    let get = operations.iter().find(|other| other.name == marker.get);
    let has_cost = get.is_some_and(|get| has_property(&get.output_schema, field));
    (!has_cost).then(|| {
        format!(
            "the answer of `{}` has no field `{field}` any more",
            marker.get
        )
    })
}

/// Whether a schema can have a value at a dotted path; a schema that says nothing can.
fn has_path(schema: &Value, path: &str) -> bool {
    fn step<'a>(schema: &'a Value, root: &'a Value, name: &str, depth: usize) -> Vec<&'a Value> {
        if depth > 16 {
            return Vec::new();
        }
        let mut found = Vec::new();
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str)
            && let Some(target) = root.pointer(reference.trim_start_matches('#'))
        {
            found.extend(step(target, root, name, depth + 1));
        }
        found.extend(schema.get("properties").and_then(|all| all.get(name)));
        for keyword in ["allOf", "anyOf", "oneOf"] {
            let branches = schema.get(keyword).and_then(Value::as_array);
            for branch in branches.into_iter().flatten() {
                found.extend(step(branch, root, name, depth + 1));
            }
        }
        found
    }
    let mut places = vec![schema];
    for name in path.split('.') {
        let next = places.iter().flat_map(|place| step(place, schema, name, 0));
        places = next.collect();
    }
    !places.is_empty()
}

fn notice(operation: &str, text: String) -> Notice {
    Notice {
        file: "prices.yaml".to_owned(),
        place: operation.to_owned(),
        text,
    }
}

//! Prices in words, for descriptions of operations.

use crate::MicroDollars;
use crate::price::{
    BasePrice, ContentPrice, CostSource, PagePrices, Price, PriceRule, Rate, RunSchedule, Unpriced,
};

impl Price {
    /// Returns what a call costs, in a few words: `$0.007 for up to 10 results, then $0.001 for each`.
    pub fn in_words(&self) -> String {
        match self {
            Self::Free => "free".to_owned(),
            Self::Unpriced(unpriced) => unpriced_words(unpriced),
            Self::Priced(rule) => rule_words(rule),
        }
    }
}

fn unpriced_words(unpriced: &Unpriced) -> String {
    let why = unpriced.why.trim();
    let mut words = match why {
        "" => "no published price".to_owned(),
        why if why.ends_with("credits") => format!("counted in {why}"),
        why => format!("no published price: {why}"),
    };
    if let Some(schedule) = &unpriced.schedule {
        words.push_str(&format!(
            "; again with every run ({})",
            schedule_words(schedule)
        ));
    }
    words
}

fn rule_words(rule: &PriceRule) -> String {
    let base = rule.base.as_ref().map(base_words);
    let pages = rule.pages.as_ref();
    let mut parts = vec![match (base, pages) {
        (Some(base), Some(pages)) => format!("{base}{}", count_words(pages)),
        (Some(base), None) => base,
        (None, _) => String::new(),
    }];
    if let Some(pages) = pages {
        parts.extend(kind_words(pages));
        if pages.unasked > MicroDollars::ZERO {
            parts.push(format!(
                "{} a page without any of them",
                dollars(pages.unasked)
            ));
        }
        if pages.subpages.is_some() {
            parts.push("subpages count as pages".to_owned());
        }
    }
    if !rule.unpriced_with.is_empty() {
        let names = list(rule.unpriced_with.iter());
        parts.push(format!("{names}: more, unpublished"));
    }
    if rule.charged == CostSource::AtEndOfJob {
        parts.push("known when the run ends".to_owned());
    }
    parts.retain(|part| !part.is_empty());
    let words = parts.join("; ");
    match &rule.schedule {
        None => words,
        Some(schedule) => format!(
            "free; each run ({}) costs {words}",
            schedule_words(schedule)
        ),
    }
}

fn schedule_words(schedule: &RunSchedule) -> String {
    format!("as often as `{}` says", schedule.argument())
}

fn base_words(base: &BasePrice) -> String {
    match base {
        BasePrice::Fixed(price) => dollars(*price),
        BasePrice::ByValue {
            argument,
            default,
            rates,
        } => {
            let usual = rates.get(default).and_then(Option::as_ref);
            let usual = usual.map_or_else(|| "unpublished".to_owned(), rate_words);
            let others = || rates.iter().filter(|(value, _)| *value != default);
            let known = || others().filter_map(|(_, rate)| rate.as_ref());
            let fixed = || {
                known().filter_map(|rate| match rate {
                    Rate::Fixed(price) => Some(*price),
                    Rate::Metered { .. } => None,
                })
            };
            let mut ranges = Vec::new();
            if let (Some(least), Some(most)) = (fixed().min(), fixed().max()) {
                ranges.push(if least == most {
                    dollars(least)
                } else {
                    format!("{} to {}", dollars(least), dollars(most))
                });
            }
            for rate in known().filter(|rate| matches!(rate, Rate::Metered { .. })) {
                let words = rate_words(rate);
                if !ranges.contains(&words) {
                    ranges.push(words);
                }
            }
            if others().any(|(_, rate)| rate.is_none()) {
                ranges.push("unpublished for some".to_owned());
            }
            if ranges.is_empty() {
                return usual;
            }
            let ranges = ranges.join(" or ");
            format!("{usual} (`{argument}` {default}; other values {ranges})")
        }
    }
}

fn rate_words(rate: &Rate) -> String {
    match rate {
        Rate::Fixed(price) => dollars(*price),
        Rate::Metered { cap, default, .. } => {
            format!("up to `{cap}`, by default {}", dollars(*default))
        }
    }
}

fn count_words(pages: &PagePrices) -> String {
    match (pages.included, pages.each) {
        (0, MicroDollars::ZERO) => String::new(),
        (0, each) => format!(" and {} for each result", dollars(each)),
        (included, MicroDollars::ZERO) => format!(" for up to {included} results"),
        (included, each) => {
            let each = dollars(each);
            format!(" for up to {included} results, then {each} for each")
        }
    }
}

/// Describes kinds of content with the same price together.
fn kind_words(pages: &PagePrices) -> Vec<String> {
    let mut groups: Vec<(&ContentPrice, Vec<&String>)> = Vec::new();
    for kind in &pages.kinds {
        let Some(argument) = &kind.argument else {
            continue;
        };
        let same = |(first, _): &&mut (&ContentPrice, Vec<&String>)| {
            first.each == kind.each && first.included == kind.included
        };
        match groups.iter_mut().find(same) {
            Some((_, names)) => names.push(argument),
            None => groups.push((kind, vec![argument])),
        }
    }
    let describe = |(kind, names): (&ContentPrice, Vec<&String>)| {
        let each = if names.len() > 1 { " each" } else { "" };
        let after = match kind.included {
            0 => String::new(),
            included => format!(" after {included}"),
        };
        let names = list(names.into_iter());
        format!("{names}: {} a page{after}{each}", dollars(kind.each))
    };
    groups.into_iter().map(describe).collect()
}

fn list<'a>(names: impl Iterator<Item = &'a String>) -> String {
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

/// Formats an amount without needless digits: `$5`, `$0.50`, `$0.007`.
fn dollars(amount: MicroDollars) -> String {
    let micro = amount.micro();
    if micro.is_multiple_of(1_000_000) {
        format!("${}", micro / 1_000_000)
    } else if micro.is_multiple_of(10_000) {
        format!("${:.2}", amount.dollars())
    } else {
        format!("${}", amount.dollars())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn words(price: serde_json::Value) -> String {
        serde_json::from_value::<Price>(price).unwrap().in_words()
    }

    #[test]
    fn describes_every_kind_of_price() {
        let json = |text: &str| serde_json::from_str(text).unwrap();
        for (price, expected) in [
            (r#""free""#, "free"),
            (
                r#"{"unpriced": {"why": "Websets credits"}}"#,
                "counted in Websets credits",
            ),
            (
                r#"{"unpriced": {"why": "not in prices.yaml", "schedule": {"cron": "cadence.cron"}}}"#,
                "no published price: not in prices.yaml; again with every run (as often as `cadence.cron` says)",
            ),
            (r#"{"source": [], "base": 0.5}"#, "$0.50"),
            (
                r#"{"source": [], "base": 0.007, "pages": {"included": 10, "each": 0.001, "kinds": [
                    {"argument": "text", "each": 0.001, "included": 10}, {"argument": "summary", "each": 0.001}]}}"#,
                "$0.007 for up to 10 results, then $0.001 for each; `text`: $0.001 a page after 10; \
                 `summary`: $0.001 a page",
            ),
            (
                r#"{"source": [], "base": {"by": "model", "default": "a", "prices": {"a": 0.005, "b": null}}}"#,
                "$0.005 (`model` a; other values unpublished for some)",
            ),
            (
                r#"{"source": [], "charged": "endOfRun", "unpricedWith": ["data"], "base": {
                    "by": "effort", "default": "auto", "prices": {"low": 0.025, "high": 1,
                    "auto": {"metered": "cap", "default": 5, "least": 1, "most": 100}}}}"#,
                "up to `cap`, by default $5 (`effort` auto; other values $0.025 to $1); \
                 `data`: more, unpublished; known when the run ends",
            ),
            (
                r#"{"source": [], "base": 0.002, "schedule": {"every": "period"}}"#,
                "free; each run (as often as `period` says) costs $0.002",
            ),
            (
                r#"{"source": [], "pages": {"lists": ["urls"], "unasked": 0.001, "kinds": [
                    {"argument": "text", "each": 0.001}, {"argument": "summary", "each": 0.001}]}}"#,
                "`text`, `summary`: $0.001 a page each; $0.001 a page without any of them",
            ),
        ] {
            assert_eq!(words(json(price)), expected);
        }
    }
}

//! `prices.yaml`: what the operations cost.

mod check;
mod table;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::load::Document;

pub use check::check;
pub use table::table;

/// The whole file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Prices {
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
    pub priced: BTreeMap<String, Rule>,
    /// Operations whose price nobody publishes.
    pub unpriced: BTreeMap<String, Unpriced>,
    /// Operations that cost nothing.
    pub free: Vec<String>,
}

/// The price of one operation.
#[derive(Debug, Clone, PartialEq)]
pub enum Price {
    /// It costs nothing.
    Free,
    /// Nobody publishes it.
    Unpriced(Unpriced),
    /// A rule gives it.
    Priced(Box<Rule>),
}

/// How the price of a request comes about.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Rule {
    /// Short names of the sources of the figures.
    pub source: Vec<String>,
    /// The price of the request itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<Base>,
    /// The price of the pages it returns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pages: Option<Pages>,
    /// Argument paths that add an unknown cost.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unpriced_with: Vec<String>,
    /// Where the actual cost is read.
    #[serde(default)]
    pub charged: Charged,
    /// How often there is a run, where the rule is the price of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Schedule>,
}

/// Why there is no price.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Unpriced {
    /// The reason in a few words.
    pub why: String,
    /// Where the actual cost is read.
    #[serde(default)]
    pub charged: Charged,
    /// How often there is a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Schedule>,
}

/// Where the actual cost is read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Charged {
    /// In the response.
    #[default]
    Response,
    /// In the state of the run, once the run is final.
    EndOfRun,
}

/// The price of a request without its pages.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(untagged)]
pub enum Base {
    /// Always the same.
    Fixed(f64),
    /// By the value of an argument.
    ByValue(ByValue),
}

/// Prices by the value of an argument.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ByValue {
    /// Path of the argument.
    pub by: String,
    /// The value where the argument is left out.
    pub default: String,
    /// Prices by value; `null` for a price that nobody publishes.
    pub prices: BTreeMap<String, Option<Rate>>,
}

/// One price.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(untagged)]
pub enum Rate {
    /// Always the same.
    Fixed(f64),
    /// By use, up to a cap that an argument sets.
    Metered(Metered),
}

/// A cap on a metered price, in dollars.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Metered {
    /// Path of the argument that sets the cap.
    pub metered: String,
    /// The cap where the argument is left out.
    pub default: f64,
    /// The lowest cap.
    pub least: f64,
    /// The highest cap.
    pub most: f64,
}

/// The price of pages.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Pages {
    /// The number of pages is the value of an argument.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<Count>,
    /// The number of pages is the length of these arguments together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lists: Vec<String>,
    /// Pages that the price of the request includes.
    #[serde(default)]
    pub included: u64,
    /// The price of every further page.
    #[serde(default)]
    pub each: f64,
    /// The kinds of content.
    pub kinds: Vec<Kind>,
    /// The price of a page for which no kind is asked.
    #[serde(default)]
    pub unasked: f64,
    /// Subpages of every page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subpages: Option<Count>,
}

/// A number that an argument holds.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Count {
    /// Path of the argument; without one the number is always the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub argument: Option<String>,
    /// The number where the argument is left out.
    pub default: u64,
    /// The least number that makes sense.
    pub least: u64,
    /// The number to reckon with where the argument makes no sense.
    pub most: u64,
}

/// A kind of content.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Kind {
    /// Path of the argument that asks for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub argument: Option<String>,
    /// The price of each page.
    pub each: f64,
    /// Pages that the price of the request includes.
    #[serde(default)]
    pub included: u64,
    /// It counts as asked for unless the argument says no.
    #[serde(default)]
    pub assumed: bool,
}

/// How often there is a run.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Schedule {
    /// Path of the argument that holds a span such as `6h`.
    Every(String),
    /// Path of the argument that holds a cron expression.
    Cron(String),
}

impl Rule {
    /// Every argument path that the rule names.
    pub fn paths(&self) -> Vec<&str> {
        let mut paths: Vec<&str> = self.unpriced_with.iter().map(String::as_str).collect();
        if let Some(Base::ByValue(by)) = &self.base {
            paths.push(&by.by);
            paths.extend(by.prices.values().filter_map(|rate| match rate {
                Some(Rate::Metered(metered)) => Some(metered.metered.as_str()),
                _ => None,
            }));
        }
        if let Some(pages) = &self.pages {
            let counts = [&pages.count, &pages.subpages].into_iter().flatten();
            paths.extend(counts.filter_map(|count| count.argument.as_deref()));
            paths.extend(pages.lists.iter().map(String::as_str));
            paths.extend(
                pages
                    .kinds
                    .iter()
                    .filter_map(|kind| kind.argument.as_deref()),
            );
        }
        paths.extend(self.schedule.as_ref().map(Schedule::path));
        paths.sort_unstable();
        paths.dedup();
        paths
    }

    /// Every figure of the rule with the place where it stands.
    pub fn figures(&self) -> Vec<(String, f64)> {
        let mut figures = Vec::new();
        match &self.base {
            Some(Base::Fixed(price)) => figures.push(("base".to_owned(), *price)),
            Some(Base::ByValue(by)) => {
                for (value, rate) in &by.prices {
                    let place = |field: &str| format!("base/prices/{value}{field}");
                    match rate {
                        None => {}
                        Some(Rate::Fixed(price)) => figures.push((place(""), *price)),
                        Some(Rate::Metered(metered)) => {
                            figures.push((place("/default"), metered.default));
                            figures.push((place("/least"), metered.least));
                            figures.push((place("/most"), metered.most));
                        }
                    }
                }
            }
            None => {}
        }
        if let Some(pages) = &self.pages {
            figures.push(("pages/each".to_owned(), pages.each));
            figures.push(("pages/unasked".to_owned(), pages.unasked));
            let kinds = pages.kinds.iter().enumerate();
            figures.extend(kinds.map(|(index, kind)| (format!("pages/kinds/{index}"), kind.each)));
        }
        figures
    }
}

impl Schedule {
    /// Path of the argument that holds the schedule.
    pub fn path(&self) -> &str {
        match self {
            Self::Every(path) | Self::Cron(path) => path,
        }
    }
}

/// Reads the prices from their document.
pub fn parse(document: &Document) -> Result<Prices> {
    serde_json::from_value(document.root.clone())
        .map_err(|error| document.error("", error.to_string()))
}

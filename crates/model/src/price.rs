//! What operations cost, as `data-design/prices.yaml` states it.
//!
//! Amounts are written in dollars and held as [`MicroDollars`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::MicroDollars;

/// The prices of all operations.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct PriceList {
    /// Dotted path of the field that holds the cost of a response or of a finished run.
    pub cost: String,
    /// Prices by the name of the operation.
    pub operations: BTreeMap<String, Price>,
}

/// What an operation costs.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Price {
    /// Nothing.
    Free,
    /// Exa does not publish it.
    Unpriced(Unpriced),
    /// A rule gives the most that a call can cost.
    #[serde(untagged)]
    Priced(Box<PriceRule>),
}

/// Why there is no price.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unpriced {
    /// The reason in a few words.
    pub why: String,
    /// Where the actual cost is read.
    #[serde(default)]
    pub charged: CostSource,
    /// How often there is a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<RunSchedule>,
}

/// How the price of a call comes about.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct PriceRule {
    /// Short names of the sources of the figures.
    pub source: Vec<String>,
    /// The price of the request itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<BasePrice>,
    /// The price of the pages it returns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pages: Option<PagePrices>,
    /// Argument paths that add an unknown cost.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unpriced_with: Vec<String>,
    /// Where the actual cost is read.
    #[serde(default)]
    pub charged: CostSource,
    /// How often there is a run; then the rule is the price of one, and the call itself is free.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<RunSchedule>,
}

/// Where the actual cost of a call is read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CostSource {
    /// In the response; one that does not say it is to be charged at the estimate.
    #[default]
    #[serde(rename = "response")]
    InResponse,
    /// In the state of the run that the call starts, once the run is final. The `long_running` marker of the operation
    /// says which operation reads the run and which states are final.
    #[serde(rename = "endOfRun")]
    AtEndOfRun,
    /// Nowhere, as the call is free. A cost in its response belongs to something else: a run that it reads.
    #[serde(skip)]
    Nothing,
}

/// The price of a request without its pages.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum BasePrice {
    /// Always the same.
    Fixed(#[serde(with = "in_dollars")] MicroDollars),
    /// By the value of an argument.
    ByValue {
        /// Path of the argument.
        #[serde(rename = "by")]
        argument: String,
        /// The value where the argument is left out.
        default: String,
        /// Rates by value; `None` for one that Exa does not publish.
        #[serde(rename = "prices")]
        rates: BTreeMap<String, Option<Rate>>,
    },
}

/// One price.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum Rate {
    /// Always the same.
    Fixed(#[serde(with = "in_dollars")] MicroDollars),
    /// By use, up to a cap.
    Metered {
        /// Path of the argument that sets the cap in dollars.
        #[serde(rename = "metered")]
        cap: String,
        /// The cap where the argument is left out.
        #[serde(with = "in_dollars")]
        default: MicroDollars,
        /// The lowest cap.
        #[serde(with = "in_dollars")]
        least: MicroDollars,
        /// The highest cap, assumed where the argument is not a number.
        #[serde(with = "in_dollars")]
        most: MicroDollars,
    },
}

/// The price of pages.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PagePrices {
    /// The number of pages, where it is the value of an argument.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<CountArgument>,
    /// Otherwise the number of pages is the length of these arguments together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lists: Vec<String>,
    /// PagePrices that the price of the request includes.
    #[serde(default)]
    pub included: u64,
    /// The price of every further page.
    #[serde(default, with = "in_dollars")]
    pub each: MicroDollars,
    /// The kinds of content.
    pub kinds: Vec<ContentPrice>,
    /// The price of a page for which no kind is asked.
    #[serde(default, with = "in_dollars")]
    pub unasked: MicroDollars,
    /// Subpages of every page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subpages: Option<CountArgument>,
}

/// A number that an argument holds.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CountArgument {
    /// Path of the argument; without one the number is always the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub argument: Option<String>,
    /// The number where the argument is left out.
    pub default: u64,
    /// The least number that makes sense.
    pub least: u64,
    /// The number assumed where the argument makes no sense.
    pub most: u64,
}

/// A kind of content.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContentPrice {
    /// Path of the argument that asks for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub argument: Option<String>,
    /// The price of each page.
    #[serde(with = "in_dollars")]
    pub each: MicroDollars,
    /// PagePrices that the price of the request includes.
    #[serde(default)]
    pub included: u64,
    /// It counts as asked for unless the argument says no.
    #[serde(default)]
    pub assumed: bool,
}

/// How often there is a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RunSchedule {
    /// Path of the argument that holds a span such as `6h`.
    Every(String),
    /// Path of the argument that holds a cron expression.
    Cron(String),
}

impl RunSchedule {
    /// Path of the argument that holds the schedule.
    pub fn argument(&self) -> &str {
        match self {
            Self::Every(path) | Self::Cron(path) => path,
        }
    }
}

/// An amount as a number of dollars.
mod in_dollars {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::MicroDollars;

    pub(super) fn serialize<S: Serializer>(
        amount: &MicroDollars,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        amount.dollars().serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<MicroDollars, D::Error> {
        f64::deserialize(from).map(MicroDollars::from_dollars)
    }
}

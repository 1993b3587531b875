//! The prices of operations, from `data-design/prices.yaml`.
//!
//! Amounts are serialized in dollars and stored as [`MicroDollars`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::MicroDollars;

/// The prices of all operations.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct PriceList {
    /// The dotted path of the cost in a response or a finished run.
    pub cost: String,
    /// Prices by operation name.
    pub operations: BTreeMap<String, Price>,
}

/// The price of an operation.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Price {
    /// Free of charge.
    Free,
    /// Not published by Exa.
    Unpriced(Unpriced),
    /// Determined by a rule, as a maximum.
    #[serde(untagged)]
    Priced(Box<PriceRule>),
}

/// A price that is not published.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unpriced {
    /// The reason.
    pub why: String,
    /// The source of the actual cost.
    #[serde(default)]
    pub charged: CostSource,
    /// The schedule of the runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<RunSchedule>,
}

/// How the price of a call is computed.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct PriceRule {
    /// Short names of the sources of the prices.
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
    /// The source of the actual cost.
    #[serde(default)]
    pub charged: CostSource,
    /// The schedule of the runs. If set, the rule is the price of one run, and the call itself is free.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<RunSchedule>,
}

/// The source of the actual cost of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CostSource {
    /// The response; without a cost in it, the estimate is charged.
    #[default]
    #[serde(rename = "response")]
    InResponse,
    /// The job that the call starts, once it is final. `longRunning` of the operation defines how to read the job and
    /// its final states.
    #[serde(rename = "endOfRun")]
    AtEndOfJob,
    /// None, because the call is free. A cost in its response belongs to the job that it reads.
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
        /// The path of the argument.
        #[serde(rename = "by")]
        argument: String,
        /// The value if the argument is absent.
        default: String,
        /// Rates by value; `None` if not published.
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
    /// By usage, up to a cap.
    Metered {
        /// The path of the argument that sets the cap in dollars.
        #[serde(rename = "metered")]
        cap: String,
        /// The cap if the argument is absent.
        #[serde(with = "in_dollars")]
        default: MicroDollars,
        /// The lowest cap.
        #[serde(with = "in_dollars")]
        least: MicroDollars,
        /// The highest cap, assumed if the argument is not a number.
        #[serde(with = "in_dollars")]
        most: MicroDollars,
    },
}

/// The price of the returned pages.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PagePrices {
    /// The argument with the number of pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<CountArgument>,
    /// Otherwise, the arguments whose total length is the number of pages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lists: Vec<String>,
    /// The number of pages that the price of the request includes.
    #[serde(default)]
    pub included: u64,
    /// The price of each further page.
    #[serde(default, with = "in_dollars")]
    pub each: MicroDollars,
    /// The kinds of content and their prices.
    pub kinds: Vec<ContentPrice>,
    /// The price of a page without requested content.
    #[serde(default, with = "in_dollars")]
    pub unasked: MicroDollars,
    /// The number of subpages of each page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subpages: Option<CountArgument>,
}

/// A number from an argument.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CountArgument {
    /// The path of the argument; without one, the number is always the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub argument: Option<String>,
    /// The number if the argument is absent.
    pub default: u64,
    /// The minimum.
    pub least: u64,
    /// The maximum, assumed if the argument is invalid.
    pub most: u64,
}

/// The price of a kind of content.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContentPrice {
    /// The path of the argument that requests it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub argument: Option<String>,
    /// The price of each page.
    #[serde(with = "in_dollars")]
    pub each: MicroDollars,
    /// The number of pages that the price of the request includes.
    #[serde(default)]
    pub included: u64,
    /// Whether it is requested unless the argument is false.
    #[serde(default)]
    pub assumed: bool,
}

/// The schedule of recurring runs.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RunSchedule {
    /// The path of the argument with an interval such as `6h`.
    Every(String),
    /// The path of the argument with a cron expression.
    Cron(String),
}

impl RunSchedule {
    /// Returns the path of the argument with the schedule.
    pub fn argument(&self) -> &str {
        match self {
            Self::Every(path) | Self::Cron(path) => path,
        }
    }
}

/// Serializes an amount as a number of dollars.
mod in_dollars {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::MicroDollars;

    pub(super) fn serialize<S: Serializer>(
        amount: &MicroDollars,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        amount.dollars().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<MicroDollars, D::Error> {
        f64::deserialize(deserializer).map(MicroDollars::from_dollars)
    }
}

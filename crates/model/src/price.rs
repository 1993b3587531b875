//! The price of an operation as `data-design/prices.yaml` states it.

use crate::MicroDollars;

/// What an operation costs.
#[derive(Debug)]
pub enum Price {
    /// Nothing.
    Free,
    /// Exa does not publish it.
    Unpriced {
        /// Why not, in a few words.
        why: &'static str,
        /// Where the actual cost is read.
        charge: Charge,
        /// How often there is a run.
        schedule: Option<Schedule>,
    },
    /// A rule gives the most that a call can cost.
    Priced(Rule),
}

/// How the price of a call comes about.
#[derive(Debug)]
pub struct Rule {
    /// The price of the request itself.
    pub base: Base,
    /// The price of the pages it returns.
    pub pages: Option<Pages>,
    /// Argument paths that add an unknown cost.
    pub unpriced_with: &'static [&'static str],
    /// Where the actual cost is read.
    pub charge: Charge,
    /// How often there is a run; then the rule is the price of one, and the call itself is free.
    pub schedule: Option<Schedule>,
}

/// Where the actual cost is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Charge {
    /// In the response.
    InResponse,
    /// In the state of the run, once the run is final.
    AtEndOfRun,
}

/// The price of a request without its pages.
#[derive(Debug)]
pub enum Base {
    /// The same for every request.
    Rate(Rate),
    /// By the value of an argument.
    ByValue {
        /// Path of the argument.
        argument: &'static str,
        /// The value where the argument is left out.
        default: &'static str,
        /// Rates by value; `None` for one that Exa does not publish.
        rates: &'static [(&'static str, Option<Rate>)],
    },
}

/// One price.
#[derive(Debug)]
pub enum Rate {
    /// Always the same.
    Fixed(MicroDollars),
    /// By use, up to a cap.
    Metered {
        /// Path of the argument that sets the cap in dollars.
        cap: &'static str,
        /// The cap where the argument is left out.
        default: MicroDollars,
        /// The lowest cap.
        least: MicroDollars,
        /// The highest cap, assumed where the argument is not a number.
        most: MicroDollars,
    },
}

/// The price of pages.
#[derive(Debug)]
pub struct Pages {
    /// How many pages there are.
    pub count: PageCount,
    /// Pages that the price of the request includes.
    pub included: u64,
    /// The price of every further page.
    pub each: MicroDollars,
    /// The kinds of content.
    pub kinds: &'static [Kind],
    /// The price of a page for which no kind is asked.
    pub unasked: MicroDollars,
    /// Subpages of every page.
    pub subpages: Option<Count>,
}

/// Where the number of pages stands.
#[derive(Debug)]
pub enum PageCount {
    /// It is the value of an argument.
    Number(Count),
    /// It is the length of these arguments together.
    Lists(&'static [&'static str]),
}

/// A number that an argument holds.
#[derive(Debug)]
pub struct Count {
    /// Path of the argument; without one the number is always the default.
    pub argument: Option<&'static str>,
    /// The number where the argument is left out.
    pub default: u64,
    /// The least number that makes sense.
    pub least: u64,
    /// The number assumed where the argument makes no sense.
    pub most: u64,
}

/// A kind of content.
#[derive(Debug)]
pub struct Kind {
    /// Path of the argument that asks for it.
    pub argument: Option<&'static str>,
    /// The price of each page.
    pub each: MicroDollars,
    /// Pages that the price of the request includes.
    pub included: u64,
    /// It counts as asked for unless the argument says no.
    pub assumed: bool,
}

/// How often there is a run.
#[derive(Debug)]
pub enum Schedule {
    /// Path of the argument that holds a span such as `6h`.
    Every(&'static str),
    /// Path of the argument that holds a cron expression.
    Cron(&'static str),
}

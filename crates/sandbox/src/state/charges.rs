//! What the requests of a key have cost, for the usage report of its team.

use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::ops::Range;

use exa_mcp_model::MicroDollars;

/// Maximum number of single charges; the total counts older ones too.
const MAX_CHARGES: usize = 20_000;

struct Charge {
    at: u64,
    name: &'static str,
    cost: MicroDollars,
}

/// The charges of one key, oldest first.
#[derive(Default)]
pub(crate) struct Charges {
    charges: VecDeque<Charge>,
    total: MicroDollars,
}

impl Charges {
    pub(crate) fn add(&mut self, at: u64, name: &'static str, cost: MicroDollars) {
        self.total = self.total.saturating_add(cost);
        if self.charges.len() >= MAX_CHARGES {
            self.charges.pop_front();
        }
        self.charges.push_back(Charge { at, name, cost });
    }

    pub(crate) fn total(&self) -> MicroDollars {
        self.total
    }

    /// Returns number and cost of the charges in a period, by name.
    pub(crate) fn by_name(
        &self,
        period: &Range<u64>,
    ) -> BTreeMap<&'static str, (u64, MicroDollars)> {
        let mut sums: BTreeMap<&'static str, (u64, MicroDollars)> = BTreeMap::new();
        for charge in self
            .charges
            .iter()
            .filter(|charge| period.contains(&charge.at))
        {
            let (count, cost) = sums.entry(charge.name).or_default();
            *count += 1;
            *cost = cost.saturating_add(charge.cost);
        }
        sums
    }
}

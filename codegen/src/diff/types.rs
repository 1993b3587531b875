//! How the types that a schema allows changed.

use super::markdown;
use super::matching::{self, Pairing};
use super::normalise::{Branch, Site};
use super::spot::Spot;
use super::walker::Walker;

/// Whether a change lets more values through, fewer, or both.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Shift {
    pub(super) gains: bool,
    pub(super) loses: bool,
}

impl Walker<'_> {
    /// Tells how the set of types changed: branch by branch between two unions, else as a whole.
    pub(super) fn types(&mut self, old: &Site, new: &Site, pairing: &Pairing<'_>, spot: &Spot) {
        if old.single().is_none() && new.single().is_none() {
            self.unions(old, new, pairing, spot);
            return;
        }
        let uncovered = |branch: &&Branch, site: &Site| !matching::covered(branch, site);
        let mut shift = Shift {
            gains: pairing.added.iter().any(|branch| uncovered(branch, old))
                || (new.nullable && !old.nullable),
            loses: pairing.removed.iter().any(|branch| uncovered(branch, new))
                || (old.nullable && !new.nullable),
        };
        for (before, after) in &pairing.pairs {
            let kinds = kind_shift(before, after);
            shift.gains |= kinds.gains;
            shift.loses |= kinds.loses;
        }
        let reshaped = !pairing.added.is_empty() || !pairing.removed.is_empty();
        if shift != Shift::default() || reshaped {
            let (before, after) = (self.type_of(old, false), self.type_of(new, true));
            let class = self.class(shift);
            let text = self.for_readers(class, format!("type {before} → {after}"));
            self.tell(class, spot, text);
        }
    }

    fn unions(&mut self, old: &Site, new: &Site, pairing: &Pairing<'_>, spot: &Spot) {
        if old.nullable != new.nullable {
            let class = self.class(Shift {
                gains: new.nullable,
                loses: old.nullable,
            });
            let verb = if new.nullable { "gains" } else { "loses" };
            let text = self.for_readers(class, format!("union {verb} `null`"));
            self.tell(class, spot, text);
        }
        for branch in &pairing.removed {
            let class = self.class(Shift {
                gains: false,
                loses: !matching::covered(branch, new),
            });
            let label = markdown::code(&matching::label(branch, old, self.old));
            self.tell(class, spot, format!("union branch removed: {label}"));
        }
        for branch in &pairing.added {
            // Readers of a union tell its branches apart; only a JSON type that they have never
            // met here can take them by surprise.
            let known = |other: &Branch| matching::same_family(other, branch);
            let class = self.class(Shift {
                gains: !old.branches.iter().any(known) && !matching::covered(branch, old),
                loses: false,
            });
            let label = markdown::code(&matching::label(branch, new, self.new));
            let text = self.for_readers(class, format!("union branch added: {label}"));
            self.tell(class, spot, text);
        }
    }

    /// The types of a schema in words.
    pub(super) fn type_of(&self, site: &Site, is_new: bool) -> String {
        let resolver = if is_new { self.new } else { self.old };
        let mut words: Vec<String> = match site.single() {
            Some(branch) => vec![kind(branch)],
            None => {
                let label = |branch| matching::label(branch, site, resolver);
                site.branches.iter().map(label).collect()
            }
        };
        if site.nullable {
            words.push("null".to_owned());
        }
        markdown::prose(&words.join(" or "))
    }
}

/// The JSON type of a branch in words.
pub(super) fn kind(branch: &Branch) -> String {
    branch.kind.clone().unwrap_or_else(|| "any".to_owned())
}

/// How the JSON type of a branch changed. Every integer is a number.
pub(super) fn kind_shift(old: &Branch, new: &Branch) -> Shift {
    let (gains, loses) = match (old.kind.as_deref(), new.kind.as_deref()) {
        (before, after) if before == after => (false, false),
        (Some("integer"), Some("number")) | (Some(_), None) => (true, false),
        (Some("number"), Some("integer")) | (None, Some(_)) => (false, true),
        _ => (true, true),
    };
    Shift { gains, loses }
}

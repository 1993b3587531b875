//! The walk through two versions of one schema, side by side.

use std::collections::BTreeSet;

use serde_json::Value;

use super::arguments::Arguments;
use super::markdown;
use super::matching::{self, Pairing};
use super::normalise::{Branch, Resolver, Site};
use super::reference::{kinds_beside, peel, plain_reference};
use super::spot::{Side, Spot, definition_name};
use super::types::{Shift, kind, kind_shift};
use super::{Change, Class};

/// Compares two versions of one schema of one operation and collects the changes.
pub(super) struct Walker<'a> {
    pub(super) side: Side,
    pub(super) old: Resolver<'a>,
    pub(super) new: Resolver<'a>,
    /// What is known of the top-level arguments besides their schemas.
    pub(super) arguments: Arguments<'a>,
    operation: &'a str,
    changes: Vec<Change>,
    /// Pairs of definitions already compared: each is told once, and recursion ends.
    compared: BTreeSet<(String, String)>,
    /// Pairs of schemas being compared. Definitions that recurse out of step with each other
    /// never meet as a pair, so they are stopped here.
    open: Vec<(String, String)>,
}

impl<'a> Walker<'a> {
    pub(super) const fn new(
        operation: &'a str,
        side: Side,
        (old, new): (&'a Value, &'a Value),
        arguments: Arguments<'a>,
    ) -> Self {
        Self {
            side,
            old: Resolver::new(old),
            new: Resolver::new(new),
            arguments,
            operation,
            changes: Vec::new(),
            compared: BTreeSet::new(),
            open: Vec::new(),
        }
    }

    /// Compares the two documents and returns the changes, each told once.
    pub(super) fn run(mut self, old: &Value, new: &Value) -> Vec<Change> {
        self.schemas(old, new, &Spot::root(self.side));
        let mut told = BTreeSet::new();
        self.changes.retain(|change| {
            let place = change.shared.as_ref().unwrap_or(&change.place).clone();
            told.insert((change.class, place, change.text.clone()))
        });
        self.changes
    }

    /// Records a change.
    pub(super) fn tell(&mut self, class: Class, spot: &Spot, text: String) {
        self.changes.push(Change {
            class,
            operation: self.operation.to_owned(),
            place: spot.place(),
            shared: spot.shared(),
            text,
        });
    }

    /// What a change of the accepted values means on this side: callers mind what is refused,
    /// readers mind what they have not seen before.
    pub(super) const fn class(&self, shift: Shift) -> Class {
        let harms = match self.side {
            Side::Argument => shift.loses,
            Side::Output => shift.gains,
        };
        if harms {
            Class::Breaking
        } else {
            Class::Compatible
        }
    }

    /// Adds why a change of an answer breaks, since the call itself still works.
    pub(super) fn for_readers(&self, class: Class, text: String) -> String {
        if self.side == Side::Output && class == Class::Breaking {
            format!("{text} (breaks readers who rely on it)")
        } else {
            text
        }
    }

    /// Compares two schemas.
    pub(super) fn schemas(&mut self, old: &Value, new: &Value, spot: &Spot) {
        let pair = (old.to_string(), new.to_string());
        if self.open.contains(&pair) {
            return;
        }
        self.open.push(pair);
        let (before, after) = (self.old.site(old), self.new.site(new));
        let (left, right) = (peel(old), peel(new));
        match (plain_reference(&left), plain_reference(&right)) {
            (Some(from), Some(to)) => {
                self.docs(&left.docs, &right.docs, spot);
                self.stray_kinds(&kinds_beside(&left), &kinds_beside(&right), &after, spot);
                if left.nullable != right.nullable && before.nullable != after.nullable {
                    self.types(&before, &after, &Pairing::default(), spot);
                }
                self.definitions(from, to, spot);
            }
            _ => self.sites(&before, &after, spot),
        }
        self.open.pop();
    }

    /// A type next to a reference should repeat that of the definition; one that no longer does
    /// is a change that the definition does not show.
    fn stray_kinds(&mut self, old: &[&str], new: &[&str], site: &Site, spot: &Spot) {
        let known = |kind: &&str| {
            let fits = |branch: &Branch| branch.kind.as_deref().is_none_or(|own| own == *kind);
            site.branches.iter().any(fits)
        };
        if old != new && !new.iter().all(known) {
            let new = markdown::prose(&new.join(" or "));
            let text = format!("type now {new}, unlike the definition next to it");
            self.tell(Class::Breaking, spot, text);
        }
    }

    /// Compares two definitions. One that only changed inside, or was renamed, is told once; a
    /// place that switched from one definition to another is a change of that place.
    fn definitions(&mut self, old: &str, new: &str, spot: &Spot) {
        let known_on_both =
            |name: &str| self.old.target(name).is_some() && self.new.target(name).is_some();
        let switched = old != new && (known_on_both(old) || known_on_both(new));
        if !switched && !self.compared.insert((old.to_owned(), new.to_owned())) {
            return;
        }
        match (self.old.target(old), self.new.target(new)) {
            (Some(before), Some(after)) if switched => self.schemas(before, after, spot),
            (Some(before), Some(after)) => self.schemas(before, after, &spot.definition(new)),
            (None, None) if old == new => {}
            _ => {
                let (left, right) = (definition_name(old), definition_name(new));
                let (left, right) = (markdown::code(left), markdown::code(right));
                let text = format!("schema {left} → {right}, and one of them is not defined");
                self.tell(Class::Breaking, spot, text);
            }
        }
    }

    fn sites(&mut self, old: &Site, new: &Site, spot: &Spot) {
        let unions = old.single().is_none() && new.single().is_none();
        let linked = linked(old.single(), new.single());
        if unions || linked {
            self.docs(&old.docs, &new.docs, spot);
        } else {
            self.docs(&old.all_docs(), &new.all_docs(), spot);
        }
        let pairing = matching::pair(old, new, self.old, self.new);
        self.types(old, new, &pairing, spot);
        for (before, after) in &pairing.pairs {
            let inside = self.inside(after, (old, new), spot);
            if unions && kind_shift(before, after) != Shift::default() {
                let class = self.class(kind_shift(before, after));
                let text = format!("type {} → {}", kind(before), kind(after));
                let text = self.for_readers(class, text);
                self.tell(class, &inside, text);
            }
            self.branches(before, after, &inside, unions);
        }
    }

    /// Where a branch is. The branches of the arguments as a whole need no label: a caller has
    /// one set of arguments, whichever combinations of them are allowed.
    fn inside(&self, branch: &Branch, (old, new): (&Site, &Site), spot: &Spot) -> Spot {
        let arguments = self.side == Side::Argument && spot.is_root();
        if arguments || matching::is_only_one_of_its_kind(branch, old, new) {
            spot.clone()
        } else {
            spot.branch(&matching::label(branch, new, self.new))
        }
    }

    /// Compares two branches that are versions of each other.
    fn branches(&mut self, old: &Branch, new: &Branch, spot: &Spot, in_unions: bool) {
        if in_unions && linked(Some(old), Some(new)) {
            self.docs(&old.docs, &new.docs, spot);
        } else if in_unions {
            self.docs(&old.all_docs(), &new.all_docs(), spot);
        }
        match (&old.reference, &new.reference) {
            (Some(before), Some(after)) => self.definitions(before, after, spot),
            // Nothing below can be compared once the type is another.
            _ if !matching::same_family(old, new) => {}
            _ => self.bodies(old, new, spot),
        }
    }
}

/// Whether both are definitions, whose own words are compared where they are defined.
fn linked(old: Option<&Branch>, new: Option<&Branch>) -> bool {
    let refers = |branch: Option<&Branch>| branch.is_some_and(|found| found.reference.is_some());
    refers(old) && refers(new)
}

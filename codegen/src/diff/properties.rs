//! The properties of an object: those that came, went, were renamed or changed.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::Class;
use super::markdown::code;
use super::matching::fingerprint;
use super::normalise::{Branch, Property};
use super::spot::{Side, Spot};
use super::walker::Walker;

impl Walker<'_> {
    /// Compares the properties of two objects.
    pub(super) fn properties(&mut self, old: &Branch, new: &Branch, spot: &Spot) {
        let renames = match self.side {
            Side::Argument => self.renames(old, new, spot),
            Side::Output => BTreeMap::new(),
        };
        let gone: BTreeSet<&String> = renames.values().collect();
        let names: BTreeSet<&String> = old.properties.keys().chain(new.properties.keys()).collect();
        for name in names {
            match (old.properties.get(name), new.properties.get(name)) {
                (Some(_), Some(_)) => self.kept(name, name, (old, new), spot),
                (Some(_), None) if gone.contains(name) => {}
                (Some(before), None) => {
                    let spot = spot.property(name, before.origin.as_deref());
                    let text = self.for_readers(Class::Breaking, "removed".to_owned());
                    self.tell(Class::Breaking, &spot, text);
                }
                (None, Some(after)) => match renames.get(name) {
                    Some(before) => {
                        self.renamed(before, name, spot);
                        self.kept(before, name, (old, new), spot);
                    }
                    None => self.added(name, after, new.required.contains(name), spot),
                },
                (None, None) => {}
            }
        }
    }

    fn added(&mut self, name: &str, property: &Property, required: bool, spot: &Spot) {
        let spot = spot.property(name, property.origin.as_deref());
        let kind = self.type_of(&self.new.site(&property.schema), true);
        let (class, text) = match (self.side, required) {
            (Side::Output, _) => (Class::Compatible, format!("added ({kind})")),
            (Side::Argument, true) => (Class::Breaking, format!("added, required ({kind})")),
            (Side::Argument, false) => (Class::Compatible, format!("added, optional ({kind})")),
        };
        self.tell(class, &spot, text);
    }

    fn renamed(&mut self, old: &str, new: &str, spot: &Spot) {
        let alias = spot.is_root() && self.arguments.keeps(old, new);
        let text = format!("renamed from {} to {}", code(old), code(new));
        let spot = spot.property(new, None);
        if alias {
            let text = format!("{text}; the old name is still accepted");
            self.tell(Class::Compatible, &spot, text);
        } else {
            self.tell(Class::Breaking, &spot, text);
        }
    }

    /// Compares two versions of one property, which may have had another name.
    fn kept(&mut self, was: &str, name: &str, (old, new): (&Branch, &Branch), spot: &Spot) {
        let (Some(before), Some(after)) = (old.properties.get(was), new.properties.get(name))
        else {
            return;
        };
        // Whether a property is required is said by the object and not by its declaration.
        let here = spot.property(name, None);
        let required = (old.required.contains(was), new.required.contains(name));
        self.requirement(required, &here);
        let origin = after.origin.as_deref();
        let origin = origin.filter(|_| before.origin == after.origin && was == name);
        let inside = spot.property(name, origin);
        let any = json!(true);
        if required.1 && after.schema == any && before.schema != any {
            let text = "no longer declared, though still listed as required".to_owned();
            return self.tell(Class::Breaking, &inside, text);
        }
        if self.side == Side::Argument && spot.is_root() {
            for (class, text) in self.arguments.changes(was, name) {
                self.tell(class, &here, text);
            }
            let known = self.arguments;
            let before = known.described_old(was, &before.schema, self.old);
            let after = known.described_new(name, &after.schema, self.new);
            self.schemas(&before, &after, &inside);
        } else {
            self.schemas(&before.schema, &after.schema, &inside);
        }
    }

    fn requirement(&mut self, required: (bool, bool), spot: &Spot) {
        let (class, text) = match (required, self.side) {
            ((false, true), Side::Argument) => (Class::Breaking, "became required"),
            ((true, false), Side::Argument) => (Class::Compatible, "became optional"),
            ((false, true), Side::Output) => (Class::Compatible, "is always there now"),
            ((true, false), Side::Output) => (Class::Breaking, "became optional, may be missing"),
            _ => return,
        };
        let text = self.for_readers(class, text.to_owned());
        self.tell(class, spot, text);
    }

    /// New names and the old names they replace. An argument that lists an old name among its
    /// aliases replaces it; otherwise the schemas must agree, and only one pair may do so.
    fn renames(&self, old: &Branch, new: &Branch, spot: &Spot) -> BTreeMap<String, String> {
        let gone = only_in(&old.properties, &new.properties);
        let come = only_in(&new.properties, &old.properties);
        let mut renames = BTreeMap::new();
        let mut left: BTreeSet<&String> = gone.keys().copied().collect();
        if spot.is_root() {
            for name in come.keys() {
                let aliased = left.iter().find(|was| self.arguments.keeps(was, name));
                if let Some(was) = aliased.copied() {
                    left.remove(was);
                    renames.insert((*name).clone(), was.clone());
                }
            }
        }
        let mut alike: BTreeMap<String, (Vec<&String>, Vec<&String>)> = BTreeMap::new();
        for (was, schema) in gone.iter().filter(|(was, _)| left.contains(*was)) {
            let place = self.arguments.old_place(was).filter(|_| spot.is_root());
            let (old_names, _) = alike.entry(identity(place, schema)).or_default();
            old_names.push(was);
        }
        for (name, schema) in come
            .iter()
            .filter(|(name, _)| !renames.contains_key(**name))
        {
            let place = self.arguments.new_place(name).filter(|_| spot.is_root());
            let (_, new_names) = alike.entry(identity(place, schema)).or_default();
            new_names.push(name);
        }
        for (old_names, new_names) in alike.values() {
            if let ([was], [name]) = (old_names.as_slice(), new_names.as_slice()) {
                renames.insert((*name).clone(), (*was).clone());
            }
        }
        renames
    }
}

fn only_in<'a>(
    here: &'a BTreeMap<String, Property>,
    there: &BTreeMap<String, Property>,
) -> BTreeMap<&'a String, &'a Value> {
    here.iter()
        .filter(|(name, _)| !there.contains_key(*name))
        .map(|(name, property)| (name, &property.schema))
        .collect()
}

fn identity(place: Option<&str>, schema: &Value) -> String {
    format!("{} {}", place.unwrap_or_default(), fingerprint(schema))
}

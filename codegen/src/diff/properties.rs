//! Compares the properties of an object: added, removed, renamed and changed ones.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::Impact;
use super::comparer::SchemaComparer;
use super::markdown::code;
use super::matching::schema_key;
use super::normalize::{Branch, Property};
use super::schema_path::{Direction, SchemaPath};

impl SchemaComparer<'_> {
    /// Compares the properties of two objects.
    pub(super) fn compare_properties(&mut self, old: &Branch, new: &Branch, path: &SchemaPath) {
        let renames = match self.direction {
            Direction::Input => self.find_renames(old, new, path),
            Direction::Output => BTreeMap::new(),
        };
        let old_names: BTreeSet<&String> = renames.values().collect();
        let names: BTreeSet<&String> = old.properties.keys().chain(new.properties.keys()).collect();
        for name in names {
            match (old.properties.get(name), new.properties.get(name)) {
                (Some(_), Some(_)) => self.compare_property(name, name, (old, new), path),
                (Some(_), None) if old_names.contains(name) => {}
                (Some(before), None) => {
                    let path = path.property(name, before.origin.as_deref());
                    let text = self.note_output_break(Impact::Breaking, "removed".to_owned());
                    self.record(Impact::Breaking, &path, text);
                }
                (None, Some(after)) => match renames.get(name) {
                    Some(before) => {
                        self.record_renamed(before, name, path);
                        self.compare_property(before, name, (old, new), path);
                    }
                    None => self.record_added(name, after, new.required.contains(name), path),
                },
                (None, None) => {}
            }
        }
    }

    fn record_added(&mut self, name: &str, property: &Property, required: bool, path: &SchemaPath) {
        let path = path.property(name, property.origin.as_deref());
        let kind = self.type_text(&self.new.normalize(&property.schema), true);
        let (impact, text) = match (self.direction, required) {
            (Direction::Output, _) => (Impact::Compatible, format!("added ({kind})")),
            (Direction::Input, true) => (Impact::Breaking, format!("added, required ({kind})")),
            (Direction::Input, false) => (Impact::Compatible, format!("added, optional ({kind})")),
        };
        self.record(impact, &path, text);
    }

    fn record_renamed(&mut self, old: &str, new: &str, path: &SchemaPath) {
        let alias = path.is_root() && self.arguments.accepts_old_name(old, new);
        let text = format!("renamed from {} to {}", code(old), code(new));
        let path = path.property(new, None);
        if alias {
            let text = format!("{text}; the old name is still accepted");
            self.record(Impact::Compatible, &path, text);
        } else {
            self.record(Impact::Breaking, &path, text);
        }
    }

    /// Compares two versions of one property, which may have been renamed.
    fn compare_property(
        &mut self,
        old_name: &str,
        name: &str,
        (old, new): (&Branch, &Branch),
        path: &SchemaPath,
    ) {
        let (Some(before), Some(after)) = (old.properties.get(old_name), new.properties.get(name))
        else {
            return;
        };
        // The object, not the declaration of the property, decides whether it is required.
        let own_path = path.property(name, None);
        let required = (old.required.contains(old_name), new.required.contains(name));
        self.compare_requirement(required, &own_path);
        let origin = after.origin.as_deref();
        let origin = origin.filter(|_| before.origin == after.origin && old_name == name);
        let schema_path = path.property(name, origin);
        let any = json!(true);
        if required.1 && after.schema == any && before.schema != any {
            let text = "no longer declared but still listed as required".to_owned();
            return self.record(Impact::Breaking, &schema_path, text);
        }
        if self.direction == Direction::Input && path.is_root() {
            for (impact, text) in self.arguments.changes(old_name, name) {
                self.record(impact, &own_path, text);
            }
            let arguments = self.arguments;
            let before = arguments.document_old(old_name, &before.schema, self.old);
            let after = arguments.document_new(name, &after.schema, self.new);
            self.compare_schemas(&before, &after, &schema_path);
        } else {
            self.compare_schemas(&before.schema, &after.schema, &schema_path);
        }
    }

    fn compare_requirement(&mut self, required: (bool, bool), path: &SchemaPath) {
        let (impact, text) = match (required, self.direction) {
            ((false, true), Direction::Input) => (Impact::Breaking, "became required"),
            ((true, false), Direction::Input) => (Impact::Compatible, "became optional"),
            ((false, true), Direction::Output) => (Impact::Compatible, "is now always present"),
            ((true, false), Direction::Output) => {
                (Impact::Breaking, "became optional and may be absent")
            }
            _ => return,
        };
        let text = self.note_output_break(impact, text.to_owned());
        self.record(impact, path, text);
    }

    /// Maps new property names to the old ones they replace.
    ///
    /// An argument replaces a removed one that is among its aliases. Otherwise exactly one added and
    /// one removed property must have the same schema.
    fn find_renames(
        &self,
        old: &Branch,
        new: &Branch,
        path: &SchemaPath,
    ) -> BTreeMap<String, String> {
        let removed = only_in(&old.properties, &new.properties);
        let added = only_in(&new.properties, &old.properties);
        let mut renames = BTreeMap::new();
        let mut unmatched: BTreeSet<&String> = removed.keys().copied().collect();
        if path.is_root() {
            for name in added.keys() {
                let aliased = unmatched
                    .iter()
                    .find(|old_name| self.arguments.accepts_old_name(old_name, name));
                if let Some(old_name) = aliased.copied() {
                    unmatched.remove(old_name);
                    renames.insert((*name).clone(), old_name.clone());
                }
            }
        }
        let mut by_schema: BTreeMap<String, (Vec<&String>, Vec<&String>)> = BTreeMap::new();
        for (name, schema) in removed.iter().filter(|(name, _)| unmatched.contains(*name)) {
            let location = self.arguments.old_location(name).filter(|_| path.is_root());
            let (old_names, _) = by_schema.entry(property_key(location, schema)).or_default();
            old_names.push(name);
        }
        for (name, schema) in added
            .iter()
            .filter(|(name, _)| !renames.contains_key(**name))
        {
            let location = self.arguments.new_location(name).filter(|_| path.is_root());
            let (_, new_names) = by_schema.entry(property_key(location, schema)).or_default();
            new_names.push(name);
        }
        for (old_names, new_names) in by_schema.values() {
            if let ([old_name], [name]) = (old_names.as_slice(), new_names.as_slice()) {
                renames.insert((*name).clone(), (*old_name).clone());
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

fn property_key(location: Option<&str>, schema: &Value) -> String {
    format!("{} {}", location.unwrap_or_default(), schema_key(schema))
}

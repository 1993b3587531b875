//! What lies inside a branch: its values, bounds, properties and elements.

use serde_json::{Value, json};

use super::Class;
use super::markdown;
use super::normalise::Branch;
use super::spot::{Side, Spot};
use super::types::Shift;
use super::walker::Walker;

impl Walker<'_> {
    /// Compares all that two branches of the same type demand.
    pub(super) fn bodies(&mut self, old: &Branch, new: &Branch, spot: &Spot) {
        self.values(old, new, spot);
        self.bounds(old, new, spot);
        self.properties(old, new, spot);
        self.undeclared(old, new, spot);
        self.elements(old, new, spot);
    }

    /// Compares the elements of two arrays.
    fn elements(&mut self, old: &Branch, new: &Branch, spot: &Spot) {
        let (before, after) = (old.rest.get("items"), new.rest.get("items"));
        if before.is_some() || after.is_some() {
            let any = json!(true);
            let (before, after) = (before.unwrap_or(&any), after.unwrap_or(&any));
            self.schemas(before, after, &spot.items());
        }
    }

    /// Compares what two objects allow besides their declared properties.
    fn undeclared(&mut self, old: &Branch, new: &Branch, spot: &Spot) {
        let any = json!(true);
        let of = |branch: &Branch| match branch.rest.get("additionalProperties") {
            None => any.clone(),
            Some(Value::Object(keywords)) if keywords.is_empty() => any.clone(),
            Some(schema) => schema.clone(),
        };
        let (before, after) = (of(old), of(new));
        if before == after && before.is_boolean() {
            return;
        }
        let nothing = json!(false);
        if before != nothing && after != nothing {
            self.schemas(&before, &after, &spot.values());
            return;
        }
        let text = format!(
            "additionalProperties {} → {}",
            markdown::value(&before),
            markdown::value(&after)
        );
        // Readers lose something only if the undeclared properties were described to them.
        let class = match (self.side, before.is_object(), after.is_object()) {
            (Side::Argument, ..) => self.class(Shift {
                gains: before == nothing,
                loses: after == nothing,
            }),
            (Side::Output, true, _) => Class::Breaking,
            (Side::Output, _, true) => Class::Compatible,
            (Side::Output, false, false) => Class::Documentation,
        };
        let text = self.for_readers(class, text);
        self.tell(class, spot, text);
    }
}

//! Entities and fields that agent monitors watch, and the values found for them.

use serde_json::{Map, Value, json};

use crate::call::Call;
use crate::corpus::value;
use crate::failure::Failure;
use crate::random::Dice;
use crate::time::iso;

/// Something that is watched.
#[derive(Clone, Debug)]
pub(crate) struct Entity {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) domain: String,
}

/// A fact that is kept up to date.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(super) id: String,
    name: String,
    description: String,
    kind: String,
}

fn part(value: &Value, name: &str) -> String {
    value
        .get(name)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}

impl Entity {
    pub(super) fn read(given: &Value, id: String) -> Self {
        Entity {
            id,
            name: part(given, "name"),
            domain: part(given, "domain"),
        }
    }

    pub(super) fn to_json(&self) -> Value {
        json!({ "id": self.id, "name": self.name, "domain": self.domain, "canonicalEntityId": null })
    }
}

impl Field {
    pub(super) fn read(given: &Value, id: String) -> Self {
        let kind = given
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or("string")
            .to_owned();
        Field {
            id,
            name: part(given, "name"),
            description: part(given, "description"),
            kind,
        }
    }

    pub(super) fn to_json(&self) -> Value {
        json!({ "id": self.id, "name": self.name, "description": self.description, "type": self.kind })
    }

    pub(super) fn brief(&self) -> Value {
        json!({ "id": self.id, "name": self.name })
    }

    /// Whether a look finds another value than the one before.
    pub(super) fn changes(&self, seed: u64, entity: &Entity, round: u64) -> bool {
        let parts = ["change", &entity.domain, &self.name, &round.to_string()];
        Dice::new(seed, &parts).once_in(3)
    }

    /// The value of the field for an entity, as of its `round`-th look.
    pub(super) fn content(&self, seed: u64, entity: &Entity, round: u64, at: u64) -> Value {
        let mut dice = Dice::new(
            seed,
            &["watch", &entity.domain, &self.name, &round.to_string()],
        );
        let url = format!("https://{}/", entity.domain);
        let value = value::of_type(&mut dice, &self.kind, &self.description, &url);
        let citation = json!({ "url": crate::percent::address(&url), "title": entity.name });
        json!({ "value": value, "citations": [citation], "updatedAt": iso(at) })
    }
}

/// All values of an entity by field.
pub(super) fn contents(
    seed: u64,
    entity: &Entity,
    fields: &[Field],
    round: u64,
    at: u64,
) -> Map<String, Value> {
    fields
        .iter()
        .map(|field| (field.id.clone(), field.content(seed, entity, round, at)))
        .collect()
}

/// Checks what a schema cannot say about the entities and fields of a request.
pub(super) fn check(call: &Call, needs_fields: bool) -> Result<(), Failure> {
    let domains: Vec<String> = call
        .list("entities")
        .iter()
        .map(|entity| part(entity, "domain"))
        .collect();
    if domains.is_empty() {
        return Err(Failure::invalid("entities must name at least one"));
    }
    if needs_fields && call.list("fields").is_empty() {
        return Err(Failure::invalid("fields must name at least one"));
    }
    for (place, domain) in domains.iter().enumerate() {
        if domain.is_empty() || domain.contains('/') || domain.contains(' ') {
            return Err(Failure::invalid(format!(
                "entities.{place}.domain: '{domain}' is not a domain"
            )));
        }
        if domains.iter().take(place).any(|other| other == domain) {
            return Err(Failure::invalid(format!(
                "entities.{place}.domain: '{domain}' is named twice"
            )));
        }
    }
    Ok(())
}

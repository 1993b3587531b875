//! The entities and fields that agent monitors watch, and the values found for them.

use serde_json::{Map, Value, json};

use crate::api_error::ApiError;
use crate::call::Call;
use crate::corpus::value;
use crate::json::{opt_text, text};
use crate::percent;
use crate::rng::Rng;
use crate::state::Account;
use crate::time::iso;

/// A watched company or person.
#[derive(Clone, Debug)]
pub(super) struct Entity {
    pub(super) id: String,
    name: String,
    pub(super) domain: String,
}

/// A watched fact about every entity.
#[derive(Clone, Debug)]
pub(super) struct Field {
    pub(super) id: String,
    name: String,
    description: String,
    value_type: String,
}

impl Entity {
    /// Reads the `entities` of a request.
    pub(super) fn from_call(account: &mut Account, call: &Call) -> Vec<Self> {
        let entities = call.list("entities").iter().map(|given| Entity {
            id: account.new_id("entity"),
            name: text(given, "name").to_owned(),
            domain: text(given, "domain").to_owned(),
        });
        entities.collect()
    }

    pub(super) fn to_json(&self) -> Value {
        json!({ "id": self.id, "name": self.name, "domain": self.domain, "canonicalEntityId": null })
    }
}

impl Field {
    /// Reads the `fields` of a request.
    pub(super) fn from_call(account: &mut Account, call: &Call) -> Vec<Self> {
        let fields = call.list("fields").iter().map(|given| Field {
            id: account.new_id("field"),
            name: text(given, "name").to_owned(),
            description: text(given, "description").to_owned(),
            value_type: opt_text(given, "type").unwrap_or("string").to_owned(),
        });
        fields.collect()
    }

    pub(super) fn to_json(&self) -> Value {
        json!({ "id": self.id, "name": self.name, "description": self.description, "type": self.value_type })
    }

    pub(super) fn to_brief_json(&self) -> Value {
        json!({ "id": self.id, "name": self.name })
    }

    fn rng(&self, seed: u64, purpose: &str, entity: &Entity, round: u64) -> Rng {
        let parts = [purpose, &entity.domain, &self.name, &round.to_string()];
        Rng::new(seed, &parts)
    }

    /// Whether the value differs from the one of the previous round.
    pub(super) fn changes(&self, seed: u64, entity: &Entity, round: u64) -> bool {
        self.rng(seed, "change", entity, round).one_in(3)
    }

    /// Returns the value of the field for an entity in a refresh round.
    pub(super) fn content(&self, seed: u64, entity: &Entity, round: u64, at: u64) -> Value {
        let mut rng = self.rng(seed, "watch", entity, round);
        let url = format!("https://{}/", entity.domain);
        let value = value::of_type(&mut rng, &self.value_type, &self.description, &url);
        let citation = json!({ "url": percent::encode_url(&url), "title": entity.name });
        json!({ "value": value, "citations": [citation], "updatedAt": iso(at) })
    }
}

/// Returns all values of an entity by field id.
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

/// Validates what the input schema cannot express about entities and fields.
pub(super) fn validate(call: &Call, needs_fields: bool) -> Result<(), ApiError> {
    let entities = call.list("entities").iter();
    let domains: Vec<&str> = entities.map(|entity| text(entity, "domain")).collect();
    if domains.is_empty() {
        return Err(ApiError::invalid("entities must name at least one"));
    }
    if needs_fields && call.list("fields").is_empty() {
        return Err(ApiError::invalid("fields must name at least one"));
    }
    for (index, domain) in domains.iter().enumerate() {
        if domain.is_empty() || domain.contains('/') || domain.contains(' ') {
            return Err(ApiError::invalid(format!(
                "entities.{index}.domain: '{domain}' is not a domain"
            )));
        }
        if domains.iter().take(index).any(|other| other == domain) {
            return Err(ApiError::invalid(format!(
                "entities.{index}.domain: '{domain}' is named twice"
            )));
        }
    }
    Ok(())
}

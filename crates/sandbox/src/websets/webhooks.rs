//! Webhooks. Nothing is sent: every event that a webhook subscribes to counts as delivered at once,
//! or as rejected if the URL contains `fail`.

use serde_json::{Value, json};

use super::events::WebsetEvent;
use crate::call::{ApiResponse, ApiResult, Call};
use crate::state::{Account, Order, Paging, Resource, Table};
use crate::time::iso;

/// Maximum number of delivery attempts per webhook.
const MAX_ATTEMPTS: usize = 500;

/// One webhook.
pub(crate) struct Webhook {
    id: String,
    events: Vec<Value>,
    url: String,
    metadata: Value,
    attempts: Table<DeliveryAttempt>,
    created: u64,
    updated: u64,
}

struct DeliveryAttempt {
    id: String,
    webhook: String,
    event: String,
    event_type: &'static str,
    url: String,
    successful: bool,
    at: u64,
}

impl Resource for Webhook {
    const NAME: &'static str = "Webhook";
}

impl Webhook {
    fn to_json(&self) -> Value {
        self.to_json_with_secret(None)
    }

    /// Only the response to the creation contains the secret.
    fn to_json_with_secret(&self, secret: Option<&str>) -> Value {
        json!({
            "id": self.id,
            "object": "webhook",
            "status": "active",
            "events": self.events,
            "url": self.url,
            "secret": secret,
            "metadata": self.metadata,
            "createdAt": iso(self.created),
            "updatedAt": iso(self.updated),
        })
    }
}

impl DeliveryAttempt {
    fn to_json(&self) -> Value {
        let (status, body) = if self.successful {
            (200, "ok")
        } else {
            (500, "refused by the made-up receiver")
        };
        json!({
            "id": self.id,
            "object": "webhook_attempt",
            "eventId": self.event,
            "eventType": self.event_type,
            "webhookId": self.webhook,
            "url": self.url,
            "successful": self.successful,
            "responseHeaders": { "content-type": "text/plain" },
            "responseBody": body,
            "responseStatusCode": status,
            "attempt": 1,
            "attemptedAt": iso(self.at),
        })
    }
}

/// Adds a delivery attempt to every webhook that subscribes to the event.
pub(super) fn deliver(account: &mut Account, event: &WebsetEvent) {
    let event_type = Value::from(event.event_type);
    let subscribers = account
        .webhooks
        .ids_where(|webhook| webhook.events.contains(&event_type));
    for webhook_id in subscribers {
        let id = account.new_id("attempt");
        let Some(webhook) = account.webhooks.get_mut(&webhook_id) else {
            continue;
        };
        let attempt = DeliveryAttempt {
            id: id.clone(),
            webhook: webhook_id,
            event: event.id.clone(),
            event_type: event.event_type,
            url: webhook.url.clone(),
            successful: !webhook.url.contains("fail"),
            at: event.created,
        };
        webhook.attempts.insert_bounded(&id, attempt, MAX_ATTEMPTS);
    }
}

/// `POST /websets/v0/webhooks`.
pub(crate) fn create(account: &mut Account, call: &Call) -> ApiResult {
    account.ensure_capacity(1)?;
    let id = account.new_id("webhook");
    let secret = account.new_secret();
    let webhook = Webhook {
        events: call.list("events").to_vec(),
        url: call.text("url").to_owned(),
        metadata: call.metadata(),
        attempts: Table::default(),
        created: account.now(),
        updated: account.now(),
        id: id.clone(),
    };
    let json = webhook.to_json_with_secret(Some(&secret));
    account.webhooks.insert(&id, webhook);
    ApiResponse::ok(json)
}

/// `GET /websets/v0/webhooks/{id}`.
pub(crate) fn get(account: &mut Account, call: &Call) -> ApiResult {
    ApiResponse::ok(account.webhooks.find(call.text("webhookId"))?.to_json())
}

/// `GET /websets/v0/webhooks`.
pub(crate) fn list(account: &mut Account, call: &Call) -> ApiResult {
    let paging = Paging::from_call(call, 25, 200)?;
    ApiResponse::ok(paging.page(
        account.webhooks.rows(),
        Order::NewestFirst,
        Webhook::to_json,
    ))
}

/// `PATCH /websets/v0/webhooks/{id}`.
pub(crate) fn update(account: &mut Account, call: &Call) -> ApiResult {
    let now = account.now();
    let webhook = account.webhooks.find_mut(call.text("webhookId"))?;
    if call.get("events").is_some() {
        webhook.events = call.list("events").to_vec();
    }
    if let Some(url) = call.opt_text("url") {
        url.clone_into(&mut webhook.url);
    }
    call.update_metadata(&mut webhook.metadata);
    webhook.updated = now;
    ApiResponse::ok(webhook.to_json())
}

/// `DELETE /websets/v0/webhooks/{id}`.
pub(crate) fn delete(account: &mut Account, call: &Call) -> ApiResult {
    ApiResponse::ok(account.webhooks.delete(call.text("webhookId"))?.to_json())
}

/// `GET /websets/v0/webhooks/{id}/attempts`.
pub(crate) fn list_attempts(account: &mut Account, call: &Call) -> ApiResult {
    let paging = Paging::from_call(call, 25, 200)?;
    let event_type = call.opt_text("eventType");
    let successful = call.get("successful").and_then(Value::as_bool);
    let webhook = account.webhooks.find(call.text("webhookId"))?;
    let rows = webhook.attempts.rows().filter(|(_, attempt)| {
        event_type.is_none_or(|event_type| attempt.event_type == event_type)
            && successful.is_none_or(|successful| attempt.successful == successful)
    });
    ApiResponse::ok(paging.page(rows, Order::NewestFirst, DeliveryAttempt::to_json))
}

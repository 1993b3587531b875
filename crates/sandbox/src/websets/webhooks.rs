//! Webhooks. Nothing is sent: every event a webhook asked for counts as delivered at once, or as
//! refused when its address contains `fail`.

use serde_json::{Value, json};

use super::events::Event;
use crate::call::{Call, Outcome, Reply};
use crate::failure::Failure;
use crate::state::{Account, Order, Paging, Table};
use crate::time::iso;

/// Attempts kept of one webhook.
const MOST_ATTEMPTS: usize = 500;

/// One webhook.
pub(crate) struct Webhook {
    id: String,
    events: Vec<Value>,
    url: String,
    metadata: Value,
    attempts: Table<Attempt>,
    created: u64,
    updated: u64,
}

struct Attempt {
    id: String,
    webhook: String,
    event: String,
    kind: &'static str,
    url: String,
    successful: bool,
    at: u64,
}

impl Webhook {
    /// The secret is told only once, on creation.
    fn to_json(&self, secret: Option<&str>) -> Value {
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

impl Attempt {
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
            "eventType": self.kind,
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

impl Account {
    pub(super) fn deliver(&mut self, event: &Event) {
        let wanted = |webhook: &Webhook| {
            webhook
                .events
                .iter()
                .any(|kind| kind.as_str() == Some(event.kind))
        };
        let ids: Vec<String> = self
            .webhooks
            .values()
            .filter(|webhook| wanted(webhook))
            .map(|webhook| webhook.id.clone())
            .collect();
        for id in ids {
            let attempt = self.id("attempt");
            let Some(webhook) = self.webhooks.get_mut(&id) else {
                continue;
            };
            webhook.attempts.insert(
                &attempt,
                Attempt {
                    id: attempt.clone(),
                    webhook: id.clone(),
                    event: event.id.clone(),
                    kind: event.kind,
                    url: webhook.url.clone(),
                    successful: !webhook.url.contains("fail"),
                    at: event.created,
                },
            );
            webhook.attempts.shrink_to(MOST_ATTEMPTS);
        }
    }

    fn webhook_of(&mut self, call: &Call) -> Result<&mut Webhook, Failure> {
        let id = call.text("webhookId");
        self.webhooks
            .get_mut(id)
            .ok_or_else(|| Failure::not_found("Webhook", id))
    }
}

/// `POST /websets/v0/webhooks`.
pub(crate) fn create(account: &mut Account, call: &Call) -> Outcome {
    account.need_room(1)?;
    let id = account.id("webhook");
    let secret = account.secret();
    let webhook = Webhook {
        events: call.list("events").to_vec(),
        url: call.text("url").to_owned(),
        metadata: call.metadata(),
        attempts: Table::default(),
        created: account.now(),
        updated: account.now(),
        id: id.clone(),
    };
    let json = webhook.to_json(Some(&secret));
    account.webhooks.insert(&id, webhook);
    Reply::ok(json)
}

/// `GET /websets/v0/webhooks/{id}`.
pub(crate) fn get(account: &mut Account, call: &Call) -> Outcome {
    Reply::ok(account.webhook_of(call)?.to_json(None))
}

/// `GET /websets/v0/webhooks`.
pub(crate) fn list(account: &mut Account, call: &Call) -> Outcome {
    let paging = Paging::of(call, 25, 200)?;
    Reply::ok(
        paging.page(account.webhooks.placed(), Order::NewestFirst, |webhook| {
            webhook.to_json(None)
        }),
    )
}

/// `PATCH /websets/v0/webhooks/{id}`.
pub(crate) fn update(account: &mut Account, call: &Call) -> Outcome {
    let now = account.now();
    let webhook = account.webhook_of(call)?;
    if call.get("events").is_some() {
        webhook.events = call.list("events").to_vec();
    }
    if let Some(url) = call.opt_text("url") {
        url.clone_into(&mut webhook.url);
    }
    if call.get("metadata").is_some() {
        webhook.metadata = call.metadata();
    }
    webhook.updated = now;
    Reply::ok(webhook.to_json(None))
}

/// `DELETE /websets/v0/webhooks/{id}`.
pub(crate) fn delete(account: &mut Account, call: &Call) -> Outcome {
    let id = call.text("webhookId");
    let webhook = account
        .webhooks
        .remove(id)
        .ok_or_else(|| Failure::not_found("Webhook", id))?;
    Reply::ok(webhook.to_json(None))
}

/// `GET /websets/v0/webhooks/{id}/attempts`.
pub(crate) fn list_attempts(account: &mut Account, call: &Call) -> Outcome {
    let paging = Paging::of(call, 25, 200)?;
    let kind = call.opt_text("eventType");
    let successful = call.get("successful").and_then(Value::as_bool);
    let webhook = account.webhook_of(call)?;
    let rows = webhook.attempts.placed().filter(|(_, attempt)| {
        kind.is_none_or(|kind| attempt.kind == kind)
            && successful.is_none_or(|wanted| attempt.successful == wanted)
    });
    Reply::ok(paging.page(rows, Order::NewestFirst, Attempt::to_json))
}

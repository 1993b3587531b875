//! Messages that belong to a subscription name it by the id of the request that began it. That request
//! has a number of our own inside, so the client's id is put back on the way out.

use rmcp::model::{
    GetMeta, JsonRpcMessage, ServerJsonRpcMessage, ServerNotification, ServerResult,
};
use serde_json::Value;

use super::ledger::Ledger;

/// Where a message names its subscription.
const KEY: &str = "io.modelcontextprotocol/subscriptionId";

/// Puts the client's id back; says whether the message may leave, which it may not when the client has
/// ended the subscription.
pub(super) fn restore_id(message: &mut ServerJsonRpcMessage, ledger: &Ledger) -> bool {
    match message {
        JsonRpcMessage::Notification(message) => restore_in(&mut message.notification, ledger),
        JsonRpcMessage::Response(response) => {
            if let ServerResult::SubscriptionsListenResult(result) = &mut response.result
                && let Some(id) = ledger.id(&response.id)
            {
                result.meta.insert(KEY.to_owned(), id.clone());
            }
            true
        }
        _ => true,
    }
}

fn restore_in(notification: &mut ServerNotification, ledger: &Ledger) -> bool {
    let Some(number) = notification.get_meta().subscription_id() else {
        return true;
    };
    let Some(id) = ledger.id(&number) else {
        return false;
    };
    let id: Value = id.clone();
    notification.get_meta_mut().insert(KEY.to_owned(), id);
    true
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use rmcp::model::{
        RequestId, ResourceUpdatedNotification, ResourceUpdatedNotificationParam,
        SubscriptionsListenResult,
    };
    use serde_json::json;

    use super::*;

    fn updated(subscription: &RequestId) -> ServerJsonRpcMessage {
        let params = ResourceUpdatedNotificationParam::new("note:///a");
        let notification = ResourceUpdatedNotification::new(params);
        let mut notification = ServerNotification::ResourceUpdatedNotification(notification);
        let meta = notification.get_meta_mut();
        meta.set_subscription_id(subscription.clone());
        JsonRpcMessage::notification(notification)
    }

    #[test]
    fn the_clients_id_is_put_back_whatever_it_is() {
        let mut ledger = Ledger::default();
        for id in [json!("mine"), json!(7), json!(u64::MAX), json!(1.0)] {
            let number = ledger.enter(id.clone(), None);
            let result = SubscriptionsListenResult::complete(number.clone());
            let result = ServerResult::SubscriptionsListenResult(result);
            for (mut message, place) in [
                (updated(&number), "/params/_meta"),
                (
                    JsonRpcMessage::response(result, number.clone()),
                    "/result/_meta",
                ),
            ] {
                assert!(restore_id(&mut message, &ledger));
                let message = serde_json::to_value(&message).unwrap();
                let meta = message.pointer(place).unwrap();
                assert_eq!(meta.get(KEY), Some(&id), "{message}");
            }
        }
    }

    #[test]
    fn nothing_is_told_of_a_subscription_that_has_ended() {
        let mut ledger = Ledger::default();
        let number = ledger.enter(json!("mine"), None);
        ledger.cancel(&json!("mine"));
        assert!(!restore_id(&mut updated(&number), &ledger));
    }
}

//! Restores client ids in messages of a subscription. Such messages name the request that opened the
//! subscription, which has an internal id.

use rmcp::model::{
    GetMeta, JsonRpcMessage, ServerJsonRpcMessage, ServerNotification, ServerResult,
};
use serde_json::Value;

use super::pending_requests::PendingRequests;

/// The metadata key that names the subscription of a message.
const KEY: &str = "io.modelcontextprotocol/subscriptionId";

/// Restores the client's id. Returns `false` if the message must be dropped because the client ended the
/// subscription.
pub(super) fn restore_id(message: &mut ServerJsonRpcMessage, pending: &PendingRequests) -> bool {
    match message {
        JsonRpcMessage::Notification(message) => restore_in(&mut message.notification, pending),
        JsonRpcMessage::Response(response) => {
            if let ServerResult::SubscriptionsListenResult(result) = &mut response.result
                && let Some(id) = pending.id(&response.id)
            {
                result.meta.insert(KEY.to_owned(), id.clone());
            }
            true
        }
        _ => true,
    }
}

fn restore_in(notification: &mut ServerNotification, pending: &PendingRequests) -> bool {
    let Some(number) = notification.get_meta().subscription_id() else {
        return true;
    };
    let Some(id) = pending.id(&number) else {
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
    fn restores_client_ids_of_any_type() {
        let mut pending = PendingRequests::default();
        for id in [json!("mine"), json!(7), json!(u64::MAX), json!(1.0)] {
            let number = pending.register(id.clone(), None);
            let result = SubscriptionsListenResult::complete(number.clone());
            let result = ServerResult::SubscriptionsListenResult(result);
            for (mut message, pointer) in [
                (updated(&number), "/params/_meta"),
                (
                    JsonRpcMessage::response(result, number.clone()),
                    "/result/_meta",
                ),
            ] {
                assert!(restore_id(&mut message, &pending));
                let message = serde_json::to_value(&message).unwrap();
                let meta = message.pointer(pointer).unwrap();
                assert_eq!(meta.get(KEY), Some(&id), "{message}");
            }
        }
    }

    #[test]
    fn drops_messages_of_ended_subscriptions() {
        let mut pending = PendingRequests::default();
        let number = pending.register(json!("mine"), None);
        pending.cancel(&json!("mine"));
        assert!(!restore_id(&mut updated(&number), &pending));
    }
}

//! The list of resources, and subscriptions to resources.

use http::request::Parts;
use rmcp::{
    RoleServer,
    model::{ErrorData, ListResourcesResult, SubscriptionFilter},
    service::{RequestContext, SubscriptionContext},
};

use super::handler::{Handler, request_version};
use super::tools::Tools;
use super::{request, resources, skills, subscriptions};

impl<T: Tools> Handler<T> {
    /// Returns a page of resources. From now on, the client is notified when the list changes.
    pub(super) async fn resource_list(
        &self,
        cursor: Option<String>,
        context: &RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let scope = self.scope(&context.extensions);
        let resources = scope.resources("resources/list")?;
        let protocol = request_version(context);
        if !protocol.is_stateless() && self.subscriptions.include_list() {
            let parts = context.extensions.get::<Parts>();
            if let Some(parts) = parts {
                Box::pin(request::share_list_interest(parts)).await;
            }
            if parts.is_some_and(request::is_replayed) {
                // Only the interest is replayed.
                return Ok(ListResourcesResult::default());
            }
        }
        let owner = scope.owner.identity();
        let mut list = resources::list(&resources, owner, &protocol, cursor.as_deref()).await?;
        if list.next_cursor.is_none() {
            list.resources.extend(skills::resources(&protocol));
        }
        Ok(list)
    }

    /// Subscribes a client of a session to a resource.
    pub(super) async fn subscribe_to(
        &self,
        uri: String,
        context: &RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let scope = self.scope(&context.extensions);
        let resources = scope.resources("resources/subscribe")?;
        let address = resources::parse_address(&uri)?;
        let parts = context.extensions.get::<Parts>();
        if !parts.is_some_and(request::is_replayed) {
            let known = Box::pin(resources.check_exists(scope.owner.identity(), &address)).await;
            known.map_err(|error| resources::read_error(&uri, &error))?;
        }
        let subscriber = scope.subscriber();
        let may_poll = parts.is_none_or(request::is_from_client);
        self.subscriptions
            .subscribe(uri.clone(), address, |address| {
                let subscriber = Some(subscriber).filter(|_| may_poll)?;
                resources.poll(&subscriber, address)
            })?;
        if let Some(parts) = parts {
            Box::pin(request::share_subscription(parts, &uri, true)).await;
        }
        Ok(())
    }

    /// Unsubscribes a client of a session from a resource.
    pub(super) async fn unsubscribe_from(
        &self,
        uri: &str,
        context: &RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.scope(&context.extensions)
            .resources("resources/unsubscribe")?;
        self.subscriptions.unsubscribe(uri);
        if let Some(parts) = context.extensions.get::<Parts>() {
            Box::pin(request::share_subscription(parts, uri, false)).await;
        }
        Ok(())
    }

    /// Returns the supported part of a requested subscription, and starts to collect events for it.
    pub(super) fn accept_subscriptions(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        let resources = self.scope.tools.resources()?;
        self.expected_watches.insert(resources.prepare_watch());
        Some(subscriptions::accept(requested))
    }

    /// Notifies a client of 2026-07-28 of changes until it cancels the subscription.
    pub(super) async fn listen_for_changes(
        &self,
        context: SubscriptionContext,
    ) -> Result<(), ErrorData> {
        let expected = self.expected_watches.take();
        let scope = self.scope(&context.request_context().extensions);
        let resources = scope.resources("subscriptions/listen")?;
        let expected = expected.unwrap_or_else(|| resources.prepare_watch());
        let watch = expected.into_watch(scope.owner.identity());
        let subscriber = scope.subscriber();
        Box::pin(subscriptions::listen(
            context,
            watch,
            &resources,
            &subscriber,
        ))
        .await;
        Ok(())
    }
}

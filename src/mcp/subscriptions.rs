//! Notifies clients of changed resources, in both protocol generations.
//!
//! Up to 2025-11-25 a client subscribes to single resources with `resources/subscribe`, and receives changes of the list
//! once it has listed resources or subscribed to one. Since 2026-07-28 it requests both with one `subscriptions/listen`
//! that stays open.

use std::{
    collections::HashMap,
    future::Future,
    sync::{Arc, Mutex},
    time::Duration,
};

use rmcp::{
    RoleServer,
    model::{ErrorData, ResourceUpdatedNotificationParam, SubscriptionFilter},
    service::{Peer, SubscriptionContext, SubscriptionSink},
};
use tokio::{
    task::{self, AbortHandle},
    time::{Instant, sleep_until},
};

use crate::tools::ResourceUri;
use crate::tools::resources::{
    PendingWatch, PollGuard, ResourceEvent, ResourceWatch, Resources, Subscriber,
};
use crate::tools::watchers::Watched;
use exa_mcp_model::lock;

/// The most resources that one client may subscribe to.
const MAX_SUBSCRIPTIONS: usize = 1_000;

/// How long a notification that the list changed waits for further changes: clients fetch the list again each time.
///
/// It also keeps the notification away from the answer of the call that changed the list. Older Python SDKs crash when
/// a message arrives while they close, which programs do after their last answer.
const DELAY: Duration = Duration::from_secs(1);

/// The subscriptions of a client up to 2025-11-25.
#[derive(Default)]
pub(super) struct Subscriptions {
    watched: Arc<Mutex<Watched>>,
    /// The subscribed websets that are polled, by URI.
    polls: Mutex<HashMap<String, PollGuard>>,
    /// Collects events from the handshake on, so that none is missed until the client is ready.
    watch: Mutex<Option<ResourceWatch>>,
    task: Mutex<Option<AbortHandle>>,
}

impl Subscriptions {
    /// Starts collecting events.
    pub(super) fn prepare(&self, watch: ResourceWatch) {
        watch.watch_only(Arc::clone(&self.watched));
        *lock(&self.watch) = Some(watch);
    }

    /// Starts notifying the client, after it reported that it is ready.
    pub(super) fn start(&self, peer: Peer<RoleServer>) {
        let Some(watch) = lock(&self.watch).take() else {
            return;
        };
        let watched = Arc::clone(&self.watched);
        let task = tokio::spawn(async move {
            let affected = |event: &ResourceEvent| affected_uris(&lock(&watched), event);
            forward(watch, affected, &peer).await;
        });
        *lock(&self.task) = Some(task.abort_handle());
    }

    /// Notifies the client of changes of the list from now on. Returns `false` if it was notified before.
    pub(super) fn include_list(&self) -> bool {
        !std::mem::replace(&mut lock(&self.watched).list, true)
    }

    /// Subscribes to a resource. `poll` starts to poll a webset.
    pub(super) fn subscribe(
        &self,
        uri: String,
        address: ResourceUri,
        poll: impl FnOnce(&ResourceUri) -> Option<PollGuard>,
    ) -> Result<(), ErrorData> {
        let mut watched = lock(&self.watched);
        if watched.uris.len() >= MAX_SUBSCRIPTIONS && !watched.uris.contains_key(&uri) {
            let text = format!(
                "At most {MAX_SUBSCRIPTIONS} subscriptions are allowed; unsubscribe from some"
            );
            return Err(ErrorData::invalid_params(text, None));
        }
        // The former guard is dropped afterwards, so that polling goes on.
        let guard = poll(&address);
        let mut polls = lock(&self.polls);
        let _former = match guard {
            Some(guard) => polls.insert(uri.clone(), guard),
            None => polls.remove(&uri),
        };
        watched.list = true;
        watched.uris.insert(uri, address);
        Ok(())
    }

    /// Unsubscribes from a resource.
    pub(super) fn unsubscribe(&self, uri: &str) {
        lock(&self.watched).uris.remove(uri);
        lock(&self.polls).remove(uri);
    }
}

impl Drop for Subscriptions {
    fn drop(&mut self) {
        if let Some(task) = lock(&self.task).take() {
            task.abort();
        }
    }
}

/// Returns the supported part of a requested filter: changes of the list, and our own URIs.
pub(super) fn accept(requested: &SubscriptionFilter) -> SubscriptionFilter {
    let uris = requested.resource_subscriptions.iter().flatten();
    let ours = uris
        .filter(|uri| ResourceUri::parse(uri).is_some())
        .take(MAX_SUBSCRIPTIONS);
    let mut accepted = SubscriptionFilter::builder().resource_subscriptions(ours.cloned());
    if requested.resources_list_changed == Some(true) {
        accepted = accepted.resources_list_changed();
    }
    accepted.build()
}

/// Watches that start before their request is handled. rmcp acknowledges a `subscriptions/listen` before it passes on
/// the request, and a client may rely on the acknowledgement at once.
#[derive(Default)]
pub(super) struct ExpectedWatches(Mutex<HashMap<task::Id, PendingWatch>>);

impl ExpectedWatches {
    /// Stores the watch of the request that the current task handles.
    pub(super) fn insert(&self, watch: PendingWatch) {
        if let Some(task) = task::try_id() {
            lock(&self.0).insert(task, watch);
        }
    }

    /// Removes the watch of the request that the current task handles.
    pub(super) fn take(&self) -> Option<PendingWatch> {
        lock(&self.0).remove(&task::try_id()?)
    }
}

/// Notifies the client of changes until it cancels the subscription.
pub(super) async fn listen(
    context: SubscriptionContext,
    watch: ResourceWatch,
    resources: &Resources,
    subscriber: &Subscriber,
) {
    let accepted = context.accepted();
    let uris = accepted.resource_subscriptions.iter().flatten();
    let known = uris.filter_map(|uri| Some((uri.clone(), ResourceUri::parse(uri)?)));
    let uris: HashMap<String, ResourceUri> = known.collect();
    let polled = uris.values();
    let _polls: Vec<_> = polled
        .filter_map(|uri| resources.poll(subscriber, uri))
        .collect();
    let list = accepted.resources_list_changed == Some(true);
    let watched = Arc::new(Mutex::new(Watched { list, uris }));
    watch.watch_only(Arc::clone(&watched));
    let affected = |event: &ResourceEvent| affected_uris(&lock(&watched), event);
    tokio::select! {
        () = context.cancelled() => {}
        () = forward(watch, affected, context.sink()) => {}
    }
}

/// Returns the URIs of the subscribed resources that an event affects.
fn affected_uris(watched: &Watched, event: &ResourceEvent) -> Vec<String> {
    let is_affected = |address: &ResourceUri| match event {
        ResourceEvent::ListChanged => false,
        ResourceEvent::Updated(changed) => address.is_within(changed),
        ResourceEvent::Lagged => true,
    };
    let affected = watched
        .uris
        .iter()
        .filter(|(_, address)| is_affected(address));
    affected.map(|(uri, _)| uri.clone()).collect()
}

/// Receives notifications. The methods return whether the receiver is still connected.
trait NotificationSink {
    fn notify_list_changed(&self) -> impl Future<Output = bool> + Send;
    fn notify_updated(&self, uri: String) -> impl Future<Output = bool> + Send;
}

impl NotificationSink for Peer<RoleServer> {
    async fn notify_list_changed(&self) -> bool {
        self.notify_resource_list_changed().await.is_ok()
    }

    async fn notify_updated(&self, uri: String) -> bool {
        let params = ResourceUpdatedNotificationParam::new(uri);
        self.notify_resource_updated(params).await.is_ok()
    }
}

impl NotificationSink for SubscriptionSink {
    async fn notify_list_changed(&self) -> bool {
        self.notify_resource_list_changed().await.is_ok()
    }

    async fn notify_updated(&self, uri: String) -> bool {
        self.notify_resource_updated(uri).await.is_ok()
    }
}

/// Forwards events to a sink until it is disconnected.
async fn forward(
    mut watch: ResourceWatch,
    affected: impl Fn(&ResourceEvent) -> Vec<String>,
    sink: &impl NotificationSink,
) {
    // When the notification about the list is sent.
    let mut due: Option<Instant> = None;
    loop {
        tokio::select! {
            event = watch.next() => {
                if event == ResourceEvent::ListChanged {
                    due.get_or_insert_with(|| Instant::now() + DELAY);
                }
                for uri in affected(&event) {
                    if !sink.notify_updated(uri).await {
                        return;
                    }
                }
            }
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                due = None;
                if !sink.notify_list_changed().await {
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;
    use tokio::time::sleep;

    use super::*;
    use crate::operations::OperationExecutor;
    use crate::tools::{ResultCache, ToolExecutor};
    use exa_mcp_exa_client::{ExaConfig, ExaHttp};
    use exa_mcp_model::Identity;

    /// Records notifications, and disconnects after a number of them.
    #[derive(Clone)]
    struct RecordingSink {
        received: Arc<Mutex<Vec<String>>>,
        limit: usize,
    }

    impl RecordingSink {
        fn new(limit: usize) -> Self {
            let received = Arc::default();
            Self { received, limit }
        }

        fn record(&self, notification: String) -> bool {
            let mut received = lock(&self.received);
            received.push(notification);
            received.len() < self.limit
        }

        fn take_received(&self) -> String {
            std::mem::take(&mut *lock(&self.received)).join(" ")
        }
    }

    impl NotificationSink for RecordingSink {
        async fn notify_list_changed(&self) -> bool {
            self.record("list".to_owned())
        }

        async fn notify_updated(&self, uri: String) -> bool {
            self.record(uri)
        }
    }

    /// Forwards the changes of a result cache to a sink: all, or those that are watched.
    fn forward_changes(
        watched: Option<Arc<Mutex<Watched>>>,
        sink: &RecordingSink,
    ) -> (ResultCache, tokio::task::JoinHandle<()>) {
        let cache = ResultCache::default();
        let http = ExaHttp::new(ExaConfig::default()).unwrap();
        let executor = ToolExecutor::new(
            "default",
            OperationExecutor::new(
                http,
                None,
                std::sync::Arc::new(crate::operations::spend::Unlimited),
            ),
            cache.clone(),
        )
        .unwrap();
        let watch = executor.resources().watch(&Identity::local());
        let sink = sink.clone();
        let task = tokio::spawn(async move {
            let _alive = executor;
            if let Some(watched) = watched {
                watch.watch_only(watched);
            }
            forward(
                watch,
                |event| match event {
                    ResourceEvent::Updated(address) => vec![address.to_string()],
                    _ => Vec::new(),
                },
                &sink,
            )
            .await;
        });
        (cache, task)
    }

    fn add_result(cache: &ResultCache) -> String {
        let cached = cache.add(&Identity::local(), "t", "search", &json!({"results": []}));
        format!("exa://results/{}", cached.id)
    }

    #[tokio::test(start_paused = true)]
    async fn coalesces_notifications_about_the_list() {
        let sink = RecordingSink::new(usize::MAX);
        let (cache, _task) = forward_changes(None, &sink);
        for _ in 0..20 {
            add_result(&cache);
            sleep(DELAY / 100).await;
        }
        assert_eq!(sink.take_received(), "", "not right after the answer");
        sleep(DELAY).await;
        assert_eq!(sink.take_received(), "list");
        sleep(10 * DELAY).await;
        assert_eq!(sink.take_received(), "", "no duplicate notification");
        add_result(&cache);
        sleep(2 * DELAY).await;
        assert_eq!(sink.take_received(), "list");
    }

    #[tokio::test(start_paused = true)]
    async fn notifies_of_resources_at_once_and_of_the_list_only_on_request() {
        let sink = RecordingSink::new(usize::MAX);
        let watched = Arc::new(Mutex::new(Watched::default()));
        let (cache, _task) = forward_changes(Some(Arc::clone(&watched)), &sink);
        let uri = add_result(&cache);
        let address = ResourceUri::parse(&uri).unwrap();
        lock(&watched).uris.insert(uri.clone(), address);
        cache.remove_oldest();
        sleep(DELAY / 100).await;
        assert_eq!(sink.take_received(), uri);
    }

    #[tokio::test(start_paused = true)]
    async fn stops_when_the_sink_is_disconnected() {
        let sink = RecordingSink::new(1);
        let (cache, task) = forward_changes(None, &sink);
        add_result(&cache);
        task.await.unwrap();
    }

    #[test]
    fn accepts_only_supported_subscriptions() {
        let requested = SubscriptionFilter::builder()
            .tools_list_changed()
            .resource_subscriptions(["note:///a", "file:///b", "exa://websets/c"])
            .build();
        let accepted = accept(&requested);
        assert_eq!(accepted.resources_list_changed, None);
        assert_eq!(accepted.tools_list_changed, None);
        let uris = accepted.resource_subscriptions.unwrap();
        assert_eq!(uris, ["note:///a", "exa://websets/c"]);
        let many = (0..2 * MAX_SUBSCRIPTIONS).map(|number| format!("note:///{number}"));
        let requested = SubscriptionFilter::builder()
            .resource_subscriptions(many)
            .build();
        let accepted = super::accept(&requested).resource_subscriptions;
        assert_eq!(accepted.unwrap().len(), MAX_SUBSCRIPTIONS);
    }
}

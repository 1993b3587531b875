//! Telling clients of changes, in the way of either era.
//!
//! Up to 2025-11-25 a client names single resources by `resources/subscribe` and hears of changes of the
//! list unasked; from 2026-07-28 on it asks for both with one `subscriptions/listen` that stays open.

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
use crate::tools::resources::{PendingWatch, ResourceEvent, ResourceWatch};
use crate::tools::watchers::WatchedUris;
use exa_mcp_model::lock;

/// How many resources one client may follow.
const MOST: usize = 1_000;

/// The least time between two messages that the list has changed: clients fetch it anew each time.
const PAUSE: Duration = Duration::from_secs(1);

/// What a client of the older eras wants to hear of.
#[derive(Default)]
pub(super) struct Subscriptions {
    followed: Arc<Mutex<WatchedUris>>,
    /// Listens from the handshake on, so that nothing is missed until the client is ready.
    watch: Mutex<Option<ResourceWatch>>,
    task: Mutex<Option<AbortHandle>>,
}

impl Subscriptions {
    /// Begins to listen.
    pub(super) fn prepare(&self, watch: ResourceWatch) {
        watch.watch_only(Arc::clone(&self.followed));
        *lock(&self.watch) = Some(watch);
    }

    /// Begins to tell the client; it has said that it is ready.
    pub(super) fn start(&self, peer: Peer<RoleServer>) {
        let Some(watch) = lock(&self.watch).take() else {
            return;
        };
        let followed = Arc::clone(&self.followed);
        let task = tokio::spawn(async move {
            let wanted = |event: &ResourceEvent| touched(&lock(&followed), event);
            forward(watch, wanted, &peer).await;
        });
        *lock(&self.task) = Some(task.abort_handle());
    }

    /// Follows a resource.
    pub(super) fn follow(&self, uri: String, address: ResourceUri) -> Result<(), ErrorData> {
        let mut followed = lock(&self.followed);
        if followed.len() >= MOST && !followed.contains_key(&uri) {
            let text = format!("At most {MOST} resources can be followed; unsubscribe from some");
            return Err(ErrorData::invalid_params(text, None));
        }
        followed.insert(uri, address);
        Ok(())
    }

    /// Follows a resource no longer.
    pub(super) fn leave(&self, uri: &str) {
        lock(&self.followed).remove(uri);
    }
}

impl Drop for Subscriptions {
    fn drop(&mut self) {
        if let Some(task) = lock(&self.task).take() {
            task.abort();
        }
    }
}

/// The part of what a client asks for that it gets: changes of the list, and addresses of ours.
pub(super) fn accepted(requested: &SubscriptionFilter) -> SubscriptionFilter {
    let uris = requested.resource_subscriptions.iter().flatten();
    let ours = uris
        .filter(|uri| ResourceUri::parse(uri).is_some())
        .take(MOST);
    let mut accepted = SubscriptionFilter::builder().resource_subscriptions(ours.cloned());
    if requested.resources_list_changed == Some(true) {
        accepted = accepted.resources_list_changed();
    }
    accepted.build()
}

/// Watches that began before their clients were told so. rmcp acknowledges a `subscriptions/listen` before it
/// hands the request over, and a client may rely on the acknowledgement at once.
#[derive(Default)]
pub(super) struct ExpectedWatches(Mutex<HashMap<task::Id, PendingWatch>>);

impl ExpectedWatches {
    /// Keeps the watch of the request that the present task answers.
    pub(super) fn begin(&self, watch: PendingWatch) {
        if let Some(task) = task::try_id() {
            lock(&self.0).insert(task, watch);
        }
    }

    /// Takes the watch of the request that the present task answers.
    pub(super) fn take(&self) -> Option<PendingWatch> {
        lock(&self.0).remove(&task::try_id()?)
    }
}

/// Tells of changes until the client has heard enough.
pub(super) async fn listen(context: SubscriptionContext, watch: ResourceWatch) {
    let accepted = context.accepted();
    let uris = accepted.resource_subscriptions.iter().flatten();
    let known = uris.filter_map(|uri| Some((uri.clone(), ResourceUri::parse(uri)?)));
    let followed: WatchedUris = known.collect();
    if accepted.resources_list_changed != Some(true) {
        watch.ignore_lists();
    }
    let followed = Arc::new(Mutex::new(followed));
    watch.watch_only(Arc::clone(&followed));
    let wanted = |event: &ResourceEvent| touched(&lock(&followed), event);
    tokio::select! {
        () = context.cancelled() => {}
        () = forward(watch, wanted, context.sink()) => {}
    }
}

/// The followed resources that an event is about.
fn touched(followed: &WatchedUris, event: &ResourceEvent) -> Vec<String> {
    let is_touched = |address: &ResourceUri| match event {
        ResourceEvent::ListChanged => false,
        ResourceEvent::Updated(changed) => address.is_within(changed),
        ResourceEvent::Lagged => true,
    };
    let touched = followed.iter().filter(|(_, address)| is_touched(address));
    touched.map(|(uri, _)| uri.clone()).collect()
}

/// Someone to tell. The answers say whether it is still there.
trait Listener {
    fn list_changed(&self) -> impl Future<Output = bool> + Send;
    fn updated(&self, uri: String) -> impl Future<Output = bool> + Send;
}

impl Listener for Peer<RoleServer> {
    async fn list_changed(&self) -> bool {
        self.notify_resource_list_changed().await.is_ok()
    }

    async fn updated(&self, uri: String) -> bool {
        let params = ResourceUpdatedNotificationParam::new(uri);
        self.notify_resource_updated(params).await.is_ok()
    }
}

impl Listener for SubscriptionSink {
    async fn list_changed(&self) -> bool {
        self.notify_resource_list_changed().await.is_ok()
    }

    async fn updated(&self, uri: String) -> bool {
        self.notify_resource_updated(uri).await.is_ok()
    }
}

/// Tells a listener of what it wants to hear, until it is gone.
async fn forward(
    mut watch: ResourceWatch,
    wanted: impl Fn(&ResourceEvent) -> Vec<String>,
    listener: &impl Listener,
) {
    // When it may next be told of the list.
    let mut pause_ends: Option<Instant> = None;
    loop {
        tokio::select! {
            event = watch.next() => {
                if event == ResourceEvent::ListChanged {
                    if !listener.list_changed().await {
                        return;
                    }
                    watch.pause_lists();
                    pause_ends = Some(Instant::now() + PAUSE);
                }
                for uri in wanted(&event) {
                    if !listener.updated(uri).await {
                        return;
                    }
                }
            }
            () = sleep_until(pause_ends.unwrap_or_else(Instant::now)), if pause_ends.is_some() => {
                pause_ends = None;
                watch.resume_lists();
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
    use crate::operations::Caller;
    use crate::tools::{ResultCache, ToolExecutor};
    use exa_mcp_exa_client::{ExaConfig, ExaHttp};
    use exa_mcp_model::Identity;

    /// Remembers what it was told, and hears only so much.
    #[derive(Clone)]
    struct Ear {
        heard: Arc<Mutex<Vec<String>>>,
        patience: usize,
    }

    impl Ear {
        fn new(patience: usize) -> Self {
            let heard = Arc::default();
            Self { heard, patience }
        }

        fn hear(&self, word: String) -> bool {
            let mut heard = lock(&self.heard);
            heard.push(word);
            heard.len() < self.patience
        }

        fn heard(&self) -> String {
            std::mem::take(&mut *lock(&self.heard)).join(" ")
        }
    }

    impl Listener for Ear {
        async fn list_changed(&self) -> bool {
            self.hear("list".to_owned())
        }

        async fn updated(&self, uri: String) -> bool {
            self.hear(uri)
        }
    }

    /// Someone who listens to what happens to the answers that a cache keeps.
    fn listening(lists: bool, ear: &Ear) -> (ResultCache, tokio::task::JoinHandle<()>) {
        let cache = ResultCache::default();
        let http = ExaHttp::new(ExaConfig::default()).unwrap();
        let executor = ToolExecutor::new(
            "default",
            Caller::new(
                http,
                None,
                std::sync::Arc::new(crate::operations::spend::Unlimited),
            ),
            cache.clone(),
        )
        .unwrap();
        let watch = executor.resources().watch(&Identity::local());
        let ear = ear.clone();
        let task = tokio::spawn(async move {
            let _alive = executor;
            if !lists {
                watch.ignore_lists();
            }
            forward(
                watch,
                |event| match event {
                    ResourceEvent::Updated(address) => vec![address.to_string()],
                    _ => Vec::new(),
                },
                &ear,
            )
            .await;
        });
        (cache, task)
    }

    fn keep(cache: &ResultCache) -> String {
        let kept = cache.add(&Identity::local(), "t", "search", &json!({"results": []}));
        format!("exa://results/{}", kept.id)
    }

    #[tokio::test(start_paused = true)]
    async fn many_changes_of_the_list_are_told_as_few() {
        let ear = Ear::new(usize::MAX);
        let (cache, _task) = listening(true, &ear);
        keep(&cache);
        sleep(PAUSE / 100).await;
        assert_eq!(ear.heard(), "list", "the first one at once");
        for _ in 0..20 {
            keep(&cache);
            sleep(PAUSE / 100).await;
        }
        assert_eq!(ear.heard(), "");
        sleep(PAUSE).await;
        assert_eq!(ear.heard(), "list");
        sleep(10 * PAUSE).await;
        assert_eq!(ear.heard(), "", "nothing is told twice");
    }

    #[tokio::test(start_paused = true)]
    async fn resources_are_told_at_once_and_lists_only_on_request() {
        let ear = Ear::new(usize::MAX);
        let (cache, _task) = listening(false, &ear);
        let uri = keep(&cache);
        cache.remove_oldest();
        sleep(PAUSE / 100).await;
        assert_eq!(ear.heard(), uri);
    }

    #[tokio::test(start_paused = true)]
    async fn a_listener_that_has_left_is_not_told_for_ever() {
        let ear = Ear::new(1);
        let (cache, task) = listening(true, &ear);
        keep(&cache);
        task.await.unwrap();
    }

    #[test]
    fn only_what_is_ours_is_accepted() {
        let requested = SubscriptionFilter::builder()
            .tools_list_changed()
            .resource_subscriptions(["note:///a", "file:///b", "exa://websets/c"])
            .build();
        let accepted = accepted(&requested);
        assert_eq!(accepted.resources_list_changed, None);
        assert_eq!(accepted.tools_list_changed, None);
        let uris = accepted.resource_subscriptions.unwrap();
        assert_eq!(uris, ["note:///a", "exa://websets/c"]);
        let many = (0..2 * MOST).map(|number| format!("note:///{number}"));
        let requested = SubscriptionFilter::builder()
            .resource_subscriptions(many)
            .build();
        let accepted = super::accepted(&requested).resource_subscriptions;
        assert_eq!(accepted.unwrap().len(), MOST);
    }
}

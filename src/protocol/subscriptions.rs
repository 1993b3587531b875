//! Telling clients of changes, in the way of either era.
//!
//! Up to 2025-11-25 a client names single resources by `resources/subscribe` and hears of changes of the
//! list unasked; from 2026-07-28 on it asks for both with one `subscriptions/listen` that stays open.

use std::{
    collections::HashMap,
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rmcp::{
    RoleServer,
    model::{ErrorData, ResourceUpdatedNotificationParam, SubscriptionFilter},
    service::{Peer, SubscriptionContext, SubscriptionSink},
};
use tokio::{
    task::AbortHandle,
    time::{Instant, sleep_until},
};

use crate::surface::Address;
use crate::surface::library::{Event, Watch};

/// How many resources one client may follow.
const MOST: usize = 1_000;

/// The least time between two messages that the list has changed: clients fetch it anew each time.
const PAUSE: Duration = Duration::from_secs(1);

/// The resources that are followed: each address as the client wrote it, and what it means.
type Followed = HashMap<String, Address>;

/// What a client of the older eras wants to hear of.
#[derive(Default)]
pub(super) struct Subscriptions {
    followed: Arc<Mutex<Followed>>,
    /// Listens from the handshake on, so that nothing is missed until the client is ready.
    watch: Mutex<Option<Watch>>,
    task: Mutex<Option<AbortHandle>>,
}

impl Subscriptions {
    /// Begins to listen.
    pub(super) fn prepare(&self, watch: Watch) {
        *lock(&self.watch) = Some(watch);
    }

    /// Begins to tell the client; it has said that it is ready.
    pub(super) fn start(&self, peer: Peer<RoleServer>) {
        let Some(watch) = lock(&self.watch).take() else {
            return;
        };
        let followed = Arc::clone(&self.followed);
        let task = tokio::spawn(async move {
            let wanted = |event: &Event| touched(&lock(&followed), event);
            forward(watch, true, wanted, &peer).await;
        });
        *lock(&self.task) = Some(task.abort_handle());
    }

    /// Follows a resource.
    pub(super) fn follow(&self, uri: String, address: Address) -> Result<(), ErrorData> {
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The part of what a client asks for that it gets: changes of the list, and addresses of ours.
pub(super) fn accepted(requested: &SubscriptionFilter) -> SubscriptionFilter {
    let uris = requested.resource_subscriptions.iter().flatten();
    let ours = uris.filter(|uri| Address::parse(uri).is_some()).take(MOST);
    let mut accepted = SubscriptionFilter::builder().resource_subscriptions(ours.cloned());
    if requested.resources_list_changed == Some(true) {
        accepted = accepted.resources_list_changed();
    }
    accepted.build()
}

/// Tells of changes until the client has heard enough.
pub(super) async fn listen(context: SubscriptionContext, watch: Watch) {
    let accepted = context.accepted();
    let uris = accepted.resource_subscriptions.iter().flatten();
    let known = uris.filter_map(|uri| Some((uri.clone(), Address::parse(uri)?)));
    let followed: Followed = known.collect();
    let lists = accepted.resources_list_changed == Some(true);
    let wanted = |event: &Event| touched(&followed, event);
    tokio::select! {
        () = context.cancelled() => {}
        () = forward(watch, lists, wanted, context.sink()) => {}
    }
}

/// The followed resources that an event is about.
fn touched(followed: &Followed, event: &Event) -> Vec<String> {
    let is_touched = |address: &Address| match event {
        Event::Listed => false,
        Event::Changed(changed) => address.is_within(changed),
        Event::Missed => true,
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

/// Tells a listener of what it wants to hear, until it or the library is gone.
async fn forward(
    mut watch: Watch,
    lists: bool,
    wanted: impl Fn(&Event) -> Vec<String>,
    listener: &impl Listener,
) {
    // When it may next be told of the list, and whether there is something to tell.
    let mut not_before = Instant::now();
    let mut due = false;
    loop {
        tokio::select! {
            event = watch.next() => {
                let Some(event) = event else { return };
                due |= lists && event == Event::Listed;
                for uri in wanted(&event) {
                    if !listener.updated(uri).await {
                        return;
                    }
                }
            }
            () = sleep_until(not_before), if due => {
                if !listener.list_changed().await {
                    return;
                }
                due = false;
                not_before = Instant::now() + PAUSE;
            }
        }
    }
}

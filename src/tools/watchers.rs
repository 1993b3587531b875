//! Subscriptions to resource events, indexed by owner: a change costs nothing for other owners.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use super::ResourceUri;
use exa_mcp_model::{Identity, lock};

/// How many events may be pending for a slow reader.
pub(super) const MAX_PENDING: usize = 256;

/// A change of resources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResourceEvent {
    /// The list of resources has changed.
    ListChanged,
    /// A resource, including its parts, has changed or was removed.
    Updated(ResourceUri),
    /// Events were lost; any resource may have changed.
    Lagged,
}

/// What a client watches.
#[derive(Default)]
pub(crate) struct Watched {
    /// Whether it wants to know that the list has changed.
    pub(crate) list: bool,
    /// The resources, by URI as the client wrote it.
    pub(crate) uris: HashMap<String, ResourceUri>,
}

/// Subscriptions by owner. Clones share their state.
#[derive(Clone, Default)]
pub(crate) struct Watchers(Arc<Mutex<Index>>);

#[derive(Default)]
struct Index {
    last_id: u64,
    by_owner: HashMap<Identity, HashMap<u64, Arc<Mailbox>>>,
    buffered: HashMap<u64, BufferedEvents>,
}

/// The events of all owners, for a reader whose owner is not known yet.
#[derive(Default)]
struct BufferedEvents {
    /// Each with its owner, or `None` for all owners.
    events: Vec<(Option<Identity>, ResourceEvent)>,
    /// Events were dropped.
    is_incomplete: bool,
}

impl BufferedEvents {
    fn put(&mut self, owner: Option<&Identity>, event: &ResourceEvent) {
        if self.events.len() < MAX_PENDING {
            self.events.push((owner.cloned(), event.clone()));
        } else {
            self.is_incomplete = true;
        }
    }

    fn into_events_of(self, owner: &Identity) -> Vec<ResourceEvent> {
        if self.is_incomplete {
            return vec![ResourceEvent::ListChanged, ResourceEvent::Lagged];
        }
        let is_own = |of: &Option<Identity>| of.as_ref().is_none_or(|of| of == owner);
        let own = self.events.into_iter().filter(|(of, _)| is_own(of));
        own.map(|(_, event)| event).collect()
    }
}

impl Watchers {
    /// Subscribes to the events of an owner from now on.
    pub(super) fn subscribe(&self, owner: &Identity) -> Subscription {
        let mailbox = Arc::new(Mailbox::default());
        let mut index = lock(&self.0);
        index.last_id += 1;
        let id = index.last_id;
        let own = index.by_owner.entry(owner.clone()).or_default();
        own.insert(id, Arc::clone(&mailbox));
        drop(index);
        Subscription {
            watchers: self.clone(),
            owner: owner.clone(),
            id,
            mailbox,
        }
    }

    /// Buffers events from now on for a reader that subscribes later.
    pub(super) fn prepare(&self) -> PendingSubscription {
        let mut index = lock(&self.0);
        index.last_id += 1;
        let id = index.last_id;
        index.buffered.insert(id, BufferedEvents::default());
        drop(index);
        PendingSubscription {
            watchers: self.clone(),
            id,
        }
    }

    /// Returns whether there are subscriptions for an owner.
    pub(super) fn contains(&self, owner: &Identity) -> bool {
        let index = lock(&self.0);
        index.by_owner.contains_key(owner) || !index.buffered.is_empty()
    }

    /// Sends an event to the subscriptions of an owner. Returns how many readers it wakes.
    pub(super) fn notify(&self, owner: &Identity, event: &ResourceEvent) -> usize {
        let mut index = lock(&self.0);
        let buffered = index.buffered.values_mut();
        buffered.for_each(|buffered| buffered.put(Some(owner), event));
        let own = index.by_owner.get(owner).into_iter();
        let own = own.flat_map(HashMap::values);
        own.filter(|mailbox| mailbox.put(event)).count()
    }

    /// Sends an event to all subscriptions. Returns how many readers it wakes.
    pub(super) fn notify_all(&self, event: &ResourceEvent) -> usize {
        let mut index = lock(&self.0);
        let buffered = index.buffered.values_mut();
        buffered.for_each(|buffered| buffered.put(None, event));
        let all = index.by_owner.values().flat_map(HashMap::values);
        all.filter(|mailbox| mailbox.put(event)).count()
    }
}

/// A future subscription, for which events are buffered.
pub(super) struct PendingSubscription {
    watchers: Watchers,
    id: u64,
}

impl PendingSubscription {
    /// Subscribes to the events of an owner, including the buffered ones.
    pub(super) fn subscribe(self, owner: &Identity) -> Subscription {
        let subscription = self.watchers.subscribe(owner);
        let buffered = lock(&self.watchers.0).buffered.remove(&self.id);
        for event in buffered.unwrap_or_default().into_events_of(owner) {
            subscription.mailbox.put(&event);
        }
        subscription
    }
}

impl Drop for PendingSubscription {
    fn drop(&mut self) {
        lock(&self.watchers.0).buffered.remove(&self.id);
    }
}

/// A subscription, which ends when it is dropped.
pub(super) struct Subscription {
    watchers: Watchers,
    owner: Identity,
    id: u64,
    mailbox: Arc<Mailbox>,
}

impl Subscription {
    /// Waits for the next event.
    pub(super) async fn next(&self) -> ResourceEvent {
        loop {
            let arrived = self.mailbox.arrived.notified();
            if let Some(event) = lock(&self.mailbox.state).waiting.pop_front() {
                return event;
            }
            arrived.await;
        }
    }

    /// Limits the events to these, those that are pending included.
    pub(super) fn watch_only(&self, watched: Arc<Mutex<Watched>>) {
        let mut state = lock(&self.mailbox.state);
        state.watched = Some(watched);
        let pending = std::mem::take(&mut state.waiting);
        state.waiting = pending.into_iter().filter(|e| state.wants(e)).collect();
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut index = lock(&self.watchers.0);
        if let Some(own) = index.by_owner.get_mut(&self.owner) {
            own.remove(&self.id);
            if own.is_empty() {
                index.by_owner.remove(&self.owner);
            }
        }
    }
}

#[derive(Default)]
struct Mailbox {
    state: Mutex<MailboxState>,
    arrived: Notify,
}

#[derive(Default)]
struct MailboxState {
    waiting: VecDeque<ResourceEvent>,
    /// What is of interest, if not everything is.
    watched: Option<Arc<Mutex<Watched>>>,
}

impl Mailbox {
    /// Adds an event, if it is of interest. Returns whether it was added.
    fn put(&self, event: &ResourceEvent) -> bool {
        let mut state = lock(&self.state);
        if !state.wants(event) {
            return false;
        }
        if state.waiting.back() == Some(event) {
            return false;
        }
        if state.waiting.len() >= MAX_PENDING {
            state.waiting.clear();
            if state.wants(&ResourceEvent::ListChanged) {
                state.waiting.push_back(ResourceEvent::ListChanged);
            }
            state.waiting.push_back(ResourceEvent::Lagged);
        } else {
            state.waiting.push_back(event.clone());
        }
        drop(state);
        self.arrived.notify_one();
        true
    }
}

impl MailboxState {
    fn wants(&self, event: &ResourceEvent) -> bool {
        let Some(watched) = &self.watched else {
            return true;
        };
        let watched = lock(watched);
        let mut uris = watched.uris.values();
        match event {
            ResourceEvent::ListChanged => watched.list,
            ResourceEvent::Updated(changed) => uris.any(|address| address.is_within(changed)),
            ResourceEvent::Lagged => !watched.uris.is_empty(),
        }
    }
}

#[cfg(test)]
#[allow(clippy::indexing_slicing, clippy::unwrap_used)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    fn webset(name: &str) -> ResourceEvent {
        ResourceEvent::Updated(ResourceUri::Webset(name.to_owned()))
    }

    fn watching(names: &[&str]) -> Arc<Mutex<Watched>> {
        let uris = names.iter().map(|name| {
            let address = ResourceUri::Webset((*name).to_owned());
            (address.to_string(), address)
        });
        let (list, uris) = (false, uris.collect());
        Arc::new(Mutex::new(Watched { list, uris }))
    }

    #[tokio::test]
    async fn wakes_only_readers_of_the_owner() {
        let watchers = Watchers::default();
        let user = |number: usize| Identity::user(&number.to_string());
        let idle: Vec<Subscription> = (0..10_000)
            .map(|number| watchers.subscribe(&user(number)))
            .collect();
        let second = watchers.subscribe(&user(7));
        assert_eq!(watchers.notify(&user(7), &ResourceEvent::ListChanged), 2);
        assert_eq!(watchers.notify(&user(8), &ResourceEvent::ListChanged), 1);
        assert_eq!(
            watchers.notify(&user(10_000), &ResourceEvent::ListChanged),
            0
        );
        assert_eq!(second.next().await, ResourceEvent::ListChanged);
        assert!(
            timeout(Duration::from_millis(5), idle[9].next())
                .await
                .is_err()
        );
        assert_eq!(watchers.notify_all(&ResourceEvent::Lagged), 10_001);
        drop((idle, second));
        assert!(lock(&watchers.0).by_owner.is_empty());
    }

    #[tokio::test]
    async fn buffers_events_until_a_reader_subscribes() {
        let watchers = Watchers::default();
        let (ann, bob) = (Identity::user("ann"), Identity::user("bob"));
        let pending = watchers.prepare();
        assert!(watchers.contains(&ann));
        watchers.notify(&ann, &ResourceEvent::ListChanged);
        watchers.notify(&bob, &webset("b"));
        watchers.notify(&ann, &webset("a"));
        let subscription = pending.subscribe(&ann);
        watchers.notify(&ann, &webset("later"));
        for event in [ResourceEvent::ListChanged, webset("a"), webset("later")] {
            assert_eq!(subscription.next().await, event);
        }
        drop(subscription);
        assert!(!watchers.contains(&ann));

        let pending = watchers.prepare();
        for number in 0..=MAX_PENDING {
            watchers.notify(&bob, &webset(&number.to_string()));
        }
        let subscription = pending.subscribe(&ann);
        assert_eq!(subscription.next().await, ResourceEvent::ListChanged);
        assert_eq!(subscription.next().await, ResourceEvent::Lagged);
        drop((subscription, watchers.prepare()));
        assert!(lock(&watchers.0).buffered.is_empty());
    }

    #[tokio::test]
    async fn wakes_only_readers_of_the_resource() {
        let watchers = Watchers::default();
        let ann = Identity::user("ann");
        let all: Vec<Subscription> = (0..100).map(|_| watchers.subscribe(&ann)).collect();
        for (number, subscription) in all.iter().enumerate() {
            subscription.watch_only(watching(&[&(number / 10).to_string()]));
        }
        assert_eq!(watchers.notify(&ann, &webset("3")), 10);
        assert_eq!(watchers.notify(&ann, &webset("10")), 0);
        assert_eq!(all[30].next().await, webset("3"));
        all[0].watch_only(watching(&[]));
        assert_eq!(watchers.notify(&ann, &ResourceEvent::Lagged), 99);
    }

    #[tokio::test]
    async fn delivers_list_changes_once_while_they_are_wanted() {
        let watchers = Watchers::default();
        let ann = Identity::user("ann");
        let subscription = watchers.subscribe(&ann);
        assert_eq!(watchers.notify(&ann, &ResourceEvent::ListChanged), 1);
        assert_eq!(
            watchers.notify(&ann, &ResourceEvent::ListChanged),
            0,
            "the event is already pending"
        );
        assert_eq!(subscription.next().await, ResourceEvent::ListChanged);
        assert_eq!(watchers.notify(&ann, &ResourceEvent::ListChanged), 1);
        let watched = watching(&[]);
        subscription.watch_only(Arc::clone(&watched));
        assert_eq!(watchers.notify(&ann, &ResourceEvent::ListChanged), 0);
        let quiet = timeout(Duration::from_millis(5), subscription.next());
        assert!(quiet.await.is_err(), "the pending event is dropped too");
        lock(&watched).list = true;
        assert_eq!(watchers.notify(&ann, &ResourceEvent::ListChanged), 1);
    }

    #[tokio::test]
    async fn collapses_too_many_events() {
        let watchers = Watchers::default();
        let ann = Identity::user("ann");
        let subscription = watchers.subscribe(&ann);
        for number in 0..=MAX_PENDING {
            watchers.notify(&ann, &webset(&number.to_string()));
        }
        assert_eq!(subscription.next().await, ResourceEvent::ListChanged);
        assert_eq!(subscription.next().await, ResourceEvent::Lagged);
    }
}

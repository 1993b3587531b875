//! Who wants to hear of changes, found by whose resources they are: a change costs nothing to all others.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use super::Address;
use exa_mcp_model::{Identity, lock};

/// How many events may wait for a slow reader.
pub(super) const MAX_WAITING: usize = 256;

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The list of resources is another one.
    Listed,
    /// A resource, and what is within it, is another one, or is gone.
    Changed(Address),
    /// Changes came too fast; any resource may be another one.
    Missed,
}

/// The resources that a client follows: each address as the client wrote it, and what it means.
pub(crate) type Followed = HashMap<String, Address>;

/// Whoever wants to hear of changes, by owner. Clones share everything.
#[derive(Clone, Default)]
pub(crate) struct Watchers(Arc<Mutex<Index>>);

#[derive(Default)]
struct Index {
    last_id: u64,
    by_owner: HashMap<Identity, HashMap<u64, Arc<Mailbox>>>,
    early: HashMap<u64, EarlyEvents>,
}

/// The events of everybody, for a reader whose owner is not known yet.
#[derive(Default)]
struct EarlyEvents {
    /// Each with its owner; without one it is for all.
    events: Vec<(Option<Identity>, Event)>,
    /// There were too many to keep.
    is_incomplete: bool,
}

impl EarlyEvents {
    fn put(&mut self, owner: Option<&Identity>, event: &Event) {
        if self.events.len() < MAX_WAITING {
            self.events.push((owner.cloned(), event.clone()));
        } else {
            self.is_incomplete = true;
        }
    }

    fn of(self, owner: &Identity) -> Vec<Event> {
        if self.is_incomplete {
            return vec![Event::Listed, Event::Missed];
        }
        let is_own = |of: &Option<Identity>| of.as_ref().is_none_or(|of| of == owner);
        let own = self.events.into_iter().filter(|(of, _)| is_own(of));
        own.map(|(_, event)| event).collect()
    }
}

impl Watchers {
    /// A mailbox for what happens to the resources of this owner from now on.
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

    /// Keeps what happens from now on for a reader that subscribes later.
    pub(super) fn expect(&self) -> ExpectedSubscription {
        let mut index = lock(&self.0);
        index.last_id += 1;
        let id = index.last_id;
        index.early.insert(id, EarlyEvents::default());
        drop(index);
        ExpectedSubscription {
            watchers: self.clone(),
            id,
        }
    }

    /// Whether anybody wants to hear of this owner's resources.
    pub(super) fn contains(&self, owner: &Identity) -> bool {
        let index = lock(&self.0);
        index.by_owner.contains_key(owner) || !index.early.is_empty()
    }

    /// Puts an event into the mailboxes of an owner; gives how many readers it wakes.
    pub(super) fn tell(&self, owner: &Identity, event: &Event) -> usize {
        let mut index = lock(&self.0);
        let early = index.early.values_mut();
        early.for_each(|early| early.put(Some(owner), event));
        let own = index.by_owner.get(owner).into_iter();
        let own = own.flat_map(HashMap::values);
        own.filter(|mailbox| mailbox.put(event)).count()
    }

    /// Puts an event into all mailboxes.
    pub(super) fn tell_all(&self, event: &Event) -> usize {
        let mut index = lock(&self.0);
        let early = index.early.values_mut();
        early.for_each(|early| early.put(None, event));
        let all = index.by_owner.values().flat_map(HashMap::values);
        all.filter(|mailbox| mailbox.put(event)).count()
    }
}

/// A reader that will subscribe: what happens meanwhile is kept for it.
pub(super) struct ExpectedSubscription {
    watchers: Watchers,
    id: u64,
}

impl ExpectedSubscription {
    /// A mailbox for this owner, with what has happened meanwhile.
    pub(super) fn subscribe(self, owner: &Identity) -> Subscription {
        let subscription = self.watchers.subscribe(owner);
        let early = lock(&self.watchers.0).early.remove(&self.id);
        for event in early.unwrap_or_default().of(owner) {
            subscription.mailbox.put(&event);
        }
        subscription
    }
}

impl Drop for ExpectedSubscription {
    fn drop(&mut self) {
        lock(&self.watchers.0).early.remove(&self.id);
    }
}

/// A mailbox among the watchers, until this is dropped.
pub(super) struct Subscription {
    watchers: Watchers,
    owner: Identity,
    id: u64,
    mailbox: Arc<Mailbox>,
}

impl Subscription {
    /// The next event.
    pub(super) async fn next(&self) -> Event {
        loop {
            let arrived = self.mailbox.arrived.notified();
            if let Some(event) = lock(&self.mailbox.letters).waiting.pop_front() {
                return event;
            }
            arrived.await;
        }
    }

    /// Hears no longer of lists.
    pub(super) fn ignore_lists(&self) {
        let mut letters = lock(&self.mailbox.letters);
        letters.lists = Lists::Ignored;
        letters.waiting.retain(|event| *event != Event::Listed);
    }

    /// Does not hear of lists until [`Self::resume_lists`].
    pub(super) fn pause_lists(&self) {
        let mut letters = lock(&self.mailbox.letters);
        if letters.lists == Lists::Heard {
            letters.lists = Lists::Paused { is_changed: false };
        }
    }

    /// Hears of lists again, and of a change in between.
    pub(super) fn resume_lists(&self) {
        let mut letters = lock(&self.mailbox.letters);
        let Lists::Paused { is_changed } = letters.lists else {
            return;
        };
        letters.lists = Lists::Heard;
        drop(letters);
        if is_changed {
            self.mailbox.put(&Event::Listed);
        }
    }

    /// Hears of these resources only.
    pub(super) fn only(&self, followed: Arc<Mutex<Followed>>) {
        lock(&self.mailbox.letters).followed = Some(followed);
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
    letters: Mutex<Letters>,
    arrived: Notify,
}

#[derive(Default)]
struct Letters {
    waiting: VecDeque<Event>,
    lists: Lists,
    /// The only resources of interest, if not all are.
    followed: Option<Arc<Mutex<Followed>>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Lists {
    #[default]
    Heard,
    Paused {
        is_changed: bool,
    },
    Ignored,
}

impl Mailbox {
    /// Puts an event in, if it is of interest; gives whether it was.
    fn put(&self, event: &Event) -> bool {
        let mut letters = lock(&self.letters);
        if !letters.wants(event) {
            return false;
        }
        if letters.waiting.back() == Some(event) {
            return false;
        }
        if letters.waiting.len() >= MAX_WAITING {
            letters.waiting.clear();
            if letters.lists != Lists::Ignored {
                letters.waiting.push_back(Event::Listed);
            }
            letters.waiting.push_back(Event::Missed);
        } else {
            letters.waiting.push_back(event.clone());
        }
        drop(letters);
        self.arrived.notify_one();
        true
    }
}

impl Letters {
    fn wants(&mut self, event: &Event) -> bool {
        match event {
            Event::Listed => match &mut self.lists {
                Lists::Heard => true,
                Lists::Paused { is_changed } => {
                    *is_changed = true;
                    false
                }
                Lists::Ignored => false,
            },
            Event::Changed(changed) => self.follows(|address| address.is_within(changed)),
            Event::Missed => self.follows(|_| true),
        }
    }

    fn follows(&self, which: impl Fn(&Address) -> bool) -> bool {
        let Some(followed) = &self.followed else {
            return true;
        };
        lock(followed).values().any(which)
    }
}

#[cfg(test)]
#[allow(clippy::indexing_slicing, clippy::unwrap_used)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    fn webset(name: &str) -> Event {
        Event::Changed(Address::Webset(name.to_owned()))
    }

    fn following(names: &[&str]) -> Arc<Mutex<Followed>> {
        let followed = names.iter().map(|name| {
            let address = Address::Webset((*name).to_owned());
            (address.to_string(), address)
        });
        Arc::new(Mutex::new(followed.collect()))
    }

    /// However many sessions there are, a change wakes those whose it is.
    #[tokio::test]
    async fn a_change_wakes_its_owners_readers_only() {
        let watchers = Watchers::default();
        let user = |number: usize| Identity::user(&number.to_string());
        let idle: Vec<Subscription> = (0..10_000)
            .map(|number| watchers.subscribe(&user(number)))
            .collect();
        let second = watchers.subscribe(&user(7));
        assert_eq!(watchers.tell(&user(7), &Event::Listed), 2);
        assert_eq!(watchers.tell(&user(8), &Event::Listed), 1);
        assert_eq!(watchers.tell(&user(10_000), &Event::Listed), 0);
        assert_eq!(second.next().await, Event::Listed);
        assert!(
            timeout(Duration::from_millis(5), idle[9].next())
                .await
                .is_err()
        );
        assert_eq!(watchers.tell_all(&Event::Missed), 10_001);
        drop((idle, second));
        assert!(lock(&watchers.0).by_owner.is_empty());
    }

    #[tokio::test]
    async fn what_happens_before_a_reader_subscribes_is_kept_for_it() {
        let watchers = Watchers::default();
        let (ann, bob) = (Identity::user("ann"), Identity::user("bob"));
        let expected = watchers.expect();
        assert!(watchers.contains(&ann));
        watchers.tell(&ann, &Event::Listed);
        watchers.tell(&bob, &webset("b"));
        watchers.tell(&ann, &webset("a"));
        let subscription = expected.subscribe(&ann);
        watchers.tell(&ann, &webset("later"));
        for event in [Event::Listed, webset("a"), webset("later")] {
            assert_eq!(subscription.next().await, event);
        }
        drop(subscription);
        assert!(!watchers.contains(&ann));

        let expected = watchers.expect();
        for number in 0..=MAX_WAITING {
            watchers.tell(&bob, &webset(&number.to_string()));
        }
        let subscription = expected.subscribe(&ann);
        assert_eq!(subscription.next().await, Event::Listed);
        assert_eq!(subscription.next().await, Event::Missed);
        drop((subscription, watchers.expect()));
        assert!(lock(&watchers.0).early.is_empty());
    }

    #[tokio::test]
    async fn a_change_wakes_readers_of_that_resource_only() {
        let watchers = Watchers::default();
        let ann = Identity::user("ann");
        let all: Vec<Subscription> = (0..100).map(|_| watchers.subscribe(&ann)).collect();
        for (number, subscription) in all.iter().enumerate() {
            subscription.only(following(&[&(number / 10).to_string()]));
        }
        assert_eq!(watchers.tell(&ann, &webset("3")), 10);
        assert_eq!(watchers.tell(&ann, &webset("10")), 0);
        assert_eq!(all[30].next().await, webset("3"));
        all[0].only(following(&[]));
        assert_eq!(watchers.tell(&ann, &Event::Missed), 99);
    }

    #[tokio::test]
    async fn who_has_just_heard_of_the_list_is_left_alone_for_a_while() {
        let watchers = Watchers::default();
        let ann = Identity::user("ann");
        let subscription = watchers.subscribe(&ann);
        assert_eq!(watchers.tell(&ann, &Event::Listed), 1);
        assert_eq!(
            watchers.tell(&ann, &Event::Listed),
            0,
            "it is waiting already"
        );
        assert_eq!(subscription.next().await, Event::Listed);
        subscription.pause_lists();
        for _ in 0..5 {
            assert_eq!(watchers.tell(&ann, &Event::Listed), 0);
        }
        subscription.resume_lists();
        assert_eq!(subscription.next().await, Event::Listed);
        subscription.pause_lists();
        subscription.resume_lists();
        assert_eq!(watchers.tell(&ann, &Event::Listed), 1);
        subscription.ignore_lists();
        assert_eq!(watchers.tell(&ann, &Event::Listed), 0);
        let quiet = timeout(Duration::from_millis(5), subscription.next());
        assert!(quiet.await.is_err());
    }

    #[tokio::test]
    async fn too_many_events_are_told_as_two() {
        let watchers = Watchers::default();
        let ann = Identity::user("ann");
        let subscription = watchers.subscribe(&ann);
        for number in 0..=MAX_WAITING {
            watchers.tell(&ann, &webset(&number.to_string()));
        }
        assert_eq!(subscription.next().await, Event::Listed);
        assert_eq!(subscription.next().await, Event::Missed);
    }
}

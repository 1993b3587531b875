//! Polls subscribed websets, which Exa and others change as well.
//!
//! A webset is polled once per interval and owner, however many clients subscribe to it, and only as long as somebody
//! does whose token is valid.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use serde_json::{Map, json};
use tokio::time::sleep;

use super::{ResourceChange, ResourceEvent, Resources, SharedResources};
use crate::operations::price::price;
use crate::operations::{self, OperationError, OperationExecutor};
use crate::tools::ResourceUri;
use exa_mcp_accounts::{ClientAddress, Credential};
use exa_mcp_exa_client::ExaErrorKind;
use exa_mcp_generated::tools::RESOURCES;
use exa_mcp_model::price::Price;
use exa_mcp_model::{Identity, Operation, lock};

/// The most websets that are polled at the same time.
const MAX_WEBSETS: usize = 256;

/// The most websets that are polled at the same time for one owner, or for all unauthenticated clients of one address.
const MAX_WEBSETS_PER_SUBSCRIBER: usize = 16;

/// After failures, and when the webset is gone, the interval is doubled up to this many times.
const MAX_DOUBLINGS: u32 = 5;

/// Who subscribes to websets.
#[derive(Clone)]
pub(crate) struct Subscriber {
    /// The owner of the subscriptions.
    pub(crate) owner: Identity,
    /// The token of the owner, where tokens are required.
    pub(crate) credential: Option<Credential>,
    /// The address of an unauthenticated client.
    pub(crate) guest_address: Option<ClientAddress>,
}

/// Subscribers that share a quota.
#[derive(Clone, Debug, PartialEq, Eq)]
enum QuotaGroup {
    Owner(Identity),
    Address(ClientAddress),
}

impl Subscriber {
    fn quota_group(&self) -> QuotaGroup {
        match self.guest_address {
            Some(address) => QuotaGroup::Address(address),
            None => QuotaGroup::Owner(self.owner.clone()),
        }
    }
}

/// An owner, and the id of a webset.
type PollKey = (Identity, String);

/// The polled websets. Clones share their state.
#[derive(Clone, Default)]
pub(super) struct Polls(Arc<Mutex<PollTable>>);

#[derive(Default)]
struct PollTable {
    last_id: u64,
    polls: HashMap<PollKey, Poll>,
}

/// A polled webset. It stays in the table until its next turn after the last subscription, so that nobody has it polled
/// more often by subscribing again.
struct Poll {
    group: QuotaGroup,
    /// The executor and the token of each subscription.
    subscriptions: BTreeMap<u64, (OperationExecutor, Option<Credential>)>,
}

/// Keeps a webset polled until it is dropped.
pub(crate) struct PollGuard {
    polls: Polls,
    key: PollKey,
    id: u64,
}

impl Drop for PollGuard {
    fn drop(&mut self) {
        if let Some(poll) = lock(&self.polls.0).polls.get_mut(&self.key) {
            poll.subscriptions.remove(&self.id);
        }
    }
}

impl Polls {
    /// Adds a subscription. Returns its guard and whether the webset was not polled before; `None` if too many are.
    fn add(
        &self,
        key: PollKey,
        subscriber: &Subscriber,
        executor: OperationExecutor,
    ) -> Option<(PollGuard, bool)> {
        let group = subscriber.quota_group();
        let mut table = lock(&self.0);
        let is_new = !table.polls.contains_key(&key);
        if is_new {
            let own = table.polls.values().filter(|poll| poll.group == group);
            if own.count() >= MAX_WEBSETS_PER_SUBSCRIBER || table.polls.len() >= MAX_WEBSETS {
                return None;
            }
        }
        table.last_id += 1;
        let id = table.last_id;
        let poll = table.polls.entry(key.clone()).or_insert_with(|| Poll {
            group,
            subscriptions: BTreeMap::new(),
        });
        let credential = subscriber.credential.clone();
        poll.subscriptions.insert(id, (executor, credential));
        drop(table);
        let polls = self.clone();
        Some((PollGuard { polls, key, id }, is_new))
    }

    /// Returns the executor of a subscription whose token is valid. Without one, the webset is no longer polled.
    fn next_executor(&self, key: &PollKey) -> Option<OperationExecutor> {
        let mut table = lock(&self.0);
        let poll = table.polls.get_mut(key)?;
        poll.subscriptions.retain(|_, (_, credential)| {
            let credential = credential.as_ref();
            credential.is_none_or(Credential::is_valid)
        });
        let first = poll.subscriptions.values().next();
        let executor = first.map(|(executor, _)| executor.clone());
        if executor.is_none() {
            table.polls.remove(key);
        }
        executor
    }
}

impl Resources {
    /// Polls a webset for a subscriber, if the resource is one, until the guard is dropped.
    pub(crate) fn poll(&self, subscriber: &Subscriber, uri: &ResourceUri) -> Option<PollGuard> {
        let (ResourceUri::Webset(id) | ResourceUri::WebsetItems(id)) = uri else {
            return None;
        };
        let interval = self.poll_interval.filter(|_| self.websets)?;
        let operation = free_read()?;
        let key = (subscriber.owner.clone(), id.clone());
        let executor = self.executor.without_retries();
        let polls = &self.shared.polls;
        let (guard, is_new) = polls.add(key.clone(), subscriber, executor)?;
        if is_new {
            let shared = Arc::downgrade(&self.shared);
            tokio::spawn(run(shared, operation, key, interval));
        }
        Some(guard)
    }
}

/// Returns the operation that reads a webset, if it costs nothing.
fn free_read() -> Option<&'static Operation> {
    let websets = RESOURCES.websets.as_ref()?;
    let read = operations::find(&websets.get)?;
    matches!(price(read), Some(Price::Free)).then_some(read)
}

/// Polls a webset until nobody subscribes to it.
async fn run(
    shared: Weak<SharedResources>,
    operation: &'static Operation,
    key: PollKey,
    interval: Duration,
) {
    let mut known = None;
    let mut failures = 0;
    loop {
        let Some(shared) = shared.upgrade() else {
            return;
        };
        let Some(executor) = shared.polls.next_executor(&key) else {
            return;
        };
        match Box::pin(read_state(&executor, operation, &key.1)).await {
            Some(state) => {
                // A webset that is gone hardly comes back.
                let is_missing = state == WebsetState::Missing;
                failures = if is_missing { MAX_DOUBLINGS } else { 0 };
                if known.replace(state).is_some_and(|before| before != state) {
                    shared.send(ResourceChange {
                        owner: Some(key.0.clone()),
                        event: ResourceEvent::Updated(ResourceUri::Webset(key.1.clone())),
                        is_remote: false,
                    });
                }
            }
            None => failures = MAX_DOUBLINGS.min(failures + 1),
        }
        drop((shared, executor));
        sleep(interval.saturating_mul(1 << failures)).await;
    }
}

/// What is known of a webset.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WebsetState {
    /// The digest of what Exa returns.
    Present(u64),
    Missing,
}

/// Reads the state of a webset; `None` if that fails.
async fn read_state(
    executor: &OperationExecutor,
    operation: &'static Operation,
    id: &str,
) -> Option<WebsetState> {
    let argument = &RESOURCES.websets.as_ref()?.argument;
    let arguments = Map::from_iter([(argument.clone(), json!(id))]);
    match executor.call(operation, arguments.into()).await {
        Ok(called) => {
            let mut hasher = DefaultHasher::new();
            called.response.value.to_string().hash(&mut hasher);
            Some(WebsetState::Present(hasher.finish()))
        }
        Err(OperationError::Exa(error)) if error.kind == ExaErrorKind::Api(404) => {
            Some(WebsetState::Missing)
        }
        Err(_) => None,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::net::IpAddr;

    use super::*;
    use exa_mcp_exa_client::{ExaConfig, ExaHttp};

    fn executor() -> OperationExecutor {
        let http = ExaHttp::new(ExaConfig::default()).unwrap();
        OperationExecutor::new(http, None, Arc::new(operations::spend::Unlimited))
    }

    fn add(polls: &Polls, subscriber: &Subscriber, webset: usize) -> Option<(PollGuard, bool)> {
        let key = (subscriber.owner.clone(), webset.to_string());
        polls.add(key, subscriber, executor())
    }

    fn guest(name: &str, last: u8) -> Subscriber {
        Subscriber {
            owner: Identity::anonymous(name),
            credential: None,
            guest_address: Some(IpAddr::from([192, 0, 2, last]).into()),
        }
    }

    #[test]
    fn websets_are_read_by_a_free_operation() {
        assert!(free_read().is_some());
    }

    #[test]
    fn quotas_bound_the_polled_websets() {
        let polls = Polls::default();
        let mut guards = Vec::new();
        // The identities of one address share its quota.
        for number in 0..2 * MAX_WEBSETS_PER_SUBSCRIBER {
            guards.extend(add(&polls, &guest(&number.to_string(), 1), number));
        }
        assert_eq!(guards.len(), MAX_WEBSETS_PER_SUBSCRIBER);
        for number in 0..2 * MAX_WEBSETS {
            let address = u8::try_from(2 + number / MAX_WEBSETS_PER_SUBSCRIBER).unwrap();
            let name = format!("other-{number}");
            guards.extend(add(&polls, &guest(&name, address), number));
        }
        assert_eq!(guards.len(), MAX_WEBSETS);
    }

    #[test]
    fn a_webset_is_polled_until_its_turn_after_the_last_subscription() {
        let polls = Polls::default();
        let ann = Subscriber {
            owner: Identity::user("ann"),
            credential: None,
            guest_address: None,
        };
        let (first, is_new) = add(&polls, &ann, 1).unwrap();
        assert!(is_new);
        let (second, is_new) = add(&polls, &ann, 1).unwrap();
        assert!(!is_new);
        let key = first.key.clone();
        drop(first);
        assert!(polls.next_executor(&key).is_some());
        drop(second);
        let (third, is_new) = add(&polls, &ann, 1).unwrap();
        assert!(!is_new, "its turn has not come");
        drop(third);
        assert!(polls.next_executor(&key).is_none());
        assert!(lock(&polls.0).polls.is_empty());
    }
}

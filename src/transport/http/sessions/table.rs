//! The table of sessions, and the order of their eviction.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rmcp::model::ProtocolVersion;
use rmcp::transport::streamable_http_server::session::SessionId;

use super::super::config::HttpLimits;
use super::super::fair_slots::{Activity, ActivityKind};
use super::SessionLimit;
use super::shared::SharedState;
use exa_mcp_accounts::{ClientAddress, Requester};
use exa_mcp_model::Identity;

/// A single address may not take this fraction of all sessions: one eighth.
const RESERVED_FRACTION: usize = 8;

/// A session.
pub(super) struct Session {
    pub(super) owner: Identity,
    pub(super) version: ProtocolVersion,
    /// The number of open requests and streams.
    pub(super) open_count: usize,
    pub(super) last_used: Instant,
    pub(super) shared: Option<SharedState>,
    /// Idle until the first tool call.
    pub(super) activity: Arc<Activity>,
    group: QuotaGroup,
}

impl Session {
    /// Creates a session that starts now.
    pub(super) fn new(
        owner: Identity,
        version: ProtocolVersion,
        guest_address: Option<ClientAddress>,
    ) -> Self {
        Self {
            group: QuotaGroup::new(&owner, guest_address),
            owner,
            version,
            open_count: 0,
            last_used: Instant::now(),
            shared: None,
            activity: Arc::default(),
        }
    }

    /// The eviction order: sessions without a tool call first, then the least recently used.
    fn eviction_order(&self) -> (ActivityKind, Instant) {
        (self.activity.get(), self.last_used)
    }
}

/// Sessions that share a quota.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum QuotaGroup {
    /// The sessions of a verified owner.
    Owner(Identity),
    /// The sessions of all anonymous clients at one address.
    Address(ClientAddress),
}

impl QuotaGroup {
    fn new(owner: &Identity, guest_address: Option<ClientAddress>) -> Self {
        match guest_address {
            Some(address) => Self::Address(address),
            None => Self::Owner(owner.clone()),
        }
    }

    fn is_anonymous(&self) -> bool {
        matches!(self, Self::Address(_))
    }
}

/// The table of sessions.
#[derive(Default)]
pub(super) struct SessionTable {
    sessions: HashMap<SessionId, Session>,
    groups: HashMap<QuotaGroup, HashSet<SessionId>>,
    owners: HashMap<Identity, usize>,
}

impl SessionTable {
    pub(super) fn len(&self) -> usize {
        self.sessions.len()
    }

    pub(super) fn get(&self, id: &str) -> Option<&Session> {
        self.sessions.get(id)
    }

    pub(super) fn get_mut(&mut self, id: &str) -> Option<&mut Session> {
        self.sessions.get_mut(id)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&SessionId, &Session)> {
        self.sessions.iter()
    }

    /// Adds a session, unless it exists.
    pub(super) fn insert(&mut self, id: SessionId, session: Session) {
        if self.sessions.contains_key(&id) {
            return;
        }
        let group = self.groups.entry(session.group.clone()).or_default();
        group.insert(id.clone());
        *self.owners.entry(session.owner.clone()).or_default() += 1;
        self.sessions.insert(id, session);
    }

    pub(super) fn remove(&mut self, id: &str) {
        let Some((id, session)) = self.sessions.remove_entry(id) else {
            return;
        };
        self.leave_group(&id, &session.group);
        if let Some(count) = self.owners.get_mut(&session.owner) {
            *count -= 1;
            if *count == 0 {
                self.owners.remove(&session.owner);
            }
        }
    }

    /// Records that the owner of a session is verified.
    pub(super) fn mark_verified(&mut self, id: &SessionId) {
        let Some(session) = self.sessions.get_mut(id) else {
            return;
        };
        if !session.group.is_anonymous() {
            return;
        }
        let verified = QuotaGroup::Owner(session.owner.clone());
        let before = std::mem::replace(&mut session.group, verified.clone());
        session.activity.set(ActivityKind::Verified);
        self.leave_group(id, &before);
        self.groups.entry(verified).or_default().insert(id.clone());
    }

    fn leave_group(&mut self, id: &SessionId, group: &QuotaGroup) {
        if let Some(ids) = self.groups.get_mut(group) {
            ids.remove(id);
            if ids.is_empty() {
                self.groups.remove(group);
            }
        }
    }

    fn size_of(&self, group: &QuotaGroup) -> usize {
        self.groups.get(group).map_or(0, HashSet::len)
    }

    /// Returns the session to close before this requester may start another, if any.
    pub(super) fn next_eviction(
        &self,
        requester: &Requester,
        limits: &HttpLimits,
    ) -> Result<Option<SessionId>, SessionLimit> {
        let owner = &requester.owner;
        let group = QuotaGroup::new(owner, requester.guest_address);
        let of_owner = self.owners.get(owner).copied().unwrap_or_default();
        let fair_share = limits
            .sessions
            .saturating_sub(limits.sessions / RESERVED_FRACTION);
        let own_size = self.size_of(&group);
        if of_owner >= limits.sessions_per_owner {
            let own = |session: &Session| session.owner == *owner;
            let oldest = self.first_evictable(self.sessions.iter(), own);
            return oldest.map(Some).ok_or(SessionLimit::Owner);
        }
        if group.is_anonymous() && own_size >= limits.sessions_per_address.min(fair_share) {
            let oldest = self.first_evictable(self.members(&group), |_| true);
            return oldest.map(Some).ok_or(SessionLimit::Address);
        }
        if self.len() < limits.sessions {
            return Ok(None);
        }
        let is_unused = |session: &Session| session.activity.get() == ActivityKind::Idle;
        let own_unused = || self.first_evictable(self.members(&group), is_unused);
        let foreign_unused = || self.first_evictable_of_larger(own_size, is_unused);
        let own = || self.first_evictable(self.members(&group), |_| true);
        let foreign = || self.first_evictable_of_larger(own_size + 1, |_| true);
        let found = own_unused().or_else(foreign_unused);
        let found = found.or_else(own).or_else(foreign);
        found.map(Some).ok_or(SessionLimit::Total)
    }

    fn members(&self, group: &QuotaGroup) -> impl Iterator<Item = (&SessionId, &Session)> {
        let ids = self.groups.get(group).into_iter().flatten();
        ids.filter_map(|id| Some((id, self.sessions.get(id)?)))
    }

    /// Returns the first of the inactive sessions in eviction order.
    fn first_evictable<'a>(
        &self,
        sessions: impl Iterator<Item = (&'a SessionId, &'a Session)>,
        filter: impl Fn(&Session) -> bool,
    ) -> Option<SessionId> {
        let idle = sessions.filter(|(_, session)| session.open_count == 0 && filter(session));
        let first = idle.min_by_key(|(_, session)| session.eviction_order());
        first.map(|(id, _)| id.clone())
    }

    /// Returns the same among anonymous sessions of addresses with more than `size` sessions, the largest
    /// address first.
    fn first_evictable_of_larger(
        &self,
        size: usize,
        filter: impl Fn(&Session) -> bool,
    ) -> Option<SessionId> {
        let idle = self.sessions.iter();
        let idle = idle.filter(|(_, session)| {
            session.open_count == 0 && session.group.is_anonymous() && filter(session)
        });
        let sized = idle.map(|(id, session)| (self.size_of(&session.group), id, session));
        let larger = sized.filter(|(own, _, _)| *own > size);
        let first =
            larger.min_by_key(|(own, _, session)| (Reverse(*own), session.eviction_order()));
        first.map(|(_, id, _)| id.clone())
    }

    /// Returns the sessions idle for `idle`, and anonymous sessions beyond `max_anonymous` that are idle
    /// for `anonymous_idle`. An address with few sessions keeps them while others have more.
    pub(super) fn expired(
        &self,
        idle: Duration,
        anonymous_idle: Duration,
        max_anonymous: usize,
    ) -> Vec<SessionId> {
        let now = Instant::now();
        let idle_time = |session: &Session| now.saturating_duration_since(session.last_used);
        let closed = self
            .sessions
            .iter()
            .filter(|(_, session)| session.open_count == 0);
        let (mut expired, others): (Vec<_>, Vec<_>) =
            closed.partition(|(_, session)| idle_time(session) >= idle);
        let anonymous: Vec<_> = others
            .into_iter()
            .filter(|(_, session)| session.group.is_anonymous())
            .collect();
        let excess = anonymous.len().saturating_sub(max_anonymous);
        if excess > 0 {
            let mut beyond_share = beyond_fair_share(anonymous, max_anonymous);
            beyond_share.retain(|(_, session)| idle_time(session) >= anonymous_idle);
            expired.extend(beyond_share.into_iter().take(excess));
        }
        expired.into_iter().map(|(id, _)| id.clone()).collect()
    }
}

/// Returns the sessions beyond the fair share of their groups in `max` sessions, those of the largest group first.
fn beyond_fair_share<'a>(
    mut sessions: Vec<(&'a SessionId, &'a Session)>,
    max: usize,
) -> Vec<(&'a SessionId, &'a Session)> {
    // In each group, the last one to evict has rank 0.
    sessions.sort_by_key(|(_, session)| Reverse(session.eviction_order()));
    let mut sizes: HashMap<&QuotaGroup, usize> = HashMap::new();
    let mut ranked: Vec<_> = sessions
        .into_iter()
        .map(|(id, session)| {
            let size = sizes.entry(&session.group).or_default();
            *size += 1;
            (*size - 1, id, session)
        })
        .collect();
    // The largest share with which all groups together have at most `max` sessions.
    let mut ranks: Vec<usize> = ranked.iter().map(|(rank, ..)| *rank).collect();
    ranks.sort_unstable();
    let share = ranks.get(max).copied().unwrap_or(usize::MAX);
    ranked.retain(|(rank, ..)| *rank >= share);
    ranked.sort_by_key(|(rank, _, session)| (Reverse(*rank), session.eviction_order()));
    let sessions = ranked.into_iter();
    sessions.map(|(_, id, session)| (id, session)).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    fn limits() -> HttpLimits {
        HttpLimits {
            sessions: 8,
            sessions_per_owner: 5,
            sessions_per_address: 3,
            ..HttpLimits::default()
        }
    }

    fn guest(name: &str, last: u8) -> Requester {
        let mut requester = Requester::new(Identity::anonymous(name));
        requester.guest_address = Some(IpAddr::from([192, 0, 2, last]).into());
        requester
    }

    fn add(table: &mut SessionTable, id: &str, requester: &Requester) {
        let owner = requester.owner.clone();
        let version = ProtocolVersion::V_2025_11_25;
        let session = Session::new(owner, version, requester.guest_address);
        table.insert(id.into(), session);
    }

    /// Returns the session that is closed for a new session of this requester.
    fn evicted(table: &SessionTable, requester: &Requester) -> Option<String> {
        let next = table.next_eviction(requester, &limits()).ok().unwrap();
        next.map(|id| id.to_string())
    }

    #[test]
    fn a_flood_evicts_its_own_sessions() {
        let mut table = SessionTable::default();
        add(&mut table, "other", &guest("other", 9));
        for (id, name) in [("a", "1"), ("b", "2"), ("c", "3")] {
            add(&mut table, id, &guest(name, 1));
        }
        table
            .get_mut("a")
            .unwrap()
            .activity
            .set(ActivityKind::Anonymous);
        // The identity does not matter; a session with a tool call is evicted last.
        assert_eq!(evicted(&table, &guest("4", 1)).as_deref(), Some("b"));
        assert_eq!(evicted(&table, &guest("4", 2)), None);
        table.get_mut("b").unwrap().open_count = 1;
        table.get_mut("c").unwrap().open_count = 1;
        assert_eq!(evicted(&table, &guest("4", 1)).as_deref(), Some("a"));
        table.get_mut("a").unwrap().open_count = 1;
        let error = table.next_eviction(&guest("4", 1), &limits());
        assert!(matches!(error, Err(SessionLimit::Address)));
    }

    #[test]
    fn evicts_sessions_of_the_largest_address() {
        let mut table = SessionTable::default();
        for last in 1..=3 {
            for count in 0..(4 - last) {
                let id = format!("{last}-{count}");
                add(&mut table, &id, &guest(&id, last));
            }
        }
        let known = Requester::new(Identity::user("ann"));
        add(&mut table, "known-0", &known);
        add(&mut table, "known-1", &known);
        assert_eq!(table.len(), 8);
        assert_eq!(evicted(&table, &guest("new", 7)).as_deref(), Some("1-0"));
        let bob = Requester::new(Identity::user("bob"));
        assert_eq!(evicted(&table, &bob).as_deref(), Some("1-0"));
        // A requester with unused sessions loses those.
        assert_eq!(evicted(&table, &known).as_deref(), Some("known-0"));
        for id in ["1-0", "1-1", "1-2", "2-0", "2-1", "3-0"] {
            table
                .get_mut(id)
                .unwrap()
                .activity
                .set(ActivityKind::Anonymous);
        }
        assert_eq!(evicted(&table, &guest("new", 7)).as_deref(), Some("1-0"));
        for id in ["1-0", "1-1", "1-2", "2-0", "2-1", "3-0"] {
            table.get_mut(id).unwrap().open_count = 1;
        }
        let error = table.next_eviction(&guest("new", 7), &limits());
        assert!(matches!(error, Err(SessionLimit::Total)));
    }

    #[test]
    fn verified_owners_leave_the_quota_of_their_address() {
        let mut table = SessionTable::default();
        for id in ["a", "b", "c"] {
            add(&mut table, id, &guest(id, 1));
        }
        assert_eq!(evicted(&table, &guest("d", 1)).as_deref(), Some("a"));
        table.mark_verified(&"a".into());
        assert_eq!(evicted(&table, &guest("d", 1)), None);
        for id in ["a", "b", "c"] {
            table.remove(id);
        }
        assert!(table.groups.is_empty() && table.owners.is_empty());
    }

    #[test]
    fn excess_anonymous_sessions_expire_early() {
        let mut table = SessionTable::default();
        for count in 0..6 {
            let id = format!("{count}");
            add(&mut table, &id, &guest(&id, count));
        }
        add(&mut table, "known", &Requester::new(Identity::user("ann")));
        table
            .get_mut("0")
            .unwrap()
            .activity
            .set(ActivityKind::Anonymous);
        table.get_mut("1").unwrap().open_count = 1;
        let hour = Duration::from_secs(3_600);
        let expired = |idle, anonymous_idle| {
            let ids = table.expired(idle, anonymous_idle, 3).into_iter();
            let mut ids: Vec<String> = ids.map(|id| id.to_string()).collect();
            ids.sort();
            ids
        };
        assert_eq!(expired(hour, Duration::ZERO), ["2", "3"]);
        assert!(expired(hour, hour).is_empty());
        assert_eq!(expired(Duration::ZERO, hour).len(), 6);
    }

    #[test]
    fn excess_sessions_of_one_address_do_not_expire_those_of_others() {
        let mut table = SessionTable::default();
        for (address, count) in [(1, 1), (2, 2), (3, 20), (4, 9)] {
            for number in 0..count {
                let id = format!("{address}-{number:02}");
                add(&mut table, &id, &guest(&id, address));
            }
        }
        let hour = Duration::from_secs(3_600);
        let expired = |anonymous_idle, max| {
            let ids = table.expired(hour, anonymous_idle, max).into_iter();
            ids.map(|id| id.to_string()).collect::<Vec<_>>()
        };
        // The least recently used one of the largest group is the first.
        assert_eq!(expired(Duration::ZERO, 30), ["3-00", "3-01"]);
        let some = expired(Duration::ZERO, 12);
        assert_eq!(some.len(), 20);
        assert!(some.iter().all(|id| id.starts_with(['3', '4'])), "{some:?}");
        // Fresh sessions do not expire, and not those of other addresses in their place either.
        let fresh = table.expired(hour, hour, 2);
        assert!(fresh.is_empty());
        assert_eq!(expired(Duration::ZERO, 2).len(), 30);
    }
}

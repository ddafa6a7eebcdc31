//! Addresses that clients resolved, as entries of the dataplane under the policies in force.
//!
//! An entry outlives its TTL by far, because established connections continue. For new ones the dataplane checks its
//! end.
//!
//! Decision 0148 says why.

use std::collections::{BTreeMap, HashMap};

use gateway_common::maps::MAX_FQDN_IPS;
use gateway_common::wire::{Address, ClientKey, FLOW_TICK_SHIFT, FqdnIpValue};

use crate::dns::{Name, NameRef};
use crate::fqdn_match::Domains;
use crate::indexes::Rank;
use crate::plan::{Dataplane, DomainRule};

/// Clients keep answers longer than they may: browsers do for a minute.
const MIN_TTL_SECONDS: u64 = 300;
const TTL_MARGIN_SECONDS: u64 = 60;
/// Assumed duration of connections after an answer has expired.
const RETENTION_TICKS: u32 = ticks(24 * 3600);
/// An entry is written again so long before a name of it ends that others outlive.
const RENEWAL_LEAD_TICKS: u32 = ticks(10);

/// Seconds in the unit of flows, rounded up.
const fn ticks(seconds: u64) -> u32 {
    ((seconds * 1_000_000_000) >> FLOW_TICK_SHIFT) as u32 + 1
}

/// Client and address.
pub type Key = (ClientKey, Address);

/// All resolved addresses, with the policies.
#[derive(Debug, Default)]
pub struct FqdnCache {
    rules: Vec<DomainRule>,
    domains: Domains,
    /// Ranks of the policies with domains, by the number of the policy.
    ranks: HashMap<u32, Rank>,
    entries: HashMap<Key, Vec<FqdnEntry>>,
    /// Evicted keys that the dataplane must remove.
    forgotten: Vec<Key>,
}

#[derive(Debug)]
struct FqdnEntry {
    by: FqdnKey,
    until: u32,
}

#[derive(Debug, PartialEq, Eq)]
enum FqdnKey {
    Name(Name),
    /// An entry of an earlier run, of which only the policy is known.
    Policy(u32),
}

/// No entry is free, and none can be spared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the table of {MAX_FQDN_IPS} DNS-learned addresses is full")]
pub struct NoFreeEntry;

impl FqdnCache {
    /// Restores the entries of an earlier run from the kernel, with the policy of each rank.
    pub fn restore(
        &mut self,
        entries: impl IntoIterator<Item = (Key, FqdnIpValue)>,
        policy: impl Fn(Rank) -> Option<u32>,
    ) {
        for (key, value) in entries {
            if let Some(policy) = Rank::of_wire(value.rank).and_then(&policy) {
                self.entries
                    .entry(key)
                    .or_default()
                    .push(FqdnEntry { by: FqdnKey::Policy(policy), until: value.until });
            }
        }
    }

    /// Reports whether these are the policies in force.
    pub fn is_under(&self, rules: &[DomainRule]) -> bool {
        self.rules == rules
    }

    /// Returns all entries under other policies.
    pub fn under(&mut self, plan: &Dataplane, now: u32) -> BTreeMap<Key, FqdnIpValue> {
        if self.rules != plan.domains {
            self.rules.clone_from(&plan.domains);
            self.domains = Domains::new(&plan.domains);
        }
        let ranks = self.rules.iter().map(|rule| rule.rank);
        let action = |rank: Rank| plan.actions.get(rank.index());
        self.ranks = ranks.filter_map(|rank| Some((action(rank)?.policy, rank))).collect();
        if self.rules.is_empty() {
            return BTreeMap::new();
        }
        self.entries.keys().filter_map(|key| Some((*key, self.value(key, now)?))).collect()
    }

    /// Records that a client resolves an address. Returns the entry for the dataplane, or `None` if no policy matches.
    pub fn record(
        &mut self,
        (client, address): Key,
        name: NameRef<'_>,
        ttl: u64,
        now: u32,
    ) -> Result<Option<FqdnIpValue>, NoFreeEntry> {
        let key = (client, address);
        if self.entries.len() >= MAX_FQDN_IPS as usize && !self.entries.contains_key(&key) {
            self.make_room(now)?;
        }
        let until = now.saturating_add(ticks(ttl.clamp(MIN_TTL_SECONDS, 7 * 86_400) + TTL_MARGIN_SECONDS));
        let entries = self.entries.entry(key).or_default();
        match entries
            .iter_mut()
            .find(|entries| matches!(&entries.by, FqdnKey::Name(known) if known.as_ref() == name))
        {
            Some(known) => known.until = known.until.max(until),
            None => entries.push(FqdnEntry { by: FqdnKey::Name(name.to_owned()), until }),
        }
        Ok(self.value(&key, now))
    }

    /// Returns the evicted keys, each once.
    pub fn take_evicted(&mut self) -> Vec<Key> {
        std::mem::take(&mut self.forgotten)
    }

    /// Returns the present names of an address for a client, the oldest first.
    pub fn names(&self, key: &Key, now: u32) -> Vec<Name> {
        let entries = self.entries.get(key).into_iter().flatten().filter(|entries| entries.until >= now);
        entries
            .filter_map(
                |entries| if let FqdnKey::Name(name) = &entries.by { Some(name.clone()) } else { None },
            )
            .collect()
    }

    /// Returns the entries to renew because one of their names is about to expire, and the keys that expired long ago.
    pub fn sweep(&mut self, now: u32) -> (Vec<(Key, FqdnIpValue)>, Vec<Key>) {
        let mut gone = Vec::new();
        let mut changing = Vec::new();
        self.entries.retain(|key, entries| {
            let most = entries.iter().map(|entries| entries.until).max().unwrap_or(0);
            if most.saturating_add(RETENTION_TICKS) < now {
                gone.push(*key);
                return false;
            }
            let ends =
                |entries: &FqdnEntry| (now..now.saturating_add(RENEWAL_LEAD_TICKS)).contains(&entries.until);
            if entries.len() > 1 && entries.iter().any(ends) && most >= now.saturating_add(RENEWAL_LEAD_TICKS)
            {
                entries.retain(|entries| entries.until >= now.saturating_add(RENEWAL_LEAD_TICKS));
                changing.push(*key);
            }
            true
        });
        let changed = changing.into_iter().filter_map(|key| Some((key, self.value(&key, now)?))).collect();
        (changed, gone)
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the first policy that matches a name that has not expired. If all have expired, any policy that matches.
    fn value(&self, key: &Key, now: u32) -> Option<FqdnIpValue> {
        let device = key.0.device();
        let entries = self.entries.get(key)?;
        let held = entries.iter().any(|entries| entries.until >= now);
        let ranked = entries.iter().filter(|entries| !held || entries.until >= now).filter_map(|entries| {
            let rank = match &entries.by {
                FqdnKey::Name(name) => self.domains.rank(name.as_ref(), device),
                FqdnKey::Policy(number) => self.ranks.get(number).copied(),
            };
            Some((rank?, entries.until))
        });
        let best = ranked.min_by_key(|(rank, until)| (*rank, u32::MAX - until));
        best.map(|(rank, until)| FqdnIpValue { rank: rank.get(), until })
    }

    /// Evicts expired entries, the oldest first.
    fn make_room(&mut self, now: u32) -> Result<(), NoFreeEntry> {
        let last = |entries: &[FqdnEntry]| entries.iter().map(|entries| entries.until).max().unwrap_or(0);
        let mut ended: Vec<(u32, Key)> = self
            .entries
            .iter()
            .map(|(key, entries)| (last(entries), *key))
            .filter(|(until, _)| *until < now)
            .collect();
        if ended.is_empty() {
            return Err(NoFreeEntry);
        }
        ended.sort_unstable();
        // Some at once: looking through all of them is not for every answer.
        for (_, key) in ended.into_iter().take(1024) {
            self.entries.remove(&key);
            self.forgotten.push(key);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use gateway_common::wire::{ActionValue, Mac};
    use gateway_model::domain::DomainName;
    use gateway_model::kinds::policy_source::DomainPattern;

    use super::*;

    fn name(text: &str) -> Name {
        Name::from(&DomainName::parse(text).expect("a name"))
    }

    fn plan(domains: &[(&str, u32)]) -> Dataplane {
        let rule = |(text, rank): &(&str, u32)| DomainRule {
            pattern: DomainPattern::Suffix((*text).to_owned()),
            rank: Rank::of_wire(*rank).expect("a rank"),
            device: None,
        };
        // The policy of rank 0 has the number 10, and so on.
        let actions =
            (0..4).map(|rank| ActionValue { policy: 10 + rank, ..ActionValue::default() }).collect();
        Dataplane { domains: domains.iter().map(rule).collect(), actions, ..Dataplane::default() }
    }

    fn key(device: u32, last: u8) -> Key {
        let address = Address::v4([203, 0, 113, last]);
        (ClientKey::new(device, Mac::default(), &address), address)
    }

    fn under(domains: &[(&str, u32)]) -> FqdnCache {
        let mut cache = FqdnCache::default();
        cache.under(&plan(domains), 0);
        cache
    }

    #[test]
    fn an_address_known_by_several_names_belongs_to_the_first_policy_of_them() {
        let mut cache = under(&[("a.example", 2), ("b.example", 1)]);
        let mut record = |text: &str| cache.record(key(1, 1), name(text).as_ref(), 60, 1000).expect("room");
        assert_eq!(record("x.a.example").map(|value| value.rank), Some(2));
        assert_eq!(record("b.example").map(|value| value.rank), Some(1));
        assert_eq!(record("a.example").map(|value| value.rank), Some(1));
        assert_eq!(cache.record(key(2, 1), name("c.example").as_ref(), 60, 1000), Ok(None));
    }

    #[test]
    fn an_entry_lives_as_long_as_its_answer_and_longer() {
        let mut cache = under(&[("a.example", 0)]);
        let short =
            cache.record(key(1, 1), name("a.example").as_ref(), 5, 1000).expect("room").expect("wanted");
        let long =
            cache.record(key(1, 2), name("a.example").as_ref(), 3600, 1000).expect("room").expect("wanted");
        assert_eq!(short.until, 1000 + ticks(360));
        assert_eq!(long.until, 1000 + ticks(3660));
    }

    #[test]
    fn when_a_name_ends_the_address_is_that_of_the_others() {
        let mut cache = under(&[("a.example", 0), ("b.example", 1)]);
        cache.record(key(1, 1), name("a.example").as_ref(), 300, 1000).expect("room");
        let both =
            cache.record(key(1, 1), name("b.example").as_ref(), 3600, 1000).expect("room").expect("wanted");
        assert_eq!(both.rank, 0);
        let (changed, gone) = cache.sweep(both.until - RENEWAL_LEAD_TICKS - 1);
        assert_eq!((changed.len(), gone.len()), (0, 0));
        let (changed, gone) = cache.sweep(both.until - 1);
        assert_eq!((changed[0].0, changed[0].1.rank, gone.len()), (key(1, 1), 1, 0));
        let (changed, gone) = cache.sweep(changed[0].1.until + RETENTION_TICKS + 1);
        assert_eq!((changed.len(), gone), (0, vec![key(1, 1)]));
    }

    #[test]
    fn new_policies_apply_to_addresses_resolved_before_them() {
        let mut cache = under(&[("a.example", 2)]);
        cache.record(key(1, 1), name("a.example").as_ref(), 60, 1000).expect("room");
        cache.record(key(1, 2), name("other.example").as_ref(), 60, 1000).expect("room");
        let seen = cache.under(&plan(&[("a.example", 3), ("example", 1)]), 1000);
        assert_eq!(seen.values().map(|value| value.rank).collect::<Vec<_>>(), [1, 1]);
        assert_eq!(cache.under(&plan(&[]), 1000).len(), 0);
        assert_eq!(cache.names(&key(1, 1), 1000), [name("a.example")]);
    }

    #[test]
    fn a_new_plan_goes_by_the_names_that_still_hold() {
        let domains = [("a.example", 0), ("b.example", 1)];
        let mut cache = under(&domains);
        cache.record(key(1, 1), name("a.example").as_ref(), 300, 1000).expect("room");
        let both = cache.record(key(1, 1), name("b.example").as_ref(), 3600, 1000).expect("room");
        assert_eq!(both.map(|value| value.rank), Some(0));
        let seen = cache.under(&plan(&domains), 1000 + ticks(360) + 1);
        assert_eq!(seen[&key(1, 1)].rank, 1);
        // When all have expired, established flows stay with the first policy.
        let seen = cache.under(&plan(&domains), 1000 + ticks(3660) + 1);
        assert_eq!(seen[&key(1, 1)].rank, 0);
    }

    #[test]
    fn entries_of_an_earlier_run_follow_their_policy() {
        let mut cache = FqdnCache::default();
        let left = FqdnIpValue { rank: 3, until: 500 };
        cache.restore([(key(1, 1), left)], |rank| Some(10 + rank.get()));
        // The policy of number 13 has rank 3 here; it matters only while it has domains.
        assert_eq!(cache.under(&plan(&[("a.example", 3)]), 0)[&key(1, 1)], left);
        assert_eq!(cache.under(&plan(&[("a.example", 2)]), 0).len(), 0);
    }

    #[test]
    fn a_full_table_forgets_what_has_ended_and_nothing_else() {
        let mut cache = under(&[("a.example", 0)]);
        let a = name("a.example");
        for n in 0..MAX_FQDN_IPS {
            let key = (ClientKey::new(n + 1, Mac::default(), &Address::default()), Address::default());
            cache.record(key, a.as_ref(), 60, 1000).expect("room");
        }
        assert_eq!(cache.record(key(MAX_FQDN_IPS + 9, 1), a.as_ref(), 60, 1000), Err(NoFreeEntry));
        let later = 1000 + ticks(360) + 1;
        assert!(cache.record(key(MAX_FQDN_IPS + 9, 1), a.as_ref(), 60, later).is_ok());
        let forgotten = cache.take_evicted();
        assert!(!forgotten.is_empty() && forgotten.iter().all(|key| cache.names(key, 0).is_empty()));
    }
}

//! Bounded sets and maps of what a device did in an hour.

use std::collections::{BTreeMap, BTreeSet};

use crate::flow_log::FlowId;

/// Maximum number of flows that a finding names.
pub const MAX_FLOWS: usize = 8;

/// The last flows of an observation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LastFlows(Vec<FlowId>);

impl LastFlows {
    pub(super) fn push(&mut self, flow: FlowId) {
        if self.0.len() >= MAX_FLOWS {
            self.0.remove(0);
        }
        self.0.push(flow);
    }

    pub(super) fn list(&self) -> Vec<FlowId> {
        self.0.clone()
    }
}

/// Set of at most so many values. Further ones are not taken: the count is then a lower bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BoundedSet<T, const MOST: usize>(BTreeSet<T>);

impl<T, const MOST: usize> Default for BoundedSet<T, MOST> {
    fn default() -> Self {
        BoundedSet(BTreeSet::new())
    }
}

impl<T: Ord, const MOST: usize> BoundedSet<T, MOST> {
    pub(super) fn insert(&mut self, value: T) {
        if self.0.len() < MOST {
            self.0.insert(value);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

/// Map of at most so many keys. A new key beyond them takes the place of the one with the least weight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BoundedMap<K, V, const MOST: usize>(BTreeMap<K, V>);

impl<K, V, const MOST: usize> Default for BoundedMap<K, V, MOST> {
    fn default() -> Self {
        BoundedMap(BTreeMap::new())
    }
}

impl<K: Ord, V: Default, const MOST: usize> BoundedMap<K, V, MOST> {
    /// Returns the value of a key.
    pub(super) fn entry(&mut self, key: K, weight: impl Fn(&V) -> usize) -> &mut V
    where
        K: Copy,
    {
        if self.0.len() >= MOST && !self.0.contains_key(&key) {
            let lightest = self.0.iter().min_by_key(|(_, value)| weight(value)).map(|(key, _)| *key);
            lightest.and_then(|lightest| self.0.remove(&lightest));
        }
        self.0.entry(key).or_default()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.0.iter()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

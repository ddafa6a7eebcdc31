//! Part of the cache under one lock: a hash table and an eviction queue. The queue uses SIEVE (Zhang et al., NSDI
//! 2024). A hit only sets a mark; a hand walks from the oldest entry and evicts the first one without a mark.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use hashbrown::HashTable;

use super::entry::{Entry, Freshness};
use super::key::Key;

const NONE: u32 = u32::MAX;

/// Size of the cache, and its statistics since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    pub entries: usize,
    /// Memory of the entries, in bytes.
    pub bytes: usize,
    /// Queries answered from the cache, including stale answers that waited for no upstream.
    pub hits: u64,
    pub misses: u64,
    pub evicted: u64,
}

#[derive(Debug)]
struct Node {
    hash: u64,
    /// Entry of the node. None: the node is free.
    entry: Option<Arc<Entry>>,
    weight: usize,
    newer: u32,
    older: u32,
}

#[derive(Debug)]
pub(super) struct Shard {
    table: HashTable<u32>,
    nodes: Vec<Node>,
    free: Vec<u32>,
    newest: u32,
    oldest: u32,
    hand: u32,
    bytes: usize,
    hits: u64,
    misses: u64,
    evicted: u64,
}

impl Default for Shard {
    fn default() -> Shard {
        Shard {
            table: HashTable::new(),
            nodes: Vec::new(),
            free: Vec::new(),
            newest: NONE,
            oldest: NONE,
            hand: NONE,
            bytes: 0,
            hits: 0,
            misses: 0,
            evicted: 0,
        }
    }
}

impl Shard {
    fn find(&self, hash: u64, key: &Key<'_>) -> Option<u32> {
        let same = |index: &u32| {
            let node = &self.nodes[*index as usize];
            node.hash == hash && node.entry.as_ref().is_some_and(|entry| entry.is_of(key))
        };
        self.table.find(hash, same).copied()
    }

    pub(super) fn peek(&self, hash: u64, key: &Key<'_>) -> Option<Arc<Entry>> {
        self.find(hash, key).and_then(|index| self.nodes[index as usize].entry.clone())
    }

    pub(super) fn get(&mut self, hash: u64, key: &Key<'_>, now: u64) -> Option<Arc<Entry>> {
        let Some(index) = self.find(hash, key) else {
            self.misses += 1;
            return None;
        };
        let entry = self.nodes[index as usize].entry.as_ref()?;
        match entry.freshness(now) {
            Freshness::Expired => {
                self.remove(index);
                self.misses += 1;
                return None;
            }
            Freshness::Fresh(_) | Freshness::StaleRecheckPending(_) => self.hits += 1,
            Freshness::Stale(_) => self.misses += 1,
        }
        // Written only on a change, because other threads read it.
        if !entry.visited.load(Ordering::Relaxed) {
            entry.visited.store(true, Ordering::Relaxed);
        }
        Some(entry.clone())
    }

    pub(super) fn insert(&mut self, hash: u64, entry: Arc<Entry>, limit: usize) {
        let weight = entry.weight();
        if weight > limit {
            return;
        }
        if let Some(index) = self.find(hash, &entry.key()) {
            let node = &mut self.nodes[index as usize];
            entry.visited.store(true, Ordering::Relaxed);
            self.bytes = self.bytes - node.weight + weight;
            node.weight = weight;
            node.entry = Some(entry);
            return self.shrink(limit);
        }
        self.shrink(limit - weight);
        let node = Node { hash, entry: Some(entry), weight, newer: NONE, older: self.newest };
        let index = match self.free.pop() {
            Some(index) => {
                self.nodes[index as usize] = node;
                index
            }
            None => {
                self.nodes.push(node);
                (self.nodes.len() - 1) as u32
            }
        };
        match self.newest {
            NONE => self.oldest = index,
            newest => self.nodes[newest as usize].newer = index,
        }
        self.newest = index;
        self.bytes += weight;
        let nodes = &self.nodes;
        self.table.insert_unique(hash, index, |index| nodes[*index as usize].hash);
    }

    fn shrink(&mut self, limit: usize) {
        while self.bytes > limit && self.oldest != NONE {
            self.evict();
        }
    }

    fn evict(&mut self) {
        let mut index = if self.hand == NONE { self.oldest } else { self.hand };
        // The hand clears every mark that it meets, so the second round ends.
        loop {
            let node = &self.nodes[index as usize];
            let newer = if node.newer == NONE { self.oldest } else { node.newer };
            let spared =
                node.entry.as_ref().is_some_and(|entry| entry.visited.swap(false, Ordering::Relaxed));
            if !spared {
                break;
            }
            index = newer;
        }
        self.hand = self.nodes[index as usize].newer;
        self.remove(index);
        self.evicted += 1;
    }

    fn remove(&mut self, index: u32) {
        let node = &mut self.nodes[index as usize];
        let (hash, newer, older) = (node.hash, node.newer, node.older);
        self.bytes -= node.weight;
        node.entry = None;
        match newer {
            NONE => self.newest = older,
            newer => self.nodes[newer as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => self.nodes[older as usize].newer = newer,
        }
        if self.hand == index {
            self.hand = newer;
        }
        if let Ok(found) = self.table.find_entry(hash, |there| *there == index) {
            found.remove();
        }
        self.free.push(index);
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.nodes.iter().filter_map(|node| node.entry.as_ref())
    }

    pub(super) fn retain(&mut self, keep: impl Fn(&Entry) -> bool) -> usize {
        let out = |node: &Node| node.entry.as_ref().is_some_and(|entry| !keep(entry));
        let gone: Vec<u32> =
            (0..self.nodes.len() as u32).filter(|index| out(&self.nodes[*index as usize])).collect();
        for index in &gone {
            self.remove(*index);
        }
        gone.len()
    }

    pub(super) fn figures(&self) -> CacheStats {
        CacheStats {
            entries: self.table.len(),
            bytes: self.bytes,
            hits: self.hits,
            misses: self.misses,
            evicted: self.evicted,
        }
    }
}

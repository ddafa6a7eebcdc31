//! An ordered map that is cheap to clone and cheap to change afterwards.
//!
//! The entries lie in sorted chunks behind `Arc`. A clone shares all chunks; a change copies the chunk
//! it touches and the list of chunks. With n entries a change after a clone costs about n / 64 pointer
//! copies, so a state of tens of thousands of rows is copied for each commit in microseconds.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

/// Most entries of a chunk; a full one is split.
const CHUNK: usize = 128;

type Chunk<K, V> = Vec<(K, V)>;

/// Ordered map with structural sharing.
#[derive(Clone)]
pub(crate) struct CowMap<K, V> {
    /// Non-empty chunks in ascending order.
    chunks: Arc<Vec<Arc<Chunk<K, V>>>>,
    len: usize,
}

impl<K, V> Default for CowMap<K, V> {
    fn default() -> Self {
        CowMap { chunks: Arc::default(), len: 0 }
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for CowMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<K, V> CowMap<K, V> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Iterates in ascending key order.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (&K, &V)> {
        self.chunks.iter().flat_map(|chunk| chunk.iter().map(|(key, value)| (key, value)))
    }
}

impl<K: Ord + Clone, V: Clone> CowMap<K, V> {
    pub(crate) fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let chunk = self.chunks.get(self.chunk_of(key))?;
        let position = chunk.binary_search_by(|(have, _)| have.borrow().cmp(key)).ok()?;
        Some(&chunk[position].1)
    }

    pub(crate) fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.get(key).is_some()
    }

    /// The entries from `from` on, in ascending order.
    pub(crate) fn range_from<'m, Q: Ord + ?Sized>(
        &'m self,
        from: Bound<&Q>,
    ) -> impl Iterator<Item = (&'m K, &'m V)> + use<'m, K, V, Q>
    where
        K: Borrow<Q>,
    {
        let before = |key: &K| match from {
            Bound::Unbounded => false,
            Bound::Included(from) => key.borrow() < from,
            Bound::Excluded(from) => key.borrow() <= from,
        };
        let first = self.chunks.partition_point(|chunk| chunk.last().is_some_and(|(key, _)| before(key)));
        let skip = self.chunks.get(first).map_or(0, |chunk| chunk.partition_point(|(key, _)| before(key)));
        let chunks = self.chunks.get(first..).unwrap_or_default();
        chunks.iter().flat_map(|chunk| chunk.iter()).skip(skip).map(|(key, value)| (key, value))
    }

    /// Inserts a value. Returns the previous one.
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        let chunks = Arc::make_mut(&mut self.chunks);
        if chunks.is_empty() {
            chunks.push(Arc::new(vec![(key, value)]));
            self.len = 1;
            return None;
        }
        let index = chunk_of(chunks, &key).min(chunks.len() - 1);
        let last = index + 1 == chunks.len();
        let chunk = Arc::make_mut(&mut chunks[index]);
        match chunk.binary_search_by(|(have, _)| have.cmp(&key)) {
            Ok(position) => Some(std::mem::replace(&mut chunk[position].1, value)),
            Err(position) => {
                self.len += 1;
                if chunk.len() < CHUNK {
                    chunk.insert(position, (key, value));
                } else if position == CHUNK && last {
                    // Ascending keys fill chunks whole instead of leaving half-empty ones behind.
                    chunks.push(Arc::new(vec![(key, value)]));
                } else {
                    chunk.insert(position, (key, value));
                    let upper = chunk.split_off(chunk.len() / 2);
                    chunks.insert(index + 1, Arc::new(upper));
                }
                None
            }
        }
    }

    pub(crate) fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let index = self.chunk_of(key);
        let position = self.chunks.get(index)?.binary_search_by(|(have, _)| have.borrow().cmp(key)).ok()?;
        let chunks = Arc::make_mut(&mut self.chunks);
        let chunk = Arc::make_mut(&mut chunks[index]);
        let (_, value) = chunk.remove(position);
        self.len -= 1;
        if chunk.is_empty() {
            chunks.remove(index);
        } else if index > 0 && chunk.len() + chunks[index - 1].len() <= CHUNK / 2 {
            let upper = chunks.remove(index);
            Arc::make_mut(&mut chunks[index - 1]).extend(upper.iter().cloned());
        }
        Some(value)
    }

    fn chunk_of<Q: Ord + ?Sized>(&self, key: &Q) -> usize
    where
        K: Borrow<Q>,
    {
        chunk_of(&self.chunks, key)
    }
}

/// The chunk in which the key lies or would lie; one past the end when it is above all keys.
fn chunk_of<K: Borrow<Q>, V, Q: Ord + ?Sized>(chunks: &[Arc<Chunk<K, V>>], key: &Q) -> usize {
    chunks.partition_point(|chunk| chunk.last().is_some_and(|(last, _)| last.borrow() < key))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn agrees_with_an_ordered_map_and_clones_are_independent(
            edits in prop::collection::vec((any::<bool>(), 0u16..600), 0..3000),
            from in 0u16..600,
        ) {
            let mut ours = CowMap::default();
            let mut theirs = BTreeMap::new();
            let mut half = None;
            for (index, (put, key)) in edits.iter().enumerate() {
                if index == edits.len() / 2 {
                    half = Some((ours.clone(), theirs.clone()));
                }
                if *put {
                    prop_assert_eq!(ours.insert(*key, index), theirs.insert(*key, index));
                } else {
                    prop_assert_eq!(ours.remove(key), theirs.remove(key));
                }
                prop_assert_eq!(ours.get(key), theirs.get(key));
            }
            for (ours, theirs) in half.into_iter().chain([(ours, theirs)]) {
                prop_assert_eq!(ours.len(), theirs.len());
                prop_assert!(ours.iter().eq(theirs.iter()));
                prop_assert!(ours.iter().rev().eq(theirs.iter().rev()));
                prop_assert!(ours.range_from(Bound::Included(&from)).eq(theirs.range(from..)));
                prop_assert!(ours.range_from(Bound::Excluded(&from)).eq(theirs.range((Bound::Excluded(from), Bound::Unbounded))));
            }
        }
    }

    #[test]
    fn ascending_keys_fill_the_chunks() {
        let mut map = CowMap::default();
        for key in 0..10_000u32 {
            map.insert(key, ());
        }
        assert_eq!(map.chunks.len(), 10_000usize.div_ceil(CHUNK));
    }
}

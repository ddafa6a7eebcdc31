//! In-memory backend with failures on demand. It represents any subsystem in tests of order and comparison. The
//! running gateway does not use it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::Arc;

use parking_lot::Mutex;

use super::backend::Backend;

/// Shared backend: clones show the same entries.
#[derive(Debug)]
pub(crate) struct Mem<K, V> {
    inside: Arc<Mutex<FakeTable<K, V>>>,
    journal: Option<(&'static str, Journal)>,
}

/// Text log of the operations on several backends, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Journal(Arc<Mutex<Vec<String>>>);

impl Journal {
    pub(crate) fn write(&self, line: String) {
        self.0.lock().push(line);
    }

    /// Returns the lines since the last call.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock())
    }
}

#[derive(Debug)]
struct FakeTable<K, V> {
    entries: BTreeMap<K, V>,
    failing: BTreeSet<K>,
    unreadable: bool,
    log: Vec<Operation<K>>,
}

/// An operation on one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Operation<K> {
    Put(K),
    Remove(K),
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("this entry was told to fail")]
    Entry,
    #[error("reading was told to fail")]
    Read,
}

impl<K, V> Clone for Mem<K, V> {
    fn clone(&self) -> Self {
        Self { inside: Arc::clone(&self.inside), journal: self.journal.clone() }
    }
}

impl<K: Ord + Clone, V: Clone> Default for Mem<K, V> {
    fn default() -> Self {
        Self::holding(BTreeMap::new())
    }
}

impl<K: Ord + Clone, V: Clone> Mem<K, V> {
    pub(crate) fn holding(entries: BTreeMap<K, V>) -> Self {
        let inside = FakeTable { entries, failing: BTreeSet::new(), unreadable: false, log: Vec::new() };
        Self { inside: Arc::new(Mutex::new(inside)), journal: None }
    }

    /// Creates a backend that also writes its operations to a journal, under a name.
    pub(crate) fn journaling(name: &'static str, journal: &Journal) -> Self {
        Self { journal: Some((name, journal.clone())), ..Self::default() }
    }

    /// Makes every later put and remove of these entries fail. Operations on all other entries succeed.
    pub(crate) fn fail_at(&self, keys: impl IntoIterator<Item = K>) {
        self.inside.lock().failing = keys.into_iter().collect();
    }

    pub(crate) fn fail_reading(&self, fail: bool) {
        self.inside.lock().unreadable = fail;
    }

    pub(crate) fn entries(&self) -> BTreeMap<K, V> {
        self.inside.lock().entries.clone()
    }

    /// Changes the entries as an outsider would.
    pub(crate) fn tamper(&self, change: impl FnOnce(&mut BTreeMap<K, V>)) {
        change(&mut self.inside.lock().entries);
    }

    /// Returns the operations since the last call.
    pub(crate) fn take_log(&self) -> Vec<Operation<K>> {
        std::mem::take(&mut self.inside.lock().log)
    }
}

impl<K, V> Backend for Mem<K, V>
where
    K: Ord + Clone + Debug + Send + Sync,
    V: PartialEq + Clone + Debug + Send + Sync,
{
    type Key = K;
    type Value = V;
    type Error = Error;

    const NAME: &'static str = "memory";
    const REMOVE_FIRST: bool = false;

    async fn read(&self) -> Result<BTreeMap<K, V>, Error> {
        let inside = self.inside.lock();
        if inside.unreadable { Err(Error::Read) } else { Ok(inside.entries.clone()) }
    }

    async fn put(&self, key: &K, want: &V, _have: Option<&V>) -> Result<(), Error> {
        let mut inside = self.inside.lock();
        if inside.failing.contains(key) {
            return Err(Error::Entry);
        }
        inside.log.push(Operation::Put(key.clone()));
        if let Some((name, journal)) = &self.journal {
            journal.write(format!("{name} put {key:?}"));
        }
        inside.entries.insert(key.clone(), want.clone());
        Ok(())
    }

    async fn remove(&self, key: &K, _have: &V) -> Result<(), Error> {
        let mut inside = self.inside.lock();
        if inside.failing.contains(key) {
            return Err(Error::Entry);
        }
        inside.log.push(Operation::Remove(key.clone()));
        if let Some((name, journal)) = &self.journal {
            journal.write(format!("{name} remove {key:?}"));
        }
        inside.entries.remove(key);
        Ok(())
    }
}

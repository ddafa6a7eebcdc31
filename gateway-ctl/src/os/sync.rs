//! Synchronisation of one backend with the plan: read, compare over the union of keys, put, remove.
//!
//! A failed entry never blocks the rest. The comparison uses only the kernel state. The memory between runs serves
//! only to distinguish drift (an outside change) from the gateway's own changes.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::backend::{Backend, DriftEntry, Failure, Outcome};

/// State that the last run of a subsystem left in the kernel.
#[derive(Clone, Debug)]
pub struct LastApplied<K, V> {
    /// `None` until a run has finished: entries before it may come from an earlier process.
    applied: Option<BTreeMap<K, V>>,
    /// Entries with an uncertain state because a put or removal failed.
    unsettled: BTreeSet<K>,
}

impl<K, V> LastApplied<K, V> {
    pub fn applied(&self) -> Option<&BTreeMap<K, V>> {
        self.applied.as_ref()
    }
}

impl<K, V> Default for LastApplied<K, V> {
    fn default() -> Self {
        Self { applied: None, unsettled: BTreeSet::new() }
    }
}

/// Brings the backend to `want` in one step.
pub async fn sync<B: Backend>(
    backend: &B,
    want: &BTreeMap<B::Key, B::Value>,
    memory: &mut LastApplied<B::Key, B::Value>,
) -> Outcome {
    let mut pass = SyncPass::open(backend, want, memory).await;
    if B::REMOVE_FIRST {
        pass.remove().await;
        pass.put().await;
    } else {
        pass.put().await;
        pass.remove().await;
    }
    pass.close(memory)
}

/// A step in parts, for subsystems whose order is interleaved with that of others.
pub struct SyncPass<'a, B: Backend> {
    backend: &'a B,
    want: Cow<'a, BTreeMap<B::Key, B::Value>>,
    puts: BTreeMap<B::Key, Option<B::Value>>,
    removals: BTreeMap<B::Key, B::Value>,
    drift: Vec<(B::Key, DriftEntry)>,
    failed: BTreeMap<B::Key, Failure>,
    /// The read error. The state is unknown then, and the pass does nothing.
    unreadable: Option<Failure>,
    put: usize,
    removed: usize,
}

impl<'a, B: Backend> SyncPass<'a, B> {
    /// Reads the backend and compares.
    pub async fn open(
        backend: &'a B,
        want: &'a BTreeMap<B::Key, B::Value>,
        memory: &LastApplied<B::Key, B::Value>,
    ) -> Self {
        Self::over(backend, Cow::Borrowed(want), memory).await
    }

    /// Does the same for wanted entries that the pass may own.
    pub async fn over(
        backend: &'a B,
        want: Cow<'a, BTreeMap<B::Key, B::Value>>,
        memory: &LastApplied<B::Key, B::Value>,
    ) -> Self {
        let mut pass = Self {
            backend,
            want,
            puts: BTreeMap::new(),
            removals: BTreeMap::new(),
            drift: Vec::new(),
            failed: BTreeMap::new(),
            unreadable: None,
            put: 0,
            removed: 0,
        };
        match backend.read().await {
            Ok(have) => {
                if let Some(applied) = &memory.applied {
                    pass.drift = drift::<B>(&pass.want, &have, applied, &memory.unsettled);
                }
                pass.compare(have);
            }
            Err(error) => pass.unreadable = Some(Failure::new(B::NAME, &error)),
        }
        pass
    }

    fn compare(&mut self, mut have: BTreeMap<B::Key, B::Value>) {
        self.puts.clear();
        for (key, want) in self.want.iter() {
            let present = have.remove(key);
            if present.as_ref() != Some(want) {
                self.puts.insert(key.clone(), present);
            }
        }
        self.removals = have;
    }

    /// Reads and compares again, after other steps have changed the entries of this backend. Drift stays as first
    /// found.
    pub async fn reread(&mut self) {
        match self.backend.read().await {
            Ok(have) => self.compare(have),
            Err(error) => self.unreadable = Some(Failure::new(B::NAME, &error)),
        }
    }

    pub async fn put(&mut self) {
        self.put_where(|_, _| true).await;
    }

    /// Puts the missing and the differing entries that satisfy the condition, in the order of their keys.
    pub async fn put_where(&mut self, condition: impl Fn(&B::Key, &B::Value) -> bool) {
        for (key, have) in std::mem::take(&mut self.puts) {
            let want = &self.want[&key];
            if !condition(&key, want) {
                self.puts.insert(key, have);
                continue;
            }
            match self.backend.put(&key, want, have.as_ref()).await {
                Ok(()) => {
                    self.put += 1;
                    self.failed.remove(&key);
                }
                Err(error) => self.fail(key, &error),
            }
        }
    }

    pub async fn remove(&mut self) {
        self.remove_where(|_, _| true).await;
    }

    /// Removes the unwanted entries that satisfy the condition, in the order of their keys.
    pub async fn remove_where(&mut self, condition: impl Fn(&B::Key, &B::Value) -> bool) {
        for (key, have) in std::mem::take(&mut self.removals) {
            if !condition(&key, &have) {
                self.removals.insert(key, have);
                continue;
            }
            match self.backend.remove(&key, &have).await {
                Ok(()) => self.removed += 1,
                Err(error) => self.fail(key, &error),
            }
        }
    }

    fn fail(&mut self, key: B::Key, error: &B::Error) {
        let failure = Failure::new(B::resource(&key), error);
        tracing::warn!(
            subsystem = B::NAME,
            resource = failure.resource,
            error = failure.error,
            "entry failed"
        );
        self.failed.insert(key, failure);
    }

    /// Ends the step and remembers its result. Entries that were not put or removed by now stay undone.
    pub fn close(self, memory: &mut LastApplied<B::Key, B::Value>) -> Outcome {
        if let Some(failure) = self.unreadable {
            // The memory stays as it was: the pass read and changed nothing.
            return Outcome { failed: vec![failure], ..Outcome::default() };
        }
        let mut unsettled: BTreeSet<B::Key> = self.failed.keys().cloned().collect();
        unsettled.extend(self.puts.into_keys());
        unsettled.extend(self.removals.into_keys());
        let settled = self.want.iter().filter(|(key, _)| !unsettled.contains(*key));
        let applied = settled.map(|(key, value)| (key.clone(), value.clone())).collect();
        let drift = self.drift.into_iter().map(|(key, mut entry)| {
            entry.repaired = !unsettled.contains(&key);
            entry
        });
        let outcome = Outcome {
            put: self.put,
            removed: self.removed,
            failed: self.failed.into_values().collect(),
            drift: drift.collect(),
        };
        *memory = LastApplied { applied: Some(applied), unsettled };
        outcome
    }
}

/// Returns the entries that differ from the result of the last run although the plan for them is unchanged.
fn drift<B: Backend>(
    want: &BTreeMap<B::Key, B::Value>,
    have: &BTreeMap<B::Key, B::Value>,
    applied: &BTreeMap<B::Key, B::Value>,
    unsettled: &BTreeSet<B::Key>,
) -> Vec<(B::Key, DriftEntry)> {
    let keys: BTreeSet<&B::Key> = applied.keys().chain(have.keys()).collect();
    let mut entries = Vec::new();
    for key in keys {
        let (before, now, present) = (applied.get(key), want.get(key), have.get(key));
        if before == present || before != now || unsettled.contains(key) {
            continue;
        }
        for (field, expected, actual) in B::differences(before, present) {
            let resource = B::resource(key);
            let entry = DriftEntry { resource, field: field.to_owned(), expected, actual, repaired: false };
            entries.push((key.clone(), entry));
        }
    }
    entries
}

#[cfg(test)]
mod tests;

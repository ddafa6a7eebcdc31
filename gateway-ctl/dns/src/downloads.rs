//! Downloaded copies of lists and zones: checked when they are due, retried after growing pauses, kept on disk.
//!
//! Only a newer copy that can be read replaces the copy in use. The start reads copies without the network.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use gateway_model::Id;
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::hooks::Supervise;
use gateway_journal::erase::erase_files_of;

mod disk_cache;

pub(crate) use disk_cache::{DiskCache, PendingFile};

/// Newer copy with its content. None: the source has no newer one.
pub(crate) type Fetched<D> =
    Result<Option<(<D as Download>::Copy, <D as Download>::Content)>, <D as Download>::Error>;

/// Kind of downloaded copy: its source, its form on disk and its times.
pub(crate) trait Download: Send + Sync + 'static {
    /// Object that a copy belongs to.
    type Item: Clone + PartialEq + Send + Sync + 'static;
    /// Description of the copy in use.
    type Copy: Clone + Send + Sync + 'static;
    /// Content of a copy, as its users get it.
    type Content: Send;
    type Error: Display + Send + Sync;

    const DISK: DiskCache;
    /// Check at the start: if true, the first check is due at once, however young the copy on disk is.
    const CHECKS_AT_START: bool;
    /// Minimum interval between two requested checks.
    const MIN_INTERVAL: Duration;

    fn id(item: &Self::Item) -> Id;

    fn task_name(item: &Self::Item) -> String;

    /// Returns false if the copy came from a source that the item no longer names.
    fn is_copy_of(copy: &Self::Copy, item: &Self::Item) -> bool;

    /// Returns true if the copy may no longer be used. Copies without such an end never expire.
    fn is_expired(_copy: &HeldCopy<Self::Copy>) -> bool {
        false
    }

    /// Returns the wait until the next check.
    fn wait(item: &Self::Item, state: &DownloadState<Self::Copy>, now: Timestamp) -> Duration;

    /// Reads the copy on disk, with the time of its last check.
    fn read(&self, folder: &Path, item: &Self::Item) -> io::Result<Option<Stored<Self>>>;

    /// Requests a newer copy from the source, checks it and stores it. None: the copy in use is the newest.
    fn fetch(
        &self,
        folder: &Path,
        item: &Self::Item,
        have: Option<&HeldCopy<Self::Copy>>,
    ) -> impl Future<Output = Fetched<Self>> + Send;

    /// Replaces the previous content with this one.
    fn deliver(&self, id: Id, content: Self::Content);

    /// Reports that a copy is no longer kept up to date or has expired.
    fn withdraw(&self, _id: Id) {}

    /// Reports a check that succeeded, with or without a newer copy.
    fn succeeded(&self, _id: Id) {}

    fn failed(&self, item: &Self::Item, error: &Self::Error);
}

/// Copy that was read from disk.
pub(crate) struct Stored<K: Download + ?Sized> {
    pub copy: K::Copy,
    pub content: K::Content,
    pub checked: Timestamp,
}

/// Copy in use and the time of its last successful check.
#[derive(Clone, Debug)]
pub(crate) struct HeldCopy<C> {
    pub copy: C,
    pub checked: Timestamp,
    /// Age at `since`. The sum stays correct when the wall clock is set.
    age: Duration,
    since: Instant,
}

impl<C> HeldCopy<C> {
    pub(crate) fn new(copy: C, checked: Timestamp, age: Duration) -> HeldCopy<C> {
        HeldCopy { copy, checked, age, since: Instant::now() }
    }

    pub(crate) fn age(&self) -> Duration {
        self.age + self.since.elapsed()
    }
}

/// State of one download.
#[derive(Clone, Debug)]
pub(crate) struct DownloadState<C> {
    pub held: Option<HeldCopy<C>>,
    /// Error of the last check, if it failed.
    pub error: Option<String>,
    /// Failed checks in a row.
    pub failures: u32,
    pub next: Option<Timestamp>,
}

impl<C> Default for DownloadState<C> {
    fn default() -> DownloadState<C> {
        DownloadState { held: None, error: None, failures: 0, next: None }
    }
}

/// All downloads of one kind.
pub(crate) struct Downloads<K: Download> {
    shared: Arc<Shared<K>>,
    supervisor: Arc<dyn Supervise>,
    running: Mutex<BTreeMap<Id, Running<K::Item>>>,
}

struct Shared<K: Download> {
    kind: K,
    folder: PathBuf,
    states: Mutex<BTreeMap<Id, DownloadState<K::Copy>>>,
}

struct Running<I> {
    item: I,
    check_now: Arc<Notify>,
    task: JoinHandle<()>,
}

impl<I> Drop for Running<I> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl<K: Download> Downloads<K> {
    /// Creates downloads that keep their copies in `folder`, which must exist.
    pub(crate) fn new(kind: K, folder: PathBuf, supervisor: Arc<dyn Supervise>) -> Downloads<K> {
        let shared = Arc::new(Shared { kind, folder, states: Mutex::default() });
        Downloads { shared, supervisor, running: Mutex::default() }
    }

    pub(crate) fn kind(&self) -> &K {
        &self.shared.kind
    }

    /// Reads the copies of these items from disk and delivers the usable ones. Blocks, so threads that serve must not
    /// call it.
    #[expect(clippy::disallowed_methods, reason = "age of copies on disk")]
    pub(crate) fn load(&self, items: &[K::Item]) {
        items.iter().for_each(|item| self.shared.load(item, Timestamp::now()));
    }

    /// Keeps the copies of these items up to date from now on, and deletes all others.
    pub(crate) fn set(&self, items: &[K::Item]) {
        let mut running = self.running.lock();
        running.retain(|_, one| items.contains(&one.item));
        let is_gone = |id: &Id| !items.iter().any(|item| K::id(item) == *id);
        let gone: Vec<Id> =
            self.shared.states.lock().extract_if(.., |id, _| is_gone(id)).map(|(id, _)| id).collect();
        gone.into_iter().for_each(|id| self.shared.kind.withdraw(id));
        for item in items {
            running.entry(K::id(item)).or_insert_with(|| self.start(item));
        }
        let ids: Vec<Id> = running.keys().copied().collect();
        drop(running);
        K::DISK.forget_others(&self.shared.folder, &ids);
    }

    fn start(&self, item: &K::Item) -> Running<K::Item> {
        self.shared.forget_other_source(item);
        let check_now = Arc::new(Notify::new());
        let (shared, one, wake) = (self.shared.clone(), item.clone(), check_now.clone());
        let start = move || -> Pin<Box<dyn Future<Output = ()> + Send>> {
            let (shared, one, wake) = (shared.clone(), one.clone(), wake.clone());
            Box::pin(async move { shared.keep(&one, &wake).await })
        };
        let task = self.supervisor.restart_until_done(K::task_name(item), Box::new(start));
        Running { item: item.clone(), check_now, task }
    }

    /// Erases the copies on disk. Those in use stay; the next start fetches them.
    pub(crate) fn erase_copies(&self) -> io::Result<()> {
        erase_files_of(&self.shared.folder)
    }

    /// Checks the first matching item now. Returns false if no item matches.
    pub(crate) fn check_now(&self, is_match: impl Fn(&K::Item) -> bool) -> bool {
        let running = self.running.lock();
        running.values().find(|one| is_match(&one.item)).map(|one| one.check_now.notify_one()).is_some()
    }

    pub(crate) fn item(&self, id: Id) -> Option<K::Item> {
        self.running.lock().get(&id).map(|running| running.item.clone())
    }

    pub(crate) fn state(&self, id: Id) -> Option<DownloadState<K::Copy>> {
        self.shared.states.lock().get(&id).cloned()
    }

    #[cfg(test)]
    pub(crate) fn set_state(&self, id: Id, state: DownloadState<K::Copy>) {
        self.shared.states.lock().insert(id, state);
    }
}

impl<K: Download> Shared<K> {
    fn load(&self, item: &K::Item, now: Timestamp) {
        let id = K::id(item);
        match self.kind.read(&self.folder, item) {
            Ok(Some(Stored { copy, content, checked })) => {
                // If the wall clock is behind, the age is unknown.
                let age = now.duration_since(checked).try_into().unwrap_or_default();
                let held = HeldCopy::new(copy, checked, age);
                if K::is_expired(&held) {
                    return;
                }
                let state = DownloadState { held: Some(held), ..DownloadState::default() };
                self.states.lock().insert(id, state);
                self.kind.deliver(id, content);
            }
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(download = K::task_name(item), %error, "failed to read the disk cache");
            }
        }
    }

    /// Removes the state of the item if it belongs to another source.
    fn forget_other_source(&self, item: &K::Item) {
        let id = K::id(item);
        let is_copy_of = |held: &HeldCopy<K::Copy>| K::is_copy_of(&held.copy, item);
        let mut states = self.states.lock();
        if states.get(&id).is_some_and(|state| !state.held.as_ref().is_some_and(is_copy_of)) {
            let forgotten = states.remove(&id);
            drop(states);
            if forgotten.is_some_and(|state| state.held.is_some()) {
                self.kind.withdraw(id);
            }
        }
    }

    /// Checks an item each time a check is due or requested.
    #[expect(clippy::disallowed_methods, reason = "age of copies on disk")]
    async fn keep(&self, item: &K::Item, check_now: &Notify) {
        let (mut began, mut is_due) = (Instant::now(), K::CHECKS_AT_START);
        loop {
            if !is_due {
                tokio::select! {
                    () = tokio::time::sleep(self.wait(item, Timestamp::now())) => {}
                    () = async {
                        check_now.notified().await;
                        tokio::time::sleep_until(began + K::MIN_INTERVAL).await;
                    } => {}
                }
            }
            (began, is_due) = (Instant::now(), false);
            self.check(item).await;
        }
    }

    fn wait(&self, item: &K::Item, now: Timestamp) -> Duration {
        let mut states = self.states.lock();
        let state = states.entry(K::id(item)).or_default();
        let wait = K::wait(item, state, now);
        state.next = now.checked_add(jiff::SignedDuration::try_from(wait).unwrap_or_default()).ok();
        wait
    }

    async fn check(&self, item: &K::Item) {
        let id = K::id(item);
        let have = self.states.lock().get(&id).and_then(|state| state.held.clone());
        let have = have.filter(|held| K::is_copy_of(&held.copy, item));
        let fetched = self.kind.fetch(&self.folder, item, have.as_ref()).await;
        #[expect(clippy::disallowed_methods, reason = "age of copies on disk")]
        let now = Timestamp::now();
        let mut states = self.states.lock();
        let state = states.entry(id).or_default();
        match fetched {
            Ok(fetched) => {
                (state.error, state.failures) = (None, 0);
                let (newer, content) = fetched.unzip();
                let current = newer.or_else(|| state.held.take().map(|held| held.copy));
                state.held = current.map(|copy| HeldCopy::new(copy, now, Duration::ZERO));
                drop(states);
                self.kind.succeeded(id);
                if let Some(content) = content {
                    self.kind.deliver(id, content);
                }
            }
            Err(error) => {
                state.error = Some(error.to_string());
                state.failures = state.failures.saturating_add(1);
                let expired = state.held.take_if(|held| K::is_expired(held)).is_some();
                drop(states);
                if expired {
                    self.kind.withdraw(id);
                    K::DISK.forget(&self.folder, id);
                }
                self.kind.failed(item, &error);
            }
        }
    }
}

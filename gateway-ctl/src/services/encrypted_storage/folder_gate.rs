//! Gate of the folders: tells each user of records where they lie now, and knows who still uses a folder.
//!
//! A user opens the folder, and drops [`OpenFolder`] when its files are closed. The storage is unmounted only without users.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tokio::sync::watch;

use super::layout::StorageContent;

/// Location of the records that live in the encrypted storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Location {
    /// Nothing is configured.
    Plain,
    /// Nowhere: users wait.
    Closed,
    /// In the mounted storage.
    Encrypted,
}

/// Gate of the folders. Clones are the same gate.
#[derive(Clone, Debug)]
pub(super) struct FolderGate(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    state_dir: PathBuf,
    mount_point: PathBuf,
    state: Mutex<GateState>,
    released: Condvar,
    changed: watch::Sender<u64>,
}

#[derive(Debug)]
struct GateState {
    location: Location,
    contents: Vec<StorageContent>,
    users: BTreeMap<StorageContent, usize>,
}

impl FolderGate {
    pub(super) fn new(state_dir: &Path, mount_point: &Path) -> FolderGate {
        let state = GateState { location: Location::Plain, contents: Vec::new(), users: BTreeMap::new() };
        FolderGate(Arc::new(Inner {
            state_dir: state_dir.to_owned(),
            mount_point: mount_point.to_owned(),
            state: Mutex::new(state),
            released: Condvar::new(),
            changed: watch::channel(0).0,
        }))
    }

    /// Sets the location of these contents. All others are plain.
    pub(super) fn set(&self, location: Location, contents: &[StorageContent]) {
        {
            let mut state = self.0.state.lock();
            state.location = location;
            state.contents = contents.to_vec();
        }
        self.0.changed.send_modify(|generation| *generation += 1);
    }

    /// Returns the folder of a content, or `None` while it waits for the storage.
    pub(super) fn open(&self, content: StorageContent) -> Option<OpenFolder> {
        let mut state = self.0.state.lock();
        let is_inside = state.contents.contains(&content);
        let base = match state.location {
            Location::Closed if is_inside => return None,
            Location::Encrypted if is_inside => &self.0.mount_point,
            Location::Plain | Location::Closed | Location::Encrypted => &self.0.state_dir,
        };
        let base = base.clone();
        *state.users.entry(content).or_default() += 1;
        let identity = identity(&base);
        Some(OpenFolder { base, identity, content, gate: self.clone() })
    }

    /// Returns the contents that wait for the storage.
    pub(super) fn waiting(&self) -> Vec<StorageContent> {
        let state = self.0.state.lock();
        if state.location == Location::Closed { state.contents.clone() } else { Vec::new() }
    }

    /// Waits until no content of the storage is in use. Returns those that still are, at the end of this time.
    pub(super) fn wait_released(&self, within: Duration) -> Result<(), Vec<StorageContent>> {
        let deadline = Instant::now() + within;
        let mut state = self.0.state.lock();
        loop {
            let used: Vec<StorageContent> = state
                .contents
                .iter()
                .copied()
                .filter(|one| state.users.get(one).is_some_and(|n| *n > 0))
                .collect();
            if used.is_empty() {
                return Ok(());
            }
            if self.0.released.wait_until(&mut state, deadline).timed_out() {
                return Err(used);
            }
        }
    }

    pub(super) fn watch(&self) -> watch::Receiver<u64> {
        self.0.changed.subscribe()
    }
}

/// Folder of a content, in use until it is dropped.
#[derive(Debug)]
pub struct OpenFolder {
    base: PathBuf,
    identity: Option<(u64, u64)>,
    content: StorageContent,
    gate: FolderGate,
}

/// Returns device and inode of a folder.
fn identity(folder: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(folder).map(|metadata| (metadata.dev(), metadata.ino())).ok()
}

impl OpenFolder {
    /// Returns the folder below which the folders of the content lie.
    pub fn base(&self) -> &Path {
        &self.base
    }

    /// Reports whether the path leads to the same folder still. Behind an unmount by force, it leads to one beside the
    /// storage.
    pub fn is_in_place(&self) -> bool {
        self.identity.is_some() && identity(&self.base) == self.identity
    }
}

impl Drop for OpenFolder {
    fn drop(&mut self) {
        let inner = &self.gate.0;
        if let Some(users) = inner.state.lock().users.get_mut(&self.content) {
            *users = users.saturating_sub(1);
        }
        inner.released.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_millis(1);

    #[test]
    fn contents_of_the_storage_wait_while_it_is_closed_and_others_do_not() {
        let gate = FolderGate::new(Path::new("/state"), Path::new("/state/encrypted"));
        let base = |content| gate.open(content).map(|folder| folder.base().to_owned());
        let (inside, outside) = (StorageContent::FlowLog, StorageContent::Captures);
        assert_eq!(base(inside), Some("/state".into()));
        gate.set(Location::Closed, &[inside]);
        assert_eq!((base(inside), base(outside)), (None, Some("/state".into())));
        assert_eq!(gate.waiting(), [inside]);
        gate.set(Location::Encrypted, &[inside]);
        assert_eq!((base(inside), base(outside)), (Some("/state/encrypted".into()), Some("/state".into())));
        assert!(gate.waiting().is_empty());
    }

    #[test]
    fn the_storage_is_free_when_the_last_user_has_let_go() {
        let gate = FolderGate::new(Path::new("/state"), Path::new("/state/encrypted"));
        let (inside, outside) = (StorageContent::QueryLog, StorageContent::Captures);
        gate.set(Location::Encrypted, &[inside]);
        let users = [gate.open(inside), gate.open(inside)];
        let _other = gate.open(outside);
        gate.set(Location::Closed, &[inside]);
        assert_eq!(gate.wait_released(SOON), Err(vec![inside]));
        let waiting = gate.clone();
        let waiter = std::thread::spawn(move || waiting.wait_released(Duration::from_secs(60)));
        drop(users);
        assert_eq!(waiter.join().expect("no panic"), Ok(()));
    }

    #[test]
    fn changes_reach_those_who_watch() {
        let gate = FolderGate::new(Path::new("/state"), Path::new("/state/encrypted"));
        let watch = gate.watch();
        gate.set(Location::Closed, &[]);
        assert!(watch.has_changed().expect("the gate lives"));
    }
}

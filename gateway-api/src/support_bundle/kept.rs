//! The bundle that is being built or that is kept, and its state.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use gateway_ctl::handles::Handle;
use gateway_model::{Id, text_enum};
use jiff::Timestamp;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Serialize;

/// Time for which a bundle is kept.
pub(super) const RETENTION: Duration = Duration::from_secs(30 * 60);

text_enum! {
    /// State of a support bundle.
    pub enum BundleState {
        /// It is being built.
        Running = "running",
        /// It can be downloaded.
        Done = "done",
        Error = "error",
    }
}

/// A support bundle.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct SupportBundle {
    pub id: Id,
    pub state: BundleState,
    pub created_at: Timestamp,
    /// Name of the user that asked for it.
    pub created_by: String,
    /// Time at which it was complete, or failed; null before.
    pub finished_at: Option<Timestamp>,
    /// Time at which it is removed; null while it is being built. The next bundle replaces it before.
    pub expires_at: Option<Timestamp>,
    /// Size of the archive in bytes; null until it is complete.
    pub size: Option<u64>,
    /// Cause of the failure, in the state `error`.
    pub error: Option<String>,
    /// Parts so far.
    pub parts: Vec<BundlePart>,
}

/// A part of a support bundle.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct BundlePart {
    /// Name of the file in the archive.
    pub file: &'static str,
    /// Size of the file in bytes; null if it is missing.
    pub size: Option<u64>,
    /// Reason why the file is missing; null if it is there.
    pub error: Option<String>,
}

/// The last bundle. It is in memory and in a file without a name, so a restart ends it.
#[derive(Clone, Default)]
pub(crate) struct SupportBundles(Arc<Mutex<Option<Kept>>>);

struct Kept {
    bundle: SupportBundle,
    file: Option<Arc<File>>,
}

impl Handle for SupportBundles {
    fn open(_: &Path, _: Timestamp) -> SupportBundles {
        SupportBundles::default()
    }
}

impl SupportBundles {
    /// Enters a new bundle in place of the last one. `None` while one is being built.
    pub(super) fn begin(&self, now: Timestamp, created_by: &str) -> Option<SupportBundle> {
        let mut kept = self.0.lock();
        if kept.as_ref().is_some_and(|kept| kept.bundle.state == BundleState::Running) {
            return None;
        }
        let bundle = SupportBundle {
            id: Id::mint(now, 0),
            state: BundleState::Running,
            created_at: now,
            created_by: created_by.to_owned(),
            finished_at: None,
            expires_at: None,
            size: None,
            error: None,
            parts: Vec::new(),
        };
        *kept = Some(Kept { bundle: bundle.clone(), file: None });
        Some(bundle)
    }

    pub(super) fn add_part(&self, id: Id, part: BundlePart) {
        self.update(id, |kept| kept.bundle.parts.push(part));
    }

    /// Ends the building of a bundle, unless it was cleared meanwhile.
    pub(super) fn end(&self, id: Id, now: Timestamp, result: Result<Arc<File>, String>) {
        self.update(id, |kept| {
            let bundle = &mut kept.bundle;
            bundle.finished_at = Some(now);
            bundle.expires_at = now.checked_add(RETENTION).ok();
            match result {
                Ok(file) => {
                    bundle.state = BundleState::Done;
                    bundle.size = file.metadata().ok().map(|metadata| metadata.len());
                    kept.file = Some(file);
                }
                Err(error) => {
                    bundle.state = BundleState::Error;
                    bundle.error = Some(error);
                }
            }
        });
    }

    /// Removes a bundle. Downloads that have begun go on.
    pub(super) fn remove(&self, id: Id) {
        let mut kept = self.0.lock();
        if kept.as_ref().is_some_and(|kept| kept.bundle.id == id) {
            *kept = None;
        }
    }

    pub(super) fn clear(&self) {
        *self.0.lock() = None;
    }

    pub(crate) fn find(&self, id: Id) -> Option<SupportBundle> {
        self.0.lock().as_ref().filter(|kept| kept.bundle.id == id).map(|kept| kept.bundle.clone())
    }

    /// Returns the file of a bundle that is complete.
    pub(crate) fn file(&self, id: Id) -> Option<Arc<File>> {
        self.0.lock().as_ref().filter(|kept| kept.bundle.id == id)?.file.clone()
    }

    fn update(&self, id: Id, change: impl FnOnce(&mut Kept)) {
        if let Some(kept) = self.0.lock().as_mut().filter(|kept| kept.bundle.id == id) {
            change(kept);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_bundle_is_built_at_a_time_and_a_cleared_one_does_not_come_back() {
        let (bundles, now) = (SupportBundles::default(), Timestamp::UNIX_EPOCH);
        let first = bundles.begin(now, "admin").expect("none is being built");
        assert!(bundles.begin(now, "admin").is_none());
        bundles.end(first.id, now, Err("no room".to_owned()));
        assert_eq!(bundles.find(first.id).map(|bundle| bundle.state), Some(BundleState::Error));
        let second = bundles.begin(now, "admin").expect("none is being built");
        assert!(bundles.find(first.id).is_none());
        bundles.clear();
        let file = Arc::new(tempfile::tempfile().expect("a file"));
        bundles.end(second.id, now, Ok(file));
        assert!(bundles.find(second.id).is_none() && bundles.file(second.id).is_none());
    }
}

//! What is set at runtime: dotted keys, each with a JSON value.
//!
//! Holds texts of any key; which keys there are and what they take is the matter of whoever owns the key.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::cow::CowMap;
use crate::id::Revision;

/// One value that was set.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Setting {
    pub value: Value,
    pub revision: Revision,
    pub updated_at: Timestamp,
}

/// Values may hold secrets, so none is printed.
impl fmt::Debug for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setting").field("revision", &self.revision).finish_non_exhaustive()
    }
}

/// All values that were set.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    values: CowMap<Arc<str>, Arc<Setting>>,
    revision: Revision,
    dirty: BTreeSet<Arc<str>>,
}

impl Settings {
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.setting(key).map(|setting| &setting.value)
    }

    pub fn setting(&self, key: &str) -> Option<&Arc<Setting>> {
        self.values.get(key)
    }

    /// In the order of the keys.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Setting)> {
        self.values.iter().map(|(key, setting)| (key.as_ref(), setting.as_ref()))
    }

    /// Of the last change of any value.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// Keys that were set or taken back in this draft.
    pub fn dirty(&self) -> &BTreeSet<Arc<str>> {
        &self.dirty
    }

    pub(crate) fn begin(&mut self) {
        self.dirty.clear();
    }

    pub(crate) fn put(&mut self, key: &str, setting: Setting) {
        let key: Arc<str> = key.into();
        self.revision = self.revision.max(setting.revision);
        self.values.insert(key.clone(), Arc::new(setting));
        self.dirty.insert(key);
    }

    pub(crate) fn take(&mut self, key: &str, revision: Revision) -> bool {
        if self.values.remove(key).is_none() {
            return false;
        }
        self.revision = self.revision.max(revision);
        self.dirty.insert(key.into());
        true
    }

    /// For the store: takes over a stored value.
    pub fn load(&mut self, key: &str, setting: Setting) {
        self.put(key, setting);
        self.dirty.clear();
    }

    /// For the store: the revision of the last change, which may have been a removal.
    pub fn resume(&mut self, revision: Revision) {
        self.revision = self.revision.max(revision);
    }
}

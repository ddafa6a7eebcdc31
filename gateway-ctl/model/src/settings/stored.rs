//! Settings at runtime: dotted keys, each with a JSON value or a secret.
//!
//! Holds texts of any key; the owner of a key defines and validates it.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::cow::CowMap;
use crate::decode;
use crate::id::Revision;
use crate::secret::Secret;
use crate::secrets::{Scope, SecretPlace, SecretVisitor};

/// One value that was set.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Setting {
    /// `true` for a secret: that it is set is all that is shown.
    pub value: Value,
    pub revision: Revision,
    pub updated_at: Timestamp,
    /// Secret instead of a value; see [`crate::State::set_secret`].
    #[serde(skip)]
    pub secret: Secret,
}

/// Key of the stored form that replaces `value`.
pub const SECRET_KEY: &str = "secret";

impl Setting {
    pub fn is_secret(&self) -> bool {
        self.secret.is_set()
    }

    /// The bytes the store keeps.
    pub fn stored_json(&self) -> Vec<u8> {
        let mut stored = serde_json::to_value(self).expect("a setting is JSON already");
        if let (true, Value::Object(map)) = (self.is_secret(), &mut stored) {
            map.shift_remove("value");
            map.insert(SECRET_KEY.into(), self.secret.stored_text().into());
        }
        serde_json::to_vec(&stored).expect("a setting is JSON already")
    }

    /// Parses the output of [`Setting::stored_json`].
    pub fn read_stored(json: &[u8]) -> Result<Setting, serde_json::Error> {
        let mut stored: Value = serde_json::from_slice(json)?;
        let secret = stored.as_object_mut().and_then(|map| {
            let secret = map.shift_remove(SECRET_KEY)?;
            map.insert("value".into(), true.into());
            Some(secret)
        });
        let mut setting: Setting = decode::from_value(&stored)?;
        if let Some(secret) = secret {
            setting.secret = decode::from_value(&secret)?;
        }
        Ok(setting)
    }
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

    /// The secret of this key; not set if it has none.
    pub fn secret(&self, key: &str) -> Secret {
        self.setting(key).map(|setting| setting.secret.clone()).unwrap_or_default()
    }

    pub fn setting(&self, key: &str) -> Option<&Arc<Setting>> {
        self.values.get(key)
    }

    /// Iterates over the settings in key order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Setting)> {
        self.values.iter().map(|(key, setting)| (key.as_ref(), setting.as_ref()))
    }

    /// Returns the revision of the last change of any value.
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

    pub(crate) fn visit_secrets(&mut self, scope: Scope, visit: &mut SecretVisitor<'_>) {
        let wanted = |key: &Arc<str>| scope == Scope::All || self.dirty.contains(key);
        let secrets = self.values.iter().filter(|(key, setting)| setting.is_secret() && wanted(key));
        let secrets: Vec<_> = secrets.map(|(key, setting)| (key.clone(), setting.clone())).collect();
        for (key, setting) in secrets {
            let location = SecretPlace {
                noun: "setting",
                id: key.to_string(),
                name: key.to_string(),
                field: String::new(),
                updated_at: setting.updated_at,
            };
            let mut secret = setting.secret.clone();
            visit(&location, &mut secret);
            if !secret.is_same(&setting.secret) {
                self.put(&key, Setting { secret, ..setting.as_ref().clone() });
            }
        }
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

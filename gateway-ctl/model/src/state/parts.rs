//! Parts of the state that decide on traffic, without secrets: for comparison with an earlier state, and to put together a
//! state that compiles to the same decisions.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::State;
use crate::id::{Id, Revision};
use crate::kinds::*;
use crate::registry::{Kind, LoadError};
use crate::resource::Resource;
use crate::settings::Setting;

/// Collections that the compiler or an explanation reads.
const COLLECTIONS: &[&str] = &[
    PrivacyClass::COLLECTION,
    Proxy::COLLECTION,
    Tunnel::COLLECTION,
    Chain::COLLECTION,
    Profile::COLLECTION,
    TrustClass::COLLECTION,
    Device::COLLECTION,
    DeviceGroup::COLLECTION,
    RoutingPolicy::COLLECTION,
    Exception::COLLECTION,
    Bridge::COLLECTION,
    Segment::COLLECTION,
    SplittingEndpoint::COLLECTION,
    DnsForwarder::COLLECTION,
];

const ROW: &str = "row/";
const APPLIED: &str = "applied/";
const SETTING: &str = "setting/";
const REVISIONS: &str = "revisions";

/// Part of a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatePart {
    pub key: String,
    /// JSON of the part; `None` if the state has it no more.
    pub json: Option<Vec<u8>>,
}

impl StatePart {
    fn new(key: String, json: Option<Vec<u8>>) -> StatePart {
        StatePart { key, json }
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Revisions {
    state: Revision,
    applied: Revision,
    applied_at: Option<Timestamp>,
}

/// Part that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum PartError {
    #[error("the part {key} cannot be read")]
    Json {
        key: String,
        #[source]
        source: serde_json::Error,
    },
    #[error(transparent)]
    Row(#[from] LoadError),
    #[error("there is no part {0}")]
    Unknown(String),
}

impl State {
    /// Hands out the parts that differ from those of an earlier state. Of [`State::empty`], these are all. A secret that is
    /// set is replaced by a placeholder.
    pub fn parts_since(&self, before: &State, take: &mut dyn FnMut(StatePart)) {
        for kind in kinds() {
            let key = |id: Id| format!("{ROW}{}/{id}", kind.collection);
            kind.redacted_rows_since(before, self, &mut |row| take(StatePart::new(key(row.id), row.json)));
        }
        self.applied_since(before, take);
        self.settings_since(before, take);
        let marks = |state: &State| (state.revision, state.applied.revision, state.applied.at);
        if marks(self) != marks(before) {
            let (state, applied, applied_at) = marks(self);
            let revisions = json(&Revisions { state, applied, applied_at });
            take(StatePart::new(REVISIONS.to_owned(), Some(revisions)));
        }
    }

    fn applied_since(&self, before: &State, take: &mut dyn FnMut(StatePart)) {
        let (old, new) = (&before.applied.policies, &self.applied.policies);
        let key = |id: Id| format!("{APPLIED}{id}");
        let changed = new.not_in(old).filter_map(|id| new.get(id));
        changed
            .map(|policy| StatePart::new(key(policy.meta.id), Some(self.applied.stored_json(policy))))
            .for_each(&mut *take);
        let gone = old.not_in(new).filter(|id| !new.contains(*id));
        gone.map(|id| StatePart::new(key(id), None)).for_each(take);
    }

    fn settings_since(&self, before: &State, take: &mut dyn FnMut(StatePart)) {
        let key = |name: &str| format!("{SETTING}{name}");
        for (name, _) in self.settings.iter() {
            let (Some(new), old) = (self.settings.setting(name), before.settings.setting(name)) else {
                continue;
            };
            if !old.is_some_and(|old| Arc::ptr_eq(old, new)) {
                // The secret is not a part of this form.
                take(StatePart::new(key(name), Some(json(new.as_ref()))));
            }
        }
        let gone = before.settings.iter().filter(|(name, _)| self.settings.setting(name).is_none());
        gone.map(|(name, _)| StatePart::new(key(name), None)).for_each(take);
    }

    /// Puts a state together.
    pub fn of_parts<'a>(parts: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Result<State, PartError> {
        let mut state = State::empty();
        for (key, json) in parts {
            state.take_part(key, json)?;
        }
        Ok(state)
    }

    fn take_part(&mut self, key: &str, json: &[u8]) -> Result<(), PartError> {
        let unreadable = |source| PartError::Json { key: key.to_owned(), source };
        if let Some((collection, _)) = key.strip_prefix(ROW).and_then(|rest| rest.split_once('/')) {
            let kind = kinds().find(|kind| kind.collection == collection);
            kind.ok_or_else(|| PartError::Unknown(key.to_owned()))?.load(self, json)?;
        } else if key.starts_with(APPLIED) {
            self.applied.load(json)?;
        } else if let Some(name) = key.strip_prefix(SETTING) {
            self.settings.load(name, Setting::read_stored(json).map_err(unreadable)?);
        } else if key == REVISIONS {
            let marks: Revisions = serde_json::from_slice(json).map_err(unreadable)?;
            self.revision = marks.state;
            (self.applied.revision, self.applied.at) = (marks.applied, marks.applied_at);
        } else {
            return Err(PartError::Unknown(key.to_owned()));
        }
        Ok(())
    }
}

fn kinds() -> impl Iterator<Item = &'static Kind> {
    super::KINDS.iter().filter(|kind| COLLECTIONS.contains(&kind.collection))
}

fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("plain values with text keys")
}

//! Interface between the plan and one kernel subsystem, and the result of a run.
//!
//! A backend reads existing entries and puts or removes one entry. It does not compare, order or remember: `step`
//! does.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Debug;

use gateway_outbound::causes::with_causes;
use serde::Serialize;

/// One kernel interface as a map of the entries that the gateway manages.
///
/// `read` returns tagged entries only (route protocol, rule range, own table, own links), whatever created them. The
/// comparison thus covers the wanted and the present entries.
#[allow(async_fn_in_trait)]
pub trait Backend: Sync {
    type Key: Ord + Clone + Debug + Send + Sync;
    type Value: PartialEq + Clone + Debug + Send + Sync;
    type Error: Error + Send + Sync + 'static;

    /// Name of the subsystem in outcomes.
    const NAME: &'static str;

    /// Reports whether unwanted entries are removed before wanted ones are put. Where a removal would open access or
    /// interrupt traffic, the new entry must be in place first.
    const REMOVE_FIRST: bool;

    fn read(&self) -> impl Future<Output = Result<BTreeMap<Self::Key, Self::Value>, Self::Error>> + Send;

    /// Creates or changes the entry. `have` is the entry that `read` found under the key.
    fn put(
        &self,
        key: &Self::Key,
        want: &Self::Value,
        have: Option<&Self::Value>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Removes the entry. An entry that is already gone counts as success.
    fn remove(
        &self,
        key: &Self::Key,
        have: &Self::Value,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Returns the human-readable name of the entry.
    fn resource(key: &Self::Key) -> String {
        format!("{key:?}")
    }

    /// Returns the fields in which two values of an entry differ: name, expected, actual. `None` is an absent entry.
    fn differences(
        expected: Option<&Self::Value>,
        actual: Option<&Self::Value>,
    ) -> Vec<(&'static str, String, String)> {
        let show = |value: Option<&Self::Value>| {
            value.map_or_else(|| ABSENT.to_owned(), |value| format!("{value:?}"))
        };
        vec![("entry", show(expected), show(actual))]
    }
}

/// Drift value of an entry that does not exist.
pub(crate) const ABSENT: &str = "absent";

/// Drift value of an entry that exists but has no value worth showing.
pub(crate) const PRESENT: &str = "present";

/// Result of a run for one subsystem.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// Entries created or changed.
    pub put: usize,
    pub removed: usize,
    pub failed: Vec<Failure>,
    /// Changes since the last run that the gateway did not make.
    pub drift: Vec<DriftEntry>,
}

impl Outcome {
    pub fn failure(resource: impl Into<String>, error: &dyn Error) -> Self {
        Self { failed: vec![Failure::new(resource, error)], ..Self::default() }
    }

    /// Reports whether every wanted entry is in place.
    pub fn is_ok(&self) -> bool {
        self.failed.is_empty()
    }

    pub fn changed(&self) -> bool {
        self.put + self.removed > 0
    }

    /// Adds the result of another step of the same subsystem.
    pub fn absorb(&mut self, other: Outcome) {
        let Outcome { put, removed, failed, drift } = other;
        self.put += put;
        self.removed += removed;
        self.failed.extend(failed);
        self.drift.extend(drift);
    }
}

/// An entry that could not be brought to its wanted state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failure {
    pub resource: String,
    pub error: String,
}

impl Failure {
    pub fn new(resource: impl Into<String>, error: &dyn Error) -> Self {
        Self { resource: resource.into(), error: with_causes(error) }
    }
}

/// One field of one entry that an outsider changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DriftEntry {
    pub resource: String,
    pub field: String,
    pub expected: String,
    pub actual: String,
    pub repaired: bool,
}

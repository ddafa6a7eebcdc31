//! What the plan needs of an interface of the kernel, and how a run over it ended.
//!
//! A backend knows only what exists and how to put or remove one entry. It does not compare, order or remember:
//! that is `step`.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Debug;

use gateway_outbound::causes::with_causes;
use serde::Serialize;

/// One interface of the kernel, seen as a map of the entries that are ours.
///
/// `read` returns tagged entries only (route protocol, rule range, our table, our links), whoever made them, so that
/// the comparison covers what is wanted and what is present.
#[allow(async_fn_in_trait)]
pub trait Backend: Sync {
    type Key: Ord + Clone + Debug + Send + Sync;
    type Value: PartialEq + Clone + Debug + Send + Sync;
    type Error: Error + Send + Sync + 'static;

    /// The subsystem's name in outcomes.
    const NAME: &'static str;

    /// Whether entries that are not wanted go before the wanted ones come. Where removing opens something or
    /// interrupts traffic, the new has to stand first.
    const REMOVE_FIRST: bool;

    fn read(&self) -> impl Future<Output = Result<BTreeMap<Self::Key, Self::Value>, Self::Error>> + Send;

    /// Makes the entry so. `have` is what `read` found in its place.
    fn put(
        &self,
        key: &Self::Key,
        want: &Self::Value,
        have: Option<&Self::Value>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Removes the entry; that it is already gone is success.
    fn remove(
        &self,
        key: &Self::Key,
        have: &Self::Value,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// The entry's name for people.
    fn resource(key: &Self::Key) -> String {
        format!("{key:?}")
    }

    /// The fields in which two values of an entry differ: name, expected, actual. `None` is an absent entry.
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

/// How an entry that does not exist is written in drift.
pub const ABSENT: &str = "absent";

/// How an entry that exists is written in drift when it has no value worth showing.
pub const PRESENT: &str = "present";

/// How one subsystem came out of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// Entries made or changed.
    pub put: usize,
    pub removed: usize,
    pub failed: Vec<Failure>,
    /// What somebody else had changed since the last run.
    pub drift: Vec<DriftEntry>,
}

impl Outcome {
    pub fn failure(resource: impl Into<String>, error: &dyn Error) -> Self {
        Self { failed: vec![Failure::new(resource, error)], ..Self::default() }
    }

    /// Whether all that was wanted stands.
    pub fn is_ok(&self) -> bool {
        self.failed.is_empty()
    }

    pub fn changed(&self) -> bool {
        self.put + self.removed > 0
    }

    /// Adds another step of the same subsystem.
    pub fn absorb(&mut self, other: Outcome) {
        let Outcome { put, removed, failed, drift } = other;
        self.put += put;
        self.removed += removed;
        self.failed.extend(failed);
        self.drift.extend(drift);
    }
}

/// An entry that could not be brought to what is wanted.
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

/// One field of one entry that was changed from outside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DriftEntry {
    pub resource: String,
    pub field: String,
    pub expected: String,
    pub actual: String,
    pub repaired: bool,
}

//! References between objects: counts for `/references`, and reasons why an object cannot be deleted.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;

use crate::id::Id;

/// Effect on the referring object when the target is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hold {
    /// The target cannot be deleted while this reference exists.
    Firm,
    /// The target can be deleted by force; the reference then dangles, and is meant to (a hop without
    /// its tunnel is unavailable).
    Loose,
    /// Membership: it ends with the target.
    Member,
}

/// A reference from one object to another, by id or by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ref {
    /// Noun of the target's kind.
    pub kind: &'static str,
    /// Id or name of the target, as the kind is referred to.
    pub target: String,
    /// Field that refers.
    pub path: String,
    pub hold: Hold,
}

impl Ref {
    pub fn new(kind: &'static str, target: impl ToString, path: impl Into<String>, hold: Hold) -> Ref {
        Ref { kind, target: target.to_string(), path: path.into(), hold }
    }
}

/// Answer of `/references/{type}/{id}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct References {
    #[serde(rename = "type")]
    pub kind: String,
    pub id: String,
    /// Collection of the referring objects to their number.
    pub referenced_by: BTreeMap<&'static str, usize>,
    pub total: usize,
    /// Number of references that always refuse a deletion, and of those that yield to force.
    #[serde(skip)]
    pub firm: usize,
    #[serde(skip)]
    pub loose: usize,
    /// Some of the policies exist only in the applied set: the next apply releases them.
    #[serde(skip)]
    pub only_applied: bool,
}

impl References {
    pub(crate) fn count(
        kind: &'static str,
        id: Id,
        found: &BTreeMap<(&'static str, Id), BTreeSet<Hold>>,
        only_applied: bool,
    ) -> References {
        let mut referenced_by: BTreeMap<&'static str, usize> =
            ["devices", "device_groups", "routing_policies"].map(|collection| (collection, 0)).into();
        let (mut firm, mut loose) = (0, 0);
        for ((collection, _), holds) in found {
            *referenced_by.entry(collection).or_default() += 1;
            if holds.contains(&Hold::Firm) {
                firm += 1;
            } else if holds.contains(&Hold::Loose) {
                loose += 1;
            }
        }
        References {
            kind: kind.to_owned(),
            id: id.to_string(),
            total: found.len(),
            referenced_by,
            firm,
            loose,
            only_applied,
        }
    }
}

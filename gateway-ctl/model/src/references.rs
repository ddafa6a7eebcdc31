//! References between objects: counts for `/references`, and reasons why an object cannot be deleted.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;

use crate::id::Id;

mod when_deleted;

pub use when_deleted::{Loss, WhenDeleted};

/// Maximum number of objects that are named.
const MAX_OBJECTS: usize = 500;

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
    /// Collection of the referring objects, or key of a group of settings, to their number.
    pub referenced_by: BTreeMap<&'static str, usize>,
    pub total: usize,
    /// The referring objects, at most 500, by severity of the deletion for them.
    pub objects: Vec<ReferringObject>,
    /// Number of references that always refuse a deletion, and of those that yield to force.
    #[serde(skip)]
    pub firm: usize,
    #[serde(skip)]
    pub loose: usize,
    /// Some of the policies exist only in the applied set: the next apply releases them.
    #[serde(skip)]
    pub only_applied: bool,
}

/// Object that refers to another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ReferringObject {
    pub r#type: &'static str,
    /// Its collection, or the key of a group of settings, such as alerts.webhook.
    pub collection: &'static str,
    /// Null for a group of settings.
    pub id: Option<Id>,
    pub name: String,
    pub when_deleted: WhenDeleted,
    /// Hops that are left, of an object with hops that goes on by them.
    pub hops: Vec<String>,
}

/// Referring objects, by collection and id. Groups of settings are by their key, without an id.
pub(crate) type Found = BTreeMap<(&'static str, Option<Id>), FoundObject>;

/// References of one object.
#[derive(Clone, Debug)]
pub(crate) struct FoundObject {
    pub noun: &'static str,
    pub name: String,
    pub holds: BTreeSet<Hold>,
    pub loss: Option<Loss>,
}

impl FoundObject {
    /// Adds the references of another version of the same object. The worse outcome counts.
    pub(crate) fn add(&mut self, holds: impl Iterator<Item = Hold>, loss: Option<Loss>) {
        self.holds.extend(holds);
        let severity = |loss: &Option<Loss>| loss.as_ref().map(|loss| loss.then);
        if severity(&loss) > severity(&self.loss) {
            self.loss = loss;
        }
    }

    fn outcome(&self) -> (WhenDeleted, Vec<String>) {
        if self.holds.contains(&Hold::Firm) {
            return (WhenDeleted::Refused, Vec::new());
        }
        match &self.loss {
            Some(Loss { then: WhenDeleted::OtherHops, hops }) => (WhenDeleted::OtherHops, hops.clone()),
            Some(loss) => (loss.then, Vec::new()),
            None if self.holds.contains(&Hold::Loose) => (WhenDeleted::Unavailable, Vec::new()),
            None => (WhenDeleted::Released, Vec::new()),
        }
    }
}

impl References {
    pub(crate) fn count(kind: &'static str, id: Id, found: &Found, only_applied: bool) -> References {
        let mut referenced_by: BTreeMap<&'static str, usize> =
            ["devices", "device_groups", "routing_policies"].map(|collection| (collection, 0)).into();
        let (mut firm, mut loose) = (0, 0);
        for ((collection, _), FoundObject { holds, .. }) in found {
            *referenced_by.entry(collection).or_default() += 1;
            if holds.contains(&Hold::Firm) {
                firm += 1;
            } else if holds.contains(&Hold::Loose) {
                loose += 1;
            }
        }
        let object = |((collection, id), object): (&(&'static str, Option<Id>), &FoundObject)| {
            let (when_deleted, hops) = object.outcome();
            ReferringObject {
                r#type: object.noun,
                collection,
                id: *id,
                name: object.name.clone(),
                when_deleted,
                hops,
            }
        };
        let mut objects: Vec<ReferringObject> = found.iter().map(object).collect();
        objects.sort_by_key(|object| std::cmp::Reverse(object.when_deleted));
        objects.truncate(MAX_OBJECTS);
        References {
            kind: kind.to_owned(),
            id: id.to_string(),
            total: found.len(),
            referenced_by,
            objects,
            firm,
            loose,
            only_applied,
        }
    }
}

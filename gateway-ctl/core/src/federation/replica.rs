//! State machine of a receiver: what it holds of each kind of a node, and what a reply changes in it.
//!
//! A reply answers one request, by its nonce, and is taken once. It has whole kinds. A kind with a lower revision than the
//! one held is an older state: the node was set back, or the reply was kept back. A kind with the same revision and other
//! objects comes from a second installation with the same key. Both are conflicts, and nothing is taken. An object that
//! is held and is not in a newer state was deleted; its tombstone has the revision of that state.

use std::collections::{BTreeMap, BTreeSet};

use gateway_model::Id;
use gateway_model::kinds::{ReceivedKind, SyncKind};
use gateway_model::validated::PublicKey;
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::message::{KindOffer, PullReply, PullRequest, SCHEMA};
use super::offer::hash_of;

/// Maximum number of tombstones of a kind; the oldest give way.
pub const MAX_TOMBSTONES: usize = 1000;

/// Reason why a reply is not taken. Nothing of it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("the reply answers another request")]
    Unasked,
    #[error("the kind {0} was not asked for")]
    NotAllowed(SyncKind),
    #[error("the objects of {0} do not have the hash that the reply names")]
    Damaged(SyncKind),
    #[error("the collections of {0} are others than here: the versions of the gateways differ")]
    Collections(SyncKind),
    #[error("the node sent an older state of {kind}: revision {sent} after {held}")]
    Older { kind: SyncKind, sent: u64, held: u64 },
    #[error(
        "two states of {kind} have the revision {revision}: another installation has the key of the node"
    )]
    Forked { kind: SyncKind, revision: u64 },
}

impl Refusal {
    /// Reports whether an administrator has to resolve it.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Refusal::Older { .. } | Refusal::Forked { .. })
    }
}

/// Kind to write: its new state, and its objects.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    pub received: ReceivedKind,
    /// All objects by collection.
    pub objects: Map<String, Value>,
    /// Objects that the node has deleted since.
    pub deleted: BTreeSet<Id>,
}

/// State of the objects of a node at a gateway that receives them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replica {
    /// Durable: written in one transaction with the objects.
    kinds: BTreeMap<SyncKind, ReceivedKind>,
    /// Request without a reply. A restart forgets it.
    asked: Option<OpenRequest>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct OpenRequest {
    nonce: String,
    kinds: BTreeSet<SyncKind>,
}

impl Replica {
    /// Returns the replica with what the store has.
    pub fn new(received: &[ReceivedKind]) -> Replica {
        let kinds = received.iter().map(|received| (received.kind, received.clone())).collect();
        Replica { kinds, asked: None }
    }

    /// Returns the request for these kinds. An earlier request has no answer any more.
    pub fn request(
        &mut self,
        kinds: &[SyncKind],
        to: PublicKey,
        nonce: String,
        at: Timestamp,
    ) -> PullRequest {
        let hash = |kind: &SyncKind| self.kinds.get(kind).map(|held| held.hash.clone()).unwrap_or_default();
        let have = kinds.iter().map(|kind| (kind.to_string(), hash(kind))).collect();
        self.asked = Some(OpenRequest { nonce: nonce.clone(), kinds: kinds.iter().copied().collect() });
        PullRequest { schema: SCHEMA, to, nonce, at, have }
    }

    /// Takes a reply, whose signature was verified. Returns the kinds that it changes; `held` are the objects of a kind.
    pub fn reply(
        &mut self,
        reply: PullReply,
        held: impl Fn(SyncKind) -> BTreeSet<Id>,
        now: Timestamp,
    ) -> Result<Vec<Change>, Refusal> {
        let asked = self.asked.take_if(|asked| asked.nonce == reply.nonce).ok_or(Refusal::Unasked)?;
        let mut changes = Vec::new();
        for (kind, offer) in reply.kinds {
            if !asked.kinds.contains(&kind) {
                return Err(Refusal::NotAllowed(kind));
            }
            changes.extend(self.change(kind, offer, &reply.version, &held, now)?);
        }
        Ok(changes)
    }

    /// Takes kinds that the node has published for all, whose signatures were verified. Those that are older than what is
    /// held came late, and change nothing.
    pub fn publication(
        &self,
        kinds: BTreeMap<SyncKind, KindOffer>,
        version: &str,
        held: impl Fn(SyncKind) -> BTreeSet<Id>,
        now: Timestamp,
    ) -> Result<Vec<Change>, Refusal> {
        let mut changes = Vec::new();
        for (kind, offer) in kinds {
            let is_late = self.kinds.get(&kind).is_some_and(|known| offer.revision < known.revision);
            if !is_late {
                changes.extend(self.change(kind, offer, version, &held, now)?);
            }
        }
        Ok(changes)
    }

    fn change(
        &self,
        kind: SyncKind,
        offer: KindOffer,
        version: &str,
        held: &impl Fn(SyncKind) -> BTreeSet<Id>,
        now: Timestamp,
    ) -> Result<Option<Change>, Refusal> {
        let KindOffer { revision, hash, objects } = offer;
        let known = self.kinds.get(&kind);
        if let Some(known) = known.filter(|known| revision < known.revision) {
            return Err(Refusal::Older { kind, sent: revision, held: known.revision });
        }
        if known.is_some_and(|known| known.hash == hash) {
            return Ok(None);
        }
        // Another version may write the same objects in another form.
        if known.is_some_and(|known| known.revision == revision && known.version == version) {
            return Err(Refusal::Forked { kind, revision });
        }
        let objects = objects.filter(|objects| hash_of(objects) == hash).ok_or(Refusal::Damaged(kind))?;
        let is_known = |name: &&String| kind.collections().contains(&name.as_str());
        if objects.keys().filter(is_known).count() != kind.collections().len().max(objects.len()) {
            return Err(Refusal::Collections(kind));
        }
        let listed = ids_of(&objects);
        let deleted: BTreeSet<Id> = held(kind).difference(&listed).copied().collect();
        let mut tombstones = known.map(|known| known.tombstones.clone()).unwrap_or_default();
        // A rollback at the node brings an object back.
        tombstones.retain(|id, _| !listed.contains(id));
        tombstones.extend(deleted.iter().map(|id| (*id, revision)));
        limit(&mut tombstones);
        let version = version.to_owned();
        let received = ReceivedKind { kind, revision, hash, version, received_at: now, tombstones };
        Ok(Some(Change { received, objects, deleted }))
    }

    /// Takes the changes that were written.
    pub fn written(&mut self, changes: &[Change]) {
        for change in changes {
            self.kinds.insert(change.received.kind, change.received.clone());
        }
    }

    /// Returns the durable state.
    pub fn received(&self) -> Vec<ReceivedKind> {
        self.kinds.values().cloned().collect()
    }
}

fn ids_of(objects: &Map<String, Value>) -> BTreeSet<Id> {
    let lists = objects.values().filter_map(Value::as_array).flatten();
    lists.filter_map(|object| object.get("id")?.as_str()?.parse().ok()).collect()
}

fn limit(tombstones: &mut BTreeMap<Id, u64>) {
    while tombstones.len() > MAX_TOMBSTONES {
        let oldest = tombstones.iter().min_by_key(|(_, revision)| **revision).map(|(id, _)| *id);
        oldest.map(|id| tombstones.remove(&id));
    }
}

#[cfg(test)]
mod tests;

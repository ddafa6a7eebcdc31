//! Publications of one node, until they are one state of it.
//!
//! Kinds refer to each other, and each comes in a message of its own. A state is complete when every kind that is
//! followed has the revision that the newest message names. What is missing is pulled.

use std::collections::BTreeMap;

use gateway_model::kinds::{ReceivedKind, SyncKind};

use super::publication::Publication;
use crate::federation::message::KindOffer;

/// Publications of a node whose signatures were verified.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inbox {
    latest: BTreeMap<SyncKind, Publication>,
    /// Newest revision that is known of each kind.
    heads: BTreeMap<SyncKind, u64>,
}

/// Kinds that are ready to be taken.
#[derive(Clone, Debug, PartialEq)]
pub enum Arrival {
    /// Nothing is newer than what is held.
    Nothing,
    /// One state of the node: the kinds that differ from what is held, and the version of its daemon.
    Complete { kinds: BTreeMap<SyncKind, KindOffer>, version: String },
    /// Something is newer, and not all of it has arrived, or is too large to be published.
    Incomplete,
}

impl Inbox {
    /// Takes a publication. An older one than the last of its kind changes nothing.
    pub fn take(&mut self, publication: Publication) {
        for (kind, revision) in &publication.heads {
            let head = self.heads.entry(*kind).or_default();
            *head = (*head).max(*revision);
        }
        let revision = publication.offer.revision;
        let head = self.heads.entry(publication.kind).or_default();
        *head = (*head).max(revision);
        let is_newer = |last: &Publication| last.offer.revision <= revision;
        if self.latest.get(&publication.kind).is_none_or(is_newer) {
            self.latest.insert(publication.kind, publication);
        }
    }

    /// Returns what has arrived of the kinds that are followed, beyond what is held.
    pub fn arrival(&self, followed: &[SyncKind], held: &[ReceivedKind]) -> Arrival {
        let mut kinds = BTreeMap::new();
        let mut version = String::new();
        for kind in followed {
            let Some(head) = self.heads.get(kind) else { continue };
            let held = held.iter().find(|held| held.kind == *kind);
            // A state that differs at the same revision is a conflict, which the replica finds.
            let is_held = |publication: &Publication| {
                held.is_some_and(|held| held.hash == publication.offer.hash || held.revision > *head)
            };
            match self.latest.get(kind).filter(|publication| publication.offer.revision == *head) {
                Some(publication) if is_held(publication) => {}
                Some(publication) if publication.offer.objects.is_some() => {
                    version.clone_from(&publication.version);
                    kinds.insert(*kind, publication.offer.clone());
                }
                Some(_) => return Arrival::Incomplete,
                None if held.is_some_and(|held| held.revision >= *head) => {}
                None => return Arrival::Incomplete,
            }
        }
        if kinds.is_empty() { Arrival::Nothing } else { Arrival::Complete { kinds, version } }
    }
}

#[cfg(test)]
mod tests;

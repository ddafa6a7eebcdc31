//! Registration: who becomes a node.

use jiff::{SignedDuration, Timestamp};
use thiserror::Error;

use super::{MOST_NODES, Roster};
use crate::addresses;
use crate::auth_key::{AuthKeyError, AuthKeyTerms, identifier};
use crate::keys::MachineKey;
use crate::node::{Node, unused_label};
use crate::wire::RegisterRequest;

/// Tags of a node.
const MOST_TAGS: usize = 32;

/// Lifetimes of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetimes {
    /// From registration to the end of the key of a node.
    pub key: SignedDuration,
    /// From the end of its connection to the removal of an ephemeral node.
    pub ephemeral: SignedDuration,
}

impl Default for Lifetimes {
    fn default() -> Self {
        Self { key: SignedDuration::from_hours(180 * 24), ephemeral: SignedDuration::from_mins(30) }
    }
}

/// Result of a registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Registered {
    /// The node of this number is a member.
    Member(u64),
    /// The node of this number has logged out, and ended if it was ephemeral.
    LoggedOut(u64),
}

/// Reason for which a node was not admitted. The text goes to its user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum Refusal {
    #[error("this coordinator admits nodes by a pre-auth key only")]
    NoAuthKey,
    #[error(transparent)]
    AuthKey(#[from] AuthKeyError),
    #[error("the request has no node key")]
    NoNodeKey,
    #[error("the node key belongs to another machine")]
    ForeignNodeKey,
    #[error("the mesh has as many nodes as it can have")]
    TooManyNodes,
}

impl Roster {
    /// Admits the node of a machine, or says why not. The machine has proven its key.
    pub(crate) fn register(
        &mut self,
        machine: MachineKey,
        request: &RegisterRequest,
        lifetimes: Lifetimes,
        now: Timestamp,
    ) -> Result<Registered, Refusal> {
        if request.node_key.is_zero() {
            return Err(Refusal::NoNodeKey);
        }
        if self.nodes().any(|node| node.key == request.node_key && node.machine != machine) {
            return Err(Refusal::ForeignNodeKey);
        }
        let known = self.nodes().find(|node| node.machine == machine).map(|node| node.id);
        if let Some(id) = known {
            if self.log_out(id, request, now) {
                return Ok(Registered::LoggedOut(id));
            }
            if self.renew(id, request, now) {
                return Ok(Registered::Member(id));
            }
        }
        let text = request.auth.as_ref().and_then(|auth| auth.auth_key.as_deref());
        let text = text.filter(|text| !text.is_empty()).ok_or(Refusal::NoAuthKey)?;
        let key = identifier(text).and_then(|id| self.keys.get(id)).ok_or(AuthKeyError::Unknown)?;
        key.redeem(text, now)?;
        let (key_id, terms) = (key.id.clone(), key.terms.clone());
        let id = match known {
            Some(id) => id,
            None => self.add_node(machine, request, now)?,
        };
        self.admit(id, request, &terms, lifetimes, now);
        if let Some(key) = self.keys.get_mut(&key_id) {
            key.uses = key.uses.saturating_add(1);
        }
        Ok(Registered::Member(id))
    }

    /// Ends the key of a node whose client asks for that. Tells whether it did.
    fn log_out(&mut self, id: u64, request: &RegisterRequest, now: Timestamp) -> bool {
        // Clients write no time as the first second of year 1.
        let asks = request.expiry.is_some_and(|end| end <= now && end > Timestamp::UNIX_EPOCH);
        let Some(node) = self.nodes.get_mut(&id).filter(|node| asks && node.key == request.node_key) else {
            return false;
        };
        node.key_expiry = Some(now);
        if node.ephemeral {
            self.nodes.remove(&id);
        }
        true
    }

    /// Admits a node whose key has not ended, also with a new key in its place. Its terms stay as they were.
    fn renew(&mut self, id: u64, request: &RegisterRequest, now: Timestamp) -> bool {
        let Some(node) = self.nodes.get_mut(&id).filter(|node| !node.is_expired(now)) else { return false };
        if node.key != request.node_key && node.key != request.old_node_key {
            return false;
        }
        node.key = request.node_key;
        node.describe(&request.hostinfo);
        true
    }

    fn add_node(
        &mut self,
        machine: MachineKey,
        request: &RegisterRequest,
        now: Timestamp,
    ) -> Result<u64, Refusal> {
        if self.nodes.len() >= MOST_NODES {
            return Err(Refusal::TooManyNodes);
        }
        let id = self.last_id + 1;
        let is_used = |address| self.nodes().any(|node| node.addresses.contains(&address));
        let addresses = addresses::free(id, is_used).ok_or(Refusal::TooManyNodes)?;
        let name =
            unused_label(&request.hostinfo.hostname, |name| self.nodes().any(|node| node.name == name));
        self.last_id = id;
        let node = Node {
            id,
            machine,
            key: request.node_key,
            name,
            os: String::new(),
            addresses,
            tags: Vec::new(),
            ephemeral: false,
            created: now,
            key_expiry: None,
            advertised: Vec::new(),
            approved: Vec::new(),
            last_seen: now,
        };
        self.nodes.insert(id, node);
        Ok(id)
    }

    /// Applies the terms of a pre-auth key to a node.
    fn admit(
        &mut self,
        id: u64,
        request: &RegisterRequest,
        terms: &AuthKeyTerms,
        lifetimes: Lifetimes,
        now: Timestamp,
    ) {
        let Some(node) = self.nodes.get_mut(&id) else { return };
        node.key = request.node_key;
        node.tags = terms.tags.iter().take(MOST_TAGS).cloned().collect();
        node.ephemeral = terms.ephemeral || request.ephemeral;
        let expiry = now.checked_add(lifetimes.key).unwrap_or(Timestamp::MAX);
        node.key_expiry = node.tags.is_empty().then_some(expiry);
        node.last_seen = now;
        node.describe(&request.hostinfo);
    }
}

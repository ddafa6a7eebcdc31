//! The nodes of a mesh and their pre-auth keys: what the coordinator keeps. No I/O.
//!
//! A change is made to a copy, which takes the place of the roster once it is stored.

mod registration;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use ipnet::IpNet;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::auth_key::{AuthKey, AuthKeyTerms};
use crate::keys::{MachineKey, NodeKey};
use crate::node::Node;

pub use registration::Lifetimes;
#[cfg(test)]
pub(crate) use registration::Refusal;
pub(crate) use registration::Registered;

/// Nodes of one coordinator.
pub(crate) const MOST_NODES: usize = 1024;
/// Pre-auth keys that can be used, of one coordinator.
pub(crate) const MOST_KEYS: usize = 1024;

/// Content of the store of a coordinator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Roster {
    /// Number of the last node. None is given twice.
    last_id: u64,
    nodes: BTreeMap<u64, Node>,
    keys: BTreeMap<String, AuthKey>,
}

impl Roster {
    /// All nodes, by their numbers.
    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.nodes.values()
    }

    /// The node of this number.
    pub(crate) fn node(&self, id: u64) -> Option<&Node> {
        self.nodes.get(&id)
    }

    /// The node of this number, for a change.
    pub(crate) fn node_mut(&mut self, id: u64) -> Option<&mut Node> {
        self.nodes.get_mut(&id)
    }

    /// The node with these keys.
    pub(crate) fn find(&self, machine: MachineKey, key: NodeKey) -> Option<&Node> {
        self.nodes().find(|node| node.machine == machine && node.key == key)
    }

    /// Tells whether a node with this key may use the mesh.
    pub(crate) fn admits(&self, key: NodeKey, now: Timestamp) -> bool {
        self.nodes().any(|node| node.key == key && !node.is_expired(now))
    }

    /// Creates a pre-auth key, and forgets those that have ended. Returns its text, which is kept nowhere; none if there
    /// are too many keys.
    pub(crate) fn add_key(
        &mut self,
        terms: AuthKeyTerms,
        now: Timestamp,
    ) -> Result<Option<(AuthKey, String)>, getrandom::Error> {
        self.keys.retain(|_, key| key.terms.expires > now);
        if self.keys.len() >= MOST_KEYS {
            return Ok(None);
        }
        let (key, text) = AuthKey::random(terms, now)?;
        self.keys.insert(key.id.clone(), key.clone());
        Ok(Some((key, text)))
    }

    /// Removes a node. Its key opens nothing any more.
    pub(crate) fn remove(&mut self, id: u64) -> Option<Node> {
        self.nodes.remove(&id)
    }

    /// Sets the prefixes that a node may route. Returns whether there is such a node.
    pub(crate) fn approve_routes(&mut self, id: u64, routes: Vec<IpNet>) -> bool {
        self.node_mut(id).map(|node| node.approved = routes).is_some()
    }
}

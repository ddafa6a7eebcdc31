//! Answers from local data: zones with their records, host names, names that must not be forwarded.
//!
//! Forward and stub zones hold no data here: their names are forwarded.

use std::collections::BTreeMap;
use std::sync::Arc;

use gateway_model::Id;
use gateway_model::domain::DomainName;

use super::domain_set::Key;
use super::name_map::NameMap;

mod answer;
mod build;
mod denial;
mod hosts;
mod node;
mod rdata;
mod secondary;
mod sign;
pub(super) mod special_use;
#[cfg(test)]
mod tests;
mod zone;

pub use hosts::{Host, label, pointer};
pub use rdata::{Times, numbers};
pub use secondary::{Copy, MissingSoa};
pub use sign::{Sign, UnsignedSet};

use node::Node;
use zone::ZoneData;

/// Inputs of the zones beside the stored state.
#[derive(Clone, Debug)]
pub struct Options {
    /// Hash key of the name maps.
    pub key: Key,
    /// Domain of host names: that of the DHCP server.
    pub domain: DomainName,
    /// Hosts. The first of two hosts with the same name keeps it: a name in use cannot be taken over.
    pub hosts: Vec<Host>,
    /// TTL of host names and of their negative answers, in seconds.
    pub host_ttl: u32,
    /// Names of a mesh that this gateway has joined.
    pub mesh: Option<MeshNames>,
    /// Valid transfers of secondary zones, by zone.
    pub copies: BTreeMap<Id, Copy>,
    /// Signer of the zones with DNSSEC.
    pub signer: Option<Arc<dyn Sign>>,
}

/// Names of a mesh.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeshNames {
    /// Domain of the names, of two labels at least: its names are never forwarded.
    pub domain: DomainName,
    /// Nodes. Without a map there are none.
    pub nodes: Vec<Host>,
}

impl MeshNames {
    /// Returns the names of a mesh; none if the domain is not one that a mesh may have. The coordinator chooses it, and one of
    /// a single label would take over a top-level domain.
    pub fn new(domain: &str, nodes: Vec<Host>) -> Option<MeshNames> {
        let domain = domain.trim_end_matches('.');
        let domain = DomainName::parse(domain).ok().filter(|_| domain.contains('.'))?;
        Some(MeshNames { domain, nodes })
    }
}

/// All names with local answers.
#[derive(Clone, Debug)]
pub struct Zones {
    zones: NameMap<Zone>,
    /// Hosts, forward and reverse. Stored records take precedence.
    machines: NameMap<Node>,
}

#[derive(Clone, Debug)]
enum Zone {
    Primary(Arc<ZoneData>),
    /// Queries are forwarded.
    Elsewhere,
    /// Secondary zone without a valid transfer. Its names are unknown, and queries are not forwarded.
    Missing,
}

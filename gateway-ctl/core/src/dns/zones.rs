//! Answers from what is stored here: zones with their records, names of machines, names that never leave.
//!
//! Forward and stub zones are none of this: their names are for those who forward.

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
mod special_use;
#[cfg(test)]
mod tests;
mod zone;

pub use hosts::{Host, label, pointer};
pub use rdata::{Times, numbers};
pub use secondary::{Copy, NoStart};
pub use sign::{Sign, Unsigned};

use node::Node;
use zone::Own;

/// What zones are told beside what is stored.
#[derive(Clone, Debug)]
pub struct Options {
    /// Of the maps by name.
    pub key: Key,
    /// In which machines have their names: that of the DHCP server.
    pub domain: DomainName,
    /// Of two machines with the same name the first has it: a name in use cannot be taken over.
    pub hosts: Vec<Host>,
    /// Seconds that names of machines, and that there is none, are remembered.
    pub host_ttl: u32,
    /// The copies of secondary zones that hold, by zone.
    pub copies: BTreeMap<Id, Copy>,
    /// Signs the zones that are to be signed.
    pub signer: Option<Arc<dyn Sign>>,
}

/// Everything that is answered here.
#[derive(Clone, Debug)]
pub struct Zones {
    zones: NameMap<Zone>,
    /// Machines, forward and reverse; what is stored comes before them.
    machines: NameMap<Node>,
}

#[derive(Clone, Debug)]
enum Zone {
    Own(Arc<Own>),
    /// Others are asked.
    Elsewhere,
    /// There is no copy that holds: nothing is known of the names, and nobody else is asked.
    Missing,
}

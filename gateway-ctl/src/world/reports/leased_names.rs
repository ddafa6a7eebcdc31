//! Names of DHCP leases and reservations, for the resolver.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use gateway_model::MacAddr;

/// Name of a client with its address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeasedName {
    pub name: String,
    pub address: Ipv4Addr,
}

/// Names of clients, and addresses of devices. A reservation counts whether its client ever had a lease or not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeasedNames {
    /// Those of reservations first, then the oldest lease first: a name in use cannot be taken over.
    pub names: Vec<LeasedName>,
    pub addresses: BTreeMap<MacAddr, Vec<Ipv4Addr>>,
}

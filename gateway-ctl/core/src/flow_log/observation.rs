//! Observations of flows at one instant, in three tables of the kernel.

use std::collections::HashMap;
use std::net::IpAddr;

use gateway_common::wire::Mark;
use jiff::Timestamp;

use super::counted_places::CountedTraffic;
use super::record::{Decision, PacketKey, Traffic};
use crate::indexes::{LegId, PolicyIndex};

/// Addresses, ports and protocol of one direction of a flow. For ICMP, the ports are the identifier, and type and code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tuple {
    pub source: IpAddr,
    pub destination: IpAddr,
    pub source_port: u16,
    pub destination_port: u16,
    pub protocol: u8,
}

impl From<&PacketKey> for Tuple {
    fn from(key: &PacketKey) -> Tuple {
        let PacketKey { source, destination, source_port, destination_port, protocol, .. } = *key;
        Tuple { source, destination, source_port, destination_port, protocol }
    }
}

/// State of a TCP connection, as far as records distinguish them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpState {
    Open,
    /// Both hosts have closed it.
    Closed,
    Reset,
}

/// Entry of conntrack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    /// Id of the entry. A later entry of the same tuple has another one.
    pub id: u32,
    /// The first packet, before address translation.
    pub origin: Tuple,
    /// The replies, before address translation.
    pub reply: Tuple,
    pub started_at: Option<Timestamp>,
    /// Packets of both directions that the IP stack has seen. `None` if the kernel did not count them.
    pub sent: Option<Traffic>,
    pub received: Option<Traffic>,
    pub tcp: Option<TcpState>,
    /// The entry would have lasted longer. Known of entries that have ended.
    pub is_early: bool,
}

/// Record of the flow table: the verdict on a flow from the LAN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EvaluatedFlow {
    pub key: PacketKey,
    pub generation: u32,
    pub action: u8,
    pub reason: u8,
    pub mark: Mark,
    pub policy: Option<PolicyIndex>,
    /// Index of the device, 0 without one.
    pub device: u32,
    pub leg: Option<LegId>,
    /// Time of a recent packet.
    pub seen_at: Timestamp,
    /// Packets since the last observation that were dropped or rejected, `None` if they were not counted.
    pub denied: Option<Traffic>,
}

impl EvaluatedFlow {
    pub fn decision(&self) -> Decision {
        Decision::of(self.action, self.mark)
    }
}

/// All that was observed of flows since the last observation.
#[derive(Clone, Debug, Default)]
pub struct Observation {
    /// Connections that have ended, in the order of their ends.
    pub ended: Vec<Connection>,
    /// Reports of such connections may have been lost.
    pub is_incomplete: bool,
    /// Connections that exist.
    pub connections: Vec<Connection>,
    /// Flows that were evaluated, by their tuple. Of several, the newest.
    pub evaluated: HashMap<Tuple, EvaluatedFlow>,
    /// Packets that passed the IP stack by since the last observation, by the tuple before address translation. `None` if
    /// they were not counted, also of one tuple.
    pub passed_by: Option<CountedTraffic<Tuple>>,
    /// Server names that clients have sent a short time ago, where they are read.
    pub server_names: HashMap<Tuple, String>,
}

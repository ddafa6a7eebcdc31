//! Bridge of the network access point: that of a segment, whose policies, DHCP server and limits hold for its clients.

use gateway_model::State;
use gateway_model::kinds::Segment;

use crate::facts::Facts;
use crate::network::Network;

/// Beginning of the names that BlueZ gives the ports of its clients.
const PORT_PREFIX: &str = "bnep";

/// Reason why there is no bridge for clients.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NapRefusal {
    #[error("nap_segment of /bluetooth/settings names no segment")]
    NoSegment,
    #[error("there is no segment {0:?}")]
    UnknownSegment(String),
    #[error("the segment {0:?} is a VLAN, and clients need a bridge of their own")]
    Vlan(String),
    #[error("{0} is no LAN of the gateway")]
    NoLan(String),
    #[error("{0} is no bridge of this host: network.bridges makes one")]
    NoBridge(String),
}

/// Returns the bridge of a segment, by its name or its ID.
pub fn nap_bridge(
    state: &State,
    network: &Network,
    facts: &Facts,
    segment: Option<&str>,
) -> Result<String, NapRefusal> {
    let called = segment.ok_or(NapRefusal::NoSegment)?;
    let is_called = |segment: &&Segment| segment.name == called || segment.meta.id.to_string() == called;
    let found = state.segments.iter().find(is_called);
    let segment = found.ok_or_else(|| NapRefusal::UnknownSegment(called.to_owned()))?;
    let interface = segment.interface.as_ref().ok_or(NapRefusal::NoSegment)?.to_string();
    if segment.vlan_id.is_some() {
        return Err(NapRefusal::Vlan(segment.name.clone()));
    }
    if !network.lan.contains(&interface) {
        return Err(NapRefusal::NoLan(interface));
    }
    match facts.links.get(&interface) {
        Some(link) if link.kind == "bridge" => Ok(interface),
        _ => Err(NapRefusal::NoBridge(interface)),
    }
}

/// Counts the clients on a bridge.
pub fn nap_clients(facts: &Facts, bridge: &str) -> usize {
    let is_client = |(name, link): &(&String, &crate::facts::Link)| {
        name.starts_with(PORT_PREFIX) && link.master.as_deref() == Some(bridge)
    };
    facts.links.iter().filter(is_client).count()
}

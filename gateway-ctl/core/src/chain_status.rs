//! Health of a chain of hops: the worst of its hops.

use gateway_model::kinds::chain::{Chain, ChainLive, ChainStatus};
use gateway_model::kinds::routing_policy::HopType;

use crate::compile::{Compiled, Leg};

/// Bytes that a tunnel inside another one loses of a packet: WireGuard over IPv6 (40 + 8 + 32).
const OVERHEAD: u16 = 80;

/// Returns the status of the chain for the present state of the egresses.
pub fn live(compiled: &Compiled, chain: &Chain) -> ChainLive {
    let legs: Vec<Option<&Leg>> = chain
        .hops
        .iter()
        .map(|hop| match hop.r#type {
            HopType::Vpn => compiled.legs.tunnel(&hop.target),
            HopType::Interface => compiled.legs.uplink(&hop.target),
            HopType::MeshPeer => compiled.legs.mesh_peer(&hop.target),
            HopType::Proxy => None,
        })
        .collect();
    // The state of proxies is not observed here.
    let unknown = |hop: HopType| hop == HopType::Proxy;
    let hops = || chain.hops.iter().zip(&legs);
    let down = hops().any(|(hop, leg)| !unknown(hop.r#type) && !leg.is_some_and(|leg| leg.usable));
    let status = match (chain.enabled, down) {
        (false, _) => ChainStatus::Disabled,
        (true, true) => ChainStatus::Down,
        (true, false) if hops().any(|(hop, _)| unknown(hop.r#type)) => ChainStatus::Unknown,
        (true, false) => ChainStatus::Up,
    };
    let mut mtu: Option<u16> = None;
    for leg in &legs {
        let own = leg.map(|leg| leg.mtu);
        mtu = match (mtu, own) {
            (_, None) => None,
            (None, own) => own,
            (Some(outer), Some(own)) => Some(own.min(outer.saturating_sub(OVERHEAD))),
        };
        if mtu.is_none() {
            break;
        }
    }
    ChainLive { status, mtu_effective: mtu, latency_ms: None }
}

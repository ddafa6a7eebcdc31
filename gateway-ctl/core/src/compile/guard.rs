//! Marks that may leave by each interface, as the guard there checks them.
//!
//! Decision 0015 says why.

use std::net::IpAddr;

use gateway_common::guard::DISABLED_LEG;
use gateway_common::wire::{Address, EgressAllowKey, EgressAllowValue, Mark};
use ipnet::IpNet;

use super::Input;
use super::leg::Leg;
use super::well_known::is_link_local;
use crate::plan::Plan;

/// Lists the marks that may leave by the interface of each leg: forwarded traffic, traffic of this host on the leg, and
/// replies of this host to traffic from it.
pub(super) fn lower(input: &Input<'_>, legs: &[Leg], plan: &mut Plan) {
    for name in &input.network.disabled_uplinks {
        if let Some(link) = input.facts.links.get(name) {
            plan.dataplane.egress_legs.insert(link.index, DISABLED_LEG);
        }
    }
    for leg in legs {
        let Some(link) = input.facts.links.get(&leg.interface) else { continue };
        let index = link.index;
        plan.dataplane.egress_legs.insert(index, u32::from(leg.number));
        let addresses = input.facts.addresses.get(&leg.interface).into_iter().flatten().map(IpNet::addr);
        let mut value = EgressAllowValue::default();
        for address in addresses.filter(|address| !is_link_local(*address)) {
            match address {
                IpAddr::V4(four) if value.v4 == 0 => value.v4 = u32::from_ne_bytes(four.octets()),
                IpAddr::V6(six) if value.v6 == Address::default() => value.v6 = Address::v6(six.octets()),
                _ => {}
            }
        }
        let mut marks =
            [Mark::leg, Mark::carried_by, Mark::arrived_by].map(|mark| mark(leg.number.get())).to_vec();
        if leg.is_uplink() {
            marks.extend([Mark::DIRECT, Mark::OWN]);
        }
        for mark in marks {
            plan.dataplane.authorised.insert(EgressAllowKey { mark: mark.0, index }, value);
        }
    }
}

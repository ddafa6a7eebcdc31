//! Denials that follow from the interface of a host: from the guest network, or from the trust class of its segment.

use gateway_common::classify::IpPacket;
use gateway_common::decide;
use gateway_common::verdict::Reason;
use gateway_common::wire::{InterfaceKey, device_flags, plan_flags};
use serde_json::json;

use crate::compile::{Compiled, Input, segment_on};
use crate::phrase::Phrase;
use crate::plan_maps::PlanMaps;

/// Returns the phrase for a denial whose reason is the interface, and not the device.
pub(super) fn phrase(
    input: &Input<'_>,
    compiled: &Compiled,
    packet: &IpPacket,
    reason: Reason,
) -> Option<Phrase> {
    let (flag, what) = match reason {
        Reason::TrustLanDenied => (device_flags::NO_LAN, "keeps it off other networks of the LAN"),
        Reason::TrustInternetDenied => (device_flags::NO_INTERNET, "keeps it off the internet"),
        Reason::NoPolicyReject => (device_flags::POLICY_ONLY, "lets only policies send it anywhere"),
        Reason::AdminDenied => (device_flags::NO_ADMIN, "does not let it administer the gateway"),
        _ => return None,
    };
    let dataplane = &compiled.plan.dataplane;
    let device = decide::device(packet, 1, &PlanMaps::new(Some(dataplane)));
    let header = dataplane.header.flags;
    let of_unknown = header >> plan_flags::UNKNOWN_SHIFT & flag != 0
        || flag == device_flags::NO_ADMIN && header & plan_flags::NO_ADMIN != 0;
    if device.flags & flag != 0 || device.number == 0 && of_unknown {
        return None;
    }
    let key = InterfaceKey { slot: 0, index: packet.interface, vlan: packet.vlan, _pad: 0 };
    let found = dataplane.interfaces.get(&key);
    let value = found.or_else(|| dataplane.interfaces.get(&InterfaceKey { vlan: 0, ..key }))?;
    if u32::from(value.flags) & flag != 0 {
        return Some(Phrase::new(
            "guest_network",
            [("denied", json!(reason.as_str()))],
            format!("the guest network {what}"),
        ));
    }
    let (name, link) = input.facts.links.iter().find(|(_, link)| link.index == packet.interface)?;
    let segment = segment_on(input, name, link)?;
    let text = format!("the trust class of the segment {:?} {what}", segment.name);
    Some(Phrase::new(
        "segment_class",
        [("denied", json!(reason.as_str())), ("segment", json!(segment.name))],
        text,
    ))
}

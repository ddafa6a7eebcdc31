//! Keys of devices: MAC addresses, and IP addresses observed with them.

use std::net::IpAddr;

use gateway_common::wire::{DeviceValue, LIST_SHIFT, device_flags};
use gateway_model::kinds::device::DeviceStatus;
use gateway_model::kinds::trust_class::{Internet, LanAccess, TrustClass};
use gateway_model::settings::bootstrap::UnknownHosts;
use gateway_model::settings::groups::{PrivacyBlocks, PrivacyMode};
use gateway_model::settings::keys::DNS_UPSTREAM_SERVERS;
use gateway_model::upstream::Upstream;
use gateway_model::{Device, decode};

use super::Input;
use super::blocks;
use super::policies::Ranks;
use crate::indexes::Rank;
use crate::plan::Dataplane;

pub(super) fn lower(input: &Input<'_>, ranks: &Ranks, dataplane: &mut Dataplane) {
    let resolvers = resolvers(input);
    let restricts = restricts_administration(input);
    let blocks: PrivacyBlocks = input.state.group();
    let mode = input.state.group::<PrivacyMode>().mode;
    for device in input.state.devices.iter() {
        let exceptions = input.active_exceptions().filter(|exception| exception.device_id == device.meta.id);
        let end = exceptions.filter(|exception| exception.diverts()).filter_map(|one| one.expires_at).min();
        let value = DeviceValue {
            rank: Rank::raw(ranks.devices.get(&device.meta.id).copied()),
            number: device.meta.slot,
            flags: flags(input, device, &resolvers, restricts)
                | blocks::flags(input, blocks.of(device, input.state), mode)
                | ranks.lists.get(&device.meta.id).map_or(0, |list| u32::from(list.number) << LIST_SHIFT),
            until: end.map_or(0, |end| input.deadline(end)),
            rank_after: Rank::raw(ranks.devices_after.get(&device.meta.id).copied()),
        };
        for mac in device.all_macs() {
            dataplane.devices_by_mac.insert(mac.0, value);
            for address in input.facts.neighbours.get(&mac.0).into_iter().flatten() {
                dataplane.devices_by_address.insert(*address, value);
            }
        }
    }
}

/// Returns the flags of hosts that are no device.
pub(super) fn flags_of_unknown(treatment: UnknownHosts) -> u32 {
    match treatment {
        UnknownHosts::Direct => 0,
        UnknownHosts::Blocked => device_flags::NO_INTERNET,
        UnknownHosts::Quarantine => device_flags::NO_INTERNET | device_flags::NO_LAN,
    }
}

/// Returns the upstreams of the resolver, as far as they are addresses.
fn resolvers(input: &Input<'_>) -> Vec<IpAddr> {
    let forwarders = input.state.dns_forwarders.iter().filter(|forwarder| forwarder.enabled);
    let named = forwarders.flat_map(|forwarder| &forwarder.upstreams).filter_map(|text| match text.parse() {
        Ok(Upstream::Address { address, .. }) => Some(address),
        _ => None,
    });
    let set = input.state.settings.get(DNS_UPSTREAM_SERVERS);
    let set = set.and_then(|value| decode::from_value::<Vec<IpAddr>>(value).ok());
    named.chain(set.unwrap_or_else(|| input.network.resolvers.clone())).collect()
}

/// A query that returned to its sender would loop.
fn is_resolver(input: &Input<'_>, device: &Device, resolvers: &[IpAddr]) -> bool {
    let macs = device.all_macs();
    let own = macs.iter().filter_map(|mac| input.facts.neighbours.get(&mac.octets())).flatten();
    !resolvers.is_empty() && own.into_iter().any(|address| resolvers.contains(address))
}

/// Reports whether administration is restricted to devices that may administer the gateway. Without such a device it is
/// not, or every host would be locked out.
pub(super) fn restricts_administration(input: &Input<'_>) -> bool {
    let has_access = |device: &Device| {
        device.status != DeviceStatus::Blocked
            && input.state.trust_class_of(device).is_some_and(|class| class.admin_access)
    };
    input.state.devices.iter().any(|device| !device.all_macs().is_empty() && has_access(device))
}

fn flags(input: &Input<'_>, device: &Device, resolvers: &[IpAddr], restricts: bool) -> u32 {
    let floor = input.state.fail_policy_floor_of(device).strictness();
    let mut flags = floor << device_flags::FLOOR_SHIFT;
    if device.status == DeviceStatus::Blocked {
        flags |= device_flags::BLOCKED;
    }
    let is_quarantined = device.status == DeviceStatus::Quarantined
        || input.state.quarantine_of(device.meta.id, input.now).is_some();
    if is_quarantined {
        flags |= device_flags::NO_INTERNET | device_flags::NO_LAN | device_flags::NO_ADMIN;
    }
    if is_resolver(input, device, resolvers) {
        flags |= device_flags::RESOLVER;
    }
    if input.state.has_own_class(device) {
        flags |= device_flags::OWN_CLASS;
    }
    let Some(class) = input.state.trust_class_of(device) else { return flags };
    if restricts && !class.admin_access {
        flags |= device_flags::NO_ADMIN;
    }
    flags | class_flags(class)
}

/// Returns the flags of a trust class, but for administration.
pub(super) fn class_flags(class: &TrustClass) -> u32 {
    let internet = match class.internet {
        Internet::None => device_flags::NO_INTERNET,
        Internet::Policy => device_flags::POLICY_ONLY,
        Internet::Direct => 0,
    };
    // Traffic inside a segment does not pass the gateway. Traffic that arrives here is for another segment.
    let lan = match class.lan_access {
        LanAccess::None | LanAccess::Segment => device_flags::NO_LAN,
        LanAccess::Full => 0,
    };
    internet | lan
}

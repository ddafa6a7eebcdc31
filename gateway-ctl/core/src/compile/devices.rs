//! Devices to their keys: MAC addresses, and addresses seen behind them.

use gateway_common::wire::{DeviceValue, LIST_SHIFT, RANK_NONE, device_flags};
use gateway_model::Device;
use gateway_model::kinds::device::DeviceStatus;
use gateway_model::kinds::trust_class::{Internet, LanAccess};

use super::Input;
use super::policies::Ranks;
use crate::plan::Dataplane;

pub fn lower(input: &Input<'_>, ranks: &Ranks, dataplane: &mut Dataplane) {
    for device in input.state.devices.iter() {
        let value = DeviceValue {
            rank: ranks.devices.get(&device.meta.id).copied().unwrap_or(RANK_NONE),
            number: device.meta.slot,
            flags: flags(input, device)
                | ranks.lists.get(&device.meta.id).map_or(0, |list| u32::from(list.number) << LIST_SHIFT),
        };
        for mac in device.all_macs() {
            dataplane.devices_by_mac.insert(mac.0, value);
            for address in input.facts.neighbours.get(&mac.0).into_iter().flatten() {
                dataplane.devices_by_address.insert(*address, value);
            }
        }
    }
}

fn flags(input: &Input<'_>, device: &Device) -> u32 {
    let mut flags = 0;
    if device.status == DeviceStatus::Blocked {
        flags |= device_flags::BLOCKED;
    }
    if input.state.quarantine_of(device.meta.id, input.now).is_some() {
        flags |= device_flags::NO_INTERNET | device_flags::NO_LAN;
    }
    let Some(class) = input.state.trust_class_of(device) else { return flags };
    flags |= match class.internet {
        Internet::None => device_flags::NO_INTERNET,
        Internet::Policy => device_flags::POLICY_ONLY,
        Internet::Direct => 0,
    };
    // Traffic inside a segment does not pass the gateway: what arrives here is for another one.
    flags |= match class.lan_access {
        LanAccess::None | LanAccess::Segment => device_flags::NO_LAN,
        LanAccess::Full => 0,
    };
    flags
}

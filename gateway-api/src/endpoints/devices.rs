//! Devices, device groups and trust classes.

use gateway_ctl::services::hosts::HostInventory;
use gateway_ctl::world::live;
use gateway_model::{Device, DeviceGroup, State, TrustClass};
use serde_json::Value;

use crate::gateway::Open;
use crate::table::{Collection, Live, Ops, Table};

/// Observed fields of devices.
pub(super) const LIVE: Live = Live::beside(observe_devices);

pub(super) fn rows(t: &mut Table) {
    t.collection::<Device>(Collection {
        path: "/devices",
        item: "/devices/{id}",
        actions: ["create_device", "replace_device", "delete_device"],
        ops: Ops::ALL,
        live: Some(LIVE),
    });
    t.collection::<DeviceGroup>(Collection {
        path: "/device-groups",
        item: "/device-groups/{id}",
        actions: ["create_device_group", "replace_device_group", "delete_device_group"],
        ops: Ops::ALL,
        live: None,
    });
    t.collection::<TrustClass>(Collection {
        path: "/trust-classes",
        item: "/trust-classes/{id}",
        actions: ["create_trust_class", "replace_trust_class", "delete_trust_class"],
        ops: Ops::ALL,
        live: None,
    });
}

/// Adds what was observed of the hosts with the MAC addresses of devices.
fn observe_devices(open: &Open, state: &State, shown: &mut [Value]) {
    let world = open.worlds.last();
    // Without a kernel nothing is observed.
    let hosts = world.attached.map(|_| open.handles.get::<HostInventory>().list());
    let live = |device: &Device| live::device(&world.facts, hosts.as_deref(), device, open.now());
    super::observed::add_observed(shown, &state.devices, live);
}

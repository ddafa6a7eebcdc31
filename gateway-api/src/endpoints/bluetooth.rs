//! Bluetooth adapter, its devices, the network of a phone as an uplink, and the network that the gateway offers.

mod access;
mod adapter;
mod devices;
mod networks;
mod pairing;

use gateway_model::settings::groups::{BluetoothFailover, BluetoothSettings};

use crate::authorization::Access;
use crate::table::Table;

pub(super) fn rows(t: &mut Table) {
    t.group::<BluetoothSettings>("/bluetooth/settings", "replace_bluetooth_settings", Access::Operate);
    t.group::<BluetoothFailover>("/bluetooth/failover", "replace_bluetooth_failover", Access::Operate);
    adapter::rows(t);
    devices::rows(t);
    pairing::rows(t);
    networks::rows(t);
}

//! Bluetooth adapter, its personal area network, and its failover.

use gateway_model::capability::Capability;
use gateway_model::settings::groups::{BluetoothFailover, BluetoothSettings};

use crate::authorization::Access;
use crate::table::Method::{Delete, Get, Post, Put};
use crate::table::Table;

pub(super) fn rows(t: &mut Table) {
    t.group::<BluetoothSettings>("/bluetooth/settings", "replace_bluetooth_settings", Access::Operate);
    t.group::<BluetoothFailover>("/bluetooth/failover", "replace_bluetooth_failover", Access::Operate);
    t.unsupported(
        Capability::Bluetooth,
        &[
            (Get, "/bluetooth/status"),
            (Get, "/bluetooth/devices"),
            (Get, "/bluetooth/nearby"),
            (Get, "/bluetooth/ids"),
            (Get, "/bluetooth/rssi/{mac}"),
            (Post, "/bluetooth/enable"),
            (Post, "/bluetooth/disable"),
            (Post, "/bluetooth/scan"),
            (Post, "/bluetooth/pair"),
            (Post, "/bluetooth/pan/connect"),
            (Post, "/bluetooth/pan/disconnect"),
            (Post, "/bluetooth/nap/start"),
            (Post, "/bluetooth/nap/stop"),
            (Delete, "/bluetooth/devices/{mac}"),
            (Put, "/bluetooth/name"),
        ],
    );
}

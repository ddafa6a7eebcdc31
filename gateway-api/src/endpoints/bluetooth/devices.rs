//! Bluetooth devices, the strength of their signals, and the detection of intrusions.

use gateway_core::bluetooth::device::RemoteDevice;
use gateway_ctl::services::bluetooth::{DetectionStatus, SignalStrength};
use gateway_model::id::MacAddr;
use schemars::JsonSchema;
use serde::Serialize;

use super::access::{DEVICE, FAILURES, acts, bluetooth, mac_of, refused};
use crate::context::Cx;
use crate::error::{ApiError, Code};
use crate::reply::WithHeaders;
use crate::request::Req;
use crate::table::Table;

pub(super) fn rows(t: &mut Table) {
    t.view("/bluetooth/devices", "list_bluetooth_devices", list)
        .summary("Bluetooth devices that are paired, trusted or connected")
        .doc("Empty without an adapter.");
    t.view("/bluetooth/nearby", "list_nearby_bluetooth_devices", nearby)
        .summary("Other Bluetooth devices, the nearest first")
        .doc("Those that a scan has found. BlueZ forgets a device some 30 seconds after a scan.");
    t.view("/bluetooth/ids", "get_bluetooth_ids", detection)
        .summary("Detection of intrusions by Bluetooth: learning state, known devices, events")
        .doc("New devices, devices that change their address, names of paired devices that others use, and floods. Devices are learned for a day first. Events from `warning` on count for the alert `bluetooth_ids`.");
    t.view("/bluetooth/rssi/{mac}", "get_bluetooth_rssi", signal)
        .summary("Strength of the signal of a Bluetooth device");
    t.erase(
        "/bluetooth/devices/{mac}",
        "delete_bluetooth_device",
        acts("delete_bluetooth_device", DEVICE),
        delete,
    )
    .summary("Forget a Bluetooth device and its pairing")
    .answers(FAILURES)
    .answers(&[Code::NotFound]);
}

/// Result of a removal.
#[derive(Debug, Serialize, JsonSchema)]
struct RemovedDevice {
    mac: MacAddr,
    deleted: bool,
}

async fn list(cx: Cx, _: Req<()>) -> Result<WithHeaders<Vec<RemoteDevice>>, ApiError> {
    Ok(WithHeaders::counted(bluetooth(&cx)?.devices()))
}

async fn nearby(cx: Cx, _: Req<()>) -> Result<WithHeaders<Vec<RemoteDevice>>, ApiError> {
    Ok(WithHeaders::counted(bluetooth(&cx)?.nearby()))
}

async fn detection(cx: Cx, _: Req<()>) -> Result<DetectionStatus, ApiError> {
    Ok(bluetooth(&cx)?.detection(cx.open()?.now()))
}

async fn signal(cx: Cx, request: Req<()>) -> Result<SignalStrength, ApiError> {
    bluetooth(&cx)?.signal(mac_of(&request.params)?).map_err(refused)
}

async fn delete(cx: Cx, request: Req<()>) -> Result<RemovedDevice, ApiError> {
    let mac = mac_of(&request.params)?;
    bluetooth(&cx)?.remove(mac).await.map_err(refused)?;
    Ok(RemovedDevice { mac, deleted: true })
}

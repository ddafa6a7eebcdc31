//! The network of a phone as an uplink, and the network that the gateway offers to Bluetooth devices.

use gateway_core::bluetooth::nap::nap_bridge;
use gateway_ctl::services::bluetooth::{BluetoothError, BluetoothStatus};
use gateway_model::settings::groups::BluetoothFailover;

use super::access::{FAILURES, acts, bluetooth, refused, settings};
use crate::context::Cx;
use crate::error::{ApiError, Code};
use crate::request::Req;
use crate::table::Table;

const PAN: &str = "bluetooth_pan";
const NAP: &str = "bluetooth_nap";

pub(super) fn rows(t: &mut Table) {
    t.command("/bluetooth/pan/connect", "connect_bluetooth_pan", acts("connect_bluetooth_pan", PAN), connect)
        .summary("Join the network of the phone of /bluetooth/failover now")
        .doc("Does not wait for an outage. Answers at once; `pan` of /bluetooth/status has the state. The network is an uplink until it is left.")
        .answers(FAILURES)
        .answers(&[Code::NotFound])
        .status(202);
    t.command(
        "/bluetooth/pan/disconnect",
        "disconnect_bluetooth_pan",
        acts("disconnect_bluetooth_pan", PAN),
        disconnect,
    )
    .summary("Leave the network of the phone")
    .doc("It is joined again in the next outage, after another uplink has worked.")
    .answers(FAILURES)
    .status(202);
    t.command("/bluetooth/nap/start", "start_bluetooth_nap", acts("start_bluetooth_nap", NAP), start)
        .summary("Offer a network to Bluetooth devices")
        .doc("On the bridge of the segment nap_segment of /bluetooth/settings, with its policies and its DHCP server. It ends with the daemon of BlueZ or of the gateway.")
        .answers(FAILURES);
    t.command("/bluetooth/nap/stop", "stop_bluetooth_nap", acts("stop_bluetooth_nap", NAP), stop)
        .summary("End the network for Bluetooth devices")
        .answers(FAILURES);
}

fn status_of(cx: &Cx) -> Result<BluetoothStatus, ApiError> {
    let open = cx.open()?;
    Ok(bluetooth(cx)?.status(&open.worlds.last().facts, open.now()))
}

fn choose(cx: &Cx, joined: bool) -> Result<BluetoothStatus, ApiError> {
    let failover: BluetoothFailover = cx.open()?.store.current().group();
    let device = failover.device_mac.filter(|_| failover.enabled);
    bluetooth(cx)?.choose_pan(joined, device).map_err(refused)?;
    status_of(cx)
}

async fn connect(cx: Cx, _: Req<()>) -> Result<BluetoothStatus, ApiError> {
    choose(&cx, true)
}

async fn disconnect(cx: Cx, _: Req<()>) -> Result<BluetoothStatus, ApiError> {
    choose(&cx, false)
}

async fn start(cx: Cx, _: Req<()>) -> Result<BluetoothStatus, ApiError> {
    let handle = bluetooth(&cx)?;
    // Without an adapter, no setting helps.
    handle.check_adapter().map_err(refused)?;
    let settings = settings(&cx)?;
    let world = cx.open()?.world();
    let bridge = nap_bridge(&world.state, &world.network, &world.facts, settings.nap_segment.as_deref());
    let bridge = bridge.map_err(|refusal| refused(BluetoothError::Nap(refusal)))?;
    handle.start_nap(&bridge).await.map_err(refused)?;
    status_of(&cx)
}

async fn stop(cx: Cx, _: Req<()>) -> Result<BluetoothStatus, ApiError> {
    bluetooth(&cx)?.stop_nap().await.map_err(refused)?;
    status_of(&cx)
}

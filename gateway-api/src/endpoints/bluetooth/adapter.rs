//! State of Bluetooth; the adapter on and off, its name, and scans.

use gateway_ctl::services::bluetooth::BluetoothStatus;
use gateway_model::problem::{Problems, code};
use jiff::SignedDuration;
use schemars::JsonSchema;
use serde::Deserialize;

use super::access::{FAILURES, acts, bluetooth, refused, settings};
use crate::context::Cx;
use crate::error::ApiError;
use crate::request::Req;
use crate::table::Table;

const ADAPTER: &str = "bluetooth_adapter";
/// Longest name of an adapter, in bytes.
const MAX_NAME: usize = 248;

pub(super) fn rows(t: &mut Table) {
    t.view("/bluetooth/status", "get_bluetooth_status", status)
        .summary("State of the Bluetooth adapter, of pairing and of its networks")
        .doc("`available` is false without an adapter or the daemon of BlueZ; `needs` says what is missing.");
    t.action("/bluetooth/enable", "enable_bluetooth", acts("enable_bluetooth", ADAPTER), enable)
        .summary("Switch the Bluetooth adapter on")
        .doc("With `discoverable`, other devices find the adapter and may begin to pair, for discoverable_timeout of /bluetooth/settings. A user confirms each pairing.")
        .answers(FAILURES);
    t.command("/bluetooth/disable", "disable_bluetooth", acts("disable_bluetooth", ADAPTER), disable)
        .summary("Switch the Bluetooth adapter off")
        .answers(FAILURES);
    t.action("/bluetooth/scan", "scan_bluetooth", acts("scan_bluetooth", ADAPTER), scan)
        .summary("Scan for Bluetooth devices")
        .doc("Answers at once; /bluetooth/nearby has what is found. A scan that runs goes on for the new time.")
        .answers(FAILURES)
        .status(202);
    t.change("/bluetooth/name", "rename_bluetooth", acts("rename_bluetooth", ADAPTER), rename)
        .summary("Name the Bluetooth adapter")
        .answers(FAILURES);
}

/// Switch of the adapter.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct EnableInput {
    /// Other devices find the adapter and may begin to pair.
    discoverable: bool,
}

/// Scan for devices.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(default)]
struct ScanInput {
    /// Duration in seconds, 1 to 300.
    duration_sec: u32,
}

impl Default for ScanInput {
    fn default() -> ScanInput {
        ScanInput { duration_sec: 20 }
    }
}

/// Name of the adapter.
#[derive(Debug, Deserialize, JsonSchema)]
struct NameInput {
    /// 1 to 248 bytes, without control characters.
    name: String,
}

fn status_of(cx: &Cx) -> Result<BluetoothStatus, ApiError> {
    let open = cx.open()?;
    Ok(bluetooth(cx)?.status(&open.worlds.last().facts, open.now()))
}

async fn status(cx: Cx, _: Req<()>) -> Result<BluetoothStatus, ApiError> {
    status_of(&cx)
}

async fn enable(cx: Cx, request: Req<EnableInput>) -> Result<BluetoothStatus, ApiError> {
    let (settings, now) = (settings(&cx)?, cx.open()?.now());
    let switched = bluetooth(&cx)?.set_power(true, request.input.discoverable, &settings, now).await;
    switched.map_err(refused)?;
    status_of(&cx)
}

async fn disable(cx: Cx, _: Req<()>) -> Result<BluetoothStatus, ApiError> {
    let (settings, now) = (settings(&cx)?, cx.open()?.now());
    bluetooth(&cx)?.set_power(false, false, &settings, now).await.map_err(refused)?;
    status_of(&cx)
}

async fn scan(cx: Cx, request: Req<ScanInput>) -> Result<BluetoothStatus, ApiError> {
    let seconds = request.input.duration_sec;
    if !(1..=300).contains(&seconds) {
        let mut problems = Problems::new();
        problems.add(code::RANGE, "duration_sec", "Must be from 1 to 300.");
        return Err(ApiError::validation(&problems));
    }
    let time = SignedDuration::from_secs(i64::from(seconds));
    bluetooth(&cx)?.scan(time, cx.open()?.now()).await.map_err(refused)?;
    status_of(&cx)
}

async fn rename(cx: Cx, request: Req<NameInput>) -> Result<BluetoothStatus, ApiError> {
    let name = request.input.name.trim();
    if name.is_empty() || name.len() > MAX_NAME || name.chars().any(char::is_control) {
        let mut problems = Problems::new();
        let message = format!("Expected 1 to {MAX_NAME} bytes without control characters.");
        problems.add(code::FORMAT, "name", message);
        return Err(ApiError::validation(&problems));
    }
    bluetooth(&cx)?.rename(name).await.map_err(refused)?;
    status_of(&cx)
}

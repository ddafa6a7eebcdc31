//! Access of the endpoints to Bluetooth, and the errors of the API for what it refuses.

use gateway_core::bluetooth::pairing::PairingError;
use gateway_ctl::services::bluetooth::{Bluetooth, BluetoothError};
use gateway_model::id::MacAddr;
use gateway_model::problem::{Problems, code};
use gateway_model::settings::groups::BluetoothSettings;

use crate::context::Cx;
use crate::error::{ApiError, Code};
use crate::request::Params;
use crate::table::{Audit, Effect};

/// Type of devices in errors and audit entries.
pub(super) const DEVICE: &str = "bluetooth_device";
/// Failures of everything that needs an adapter.
pub(super) const FAILURES: &[Code] = &[Code::InvalidState, Code::NotSupported, Code::DependencyFailed];

pub(super) const fn acts(action: &'static str, resource_type: &'static str) -> Effect {
    Effect::Acts(Audit { action, resource_type })
}

pub(super) fn bluetooth(cx: &Cx) -> Result<Bluetooth, ApiError> {
    Ok(cx.open()?.handles.get::<Bluetooth>())
}

pub(super) fn settings(cx: &Cx) -> Result<BluetoothSettings, ApiError> {
    Ok(cx.open()?.store.current().group())
}

/// Returns the device of a path.
pub(super) fn mac_of(params: &Params) -> Result<MacAddr, ApiError> {
    let mac = params.get("mac");
    mac.parse().map_err(|_| ApiError::not_found(DEVICE, mac))
}

/// Returns the error of a request that Bluetooth refuses.
pub(super) fn refused(error: BluetoothError) -> ApiError {
    let state = |state: &str, allowed: &str, message: String| {
        ApiError::new(Code::InvalidState, message).detail("state", state).detail("allowed", [allowed])
    };
    match error {
        BluetoothError::Missing(missing) => ApiError::not_supported(&missing.to_string()),
        BluetoothError::PoweredOff => {
            state("off", "on", "The adapter is off: POST /bluetooth/enable switches it on.".into())
        }
        BluetoothError::Blocked => {
            state("blocked", "unblocked", format!("{}.", capitalised(&error.to_string())))
        }
        BluetoothError::UnknownDevice(mac) => ApiError::not_found(DEVICE, &mac.to_string()),
        BluetoothError::NotAllowed(_) => {
            let mut problems = Problems::new();
            problems.add(code::CONFLICT, "mac", format!("{}.", capitalised(&error.to_string())));
            ApiError::validation(&problems)
        }
        BluetoothError::NotPaired(_) => {
            state("not_paired", "paired", "The phone is not paired: POST /bluetooth/pair pairs it.".into())
        }
        BluetoothError::FailoverOff => state(
            "disabled",
            "enabled",
            "/bluetooth/failover is off, so the network of a phone is no uplink.".into(),
        ),
        BluetoothError::Nap(refusal) => {
            state("no_bridge", "bridge", format!("There is no bridge for clients: {refusal}."))
        }
        BluetoothError::Pairing(refusal) => {
            let name = match refusal {
                PairingError::Busy(_) => "busy",
                PairingError::NotWaiting => "not_waiting",
                PairingError::PasskeyDiffers => "refused",
            };
            state(name, "waiting", format!("{}.", capitalised(&refusal.to_string())))
        }
        BluetoothError::PairingFailed(_) | BluetoothError::Failed(_) => {
            ApiError::new(Code::DependencyFailed, format!("BlueZ refused: {error}."))
                .detail("dependency", "bluetoothd")
        }
    }
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

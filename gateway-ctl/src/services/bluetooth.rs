//! Bluetooth: the state machines of `gateway_core::bluetooth` between the daemon of BlueZ on one side, and the API, the manager of
//! uplinks and the alerts on the other.
//!
//! Decision 0210 says why.

mod agent;
mod error;
mod handle;
mod orders;
mod pan;
mod session;
mod status;

use crate::service::{Context, Service};
use crate::supervise::blocking;

pub use error::{BluetoothError, Missing};
pub use handle::Bluetooth;
pub use orders::{PairRequest, PairResult};
pub use status::{AdapterStatus, BluetoothStatus, DetectionStatus, NapStatus, PanStatus, SignalStrength};

/// Returns the service that connects to the daemon of BlueZ.
pub fn service(context: &Context) -> Service {
    let bluetooth = context.handles.get::<Bluetooth>();
    let stored = bluetooth.clone();
    Service::new("bluetooth", context, session::run)
        .erases(move |level| {
            let bluetooth = bluetooth.clone();
            blocking(move || bluetooth.erase(level))
        })
        .releases(move || {
            blocking(move || {
                if let Err(error) = stored.save() {
                    tracing::warn!(%error, "failed to store the known Bluetooth devices");
                }
            })
        })
}

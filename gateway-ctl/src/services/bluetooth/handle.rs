//! Handle of Bluetooth, with all that the service keeps.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gateway_core::bluetooth::BluetoothSnapshot;
use gateway_core::bluetooth::detection::{Detection, IdsEvent};
use gateway_core::bluetooth::device::RemoteDevice;
use gateway_core::bluetooth::failover::PanFailover;
use gateway_core::bluetooth::pairing::PairingWindow;
use gateway_model::id::MacAddr;
use gateway_model::settings::groups::WipeLevel;
use jiff::{SignedDuration, Timestamp};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use super::error::{BluetoothError, Missing};
use crate::handles::Handle;
use crate::os::bluez::BluetoothDaemon;
use crate::os::json_file;

/// File of the state folder with the known devices.
const FILE: &str = "bluetooth.json";
/// Time for which the last strength of a signal is kept.
const SIGNAL_TIME: SignedDuration = SignedDuration::from_secs(600);

/// Handle of the service.
#[derive(Clone)]
pub struct Bluetooth(pub(super) Arc<Inner>);

pub(super) struct Inner {
    pub(super) path: PathBuf,
    pub(super) state: Mutex<State>,
    /// The service has work: an order of a user, or a reply for the agent.
    pub(super) wake: Notify,
    /// A pairing has changed.
    pub(super) pairing_changed: Notify,
}

pub(super) struct State {
    /// Daemon of BlueZ, or the reason why there is none.
    pub(super) daemon: Result<Arc<dyn BluetoothDaemon>, Missing>,
    pub(super) snapshot: BluetoothSnapshot,
    /// Last strength of the signal of each device.
    pub(super) signals: BTreeMap<MacAddr, (i16, Timestamp)>,
    pub(super) scan_until: Option<Timestamp>,
    /// Bridge of the network access point, while it is offered.
    pub(super) nap: Option<String>,
    pub(super) pan: PanFailover,
    pub(super) pan_error: Option<String>,
    pub(super) pairing: PairingWindow,
    pub(super) detection: Detection,
    /// The known devices have changed since they were stored.
    pub(super) is_unsaved: bool,
    /// Nothing is kept any more.
    pub(super) is_silent: bool,
}

impl Handle for Bluetooth {
    fn open(state_dir: &Path, _: Timestamp) -> Bluetooth {
        let path = state_dir.join(FILE);
        let state = State {
            daemon: Err(Missing::Engine),
            snapshot: BluetoothSnapshot::default(),
            signals: BTreeMap::new(),
            scan_until: None,
            nap: None,
            pan: PanFailover::default(),
            pan_error: None,
            pairing: PairingWindow::default(),
            detection: json_file::read(&path),
            is_unsaved: false,
            is_silent: false,
        };
        let (wake, pairing_changed) = Default::default();
        Bluetooth(Arc::new(Inner { path, state: Mutex::new(state), wake, pairing_changed }))
    }
}

impl std::fmt::Debug for Bluetooth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bluetooth").field("path", &self.0.path).finish_non_exhaustive()
    }
}

impl Bluetooth {
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock()
    }

    /// Makes the service look at the state now.
    pub(super) fn wake(&self) {
        self.0.wake.notify_one();
    }

    pub(super) fn notify_pairing(&self) {
        self.0.pairing_changed.notify_waiters();
        self.wake();
    }

    /// Returns the daemon of BlueZ with an adapter.
    pub(super) fn daemon(&self) -> Result<Arc<dyn BluetoothDaemon>, BluetoothError> {
        let state = self.lock();
        let daemon = state.daemon.clone().map_err(BluetoothError::Missing)?;
        match state.snapshot.adapter {
            Some(_) => Ok(daemon),
            None => Err(BluetoothError::Missing(Missing::Adapter)),
        }
    }

    pub(super) fn device(&self, mac: MacAddr) -> Result<RemoteDevice, BluetoothError> {
        self.lock().snapshot.device(mac).cloned().ok_or(BluetoothError::UnknownDevice(mac))
    }

    /// Publishes the daemon, or the reason why there is none.
    pub(super) fn set_daemon(&self, daemon: Result<Arc<dyn BluetoothDaemon>, Missing>) {
        let mut state = self.lock();
        if let Err(missing) = &daemon {
            if state.daemon.is_ok() {
                tracing::warn!(reason = %missing, "Bluetooth is gone");
            }
            state.snapshot = BluetoothSnapshot::default();
            (state.scan_until, state.nap) = (None, None);
        }
        state.daemon = daemon;
    }

    /// Takes a snapshot. Returns the new events of the detection.
    pub(super) fn take(&self, snapshot: BluetoothSnapshot, now: Timestamp) -> Vec<IdsEvent> {
        let mut state = self.lock();
        let is_old = |at: &Timestamp| now.duration_since(*at) > SIGNAL_TIME;
        state.signals.retain(|_, (_, at)| !is_old(at));
        for device in &snapshot.devices {
            if let Some(rssi) = device.rssi {
                state.signals.insert(device.mac, (rssi, now));
            }
        }
        let running = state.pairing.running().map(|running| (running.mac, running.incoming));
        let has_paired = |mac| snapshot.device(mac).is_some_and(|device| device.paired);
        if let Some((mac, _)) = running.filter(|(mac, incoming)| *incoming && has_paired(*mac)) {
            state.pairing.end(mac, Ok(()));
        }
        let is_observing = snapshot.adapter.as_ref().is_some_and(|adapter| adapter.powered);
        let events = match is_observing && !state.is_silent {
            true => state.detection.observe(&snapshot.devices, now),
            false => Vec::new(),
        };
        state.is_unsaved |= is_observing;
        state.snapshot = snapshot;
        events
    }

    /// Stores the known devices if they have changed.
    pub(super) fn save(&self) -> io::Result<()> {
        let detection = {
            let mut state = self.lock();
            if state.is_silent || !std::mem::take(&mut state.is_unsaved) {
                return Ok(());
            }
            state.detection.clone()
        };
        json_file::write(&self.0.path, &detection)
    }

    /// Forgets all devices.
    pub(super) fn erase(&self, level: WipeLevel) -> io::Result<()> {
        let mut state = self.lock();
        state.detection.clear();
        state.signals.clear();
        state.is_unsaved = false;
        state.is_silent |= level == WipeLevel::Hard;
        json_file::erase(&self.0.path)
    }
}

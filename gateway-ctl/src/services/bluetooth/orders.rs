//! Orders of users.

use std::time::Duration;

use gateway_core::bluetooth::BluetoothOrder;
use gateway_core::bluetooth::pairing::{Pairing, PairingState, UserAnswer};
use gateway_model::id::MacAddr;
use gateway_model::settings::groups::BluetoothSettings;
use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;

use super::error::BluetoothError;
use super::handle::Bluetooth;

/// Time for which a request waits for the next step of a pairing.
const STEP_TIME: Duration = Duration::from_secs(8);

/// Request of a user about a pairing.
#[derive(Clone, Default)]
pub struct PairRequest {
    pub pin: Option<String>,
    pub passkey: Option<String>,
    pub accept: Option<bool>,
    pub trusted: Option<bool>,
}

/// State of a device after a request about its pairing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PairResult {
    pub mac: MacAddr,
    pub paired: bool,
    pub trusted: bool,
    /// The last pairing of the device since the start; null if there was none.
    pub pairing: Option<Pairing>,
}

impl Bluetooth {
    async fn execute(&self, order: BluetoothOrder) -> Result<(), BluetoothError> {
        let result = self.daemon()?.execute(&order).await;
        self.wake();
        Ok(result.map(drop)?)
    }

    /// Switches the adapter. `discoverable` lets other devices find it and begin to pair, for the time of the settings.
    pub async fn set_power(
        &self,
        on: bool,
        discoverable: bool,
        settings: &BluetoothSettings,
        now: Timestamp,
    ) -> Result<(), BluetoothError> {
        let daemon = self.daemon()?;
        if !on {
            self.lock().pairing.close();
        }
        daemon.execute(&BluetoothOrder::Power(on)).await?;
        if on && discoverable {
            let seconds = u32::try_from(settings.discoverable_timeout).unwrap_or(u32::MAX);
            daemon.execute(&BluetoothOrder::Discoverable(seconds)).await?;
            let time = SignedDuration::from_secs(i64::from(seconds));
            let end = if seconds == 0 {
                Timestamp::MAX
            } else {
                now.saturating_add(time).unwrap_or(Timestamp::MAX)
            };
            self.lock().pairing.open(end);
        }
        self.refresh().await
    }

    pub async fn rename(&self, name: &str) -> Result<(), BluetoothError> {
        self.execute(BluetoothOrder::Rename(name.to_owned())).await?;
        self.refresh().await
    }

    /// Scans for devices for a time.
    pub async fn scan(&self, time: SignedDuration, now: Timestamp) -> Result<(), BluetoothError> {
        self.powered()?;
        let is_scanning = self.lock().scan_until.is_some();
        if !is_scanning {
            self.execute(BluetoothOrder::StartDiscovery).await?;
        }
        self.lock().scan_until = now.saturating_add(time).ok();
        self.refresh().await
    }

    /// Forgets a device.
    pub async fn remove(&self, mac: MacAddr) -> Result<(), BluetoothError> {
        self.device(mac)?;
        self.execute(BluetoothOrder::Remove(mac)).await?;
        self.refresh().await
    }

    /// Begins a pairing, answers one that waits, or changes the trust in a paired device. Returns when the user has to act, when
    /// it is over, or after some seconds.
    pub async fn pair(
        &self,
        mac: MacAddr,
        request: PairRequest,
        settings: &BluetoothSettings,
        now: Timestamp,
    ) -> Result<PairResult, BluetoothError> {
        self.powered()?;
        let waits = self.waiting(mac);
        if let Some(answer) = answer_of(&request, waits) {
            let answered = self.lock().pairing.answer(mac, answer, now);
            self.notify_pairing();
            answered?;
        } else {
            let device = self.device(mac)?;
            if !settings.allows(mac) {
                return Err(BluetoothError::NotAllowed(mac));
            }
            if device.paired {
                if let Some(trusted) = request.trusted {
                    self.execute(BluetoothOrder::Trust(mac, trusted)).await?;
                    self.refresh().await?;
                }
                return self.pair_result(mac);
            }
            self.begin(mac, request, now)?;
        }
        self.next_step(mac).await;
        let is_over = self.lock().pairing.running().is_none_or(|running| running.mac != mac);
        if is_over {
            self.refresh().await?;
        }
        self.pair_result(mac)
    }

    fn begin(&self, mac: MacAddr, request: PairRequest, now: Timestamp) -> Result<(), BluetoothError> {
        let daemon = self.daemon()?;
        let PairRequest { pin, trusted, .. } = request;
        self.lock().pairing.begin(mac, pin, now)?;
        let bluetooth = self.clone();
        tokio::spawn(async move {
            let paired = daemon.execute(&BluetoothOrder::Pair(mac)).await.map(drop);
            if paired.is_ok()
                && trusted == Some(true)
                && let Err(error) = daemon.execute(&BluetoothOrder::Trust(mac, true)).await
            {
                tracing::warn!(device = %mac, %error, "failed to trust a Bluetooth device");
            }
            bluetooth.lock().pairing.end(mac, paired.map_err(|error| error.to_string()));
            bluetooth.notify_pairing();
        });
        Ok(())
    }

    /// Waits until a pairing is no longer between its devices alone.
    async fn next_step(&self, mac: MacAddr) {
        let is_between = || {
            let state = self.lock();
            state.pairing.running().is_some_and(|one| one.mac == mac && one.state == PairingState::Connecting)
        };
        let step = async {
            loop {
                // A change between the look and the wait counts, because the future exists before.
                let changed = self.0.pairing_changed.notified();
                if !is_between() {
                    return;
                }
                changed.await;
            }
        };
        // Then the state is what it is: the devices are still at it.
        let _ = tokio::time::timeout(STEP_TIME, step).await;
    }

    fn waiting(&self, mac: MacAddr) -> Option<PairingState> {
        let state = self.lock();
        let running = state.pairing.running().filter(|one| one.mac == mac);
        running.map(|running| running.state).filter(|state| state.waits_for_user())
    }

    fn pair_result(&self, mac: MacAddr) -> Result<PairResult, BluetoothError> {
        let state = self.lock();
        let pairing = state.pairing.current().filter(|one| one.mac == mac).cloned();
        let device = state.snapshot.device(mac);
        let paired = device.is_some_and(|device| device.paired);
        let error = pairing.as_ref().and_then(|pairing| pairing.error.clone());
        if let Some(error) = error.filter(|_| !paired) {
            return Err(BluetoothError::PairingFailed(error));
        }
        Ok(PairResult { mac, paired, trusted: device.is_some_and(|device| device.trusted), pairing })
    }

    /// Joins the network of the phone of the failover now, or leaves it.
    pub fn choose_pan(&self, joined: bool, device: Option<MacAddr>) -> Result<(), BluetoothError> {
        self.daemon()?;
        let mac = device.ok_or(BluetoothError::FailoverOff)?;
        if joined {
            self.powered()?;
            if !self.device(mac)?.paired {
                return Err(BluetoothError::NotPaired(mac));
            }
        }
        self.lock().pan.choose(joined);
        self.wake();
        Ok(())
    }

    /// Reports a missing adapter as a failure.
    pub fn check_adapter(&self) -> Result<(), BluetoothError> {
        self.daemon().map(drop)
    }

    /// Offers a network on a bridge.
    pub async fn start_nap(&self, bridge: &str) -> Result<(), BluetoothError> {
        self.powered()?;
        let before = self.lock().nap.clone();
        if before.as_deref() == Some(bridge) {
            return Ok(());
        }
        if before.is_some() {
            self.stop_nap().await?;
        }
        self.execute(BluetoothOrder::OfferNetwork(bridge.to_owned())).await?;
        self.lock().nap = Some(bridge.to_owned());
        Ok(())
    }

    pub async fn stop_nap(&self) -> Result<(), BluetoothError> {
        self.daemon()?;
        if self.lock().nap.is_none() {
            return Ok(());
        }
        self.execute(BluetoothOrder::EndNetwork).await?;
        self.lock().nap = None;
        Ok(())
    }

    /// Reports the adapter that is off as a failure.
    pub(super) fn powered(&self) -> Result<(), BluetoothError> {
        self.daemon()?;
        let is_on = self.lock().snapshot.adapter.as_ref().is_some_and(|adapter| adapter.powered);
        if is_on { Ok(()) } else { Err(BluetoothError::PoweredOff) }
    }

    /// Reads the objects, so that the answer of a request shows its effect.
    async fn refresh(&self) -> Result<(), BluetoothError> {
        let snapshot = self.daemon()?.read().await?;
        self.lock().snapshot = snapshot;
        self.wake();
        Ok(())
    }
}

/// Returns the answer to a pairing that waits. `None`: the request begins one.
fn answer_of(request: &PairRequest, waits: Option<PairingState>) -> Option<UserAnswer> {
    let PairRequest { pin, passkey, accept, .. } = request;
    match (passkey, accept, pin) {
        (_, Some(false), _) => Some(UserAnswer::Refuse),
        (Some(passkey), _, _) => Some(UserAnswer::Passkey(passkey.clone())),
        (None, Some(true), _) => Some(UserAnswer::Accept),
        (None, None, Some(pin)) if waits == Some(PairingState::EnterPin) => {
            Some(UserAnswer::Pin(pin.clone()))
        }
        (None, None, _) => None,
    }
}

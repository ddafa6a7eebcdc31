//! Network of a phone: joined and left as the state machine of the failover decides.

use std::sync::Arc;
use std::time::Duration;

use gateway_core::bluetooth::BluetoothOrder;
use gateway_core::bluetooth::failover::{PanChange, PanInput};
use gateway_model::id::MacAddr;
use gateway_model::settings::groups::{BluetoothFailover, PAN_INTERFACE};
use gateway_model::settings::uplink::UplinkState;
use tokio::task::JoinHandle;

use super::handle::Bluetooth;
use crate::os::Netlink;
use crate::os::bluez::{BluetoothDaemon, Bluez};
use crate::os::interface_name;
use crate::service::Context;
use crate::world::reports::uplinks::UplinkStates;

/// The network of a phone, while the connection to BlueZ lasts.
pub(super) struct PanRun {
    context: Context,
    bluetooth: Bluetooth,
    bluez: Arc<Bluez>,
    netlink: Option<Netlink>,
    /// Change that runs: the other device takes its time.
    task: Option<JoinHandle<()>>,
}

impl Drop for PanRun {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

impl PanRun {
    pub(super) fn new(context: Context, bluetooth: Bluetooth, bluez: Arc<Bluez>) -> PanRun {
        PanRun { context, bluetooth, bluez, netlink: Netlink::open().ok(), task: None }
    }

    /// Evaluates the state, names the interface of a network that is joined, and begins a change that is due.
    pub(super) async fn follow(&mut self) {
        if self.task.as_ref().is_some_and(|task| !task.is_finished()) {
            return;
        }
        self.task = None;
        let settings: BluetoothFailover = self.context.store.current().group();
        let joined = self.bluetooth.lock().joined();
        if let Some((mac, interface)) = &joined {
            self.name_interface(*mac, interface).await;
        }
        // The phone of another setting is left first.
        let joined = joined.map(|(mac, _)| mac);
        let wanted = settings.device_mac.filter(|_| settings.enabled);
        let is_other = joined.is_some() && joined != wanted;
        let boot = self.context.store.clock().boot();
        let input = {
            let world = self.context.worlds.last();
            let uplinks = &world.reports.uplinks;
            PanInput {
                enabled: wanted.is_some() && !is_other,
                others_work: others_work(uplinks),
                joined: joined.is_some(),
                active: uplinks.active.as_deref() == Some(PAN_INTERFACE),
                start_after: Duration::from_secs(settings.start_after_sec),
            }
        };
        let powered = self.bluetooth.powered().is_ok();
        let due = self.bluetooth.lock().pan.evaluate(input, boot);
        match (due, wanted, joined) {
            (Some(PanChange::Join), Some(mac), _) if powered => self.join(mac),
            (Some(PanChange::Leave), _, Some(mac)) => self.leave(mac),
            _ => {}
        }
    }

    async fn name_interface(&self, mac: MacAddr, interface: &str) {
        let Some(netlink) = &self.netlink else { return };
        if let Err(error) = interface_name::adopt(netlink, interface, PAN_INTERFACE).await {
            tracing::warn!(device = %mac, interface, %error, "failed to name the interface of a phone");
        }
    }

    fn join(&mut self, mac: MacAddr) {
        let (context, bluetooth, bluez) = (self.context.clone(), self.bluetooth.clone(), self.bluez.clone());
        let netlink = self.netlink.clone();
        self.task = Some(tokio::spawn(async move {
            tracing::info!(device = %mac, "joining the network of a phone");
            let joined = bluez.execute(&BluetoothOrder::JoinNetwork(mac)).await;
            let result = match (joined, netlink) {
                (Ok(Some(interface)), Some(netlink)) => {
                    let named = interface_name::adopt(&netlink, &interface, PAN_INTERFACE).await;
                    named.map_err(|error| error.to_string())
                }
                (Ok(_), _) => Err("BlueZ named no interface".to_owned()),
                (Err(error), _) => Err(error.to_string()),
            };
            take_snapshot(&bluetooth, &bluez).await;
            let mut state = bluetooth.lock();
            state.pan_error = result.clone().err();
            if let Err(error) = &result {
                tracing::warn!(device = %mac, error, "failed to join the network of a phone");
                state.pan.note_failure(context.store.clock().boot());
            }
            drop(state);
            bluetooth.wake();
        }));
    }

    fn leave(&mut self, mac: MacAddr) {
        let (bluetooth, bluez) = (self.bluetooth.clone(), self.bluez.clone());
        self.task = Some(tokio::spawn(async move {
            tracing::info!(device = %mac, "leaving the network of a phone");
            if let Err(error) = bluez.execute(&BluetoothOrder::LeaveNetwork(mac)).await {
                tracing::warn!(device = %mac, %error, "failed to leave the network of a phone");
            }
            take_snapshot(&bluetooth, &bluez).await;
            bluetooth.wake();
        }));
    }
}

/// Reads the objects at the end of a change, which would be due again by those from before.
async fn take_snapshot(bluetooth: &Bluetooth, bluez: &Bluez) {
    if let Ok(snapshot) = bluez.read().await {
        bluetooth.lock().snapshot = snapshot;
    }
}

/// Reports whether an uplink other than the phone works. `None`: their probes have no result yet.
fn others_work(uplinks: &UplinkStates) -> Option<bool> {
    let others = uplinks.uplinks.iter().filter(|(interface, _)| *interface != PAN_INTERFACE);
    let states: Vec<UplinkState> = others.map(|(_, report)| report.state).collect();
    if states.iter().any(|state| state.is_usable()) {
        return Some(true);
    }
    let is_known = !states.is_empty() && states.iter().all(|state| *state != UplinkState::Connecting);
    is_known.then_some(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::reports::uplinks::UplinkReport;

    #[test]
    fn other_uplinks_work_fail_or_are_not_known() {
        let of = |states: &[(&str, UplinkState)]| {
            let reports = states.iter().map(|(interface, state)| {
                ((*interface).to_owned(), UplinkReport { state: *state, ..UplinkReport::default() })
            });
            others_work(&UplinkStates { uplinks: reports.collect(), ..UplinkStates::default() })
        };
        use UplinkState::{Connecting, Offline, Online};
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[(PAN_INTERFACE, Online)]), None);
        assert_eq!(of(&[("eth0", Connecting), ("eth2", Offline)]), None);
        assert_eq!(of(&[("eth0", Offline), (PAN_INTERFACE, Online)]), Some(false));
        assert_eq!(of(&[("eth0", Offline), ("eth2", Online)]), Some(true));
    }
}

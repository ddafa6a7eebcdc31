//! Decisions of the agent: those of the pairing window, with the settings in force.

use futures_util::future::BoxFuture;
use gateway_core::bluetooth::pairing::{AgentReply, AgentRequest};
use gateway_model::id::MacAddr;
use gateway_model::settings::groups::BluetoothSettings;
use tokio::time::{Duration, timeout};

use super::handle::Bluetooth;
use crate::os::bluez::PairingAgent;
use crate::service::Context;

/// Longest time without a look at the clock: a pairing that waits expires by it.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// UUIDs of the services of a network: BNEP, user, access point, group network.
const NETWORK_SERVICES: [u32; 4] = [0x000f, 0x1115, 0x1116, 0x1117];

pub(super) struct WindowAgent {
    pub context: Context,
    pub bluetooth: Bluetooth,
}

impl WindowAgent {
    fn settings(&self) -> BluetoothSettings {
        self.context.store.current().group()
    }
}

impl PairingAgent for WindowAgent {
    fn decide(&self, mac: MacAddr, request: AgentRequest) -> BoxFuture<'_, AgentReply> {
        Box::pin(async move {
            let clock = self.context.store.clock();
            let allowed = self.settings().allows(mac);
            let reply = self.bluetooth.lock().pairing.handle_request(mac, &request, allowed, clock.now());
            self.bluetooth.notify_pairing();
            tracing::info!(device = %mac, allowed, ?reply, "a Bluetooth device pairs");
            if let Some(reply) = reply {
                return reply;
            }
            loop {
                let changed = self.bluetooth.0.pairing_changed.notified();
                if let Some(reply) = self.bluetooth.lock().pairing.take_reply(mac, clock.now()) {
                    return reply;
                }
                // The pairing also ends by its time, which reports no change.
                let _ = timeout(LOOK_INTERVAL, changed).await;
            }
        })
    }

    fn allows_service(&self, mac: MacAddr, uuid: &str) -> bool {
        let number = uuid.get(..8).and_then(|number| u32::from_str_radix(number, 16).ok());
        let is_network = number.is_some_and(|number| NETWORK_SERVICES.contains(&number));
        let allowed = self.settings().allows(mac);
        let state = self.bluetooth.lock();
        let is_paired = state.snapshot.device(mac).is_some_and(|device| device.paired);
        let granted = allowed && is_paired && is_network && state.nap.is_some();
        tracing::info!(device = %mac, uuid, granted, "a Bluetooth device asks for a service");
        granted
    }

    fn cancel(&self) {
        let mut state = self.bluetooth.lock();
        if let Some(mac) = state.pairing.running().map(|running| running.mac) {
            state.pairing.end(mac, Err("the other device has ended it".to_owned()));
        }
        drop(state);
        self.bluetooth.notify_pairing();
    }
}

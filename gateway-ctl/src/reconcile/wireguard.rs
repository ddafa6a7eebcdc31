//! WireGuard devices as a backend.
//!
//! The engine reports only the non-secret part of a device. The backend therefore keeps the last applied
//! configuration, which is valid while the engine's report agrees with it. Applying is idempotent and interrupts no
//! session.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use gateway_core::plan::{Plan, WireGuardDevice, WireGuardPeer};
use tokio::sync::Mutex;

use crate::os::Backend;
use crate::os::backend::ABSENT;
use crate::os::wireguard::{self, DeviceConfig, DeviceStatus, Key, PeerConfig, WireGuard};

/// WireGuard devices, shared with health checks and `/tunnels`.
#[derive(Debug)]
pub struct Tunnels {
    engine: std::sync::Arc<WireGuard>,
    applied: Mutex<BTreeMap<String, WireGuardDevice>>,
}

/// State of a device, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WireGuardState {
    As(WireGuardDevice),
    /// The device differs from the last configuration, or an earlier process made it.
    Otherwise,
}

impl Tunnels {
    pub fn new(engine: std::sync::Arc<WireGuard>) -> Self {
        Self { engine, applied: Mutex::default() }
    }

    pub fn want(plan: &Plan) -> Cow<'_, BTreeMap<String, WireGuardState>> {
        let entry =
            |(name, device): (&String, &WireGuardDevice)| (name.clone(), WireGuardState::As(device.clone()));
        Cow::Owned(plan.wireguard.iter().map(entry).collect())
    }
}

impl Backend for Tunnels {
    type Key = String;
    type Value = WireGuardState;
    type Error = wireguard::Error;

    const NAME: &'static str = "wireguard";
    const REMOVE_FIRST: bool = false;

    async fn read(&self) -> Result<BTreeMap<String, WireGuardState>, wireguard::Error> {
        let applied = self.applied.lock().await;
        let mut have = BTreeMap::new();
        for name in self.engine.list().await? {
            let status = self.engine.status(&name).await?;
            let state = match (applied.get(&name), status) {
                (Some(device), Some(status)) if agrees(device, &status) => WireGuardState::As(device.clone()),
                (_, Some(_)) => WireGuardState::Otherwise,
                (_, None) => continue,
            };
            have.insert(name, state);
        }
        Ok(have)
    }

    async fn put(
        &self,
        key: &String,
        want: &WireGuardState,
        _have: Option<&WireGuardState>,
    ) -> Result<(), wireguard::Error> {
        let WireGuardState::As(device) = want else { return Ok(()) };
        let mut applied = self.applied.lock().await;
        applied.remove(key);
        self.engine.apply(&config(key, device)).await?;
        applied.insert(key.clone(), device.clone());
        Ok(())
    }

    async fn remove(&self, key: &String, _have: &WireGuardState) -> Result<(), wireguard::Error> {
        self.engine.remove(key).await?;
        self.applied.lock().await.remove(key);
        Ok(())
    }

    fn resource(key: &String) -> String {
        key.clone()
    }

    fn differences(
        expected: Option<&WireGuardState>,
        actual: Option<&WireGuardState>,
    ) -> Vec<(&'static str, String, String)> {
        // The output excludes the content, which includes keys.
        let show = |value: Option<&WireGuardState>| match value {
            None => ABSENT.to_owned(),
            Some(WireGuardState::As(device)) => format!("configured with {} peers", device.peers.len()),
            Some(WireGuardState::Otherwise) => "configured otherwise".to_owned(),
        };
        vec![("device", show(expected), show(actual))]
    }
}

fn agrees(device: &WireGuardDevice, status: &DeviceStatus) -> bool {
    let peers: BTreeSet<[u8; 32]> = status.peers.iter().map(|peer| peer.public_key).collect();
    wireguard::public_key(&Key::new(device.private_key.0)) == status.public_key
        // A kernel device has no port until its link is up.
        && device.listen_port.is_none_or(|port| port == status.listen_port || status.listen_port == 0)
        && device.peers.keys().copied().collect::<BTreeSet<_>>() == peers
}

fn config(name: &str, device: &WireGuardDevice) -> DeviceConfig {
    let WireGuardDevice { tunnel_id: _, private_key, listen_port, fwmark, mtu, peers } = device;
    let peers = peers.iter().map(|(public_key, peer)| {
        let WireGuardPeer { preshared_key, endpoint, allowed_ips, persistent_keepalive } = peer;
        PeerConfig {
            public_key: *public_key,
            preshared_key: preshared_key.as_ref().map(|key| Key::new(key.0)),
            endpoint: *endpoint,
            allowed_ips: allowed_ips.clone(),
            persistent_keepalive: *persistent_keepalive,
        }
    });
    DeviceConfig {
        name: name.to_owned(),
        private_key: Key::new(private_key.0),
        listen_port: *listen_port,
        fwmark: fwmark.0,
        mtu: *mtu,
        peers: peers.collect(),
    }
}

#[cfg(test)]
mod tests {
    use gateway_common::wire::Mark;
    use gateway_core::plan::SecretKey;

    use super::*;

    #[test]
    fn drift_of_a_device_shows_no_keys() {
        let device = WireGuardDevice {
            tunnel_id: "t".to_owned(),
            private_key: SecretKey([0x5a; 32]),
            listen_port: None,
            fwmark: Mark(0),
            mtu: 1420,
            peers: BTreeMap::from([(
                [0x5b; 32],
                WireGuardPeer {
                    preshared_key: Some(SecretKey([0x5c; 32])),
                    endpoint: None,
                    allowed_ips: vec![],
                    persistent_keepalive: None,
                },
            )]),
        };
        let states = [Some(WireGuardState::As(device)), Some(WireGuardState::Otherwise), None];
        for (expected, actual) in states.iter().zip(states.iter().cycle().skip(1)) {
            let reported = Tunnels::differences(expected.as_ref(), actual.as_ref());
            let text = format!("{reported:?}");
            assert!(
                ["90", "91", "92", "5a", "5b", "5c", "***"].iter().all(|key| !text.contains(key)),
                "{text}"
            );
        }
    }
}

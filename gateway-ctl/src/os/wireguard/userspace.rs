//! Userspace engine: boringtun's protocol machines between a TUN device and two UDP sockets.
//!
//! Each device has five tasks: TUN to UDP, UDP to TUN per address family, the clock, and cover traffic. They share a
//! table of peers that is replaced as a whole, so a change never stops them. Only a new port or MTU restarts them.
//! Nothing is persistent: the TUN device disappears with its last descriptor.

mod cover;
mod identity;
mod outbox;
pub(super) mod path_layer;
mod peer;
pub(super) mod peer_tun;
mod receive;
mod running_tuns;
mod shared;
mod sockets;
mod table;
mod transmit;
mod tun;

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use gateway_model::settings::groups::CoverSettings;
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::Instant;

use self::cover::Cover;
use self::path_layer::{PathLayer, Paths};
use self::peer_tun::PeerTunConfig;
use self::running_tuns::RunningTuns;
use self::shared::{Counters, Shared};
use self::sockets::Sockets;
use self::table::Table;
use self::tun::open_tun;
use super::device::{CoverStatus, DeviceConfig, DeviceStatus, Drops, Engine};
use super::error::Error;

/// Time limit for a removed link to vanish.
const REMOVAL_DEADLINE: Duration = Duration::from_secs(5);
const REMOVAL_POLL: Duration = Duration::from_millis(5);

/// The devices of this process.
#[derive(Debug, Default)]
pub(super) struct Userspace {
    devices: Mutex<BTreeMap<String, Device>>,
    /// Settings for future devices. Locked after the devices.
    cover: Mutex<CoverSettings>,
}

pub(super) struct Device {
    config: DeviceConfig,
    shared: Arc<Shared>,
    sockets: Arc<Sockets>,
    paths: Option<Paths>,
    peer_tuns: RunningTuns,
    tasks: JoinSet<()>,
    /// MTU for which the running tasks sized their buffers.
    running_mtu: u16,
}

impl Userspace {
    pub(super) async fn apply(&self, config: &DeviceConfig) -> Result<(), Error> {
        let mut devices = self.living().await;
        match devices.get_mut(&config.name) {
            Some(device) => device.change(config).await,
            None => {
                let device = Device::create(config, self.cover.lock().await.clone(), None).await?;
                devices.insert(config.name.clone(), device);
                Ok(())
            }
        }
    }

    pub(super) async fn remove(&self, name: &str) -> Result<(), Error> {
        // Held to the end: the device must not be recreated while its link is still being removed.
        let mut devices = self.living().await;
        match devices.remove(name) {
            Some(device) => device.close(name).await,
            None => Ok(()),
        }
    }

    pub(super) async fn status(&self, name: &str) -> Option<DeviceStatus> {
        self.living().await.get(name).map(Device::status)
    }

    pub(super) async fn trigger_handshake(&self, name: &str) {
        if let Some(device) = self.living().await.get(name) {
            device.trigger_handshake();
        }
    }

    pub(super) async fn set_cover(&self, settings: &CoverSettings) {
        let devices = self.living().await;
        let mut known = self.cover.lock().await;
        if *known != *settings {
            known.clone_from(settings);
            devices.values().for_each(|device| device.shared.cover.set(settings));
        }
    }

    pub(super) async fn cover(&self, name: &str) -> Option<CoverStatus> {
        let devices = self.living().await;
        devices.get(name).map(|device| device.shared.cover.status(device.shared.table.load().peers()))
    }

    pub(super) async fn drops(&self, name: &str) -> Option<Drops> {
        self.living().await.get(name).map(|device| device.shared.drops.read())
    }

    pub(super) async fn list(&self) -> Vec<String> {
        self.living().await.keys().cloned().collect()
    }

    /// Returns the devices, without those that died because an outsider removed their link.
    async fn living(&self) -> tokio::sync::MutexGuard<'_, BTreeMap<String, Device>> {
        let mut devices = self.devices.lock().await;
        // The tasks run until they are aborted, unless the TUN device fails them.
        let lost = devices.extract_if(.., |_, device| device.tasks.try_join_next().is_some());
        for (name, mut device) in lost.collect::<Vec<_>>() {
            tracing::warn!(device = %name, "lost a tunnel device");
            // The port is in use until the last task has ended.
            device.tasks.shutdown().await;
        }
        devices
    }
}

impl Device {
    pub(super) async fn create(
        config: &DeviceConfig,
        cover: CoverSettings,
        paths: Option<Paths>,
    ) -> Result<Self, Error> {
        let name = &config.name;
        if link_exists(name) {
            return Err(Error::NameTaken(name.clone()));
        }
        let failed = |source| Error::Create { name: name.clone(), source };
        let layer = paths.as_ref().map(|paths| Arc::clone(&paths.layer));
        let sockets = Arc::new(bind(config, layer.clone()).await?);
        let table = Table::build(config, None).map_err(|error| failed(error.into()))?;
        let tun = open_tun(name, config.mtu).map_err(failed)?;
        let (table, drops) = (ArcSwap::from_pointee(table), Counters::default());
        let (cover, peer_tuns) = (Cover::new(cover), ArcSwap::default());
        let shared = Arc::new(Shared { tun, table, peer_tuns, drops, cover, layer });
        let tasks = run(&shared, &sockets, paths.as_ref(), config.mtu);
        let (config, running_mtu) = (config.clone(), config.mtu);
        Ok(Self { config, shared, sockets, paths, peer_tuns: RunningTuns::default(), tasks, running_mtu })
    }

    /// Changes the device. All fallible steps come first, and the new table takes effect in one store.
    pub(super) async fn change(&mut self, config: &DeviceConfig) -> Result<(), Error> {
        let name = &config.name;
        let failed = |source| Error::Link { action: "change", name: name.clone(), source };
        let other_port = config.listen_port.is_some_and(|port| port != self.sockets.port());
        let sockets = if other_port {
            Arc::new(bind(config, self.shared.layer.clone()).await?)
        } else {
            Arc::clone(&self.sockets)
        };
        sockets.set_fwmark(config.fwmark).map_err(failed)?;
        let old = self.shared.table.load_full();
        let table = Table::build(config, Some((&old, &self.config))).map_err(|error| failed(error.into()))?;
        self.shared.tun.set_mtu(config.mtu).map_err(failed)?;
        self.shared.table.store(Arc::new(table));
        if other_port || config.mtu != self.running_mtu {
            self.tasks.shutdown().await;
            self.sockets = sockets;
            self.tasks = run(&self.shared, &self.sockets, self.paths.as_ref(), config.mtu);
            self.running_mtu = config.mtu;
            self.peer_tuns.restart(&self.shared, &self.sockets).await;
        }
        if config.fwmark != self.config.fwmark {
            self.trigger_handshake();
        }
        self.config = config.clone();
        Ok(())
    }

    /// Brings the TUN devices of single peers to what is wanted.
    pub(super) async fn change_peer_tuns(&mut self, wanted: &[PeerTunConfig]) -> io::Result<()> {
        self.peer_tuns.change(wanted, &self.shared, &self.sockets).await
    }

    /// Sends an inner packet to a peer, whichever its destination is. Without a session it waits for the handshake, and without
    /// room in the socket it is lost, as on any network.
    pub(super) fn send_to_peer(&self, key: &[u8; 32], packet: &[u8]) {
        let table = self.shared.table.load();
        let Some(peer) = table.peer(key) else { return };
        let mut datagram = vec![0; packet.len() + transmit::OVERHEAD + transmit::HANDSHAKE_ROOM];
        if let Ok(Some((len, to))) = peer.encapsulate(Instant::now(), packet, &mut datagram)
            && let Err(error) = self.sockets.try_send(&datagram[..len], to)
        {
            tracing::trace!(%to, %error, "cannot send");
        }
    }

    fn trigger_handshake(&self) {
        self.shared.table.load().peers().for_each(|peer| peer.trigger_handshake());
    }

    /// Sends the packets of a peer to this address from now on, wherever its own come from.
    pub(super) fn pin_endpoint(&self, peer: &[u8; 32], endpoint: SocketAddr) {
        if let Some(peer) = self.shared.table.load().peer(peer) {
            peer.pin_endpoint(endpoint);
        }
    }

    /// Sends a datagram that is not one of WireGuard, if the socket has room.
    pub(super) fn try_send(&self, datagram: &[u8], to: SocketAddr) -> io::Result<()> {
        self.sockets.try_send(datagram, to)
    }

    /// Reports whether the TUN device is gone, because an outsider removed it.
    pub(super) fn is_lost(&mut self) -> bool {
        self.tasks.try_join_next().is_some()
    }

    pub(super) fn status(&self) -> DeviceStatus {
        let table = self.shared.table.load();
        DeviceStatus {
            engine: Engine::Userspace,
            public_key: table.identity.public.to_bytes(),
            listen_port: self.sockets.port(),
            peers: table.peers().map(|peer| peer.status()).collect(),
        }
    }

    pub(super) async fn close(mut self, name: &str) -> Result<(), Error> {
        self.peer_tuns.close(&self.shared).await;
        self.tasks.shutdown().await;
        let failed = |source| Error::Link { action: "close", name: name.to_owned(), source };
        // Closing the descriptor takes the link down, which waits for the kernel's grace periods.
        tokio::task::spawn_blocking(move || drop(self)).await.map_err(|error| failed(error.into()))?;
        let deadline = Instant::now() + REMOVAL_DEADLINE;
        while link_exists(name) {
            if Instant::now() >= deadline {
                return Err(Error::StillThere(name.to_owned()));
            }
            tokio::time::sleep(REMOVAL_POLL).await;
        }
        Ok(())
    }
}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Device").field("config", &self.config).finish_non_exhaustive()
    }
}

fn run(shared: &Arc<Shared>, sockets: &Arc<Sockets>, paths: Option<&Paths>, mtu: u16) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    if let Some(paths) = paths {
        let datagrams = Arc::clone(&paths.datagrams);
        tasks.spawn(receive::relayed(Arc::clone(shared), Arc::clone(sockets), datagrams));
    }
    tasks.spawn(transmit::packets(Arc::clone(shared), Arc::clone(sockets), mtu, None));
    tasks.spawn(transmit::timers(Arc::clone(shared), Arc::clone(sockets)));
    tasks.spawn(cover::packets(Arc::clone(shared), Arc::clone(sockets)));
    for family in sockets.families() {
        tasks.spawn(receive::datagrams(Arc::clone(shared), Arc::clone(sockets), family));
    }
    tasks
}

async fn bind(config: &DeviceConfig, layer: Option<Arc<dyn PathLayer>>) -> Result<Sockets, Error> {
    Sockets::bind(config.listen_port, config.fwmark, layer).await.map_err(|source| Error::Socket {
        name: config.name.clone(),
        port: config.listen_port.unwrap_or(0),
        source,
    })
}

fn link_exists(name: &str) -> bool {
    nix::net::if_::if_nametoindex(name).is_ok()
}

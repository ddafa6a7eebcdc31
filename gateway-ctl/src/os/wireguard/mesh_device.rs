//! Device of a member of a mesh: many peers, each reached directly or by a relay. The path layer chooses.
//!
//! It is always of the userspace engine: the messages of the path layer share the socket with those of WireGuard.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use gateway_model::settings::groups::CoverSettings;
use tokio::sync::{Mutex, mpsc};

use super::device::{DeviceConfig, DeviceStatus};
use super::error::Error;
use super::userspace::Device;
use super::userspace::path_layer::{PathLayer, Paths};
use super::userspace::peer_tun::PeerTunConfig;
use super::{check, with_settled_claims};

/// Datagrams of relays that wait for the device. More are dropped, as on any network.
const QUEUE: usize = 512;

/// Device of a member of a mesh.
#[derive(Debug)]
pub struct MeshDevice {
    name: String,
    device: Device,
    relayed: mpsc::Sender<(SocketAddr, Vec<u8>)>,
}

impl MeshDevice {
    /// Creates the device. Another module manages its address and the up flag of its link.
    pub async fn create(config: &DeviceConfig, layer: Arc<dyn PathLayer>) -> Result<MeshDevice, Error> {
        check(config)?;
        let (relayed, datagrams) = mpsc::channel(QUEUE);
        let paths = Paths { layer, datagrams: Arc::new(Mutex::new(datagrams)) };
        let config = with_settled_claims(config);
        let device = Device::create(&config, CoverSettings::default(), Some(paths)).await?;
        Ok(MeshDevice { name: config.name, device, relayed })
    }

    /// Changes the device in place. Sessions of unchanged peers stay.
    pub async fn change(&mut self, config: &DeviceConfig) -> Result<(), Error> {
        check(config)?;
        self.device.change(&with_settled_claims(config)).await
    }

    /// Brings the TUN devices of single peers to what is wanted. They end with this device.
    pub async fn change_peer_tuns(&mut self, wanted: &[PeerTunConfig]) -> Result<(), Error> {
        let failed =
            |source| Error::Link { action: "create a device of a peer of", name: self.name.clone(), source };
        self.device.change_peer_tuns(wanted).await.map_err(failed)
    }

    /// Sends an inner packet to a peer.
    pub fn send_to_peer(&self, peer: &[u8; 32], packet: &[u8]) {
        self.device.send_to_peer(peer, packet);
    }

    /// Returns the entrance for datagrams that relays deliver, each with the address of its peer.
    pub fn relayed(&self) -> mpsc::Sender<(SocketAddr, Vec<u8>)> {
        self.relayed.clone()
    }

    /// Sends the packets of a peer to this address from now on.
    pub fn use_path(&self, peer: &[u8; 32], endpoint: SocketAddr) {
        self.device.pin_endpoint(peer, endpoint);
    }

    /// Sends a datagram from the socket of the device, if that has room.
    pub fn try_send(&self, datagram: &[u8], to: SocketAddr) -> io::Result<()> {
        self.device.try_send(datagram, to)
    }

    /// Reports whether the link was removed by others.
    pub fn is_lost(&mut self) -> bool {
        self.device.is_lost()
    }

    pub fn status(&self) -> DeviceStatus {
        self.device.status()
    }

    /// Removes the device, and waits until its link is gone.
    pub async fn close(self) -> Result<(), Error> {
        self.device.close(&self.name).await
    }
}

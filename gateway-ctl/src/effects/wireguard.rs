//! WireGuard devices: made, changed in place, watched and removed.
//!
//! Two engines stand behind one facade: the kernel's own WireGuard where the kernel has it, else boringtun on a
//! TUN device inside this process. A userspace device vanishes with the process, which is intended: no tunnel is
//! better than a tunnel that nobody tends. Addresses, routes and the link's up flag are other modules' work, as
//! is resolving endpoint names.

mod allowed_ips;
mod kernel;
mod keys;
mod userspace;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::SocketAddr;
use std::time::SystemTime;

use gateway_model::settings::groups::CoverSettings;
use ipnet::IpNet;

pub use gateway_model::wgconf::Key;
pub use keys::{KeyPair, generate_keypair, generate_preshared_key, public_key};

/// Longest interface name of Linux.
const MAX_NAME: usize = 15;

/// What carries the packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    Kernel,
    Userspace,
}

/// A device as it shall be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceConfig {
    /// Interface name, at most 15 bytes.
    pub name: String,
    pub private_key: Key,
    /// `None`: any free port, kept for the life of the device.
    pub listen_port: Option<u16>,
    /// Mark of the outer packets; 0 for none.
    pub fwmark: u32,
    pub mtu: u16,
    pub peers: Vec<PeerConfig>,
}

/// A peer as it shall be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerConfig {
    pub public_key: [u8; 32],
    pub preshared_key: Option<Key>,
    /// Where to reach the peer until it is heard from elsewhere; `None` leaves what is known.
    pub endpoint: Option<SocketAddr>,
    /// A network that several peers claim belongs to the last of them.
    pub allowed_ips: Vec<IpNet>,
    pub persistent_keepalive: Option<u16>,
}

/// A device as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceStatus {
    pub engine: Engine,
    pub public_key: [u8; 32],
    /// 0 while the kernel has not chosen one (it does when the link goes up).
    pub listen_port: u16,
    /// In the order of their public keys.
    pub peers: Vec<PeerStatus>,
}

/// A peer as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerStatus {
    pub public_key: [u8; 32],
    /// Where the peer was heard from last, else where it is configured to be.
    pub endpoint: Option<SocketAddr>,
    pub last_handshake: Option<SystemTime>,
    /// Outer bytes received, authenticated packets only.
    pub rx_bytes: u64,
    /// Outer bytes sent.
    pub tx_bytes: u64,
}

/// The cover traffic of a userspace device. Counts grow while cover is on; bytes are those of the datagrams.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CoverStatus {
    /// There is a peer that cover can go to.
    pub session: bool,
    /// Sent for somebody.
    pub normal_packets: u64,
    pub normal_bytes: u64,
    /// Sent as cover.
    pub padding_packets: u64,
    pub padding_bytes: u64,
    /// Packets of cover that the budget held back.
    pub throttled: u64,
}

/// Packets of a userspace device that went nowhere, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Drops {
    /// Not WireGuard, or not IP.
    pub malformed: u64,
    /// WireGuard, but forged, replayed, stale or under load without a cookie.
    pub rejected: u64,
    /// No peer has the inner destination, or none with an endpoint; no peer has the claimed key or session.
    pub no_peer: u64,
    /// The inner source address does not belong to the peer that sent it.
    pub wrong_source: u64,
    /// The network refused the outer packet.
    pub send_failed: u64,
    /// The TUN device refused the inner packet (its link is down), or gave one that cannot be split.
    pub device_failed: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{0:?} cannot be the name of an interface")]
    Name(String),
    #[error("{0} exists already and is not one of our WireGuard devices")]
    NameTaken(String),
    #[error("two peers of {0} have the same public key")]
    DuplicatePeer(String),
    #[error("a peer of {0} has the device's own public key")]
    PeerIsSelf(String),
    #[error("this kernel has no WireGuard")]
    NoKernelWireGuard,
    #[error("cannot make the device {name}")]
    Create { name: String, source: io::Error },
    #[error("cannot open UDP port {port} for {name}")]
    Socket { name: String, port: u16, source: io::Error },
    #[error("cannot {action} {name}")]
    Link { action: &'static str, name: String, source: io::Error },
    #[error("cannot open a netlink socket")]
    Netlink { source: io::Error },
    #[error("the link {0} did not go away")]
    StillThere(String),
}

/// All WireGuard devices of this process's network namespace that are ours.
#[derive(Debug)]
pub struct WireGuard {
    inner: Inner,
}

#[derive(Debug)]
enum Inner {
    Kernel(kernel::Kernel),
    Userspace(userspace::Userspace),
}

impl WireGuard {
    /// Asks the kernel once whether it has WireGuard (loading its module if it may) and chooses the engine.
    pub async fn new() -> Self {
        let inner = match kernel::Kernel::probe().await {
            Ok(kernel) => Inner::Kernel(kernel),
            Err(reason) => {
                tracing::info!(%reason, "WireGuard runs in userspace");
                Inner::Userspace(userspace::Userspace::default())
            }
        };
        Self { inner }
    }

    /// Takes the given engine whatever the kernel has.
    pub async fn with_engine(engine: Engine) -> Result<Self, Error> {
        let inner = match engine {
            Engine::Kernel => Inner::Kernel(kernel::Kernel::probe().await?),
            Engine::Userspace => Inner::Userspace(userspace::Userspace::default()),
        };
        Ok(Self { inner })
    }

    pub fn engine(&self) -> Engine {
        match &self.inner {
            Inner::Kernel(_) => Engine::Kernel,
            Inner::Userspace(_) => Engine::Userspace,
        }
    }

    /// Makes the device, or changes it in place without cutting the sessions of peers that stay the same.
    ///
    /// An endpoint is only set where it differs from the one given last time: a peer that roamed stays where
    /// it was heard from.
    pub async fn apply(&self, config: &DeviceConfig) -> Result<(), Error> {
        check(config)?;
        let config = with_settled_claims(config);
        match &self.inner {
            Inner::Kernel(kernel) => kernel.apply(&config).await,
            Inner::Userspace(userspace) => userspace.apply(&config).await,
        }
    }

    /// Removes the device and waits until its link is gone. A device that does not exist is no error.
    pub async fn remove(&self, name: &str) -> Result<(), Error> {
        match &self.inner {
            Inner::Kernel(kernel) => kernel.remove(name).await,
            Inner::Userspace(userspace) => userspace.remove(name).await,
        }
    }

    /// `None` if there is no such device of ours.
    pub async fn status(&self, name: &str) -> Result<Option<DeviceStatus>, Error> {
        match &self.inner {
            Inner::Kernel(kernel) => kernel.status(name).await,
            Inner::Userspace(userspace) => Ok(userspace.status(name).await),
        }
    }

    /// Lets the other ends hear from the device at once, so that they learn by which way it is reached now. A device that
    /// does not exist is no error.
    pub async fn nudge(&self, name: &str) -> Result<(), Error> {
        match &self.inner {
            Inner::Kernel(kernel) => kernel.nudge(name).await,
            Inner::Userspace(userspace) => {
                userspace.nudge(name).await;
                Ok(())
            }
        }
    }

    /// Has the devices of this process, present and to come, send cover traffic as these settings say. The kernel's
    /// WireGuard cannot.
    pub async fn set_cover(&self, settings: &CoverSettings) {
        if let Inner::Userspace(userspace) = &self.inner {
            userspace.set_cover(settings).await;
        }
    }

    /// `None` if there is no such device, or the kernel has it.
    pub async fn cover(&self, name: &str) -> Option<CoverStatus> {
        match &self.inner {
            Inner::Kernel(_) => None,
            Inner::Userspace(userspace) => userspace.cover(name).await,
        }
    }

    /// Counts of dropped packets; `None` if there is no such device, or the kernel has it (see its link's
    /// statistics).
    pub async fn drops(&self, name: &str) -> Option<Drops> {
        match &self.inner {
            Inner::Kernel(_) => None,
            Inner::Userspace(userspace) => userspace.drops(name).await,
        }
    }

    /// Names of our devices, sorted. Kernel devices are recognised by their link alias, so those of an earlier
    /// process are among them.
    pub async fn list(&self) -> Result<Vec<String>, Error> {
        match &self.inner {
            Inner::Kernel(kernel) => kernel.list().await,
            Inner::Userspace(userspace) => Ok(userspace.list().await),
        }
    }
}

fn check(config: &DeviceConfig) -> Result<(), Error> {
    let name = &config.name;
    let fits = (1..=MAX_NAME).contains(&name.len())
        && !matches!(name.as_str(), "." | "..")
        && name.bytes().all(|b| b.is_ascii_graphic() && !matches!(b, b'/' | b':' | b'%'));
    if !fits {
        return Err(Error::Name(name.clone()));
    }
    let own = public_key(&config.private_key);
    let mut seen = BTreeSet::new();
    for peer in &config.peers {
        if peer.public_key == own {
            return Err(Error::PeerIsSelf(name.clone()));
        }
        if !seen.insert(peer.public_key) {
            return Err(Error::DuplicatePeer(name.clone()));
        }
    }
    Ok(())
}

/// The same configuration with every network claimed by one peer only, and without host bits.
fn with_settled_claims(config: &DeviceConfig) -> DeviceConfig {
    let mut owner = BTreeMap::new();
    for (index, peer) in config.peers.iter().enumerate() {
        for net in &peer.allowed_ips {
            owner.insert(net.trunc(), index);
        }
    }
    let mut settled = config.clone();
    for (index, peer) in settled.peers.iter_mut().enumerate() {
        peer.allowed_ips = owner.iter().filter(|(_, o)| **o == index).map(|(net, _)| *net).collect();
    }
    settled
}

#[cfg(test)]
mod tests;

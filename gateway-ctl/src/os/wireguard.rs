//! WireGuard devices: create, change in place, read and remove.
//!
//! One facade covers two engines: the kernel's own WireGuard where the kernel has it, else boringtun on a TUN device
//! in this process. A userspace device intentionally vanishes with the process: a missing tunnel is better than an
//! unsupervised one. Other modules manage addresses, routes and the link's up flag, and resolve endpoint names.

mod allowed_ips;
mod device;
mod error;
mod kernel;
mod keys;
mod mesh_device;
mod userspace;

use std::collections::{BTreeMap, BTreeSet};

use gateway_model::settings::groups::CoverSettings;

pub use device::{CoverStatus, DeviceConfig, DeviceStatus, Drops, Engine, PeerConfig, PeerStatus};
pub use error::Error;
pub use gateway_model::wgconf::Key;
pub use keys::{KeyPair, generate_keypair, generate_preshared_key, public_key};
pub use mesh_device::MeshDevice;
pub use userspace::path_layer::{PathLayer, relayed_address};
pub use userspace::peer_tun::PeerTunConfig;

/// Longest interface name of Linux.
const MAX_NAME: usize = 15;

/// All WireGuard devices of the gateway in the network namespace of this process.
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
    /// Chooses the engine. It checks once whether the kernel has WireGuard, and loads the module if permitted.
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

    /// Uses the given engine, whatever the kernel has.
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

    /// Creates the device, or changes it in place without ending the sessions of unchanged peers.
    ///
    /// An endpoint is set only if it differs from the one in the previous call. A peer that roamed keeps its observed
    /// endpoint.
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

    /// Returns the status, or `None` if the gateway has no such device.
    pub async fn status(&self, name: &str) -> Result<Option<DeviceStatus>, Error> {
        match &self.inner {
            Inner::Kernel(kernel) => kernel.status(name).await,
            Inner::Userspace(userspace) => Ok(userspace.status(name).await),
        }
    }

    /// Sends from the device at once, so that the remote ends learn the egress through which they reach it now. A
    /// device that does not exist is no error.
    pub async fn trigger_handshake(&self, name: &str) -> Result<(), Error> {
        match &self.inner {
            Inner::Kernel(kernel) => kernel.trigger_handshake(name).await,
            Inner::Userspace(userspace) => {
                userspace.trigger_handshake(name).await;
                Ok(())
            }
        }
    }

    /// Applies the cover traffic settings to the present and future devices of this process. The kernel's WireGuard
    /// does not support cover traffic.
    pub async fn set_cover(&self, settings: &CoverSettings) {
        if let Inner::Userspace(userspace) = &self.inner {
            userspace.set_cover(settings).await;
        }
    }

    /// Returns the cover traffic status, or `None` for an unknown device or a kernel device.
    pub async fn cover(&self, name: &str) -> Option<CoverStatus> {
        match &self.inner {
            Inner::Kernel(_) => None,
            Inner::Userspace(userspace) => userspace.cover(name).await,
        }
    }

    /// Returns the counters of dropped packets, or `None` for an unknown device or a kernel device (see the link
    /// statistics).
    pub async fn drops(&self, name: &str) -> Option<Drops> {
        match &self.inner {
            Inner::Kernel(_) => None,
            Inner::Userspace(userspace) => userspace.drops(name).await,
        }
    }

    /// Returns the sorted names of the gateway's devices. The link alias identifies kernel devices, including those
    /// of an earlier process.
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

/// Returns the same configuration with each network assigned to one peer only, and without host bits.
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

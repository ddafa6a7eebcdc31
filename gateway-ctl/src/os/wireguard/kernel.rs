//! Kernel engine: links over rtnetlink, keys and peers over WireGuard's generic netlink family.
//!
//! The engine reads the kernel's state and sends only the differences. An unchanged peer is not part of the message
//! and keeps its session. The gateway's links carry an alias, by which a later process recognises them.

mod messages;

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::TryStreamExt;
use genetlink::{GenetlinkError, GenetlinkHandle};
use netlink_packet_core::{NLM_F_ACK, NLM_F_DUMP, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload};
use netlink_packet_generic::GenlMessage;
use netlink_packet_wireguard::{WireguardAttribute, WireguardCmd, WireguardMessage};
use rtnetlink::packet_route::link::{InfoKind, LinkAttribute, LinkInfo, LinkMessage};
use rtnetlink::{LinkUnspec, LinkWireguard};
use tokio::sync::Mutex;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use self::messages::{Device, Endpoints};
use super::device::{DeviceConfig, DeviceStatus, Engine};
use super::error::Error;

/// Link alias that marks the gateway's links. It is readable in `ip link`.
const ALIAS: &str = "gateway WireGuard tunnel";
const REMOVAL_DEADLINE: Duration = Duration::from_secs(5);
const REMOVAL_POLL: Duration = Duration::from_millis(5);

pub(super) struct Kernel {
    links: rtnetlink::Handle,
    wireguard: GenetlinkHandle,
    connections: [AbortHandle; 2],
    /// Endpoints by device. The lock is held during a kernel change, so that changes do not interleave.
    applied: Mutex<BTreeMap<String, Endpoints>>,
}

/// Relevant properties of a link.
struct Link {
    index: u32,
    mtu: Option<u32>,
    is_wireguard: bool,
    alias: Option<String>,
}

impl Kernel {
    /// Opens the netlink sockets. The request for the family makes the kernel load its module if possible.
    pub(super) async fn probe() -> Result<Self, Error> {
        let netlink = |source| Error::Netlink { source };
        let (connection, wireguard, _) = genetlink::new_connection().map_err(netlink)?;
        let generic = tokio::spawn(connection).abort_handle();
        let (connection, links, _) = rtnetlink::new_connection().map_err(netlink)?;
        let route = tokio::spawn(connection).abort_handle();
        let kernel =
            Self { links, wireguard, connections: [generic, route], applied: Mutex::new(BTreeMap::new()) };
        match kernel.wireguard.resolve_family::<WireguardMessage>().await {
            Ok(_) => Ok(kernel),
            Err(_) => Err(Error::NoKernelWireGuard),
        }
    }

    pub(super) async fn apply(&self, config: &DeviceConfig) -> Result<(), Error> {
        let mut applied = self.applied.lock().await;
        let name = &config.name;
        let failed = |action| move |source| Error::Link { action, name: name.clone(), source };
        let link = self.link(name).await.map_err(failed("look up"))?;
        let have = match &link {
            Some(link) => {
                let have =
                    if link.is_wireguard { self.device(name).await.map_err(failed("read"))? } else { None };
                // A process that died before it set the alias left a link without peers.
                let half_made = link.alias.is_none() && have.as_ref().is_some_and(|d| d.peers.is_empty());
                if !(link.is_ours() || half_made) {
                    return Err(Error::NameTaken(name.clone()));
                }
                have.unwrap_or_default()
            }
            None => {
                let create = LinkWireguard::new(name).mtu(config.mtu.into()).build();
                let result = self.links.link().add(create).execute().await.map_err(into_io);
                result.map_err(|source| Error::Create { name: name.clone(), source })?;
                applied.remove(name);
                Device::default()
            }
        };
        let link = match link {
            Some(link) => link,
            None => {
                let vanished = || failed("look up")(io::Error::from_raw_os_error(libc::ENODEV));
                self.link(name).await.map_err(failed("look up"))?.ok_or_else(vanished)?
            }
        };
        // The kernel ignores an alias in the message that creates a link.
        if link.alias.is_none() || link.mtu != Some(config.mtu.into()) {
            let set = LinkUnspec::new_with_index(link.index).alias(ALIAS).mtu(config.mtu.into()).build();
            self.links.link().set(set).execute().await.map_err(into_io).map_err(failed("change"))?;
        }
        for message in messages::changes(config, &have, applied.get(name)) {
            self.set(message).await.map_err(failed("configure"))?;
        }
        let endpoints = config.peers.iter().map(|peer| (peer.public_key, peer.endpoint)).collect();
        applied.insert(name.clone(), endpoints);
        Ok(())
    }

    pub(super) async fn remove(&self, name: &str) -> Result<(), Error> {
        let mut applied = self.applied.lock().await;
        let failed = |action| move |source| Error::Link { action, name: name.to_owned(), source };
        let Some(link) = self.link(name).await.map_err(failed("look up"))? else {
            applied.remove(name);
            return Ok(());
        };
        if !link.is_ours() {
            return Err(Error::NameTaken(name.to_owned()));
        }
        self.links.link().del(link.index).execute().await.map_err(into_io).map_err(failed("remove"))?;
        applied.remove(name);
        let deadline = Instant::now() + REMOVAL_DEADLINE;
        while self.link(name).await.map_err(failed("look up"))?.is_some() {
            if Instant::now() >= deadline {
                return Err(Error::StillThere(name.to_owned()));
            }
            tokio::time::sleep(REMOVAL_POLL).await;
        }
        Ok(())
    }

    pub(super) async fn status(&self, name: &str) -> Result<Option<DeviceStatus>, Error> {
        let failed = |action| move |source| Error::Link { action, name: name.to_owned(), source };
        let link = self.link(name).await.map_err(failed("look up"))?;
        if !link.is_some_and(|link| link.is_ours()) {
            return Ok(None);
        }
        let device = self.device(name).await.map_err(failed("read"))?;
        Ok(device.map(|device| DeviceStatus {
            engine: Engine::Kernel,
            public_key: device.public_key,
            listen_port: device.listen_port,
            peers: device.peers.iter().map(|(key, peer)| peer.status(*key)).collect(),
        }))
    }

    pub(super) async fn trigger_handshake(&self, name: &str) -> Result<(), Error> {
        let failed = |source| Error::Link { action: "nudge", name: name.to_owned(), source };
        let _applied = self.applied.lock().await;
        if !self.link(name).await.map_err(failed)?.is_some_and(|link| link.is_ours()) {
            return Ok(());
        }
        let Some(have) = self.device(name).await.map_err(failed)? else { return Ok(()) };
        for message in messages::trigger_handshake(name, &have) {
            self.set(message).await.map_err(failed)?;
        }
        Ok(())
    }

    pub(super) async fn list(&self) -> Result<Vec<String>, Error> {
        let failed = |error| Error::Link { action: "list", name: "links".to_owned(), source: into_io(error) };
        let mut links = self.links.link().get().execute();
        let mut names = Vec::new();
        while let Some(message) = links.try_next().await.map_err(failed)? {
            if Link::from(&message).is_ours()
                && let Some(name) = name_of(&message)
            {
                names.push(name.to_owned());
            }
        }
        names.sort();
        Ok(names)
    }

    async fn link(&self, name: &str) -> io::Result<Option<Link>> {
        let mut links = self.links.link().get().match_name(name.to_owned()).execute();
        match links.try_next().await.map_err(into_io) {
            Ok(message) => Ok(message.as_ref().map(Link::from)),
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the kernel's device with this name, or `None` if it is gone.
    async fn device(&self, name: &str) -> io::Result<Option<Device>> {
        let attributes = vec![WireguardAttribute::IfName(name.to_owned())];
        let message = WireguardMessage { cmd: WireguardCmd::GetDevice, attributes };
        match self.request(message, NLM_F_REQUEST | NLM_F_DUMP).await {
            Ok(parts) => Ok(Some(Device::from_parts(parts))),
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn set(&self, attributes: Vec<WireguardAttribute>) -> io::Result<()> {
        let message = WireguardMessage { cmd: WireguardCmd::SetDevice, attributes };
        self.request(message, NLM_F_REQUEST | NLM_F_ACK).await.map(drop)
    }

    async fn request(&self, message: WireguardMessage, flags: u16) -> io::Result<Vec<WireguardMessage>> {
        let mut message = NetlinkMessage::from(GenlMessage::from_payload(message));
        message.header.flags = flags;
        let mut handle = self.wireguard.clone();
        let mut replies = handle.request(message).await.map_err(generic_into_io)?;
        let mut parts = Vec::new();
        while let Some(reply) = replies.next().await {
            let reply = reply.map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
            match reply.payload {
                NetlinkPayload::InnerMessage(message) => parts.push(message.payload),
                NetlinkPayload::Error(error) if error.code.is_some() => return Err(error.to_io()),
                _ => {}
            }
        }
        Ok(parts)
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        for connection in &self.connections {
            connection.abort();
        }
    }
}

impl std::fmt::Debug for Kernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kernel").finish_non_exhaustive()
    }
}

impl Link {
    fn is_ours(&self) -> bool {
        self.is_wireguard && self.alias.as_deref() == Some(ALIAS)
    }
}

impl From<&LinkMessage> for Link {
    fn from(message: &LinkMessage) -> Self {
        let mut link = Self { index: message.header.index, mtu: None, is_wireguard: false, alias: None };
        for attribute in &message.attributes {
            match attribute {
                LinkAttribute::Mtu(mtu) => link.mtu = Some(*mtu),
                LinkAttribute::IfAlias(alias) => link.alias = Some(alias.clone()),
                LinkAttribute::LinkInfo(infos) => {
                    link.is_wireguard = infos.contains(&LinkInfo::Kind(InfoKind::Wireguard));
                }
                _ => {}
            }
        }
        link
    }
}

fn name_of(message: &LinkMessage) -> Option<&str> {
    message.attributes.iter().find_map(|attribute| match attribute {
        LinkAttribute::IfName(name) => Some(name.as_str()),
        _ => None,
    })
}

fn into_io(error: rtnetlink::Error) -> io::Error {
    match error {
        rtnetlink::Error::NetlinkError(message) => message.to_io(),
        other => io::Error::other(other),
    }
}

/// Returns the kernel's own errors only. Other errors may quote a message, and messages hold keys.
fn generic_into_io(error: GenetlinkError) -> io::Error {
    match error {
        GenetlinkError::NetlinkError(error) => error,
        _ => io::Error::other("the generic netlink request failed"),
    }
}

#[cfg(test)]
mod tests;

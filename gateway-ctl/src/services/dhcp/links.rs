//! Sockets on the served interfaces.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::task::{Context as TaskContext, Poll};

use gateway_core::state_machines::dhcp::{Probe, Reply, Scope, ServerConfig};
use tokio::io::unix::AsyncFd;

use super::search::{SEARCH_XID, search_mac};
use crate::os::address_probe::{AddressUser, ArpSocket, EchoSocket};
use crate::os::dhcp_socket::DhcpSocket;
use crate::os::readable;

/// Messages that are read at a time from each kind of socket. Their leases become durable together.
pub(super) const BATCH: usize = 512;

/// Served interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LinkKey {
    pub interface: String,
    pub index: u32,
    pub mac: [u8; 6],
}

pub(super) struct Link {
    pub key: LinkKey,
    pub socket: DhcpSocket,
    pub arp: ArpSocket,
}

/// All sockets. They are opened again when the interfaces change.
pub(super) struct Links {
    pub links: Vec<Link>,
    /// For networks behind a relay.
    echo: Option<EchoSocket>,
    watched: Vec<AsyncFd<OwnedFd>>,
}

/// Interfaces to serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Served {
    /// Each once.
    pub links: Vec<LinkKey>,
    /// Some networks are behind a relay.
    is_relayed: bool,
}

impl Served {
    pub(super) fn of(config: &ServerConfig) -> Served {
        let key = |scope: &Scope| LinkKey {
            interface: scope.interface.clone(),
            index: scope.index,
            mac: scope.mac,
        };
        let mut links: Vec<LinkKey> = config.scopes.iter().map(key).collect();
        links.sort_by_key(|key| key.index);
        links.dedup();
        Served { links, is_relayed: config.scopes.iter().any(|scope| !scope.on_link) }
    }
}

impl Links {
    pub(super) fn open(served: &Served) -> io::Result<Links> {
        let link = |key: &LinkKey| {
            let named =
                |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", key.interface));
            Ok(Link {
                socket: DhcpSocket::open(&key.interface, key.index).map_err(|error| match error.kind() {
                    io::ErrorKind::AddrInUse => io::Error::new(
                        error.kind(),
                        format!("another program on this host serves DHCP on {}", key.interface),
                    ),
                    _ => named(error),
                })?,
                arp: ArpSocket::open(key.index, key.mac).map_err(named)?,
                key: key.clone(),
            })
        };
        let links: Vec<Link> = served.links.iter().map(link).collect::<io::Result<_>>()?;
        let echo = served.is_relayed.then(EchoSocket::open).transpose()?;
        let of_links = links.iter().flat_map(|link| [link.socket.descriptor(), link.arp.descriptor()]);
        let watched = of_links
            .chain(echo.iter().map(EchoSocket::descriptor))
            .map(readable::watch)
            .collect::<io::Result<_>>()?;
        Ok(Links { links, echo, watched })
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &LinkKey> {
        self.links.iter().map(|link| &link.key)
    }

    /// Waits until a socket is readable. The caller reads all of them.
    pub(super) async fn readable(&self) -> io::Result<()> {
        std::future::poll_fn(|cx| self.poll_readable(cx)).await
    }

    fn poll_readable(&self, cx: &mut TaskContext<'_>) -> Poll<io::Result<()>> {
        let mut is_readable = false;
        for watched in &self.watched {
            match watched.poll_read_ready(cx) {
                Poll::Ready(Ok(mut ready)) => {
                    ready.clear_ready();
                    is_readable = true;
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {}
            }
        }
        if is_readable { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    /// Sends a reply. A failure concerns one client.
    pub(super) fn send(&self, reply: &Reply) {
        let link = self.links.iter().find(|link| link.key.index == reply.interface);
        if let Some(link) = link
            && let Err(error) = link.socket.send(reply)
        {
            tracing::debug!(%error, interface = link.key.interface, "failed to send a DHCP reply");
        }
    }

    pub(super) fn probe(&self, probe: &Probe) {
        let link = self.links.iter().find(|link| link.key.index == probe.interface);
        let sent = match (probe.on_link, link) {
            (true, Some(link)) => link.arp.probe(probe.address),
            (true, None) => Ok(()),
            (false, _) => self.echo.as_ref().map_or(Ok(()), |echo| echo.probe(probe.address)),
        };
        if let Err(error) = sent {
            tracing::debug!(%error, address = %probe.address, "failed to probe an address");
        }
    }

    /// Asks for other servers on all interfaces.
    pub(super) fn search(&self) {
        for link in &self.links {
            if let Err(error) = link.socket.frames.send_discover(SEARCH_XID, search_mac(link.key.mac)) {
                tracing::debug!(%error, interface = link.key.interface, "failed to search for DHCP servers");
            }
        }
    }

    /// Reads the users of addresses. Returns whether there may be more.
    pub(super) fn address_users(&self, mut each: impl FnMut(Ipv4Addr, Option<[u8; 6]>)) -> io::Result<bool> {
        let mut left = BATCH;
        let mut take = |user: AddressUser| {
            each(user.address, user.mac);
            left -= 1;
            left > 0
        };
        for link in &self.links {
            while let Some(user) = link.arp.next_user()? {
                if !take(user) {
                    return Ok(true);
                }
            }
        }
        if let Some(echo) = &self.echo {
            while let Some(user) = echo.next_user()? {
                if !take(user) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}

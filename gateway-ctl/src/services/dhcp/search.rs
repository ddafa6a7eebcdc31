//! Search for other DHCP servers on an interface.

use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;

use gateway_core::facts::Facts;
use gateway_core::state_machines::dhcp::{Datagram, ForeignServer, SERVER_PORT, ServerReply};
use gateway_model::MacAddr;
use jiff::Timestamp;
use tokio::time::{Instant, timeout_at};

use crate::os::dhcp_socket::FrameSocket;
use crate::os::readable;

/// Longest wait for an offer. A server may probe the address before it, for three seconds.
const LONGEST: Duration = Duration::from_secs(4);
/// Wait for further offers after the first.
const AFTER_FIRST: Duration = Duration::from_millis(300);

/// Identifies the DISCOVER of a search.
pub(super) const SEARCH_XID: u32 = 0x4757_0067;

/// Returns the MAC address that a search uses: none of this host, and always the same, so that other servers keep one
/// address for it.
pub(super) fn search_mac(mut mac: [u8; 6]) -> [u8; 6] {
    mac[0] ^= 2;
    mac
}

/// Asks on an interface for servers, and returns those that answer. Used before the own server is enabled there.
pub async fn search(facts: &Facts, interface: &str, now: Timestamp) -> io::Result<Vec<ForeignServer>> {
    let link = facts.links.get(interface).and_then(|link| Some((link.index, link.mac?)));
    let Some((index, mac)) = link else { return Ok(Vec::new()) };
    let frames = FrameSocket::open(index)?;
    let watched = readable::watch(frames.descriptor())?;
    frames.send_discover(SEARCH_XID, search_mac(mac))?;
    let mut deadline = Instant::now() + LONGEST;
    let mut found: Vec<ForeignServer> = Vec::new();
    let mut buffer = Vec::new();
    while let Ok(ready) = timeout_at(deadline, watched.readable()).await {
        ready?.clear_ready();
        while let Some(from) = frames.next(&mut buffer)? {
            let Some(server) = foreign_server(&buffer, from, facts, interface, now) else { continue };
            if !found.iter().any(|known| known.address == server.address) {
                found.push(server);
                deadline = deadline.min(Instant::now() + AFTER_FIRST);
            }
        }
    }
    Ok(found)
}

/// Returns the server that sent a packet, unless it is this host.
pub(super) fn foreign_server(
    packet: &[u8],
    from: [u8; 6],
    facts: &Facts,
    interface: &str,
    now: Timestamp,
) -> Option<ForeignServer> {
    let datagram = Datagram::parse(packet).filter(|datagram| datagram.source_port == SERVER_PORT)?;
    let reply = ServerReply::parse(datagram.payload)?;
    let is_own_mac = facts.links.values().any(|link| link.mac == Some(from));
    let foreign = !is_own_mac && !is_own(facts, reply.server);
    foreign.then(|| server(interface, reply.server, Some(MacAddr(from)), reply.router, now))
}

/// Reports whether an address is one of this host.
pub(super) fn is_own(facts: &Facts, address: Ipv4Addr) -> bool {
    facts.addresses.values().flatten().any(|net| net.addr() == address)
}

/// Returns a server that was observed now.
pub(super) fn server(
    interface: &str,
    address: Ipv4Addr,
    mac: Option<MacAddr>,
    router: Option<Ipv4Addr>,
    now: Timestamp,
) -> ForeignServer {
    ForeignServer { interface: interface.to_owned(), address, mac, router, first_seen: now, last_seen: now }
}

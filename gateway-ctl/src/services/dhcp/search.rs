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
    // Each of the three is written by the sender. What has one of them only claims to be this host.
    let is_own_mac = facts.links.values().any(|link| link.mac == Some(from));
    let is_this_host = is_own_mac && is_own(facts, datagram.source) && is_own(facts, reply.server);
    (!is_this_host).then(|| server(interface, reply.server, Some(MacAddr(from)), reply.router, now))
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

#[cfg(test)]
mod tests {
    use gateway_core::facts::Link;
    use gateway_core::state_machines::dhcp::{CLIENT_PORT, datagram};

    use super::*;

    const OWN_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
    const OWN: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
    const FOREIGN: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 66);

    /// An offer of a server with this identifier.
    fn offer(source: Ipv4Addr, server: Ipv4Addr) -> Vec<u8> {
        let mut message = vec![0; 236];
        (message[0], message[1], message[2]) = (2, 1, 6);
        message.extend([0x63, 0x82, 0x53, 0x63, 53, 1, 2, 54, 4]);
        message.extend(server.octets());
        message.push(255);
        datagram(&Datagram {
            source,
            destination: Ipv4Addr::BROADCAST,
            source_port: SERVER_PORT,
            destination_port: CLIENT_PORT,
            payload: &message,
        })
    }

    #[test]
    fn server_is_this_host_only_if_nothing_in_its_message_is_foreign() {
        let mut facts = Facts::default();
        facts.links.insert("lan0".to_owned(), Link { mac: Some(OWN_MAC), ..Link::default() });
        facts.addresses.insert("lan0".to_owned(), ["192.0.2.1/24".parse().unwrap()].into());
        let is_foreign = |mac, source, server| {
            let packet = offer(source, server);
            foreign_server(&packet, mac, &facts, "lan0", Timestamp::UNIX_EPOCH).is_some()
        };
        for mac in [OWN_MAC, [2, 0, 0, 0, 0, 66]] {
            for source in [OWN, FOREIGN] {
                for server in [OWN, FOREIGN] {
                    let is_own = (mac, source, server) == (OWN_MAC, OWN, OWN);
                    assert_eq!(is_foreign(mac, source, server), !is_own, "{mac:?} {source} {server}");
                }
            }
        }
    }
}

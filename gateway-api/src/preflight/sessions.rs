//! TCP sessions with this host that the gateway would cut: those that come in by an interface that is not of the LAN.

use std::collections::BTreeSet;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use ipnet::IpNet;

/// States of /proc/net/tcp.
const ESTABLISHED: u8 = 0x01;
const LISTEN: u8 = 0x0a;
/// Most sessions that are named.
const MAX_NAMED: usize = 5;

/// A TCP session that a client has opened with this host.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Session {
    pub port: u16,
    pub client: IpAddr,
}

/// Returns the sessions of this host that come in from elsewhere than the LAN. `lan` are the networks of the LAN
/// interfaces, `own` the addresses of this host.
pub(super) fn from_outside(lan: &[IpNet], own: &BTreeSet<IpAddr>) -> Vec<Session> {
    let read = |name: &str| fs::read_to_string(name).unwrap_or_default();
    let sockets = [read("/proc/net/tcp"), read("/proc/net/tcp6")];
    outside(&incoming(sockets.iter().flat_map(|text| text.lines())), lan, own)
}

fn outside(sessions: &BTreeSet<Session>, lan: &[IpNet], own: &BTreeSet<IpAddr>) -> Vec<Session> {
    let is_inside = |client: &IpAddr| {
        client.is_loopback() || own.contains(client) || lan.iter().any(|net| net.contains(client))
    };
    sessions.iter().filter(|session| !is_inside(&session.client)).cloned().collect()
}

/// Names sessions in a sentence.
pub fn names(sessions: &[Session]) -> String {
    let named = sessions.iter().take(MAX_NAMED);
    let mut text = named
        .map(|Session { port, client }| format!("{client} to port {port}"))
        .collect::<Vec<_>>()
        .join(", ");
    if sessions.len() > MAX_NAMED {
        text.push_str(&format!(" and {} more", sessions.len() - MAX_NAMED));
    }
    text
}

/// Returns the established sessions with a port at which this host listens.
fn incoming<'a>(lines: impl Iterator<Item = &'a str>) -> BTreeSet<Session> {
    let sockets: Vec<(SocketAddr, SocketAddr, u8)> = lines.filter_map(socket).collect();
    let listening: BTreeSet<u16> =
        sockets.iter().filter(|(.., state)| *state == LISTEN).map(|(local, ..)| local.port()).collect();
    let established = sockets.iter().filter(|(.., state)| *state == ESTABLISHED);
    established
        .filter(|(local, ..)| listening.contains(&local.port()))
        .map(|(local, remote, _)| Session { port: local.port(), client: remote.ip().to_canonical() })
        .collect()
}

/// Parses a line: number, local address, remote address, state.
fn socket(line: &str) -> Option<(SocketAddr, SocketAddr, u8)> {
    let mut fields = line.split_whitespace().skip(1);
    let (local, remote) = (address(fields.next()?)?, address(fields.next()?)?);
    Some((local, remote, u8::from_str_radix(fields.next()?, 16).ok()?))
}

/// Parses an address: words of 32 bits in the order of the host's bytes, then the port.
fn address(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let words: Option<Vec<[u8; 4]>> = (0..address.len())
        .step_by(8)
        .map(|start| {
            let word = u32::from_str_radix(address.get(start..start + 8)?, 16).ok()?;
            Some(word.to_ne_bytes())
        })
        .collect();
    let bytes: Vec<u8> = words?.into_iter().flatten().collect();
    let ip = match bytes.len() {
        4 => IpAddr::from(Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?)),
        16 => IpAddr::from(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?)),
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Table of the kernel for sshd with sessions from 203.0.113.7 and 192.168.1.5, an outgoing one, and one from loopback.
    const TCP: &str = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1
   1: 026433C6:0016 077100CB:D431 01 00000000:00000000 00:00000000 00000000     0        0 2
   2: 0101A8C0:0016 0501A8C0:D432 01 00000000:00000000 00:00000000 00000000     0        0 3
   3: 026433C6:9C40 077100CB:01BB 01 00000000:00000000 00:00000000 00000000     0        0 4
   4: 0100007F:0016 0100007F:D433 01 00000000:00000000 00:00000000 00000000     0        0 5
   5: 026433C6:0016 087100CB:D431 06 00000000:00000000 00:00000000 00000000     0        0 0";
    const TCP6: &str = "\
   0: 00000000000000000000000000000000:0016 00000000000000000000000000000000:0000 0A 0
   1: 0000000000000000FFFF0000026433C6:0016 0000000000000000FFFF0000097100CB:D431 01 0
   2: B80D0120000000000000000001000000:0016 B80D0120000000000000000007000000:D431 01 0";

    #[test]
    fn sessions_from_elsewhere_than_the_lan_are_found() {
        let lan = ["192.168.1.0/24".parse().expect("a network")];
        let own = ["198.51.100.2".parse().expect("an address")].into();
        let found = outside(&incoming(TCP.lines().chain(TCP6.lines())), &lan, &own);
        let clients: Vec<String> = found.iter().map(|session| session.client.to_string()).collect();
        assert_eq!(clients, ["203.0.113.7", "203.0.113.9", "2001:db8::7"]);
        assert!(found.iter().all(|session| session.port == 22));
        assert_eq!(names(&found[..1]), "203.0.113.7 to port 22");
        let many: Vec<Session> = (0..7).map(|_| found[0].clone()).collect();
        assert!(names(&many).ends_with(" and 2 more"));
    }
}

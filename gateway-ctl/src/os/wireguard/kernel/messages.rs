//! Messages to and from the kernel's WireGuard, without I/O.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, SystemTime};

use ipnet::IpNet;
use netlink_packet_wireguard::{
    WireguardAddressFamily as Family, WireguardAllowedIp, WireguardAllowedIpAttr,
    WireguardAttribute as Attribute, WireguardMessage, WireguardPeer,
    WireguardPeerAttribute as PeerAttribute, WireguardPeerFlags as Flags, WireguardTimeSpec,
};

use super::super::Key;
use super::super::device::{DeviceConfig, PeerConfig, PeerStatus};

/// Networks per message: a nested attribute cannot exceed 64 KiB, and a network takes up to 48 bytes.
const NETWORKS_PER_MESSAGE: usize = 500;
/// Peers per message: a peer without networks takes up to 128 bytes.
const PEERS_PER_MESSAGE: usize = 100;
/// "None" on the wire.
const NO_KEY: [u8; 32] = [0; 32];

/// Last configured endpoints, by peer.
pub(super) type Endpoints = BTreeMap<[u8; 32], Option<SocketAddr>>;

/// A device as the kernel reports it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Device {
    pub(super) private_key: Option<Key>,
    pub(super) public_key: [u8; 32],
    pub(super) listen_port: u16,
    pub(super) fwmark: u32,
    pub(super) peers: BTreeMap<[u8; 32], Peer>,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Peer {
    preshared_key: Option<Key>,
    endpoint: Option<SocketAddr>,
    keepalive: u16,
    last_handshake: Option<SystemTime>,
    rx_bytes: u64,
    tx_bytes: u64,
    allowed_ips: BTreeSet<IpNet>,
}

impl Device {
    /// Joins the parts of a dump. A peer with many networks comes in several parts under one key.
    pub(super) fn from_parts(parts: impl IntoIterator<Item = WireguardMessage>) -> Self {
        let mut device = Self::default();
        for attribute in parts.into_iter().flat_map(|part| part.attributes) {
            match attribute {
                Attribute::PrivateKey(key) => device.private_key = some_key(key),
                Attribute::PublicKey(key) => device.public_key = key,
                Attribute::ListenPort(port) => device.listen_port = port,
                Attribute::Fwmark(mark) => device.fwmark = mark,
                Attribute::Peers(peers) => peers.into_iter().for_each(|peer| device.add(peer)),
                _ => {}
            }
        }
        device
    }

    fn add(&mut self, WireguardPeer(attributes): WireguardPeer) {
        let key = attributes.iter().find_map(|attribute| match attribute {
            PeerAttribute::PublicKey(key) => Some(*key),
            _ => None,
        });
        let Some(key) = key else { return };
        let peer = self.peers.entry(key).or_default();
        for attribute in attributes {
            match attribute {
                PeerAttribute::PresharedKey(key) => peer.preshared_key = some_key(key),
                PeerAttribute::Endpoint(endpoint) => peer.endpoint = Some(endpoint),
                PeerAttribute::PersistentKeepalive(seconds) => peer.keepalive = seconds,
                PeerAttribute::LastHandshake(time) => peer.last_handshake = system_time(time),
                PeerAttribute::RxBytes(bytes) => peer.rx_bytes = bytes,
                PeerAttribute::TxBytes(bytes) => peer.tx_bytes = bytes,
                PeerAttribute::AllowedIps(nets) => peer.allowed_ips.extend(nets.iter().filter_map(network)),
                _ => {}
            }
        }
    }
}

impl Peer {
    pub(super) fn status(&self, public_key: [u8; 32]) -> PeerStatus {
        PeerStatus {
            public_key,
            endpoint: self.endpoint,
            last_handshake: self.last_handshake,
            rx_bytes: self.rx_bytes,
            tx_bytes: self.tx_bytes,
        }
    }
}

/// Returns the messages that turn `have` into `config`, in order, or none if there is nothing to change. `applied`
/// holds the endpoints configured before, because the kernel's endpoint may be one to which a peer roamed.
pub(super) fn changes(
    config: &DeviceConfig,
    have: &Device,
    applied: Option<&Endpoints>,
) -> Vec<Vec<Attribute>> {
    let mut device = Vec::new();
    if have.private_key.as_ref() != Some(&config.private_key) {
        device.push(Attribute::PrivateKey(*config.private_key.expose()));
    }
    if let Some(port) = config.listen_port.filter(|port| *port != have.listen_port) {
        device.push(Attribute::ListenPort(port));
    }
    if config.fwmark != have.fwmark {
        device.push(Attribute::Fwmark(config.fwmark));
    }
    let mut peers = Vec::new();
    // Removed peers come first: their networks are free then.
    for key in have.peers.keys() {
        if !config.peers.iter().any(|peer| peer.public_key == *key) {
            peers.push(vec![PeerAttribute::PublicKey(*key), PeerAttribute::Flags(Flags::RemoveMe)]);
        }
    }
    for wanted in &config.peers {
        let before = applied.and_then(|endpoints| endpoints.get(&wanted.public_key));
        peers.extend(peer_changes(wanted, have.peers.get(&wanted.public_key), before));
    }
    into_messages(&config.name, device, peers)
}

/// Returns the messages that make the device send at once. Setting the fwmark clears the source addresses that the
/// kernel has cached. Enabling a keepalive makes it send one.
pub(super) fn trigger_handshake(name: &str, have: &Device) -> Vec<Vec<Attribute>> {
    let with_keepalive = |seconds: fn(u16) -> u16| {
        let peers = have.peers.iter().filter(|(_, peer)| peer.keepalive > 0).map(move |(key, peer)| {
            vec![
                PeerAttribute::PublicKey(*key),
                PeerAttribute::Flags(Flags::UpdateOnly),
                PeerAttribute::PersistentKeepalive(seconds(peer.keepalive)),
            ]
        });
        peers.collect::<Vec<_>>()
    };
    let mut messages = into_messages(name, vec![Attribute::Fwmark(have.fwmark)], with_keepalive(|_| 0));
    messages.extend(into_messages(name, Vec::new(), with_keepalive(|seconds| seconds)));
    messages
}

/// Returns the entries for one peer: several if its networks do not fit one message.
fn peer_changes(
    wanted: &PeerConfig,
    have: Option<&Peer>,
    applied: Option<&Option<SocketAddr>>,
) -> Vec<Vec<PeerAttribute>> {
    let blank = Peer::default();
    let known = have.unwrap_or(&blank);
    let mut attributes = Vec::new();
    if wanted.preshared_key != known.preshared_key {
        let key = wanted.preshared_key.as_ref().map_or(NO_KEY, |key| *key.expose());
        attributes.push(PeerAttribute::PresharedKey(key));
    }
    if let Some(endpoint) = wanted.endpoint {
        let same_as_before = have.is_some() && applied == Some(&wanted.endpoint);
        if !same_as_before && known.endpoint != Some(endpoint) {
            attributes.push(PeerAttribute::Endpoint(endpoint));
        }
    }
    let keepalive = wanted.persistent_keepalive.unwrap_or(0);
    if keepalive != known.keepalive {
        attributes.push(PeerAttribute::PersistentKeepalive(keepalive));
    }
    let nets: BTreeSet<IpNet> = wanted.allowed_ips.iter().map(IpNet::trunc).collect();
    let other_nets = nets != known.allowed_ips;
    if have.is_some() && attributes.is_empty() && !other_nets {
        return Vec::new();
    }
    let mut entry = vec![PeerAttribute::PublicKey(wanted.public_key)];
    if !other_nets {
        entry.append(&mut attributes);
        return vec![entry];
    }
    entry.push(PeerAttribute::Flags(Flags::ReplaceAllowedIps));
    entry.append(&mut attributes);
    let nets: Vec<_> = nets.iter().map(allowed_ip).collect();
    let mut chunks = nets.chunks(NETWORKS_PER_MESSAGE);
    entry.push(PeerAttribute::AllowedIps(chunks.next().unwrap_or_default().to_vec()));
    let rest = chunks.map(|chunk| {
        vec![PeerAttribute::PublicKey(wanted.public_key), PeerAttribute::AllowedIps(chunk.to_vec())]
    });
    std::iter::once(entry).chain(rest).collect()
}

fn into_messages(name: &str, device: Vec<Attribute>, peers: Vec<Vec<PeerAttribute>>) -> Vec<Vec<Attribute>> {
    let networks = |peer: &[PeerAttribute]| {
        peer.iter()
            .map(|a| if let PeerAttribute::AllowedIps(nets) = a { nets.len() } else { 0 })
            .sum::<usize>()
    };
    let mut batches: Vec<Vec<WireguardPeer>> = Vec::new();
    let mut carried = 0;
    for peer in peers {
        let more = networks(&peer);
        match batches.last_mut() {
            Some(batch) if batch.len() < PEERS_PER_MESSAGE && carried + more <= NETWORKS_PER_MESSAGE => {
                carried += more;
                batch.push(WireguardPeer(peer));
            }
            _ => {
                carried = more;
                batches.push(vec![WireguardPeer(peer)]);
            }
        }
    }
    let mut messages: Vec<Vec<Attribute>> = Vec::new();
    if !device.is_empty() {
        messages.push(device);
    }
    messages.extend(batches.into_iter().map(|batch| vec![Attribute::Peers(batch)]));
    for message in &mut messages {
        message.insert(0, Attribute::IfName(name.to_owned()));
    }
    messages
}

fn allowed_ip(net: &IpNet) -> WireguardAllowedIp {
    let family = if net.addr().is_ipv4() { Family::Ipv4 } else { Family::Ipv6 };
    WireguardAllowedIp(vec![
        WireguardAllowedIpAttr::Family(family),
        WireguardAllowedIpAttr::IpAddr(net.network()),
        WireguardAllowedIpAttr::Cidr(net.prefix_len()),
    ])
}

fn network(WireguardAllowedIp(attributes): &WireguardAllowedIp) -> Option<IpNet> {
    let (mut address, mut prefix_len): (Option<IpAddr>, Option<u8>) = (None, None);
    for attribute in attributes {
        match attribute {
            WireguardAllowedIpAttr::IpAddr(ip) => address = Some(*ip),
            WireguardAllowedIpAttr::Cidr(len) => prefix_len = Some(*len),
            _ => {}
        }
    }
    IpNet::new(address?, prefix_len?).ok()
}

fn some_key(key: [u8; 32]) -> Option<Key> {
    (key != NO_KEY).then(|| Key::new(key))
}

/// Converts a kernel time. The kernel reports "never" as the epoch.
fn system_time(time: WireguardTimeSpec) -> Option<SystemTime> {
    let seconds = u64::try_from(time.seconds).ok()?;
    let nanos = u32::try_from(time.nano_seconds).ok()?;
    let since_epoch = Duration::new(seconds, nanos);
    (!since_epoch.is_zero()).then(|| SystemTime::UNIX_EPOCH + since_epoch)
}

#[cfg(test)]
mod tests;

//! Decodes bytes to the complete input of the compiler: objects as users send them, facts, and packets that match them.
//!
//! The vocabulary is small, so that policies, devices and packets name the same things.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use gateway_core::facts::{DefaultRoute, Facts, Link, TunnelFact};
use gateway_core::indexes::LegId;
use gateway_core::network::{Network, UplinkSettings};
use gateway_model::registry::{KINDS, kind};
use gateway_model::{EditError, Id, State};
use ipnet::IpNet;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::bytes::Bytes;

/// Keys that are recognisable wherever they appear: a private one, a preshared one, and public ones of peers.
pub(super) const PRIVATE: &str = "QAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAEE=";
pub(super) const PRESHARED: &str = "UFNLUFNLUFNLUFNLUFNLUFNLUFNLUFNLUFNLUFNLUFM=";
const PEERS: [&str; 2] =
    ["AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE=", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAI="];

const INTERFACES: [&str; 9] = ["lan0", "lan0.7", "lan1", "wan0", "wan1", "wg-a", "wg-b", "wg-c", "other"];
const TUNNELS: [&str; 4] = ["a", "b", "c", "a-long-name-of-a-tunnel"];
const CLASSES: [&str; 7] =
    ["trusted", "standard", "restricted", "quarantine", "mine", "other", "none-of-this-name"];
const GROUPS: [&str; 3] = ["g", "h", "i"];
const MAC_COUNT: u8 = 6;
const VLANS: [u16; 4] = [7, 1, 30, 4094];
const PORTS: [u16; 5] = [443, 53, 80, 67, 68];
const MOST_OPERATIONS: usize = 48;

/// Input decoded from the bytes.
#[derive(Debug)]
pub(super) struct Inputs {
    pub state: State,
    pub network: Network,
    pub facts: Facts,
    pub now: Timestamp,
    pub packets: Vec<Vec<u8>>,
}

impl Inputs {
    /// Decodes the input. Edits that the model rejects change nothing; `refused` receives them.
    pub(super) fn decode(data: &[u8], mut refused: impl FnMut(&EditError)) -> Inputs {
        let mut bytes = Bytes::new(data);
        let start: Timestamp = "2026-11-20T12:00:00Z".parse().expect("a time");
        let mut world = Inputs {
            state: State::new(start).begin(start),
            network: network(&mut bytes),
            facts: Facts::default(),
            now: start,
            packets: Vec::new(),
        };
        for (index, name) in (2u32..).zip(INTERFACES) {
            world.link(&mut bytes, name, index);
        }
        for _ in 0..bytes.below(6) {
            let (name, net) = (bytes.pick(&INTERFACES), network_around(&mut bytes));
            world.facts.addresses.entry(name.to_owned()).or_default().insert(net);
        }
        for _ in 0..MOST_OPERATIONS {
            if bytes.is_empty() {
                break;
            }
            if let Err(error) = world.operate(&mut bytes) {
                refused(&error);
            }
        }
        world
    }

    fn link(&mut self, bytes: &mut Bytes<'_>, name: &str, index: u32) {
        let shape = bytes.byte();
        if shape & 7 == 7 {
            return;
        }
        let vlan = name.split_once('.').map(|(parent, _)| (parent.to_owned(), 7));
        let mtu = [1500, 1280, 0, 9000, u32::MAX][usize::from(shape >> 3) % 5];
        let kind = if name.starts_with("wg-") { "wireguard" } else { "veth" };
        // Two links cannot share one index, but the compiler must not trust observations.
        let index = if shape & 0xe0 == 0xe0 { 2 } else { index };
        let link = Link {
            index,
            up: shape & 6 != 6,
            mac: None,
            mtu,
            kind: kind.to_owned(),
            vlan,
            ..Link::default()
        };
        self.facts.links.insert(name.to_owned(), link);
    }

    fn operate(&mut self, bytes: &mut Bytes<'_>) -> Result<(), EditError> {
        match bytes.below(16) {
            0..=3 => self.edit("routing_policy", bytes, policy),
            4 | 5 => self.edit("tunnel", bytes, tunnel),
            6 => self.edit("device", bytes, device),
            7 => self.edit("device_group", bytes, group),
            8 => self.edit("trust_class", bytes, class),
            9 => {
                self.state.freeze_applied();
                Ok(())
            }
            10 => self.delete(bytes),
            11 => {
                self.observe(bytes);
                Ok(())
            }
            12 => {
                let seconds = (i64::from(bytes.word()) + 1) * 60;
                self.now = Timestamp::from_second(self.now.as_second() + seconds).expect("a near time");
                self.state = self.state.begin(self.now);
                Ok(())
            }
            _ => {
                let packet = frame(bytes);
                self.packets.push(packet);
                Ok(())
            }
        }
    }

    /// Creates an object, or replaces one.
    fn edit(
        &mut self,
        noun: &str,
        bytes: &mut Bytes<'_>,
        object: fn(&mut Bytes<'_>, &State) -> Value,
    ) -> Result<(), EditError> {
        let kind = kind(noun).expect("a kind of the model");
        let object = object(bytes, &self.state);
        if bytes.rarely()
            && let Some(id) = row(bytes, &self.state, noun)
        {
            return kind.replace(&mut self.state, &id.to_string(), None, object).map(drop);
        }
        kind.create(&mut self.state, object).map(drop)
    }

    fn delete(&mut self, bytes: &mut Bytes<'_>) -> Result<(), EditError> {
        let kind = &KINDS[bytes.below(KINDS.len())];
        let force = bytes.flag();
        match row(bytes, &self.state, kind.noun) {
            Some(id) => kind.delete(&mut self.state, &id.to_string(), None, force).map(drop),
            None => Ok(()),
        }
    }

    fn observe(&mut self, bytes: &mut Bytes<'_>) {
        match bytes.below(5) {
            0 | 1 => {
                let Some(id) = row(bytes, &self.state, "tunnel") else { return };
                let usable = !bytes.flag();
                let reason = if usable { "" } else { "no handshake" };
                self.facts.tunnels.insert(
                    id.to_string(),
                    TunnelFact { usable, reason: reason.to_owned(), ..TunnelFact::default() },
                );
            }
            2 => {
                let address = address(bytes);
                self.facts.default_routes.push(DefaultRoute {
                    interface: bytes.pick(&INTERFACES).to_owned(),
                    gateway: bytes.flag().then_some(address),
                    metric: u32::from(bytes.byte()),
                    ipv6: address.is_ipv6(),
                });
            }
            3 => {
                let number = bytes.byte() & 3;
                let uplinks = &mut self.facts.uplinks;
                uplinks.active = LegId::new(number);
                uplinks.balanced = (1..=2).filter_map(LegId::new).filter(|_| bytes.flag()).collect();
                uplinks.failed = (1..=2)
                    .filter_map(LegId::new)
                    .filter(|_| bytes.flag())
                    .map(|number| (number, "no answer".to_owned()))
                    .collect();
            }
            _ => {
                let (mac, address) = (mac(bytes), address(bytes));
                self.facts.neighbours.entry(mac).or_default().insert(address);
            }
        }
    }
}

fn network(bytes: &mut Bytes<'_>) -> Network {
    let lans: [&[&str]; 5] =
        [&["lan0"], &["lan0", "lan0.7"], &["lan0.7"], &["lan0", "lan1"], &["lan1", "wan0"]];
    let uplinks: [&[&str]; 4] = [&["wan0"], &["wan0", "wan1"], &[], &["lan0"]];
    let lan = bytes.pick(&lans).iter().map(|name| (*name).to_owned()).collect();
    let uplinks = (1..).zip(bytes.pick(&uplinks)).map(|(number, name)| UplinkSettings {
        number: LegId::new(number).unwrap_or_default(),
        interface: (*name).to_owned(),
        gateway: bytes.rarely().then(|| address(bytes)),
        weight: u16::from(number),
        balances: number == 1 || bytes.flag(),
        failover_states: true,
        failback_states: number == 1,
        ..UplinkSettings::default()
    });
    let uplinks = uplinks.collect();
    Network {
        lan,
        uplinks,
        balances: bytes.rarely(),
        sample_every: u32::from(bytes.byte() & 3),
        fast_path: false,
        xdp: Default::default(),
        dns_port: u16::from(bytes.byte() & 1) * 53,
        ..Network::default()
    }
}

fn address(bytes: &mut Bytes<'_>) -> IpAddr {
    let shape = bytes.byte();
    let (a, b) = (shape >> 1 & 3, shape >> 3 & 7);
    match (shape >> 6, shape & 1) {
        (3, 0) => [Ipv4Addr::BROADCAST, Ipv4Addr::new(224, 0, 0, 251), Ipv4Addr::UNSPECIFIED]
            [usize::from(a) % 3]
            .into(),
        (3, _) => [Ipv6Addr::LOCALHOST, Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1), Ipv6Addr::UNSPECIFIED]
            [usize::from(a) % 3]
            .into(),
        (_, 0) => Ipv4Addr::new(10, a, 0, b).into(),
        (..) => Ipv6Addr::new(0xfd00, u16::from(a), 0, 0, 0, 0, 0, u16::from(b)).into(),
    }
}

/// Returns a network with host bits set.
fn network_around(bytes: &mut Bytes<'_>) -> IpNet {
    let address = address(bytes);
    let longest = if address.is_ipv6() { 128 } else { 32 };
    let length = [longest, longest - 8, longest / 2, 8, 0, longest - 1, 1][bytes.below(7)];
    IpNet::new(address, length).expect("a length that fits")
}

fn mac(bytes: &mut Bytes<'_>) -> [u8; 6] {
    [2, 0, 0, 0, 0, bytes.byte() % MAC_COUNT]
}

fn row(bytes: &mut Bytes<'_>, state: &State, noun: &str) -> Option<Id> {
    let count = kind(noun)?.len(state);
    let place = bytes.below(count);
    let ids: Vec<Id> = match noun {
        "device" => state.devices.iter().map(|row| row.meta.id).collect(),
        "device_group" => state.device_groups.iter().map(|row| row.meta.id).collect(),
        "trust_class" => state.trust_classes.iter().map(|row| row.meta.id).collect(),
        "tunnel" => state.tunnels.iter().map(|row| row.meta.id).collect(),
        _ => state.routing_policies.iter().map(|row| row.meta.id).collect(),
    };
    ids.get(place).copied()
}

/// Returns an id of an existing row, or of none.
fn id(bytes: &mut Bytes<'_>, state: &State, noun: &str) -> String {
    row(bytes, state, noun).unwrap_or_default().to_string()
}

fn device(bytes: &mut Bytes<'_>, state: &State) -> Value {
    let hex = |mac: [u8; 6]| mac.map(|byte| format!("{byte:02x}")).join(":");
    let mut device = json!({
        "name": format!("device {}", bytes.byte() % 16),
        "mac": hex(mac(bytes)),
        "status": bytes.pick(&["known", "new", "quarantined", "blocked"]),
    });
    if bytes.flag() {
        device["trust_class"] = json!(bytes.pick(&CLASSES));
    }
    if bytes.rarely() {
        device["macs"] = json!([hex(mac(bytes))]);
        device["groups"] = json!([id(bytes, state, "device_group")]);
    }
    device
}

fn group(bytes: &mut Bytes<'_>, state: &State) -> Value {
    let members: Vec<String> = (0..bytes.below(4)).map(|_| id(bytes, state, "device")).collect();
    let mut group = json!({"name": bytes.pick(&GROUPS), "members": members});
    if bytes.flag() {
        group["trust_class"] = json!(bytes.pick(&CLASSES));
    }
    group
}

fn class(bytes: &mut Bytes<'_>, _state: &State) -> Value {
    json!({
        "name": bytes.pick(&CLASSES),
        "level": bytes.byte(),
        "lan_access": bytes.pick(&["none", "segment", "full"]),
        "internet": bytes.pick(&["none", "policy", "direct"]),
    })
}

fn tunnel(bytes: &mut Bytes<'_>, _state: &State) -> Value {
    let peer = |bytes: &mut Bytes<'_>| {
        json!({
            "public_key": bytes.pick(&PEERS),
            "preshared_key": bytes.flag().then_some(PRESHARED),
            "endpoint": bytes.pick(&["203.0.113.9:51820", "[2001:db8::9]:51820", "exit.example:51820"]),
            "allowed_ips": ["0.0.0.0/0", "::/0"],
        })
    };
    let families: [&[&str]; 4] =
        [&["10.64.0.2/32", "fd64::2/128"], &["10.64.0.2/24"], &["fd64::2/64"], &["10.1.0.1/8", "::1/128"]];
    let mut tunnel = json!({
        "name": bytes.pick(&TUNNELS),
        "type": "wireguard",
        "private_key": PRIVATE,
        "addresses": bytes.pick(&families),
        "peers": [peer(bytes)],
        "weight": bytes.byte() % 18,
    });
    let shape = bytes.byte();
    if shape & 3 == 3 {
        tunnel["uplink"] = json!(bytes.pick(&INTERFACES));
    }
    if shape & 0xc == 0xc {
        tunnel["enabled"] = json!(false);
    }
    if shape & 0x30 == 0x30 {
        tunnel["autostart"] = json!(false);
        tunnel["peers"] = json!([peer(bytes), peer(bytes)]);
        tunnel["mtu"] = json!(bytes.word());
        tunnel["listen_port"] = json!(bytes.word());
    }
    tunnel
}

fn policy(bytes: &mut Bytes<'_>, state: &State) -> Value {
    let kinds = ["all", "interface", "vlan", "subnet", "device", "device_group", "destination", "domain"];
    let source_type = bytes.pick(&kinds);
    let values: Vec<String> = (0..=bytes.below(3)).map(|_| source_value(bytes, state, source_type)).collect();
    let value = if source_type == "all" { String::new() } else { values.join(",") };
    let hops: Vec<Value> = (0..bytes.below(5)).map(|_| hop(bytes)).collect();
    let mut policy = json!({
        "name": format!("p{}", bytes.byte()),
        "source_type": source_type,
        "source_value": value,
        "priority": i64::from(bytes.byte().cast_signed()),
        "hops": hops,
        "splitting": bytes.flag(),
        "fail_policy": bytes.pick(&["fail-closed", "fail-degraded", "fail-open"]),
        "reject": bytes.pick(&["unreachable", "drop"]),
        "sticky": bytes.pick(&["flow", "source", "source_dest"]),
        "hop_mode": bytes.pick(&["path", "failover"]),
        "enabled": !bytes.rarely(),
    });
    if bytes.rarely() {
        let end = state.now().as_second() + i64::from(bytes.word());
        policy["expires_at"] = json!(Timestamp::from_second(end).expect("a near time").to_string());
    }
    policy
}

fn source_value(bytes: &mut Bytes<'_>, state: &State, source_type: &str) -> String {
    if bytes.rarely() {
        return String::from_utf8_lossy(bytes.slice(24)).into_owned();
    }
    match source_type {
        "interface" => bytes.pick(&INTERFACES).to_owned(),
        "vlan" => bytes.pick(&VLANS).to_string(),
        "subnet" => network_around(bytes).to_string(),
        "device" => id(bytes, state, "device"),
        "device_group" => id(bytes, state, "device_group"),
        "destination" => match (network_around(bytes), bytes.flag()) {
            (net, false) => net.to_string(),
            (net @ IpNet::V4(_), true) => format!("{net}:{}", bytes.pick(&PORTS)),
            (net, true) => format!("[{net}]:{}", bytes.pick(&PORTS)),
        },
        _ => bytes.pick(&["example.com", "=www.example.com", "*.example.org", "~^a.*"]).to_owned(),
    }
}

fn hop(bytes: &mut Bytes<'_>) -> Value {
    match bytes.below(8) {
        0..=4 => json!({"type": "vpn", "target": bytes.pick(&TUNNELS)}),
        5 | 6 => json!({"type": "interface", "target": bytes.pick(&INTERFACES)}),
        _ => json!({"type": bytes.pick(&["proxy", "mesh_peer"]), "target": "p"}),
    }
}

fn frame(bytes: &mut Bytes<'_>) -> Vec<u8> {
    if bytes.rarely() {
        return bytes.slice(120).to_vec();
    }
    let mut frame = vec![2, 0, 0, 0, 1, 1];
    frame.extend(mac(bytes));
    for _ in 0..bytes.below(3) {
        frame.extend([0x81, 0]);
        frame.extend(bytes.pick(&VLANS).to_be_bytes());
    }
    let protocol = bytes.pick(&[6u8, 17, 1, 58, 132]);
    let (from, to) = (bytes.pick(&PORTS), bytes.pick(&PORTS));
    match (address(bytes), address(bytes)) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            frame.extend([8, 0, 0x45, 0, 0, 40, 0, 1, 0, 0, 64, protocol, 0, 0]);
            frame.extend(source.octets());
            frame.extend(destination.octets());
        }
        (source, destination) => {
            let six = |address| match address {
                IpAddr::V4(four) => Ipv6Addr::from(0xfd << 120 | u128::from(u32::from(four))),
                IpAddr::V6(six) => six,
            };
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 20, protocol, 64]);
            frame.extend(six(source).octets());
            frame.extend(six(destination).octets());
        }
    }
    frame.extend(from.to_be_bytes());
    frame.extend(to.to_be_bytes());
    frame.extend([0; 16]);
    frame
}

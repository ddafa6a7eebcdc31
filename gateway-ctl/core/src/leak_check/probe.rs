//! Probes of a check.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use gateway_common::classify::{Classified, DNS_PORT, classify};
use gateway_model::Device;
use gateway_model::id::MacAddr;
use gateway_model::settings::groups::{LeakCheckSettings, PrivacyBlocks};

use super::exit_address::plan_exits;
use super::frame::{Link, Transport, frame};
use super::{Check, Expected, Host, Plan, Probe, Token};
use crate::compile::{Compiled, Input};
use crate::doh_servers;
use crate::evaluate::{Decision, Subject, evaluate_packet, legs_of, public_address};
use crate::indexes::LegId;
use crate::stun;

/// Registered domain for documentation (RFC 2606, section 3), below which the names of queries are.
const ZONE: [&str; 2] = ["example", "com"];
const HTTPS: u16 = 443;
const DNS_OVER_TLS: u16 = 853;
const STUN: u16 = 3478;
/// A port without a protocol of its own.
const HIGH: u16 = 50_000;

/// Plans the checks for a device, or for a host that the gateway does not know. `None` if no LAN interface exists.
/// Probes of one `random` number cannot be guessed.
pub fn plan(
    input: &Input<'_>,
    compiled: &Compiled,
    device: Option<&Device>,
    checks: &[Check],
    random: u64,
) -> Option<Plan> {
    let bytes = random.to_be_bytes();
    let host = Host::find(input, device, [bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5]])?;
    let blocks: PrivacyBlocks = input.state.group();
    let blocks = device.map_or(blocks.all, |device| blocks.of(device, input.state));
    let mut builder = Builder {
        input,
        compiled,
        subject: Subject { device, mac: Some(MacAddr(host.mac)), names: Vec::new(), previous_leg: None },
        host: &host,
        random,
        probes: Vec::new(),
        unsent: Vec::new(),
    };
    for check in checks {
        builder.add_check(*check);
    }
    let probes = std::mem::take(&mut builder.probes);
    let unsent = std::mem::take(&mut builder.unsent);
    let exits = plan_exits(input, compiled, &host, (checks, &probes));
    builder.add_check(Check::Route);
    // A missing route protects nothing.
    let is_protected = builder.probes.iter().all(|probe| !probe.is_direct);
    let legs = compiled.legs.by_number.values().filter(|leg| leg.is_uplink());
    let routes = input.facts.default_routes.iter().map(|route| route.interface.as_str());
    let uplinks = legs.map(|leg| leg.interface.as_str()).chain(routes);
    // The parent of an uplink may be a LAN interface.
    let uplinks = uplinks.flat_map(|name| input.facts.layers(name));
    let uplinks = uplinks.filter(|name| !input.network.lan.contains(name)).collect();
    let servers = input.state.group::<LeakCheckSettings>().stun_servers;
    let checks = checks.to_vec();
    Some(Plan { checks, host, blocks, probes, unsent, is_protected, uplinks, servers, exits })
}

/// Makes the probes of one host.
pub(super) struct Builder<'a> {
    pub(super) input: &'a Input<'a>,
    pub(super) compiled: &'a Compiled,
    pub(super) subject: Subject<'a>,
    pub(super) host: &'a Host,
    pub(super) random: u64,
    pub(super) probes: Vec<Probe>,
    pub(super) unsent: Vec<(Check, String)>,
}

impl Builder<'_> {
    fn add_check(&mut self, check: Check) {
        match check {
            Check::Dns => {
                let resolver = self.host.resolver.filter(|_| self.input.network.dns_port != 0);
                if !self.host.is_known_by_address {
                    let text = "No DNS query was sent to the gateway: no IPv4 address of the device is known, by \
                        which the resolver would recognise it.";
                    self.unsent.push((check, text.to_owned()));
                } else if let Some(resolver) = resolver {
                    self.query(SocketAddr::new(resolver, DNS_PORT), "a DNS query to the gateway");
                }
                let other = SocketAddr::new(self.public(false), DNS_PORT);
                self.query(other, &format!("a DNS query to {other}"));
                self.open(check, SocketAddr::new(self.public(false), DNS_OVER_TLS), "DNS over TLS");
            }
            Check::Ipv4 | Check::Ipv6 => {
                let public = self.public(check == Check::Ipv6);
                self.echo(check, public);
                self.datagram(check, SocketAddr::new(public, HIGH), "UDP", |token| token.to_vec());
                if check == Check::Ipv6 {
                    self.open(check, SocketAddr::new(public, HTTPS), "TCP");
                }
            }
            Check::Webrtc => {
                for (ipv6, port) in [(false, STUN), (false, HIGH + 1), (true, STUN)] {
                    let to = SocketAddr::new(self.public(ipv6), port);
                    self.datagram(check, to, "STUN", binding_request);
                }
            }
            Check::Doh => {
                for ipv6 in [false, true] {
                    let mut servers = doh_servers::networks().map(|network| network.addr());
                    if let Some(server) = servers.find(|address| address.is_ipv6() == ipv6) {
                        self.open(check, SocketAddr::new(server, HTTPS), "DNS over HTTPS");
                    }
                }
            }
            Check::Quic => {
                for ipv6 in [false, true] {
                    self.datagram(check, SocketAddr::new(self.public(ipv6), HTTPS), "QUIC", initial);
                }
            }
            Check::Route => self.open(check, SocketAddr::new(self.public(false), HTTPS), "TCP"),
        }
    }

    fn public(&self, ipv6: bool) -> IpAddr {
        public_address(self.compiled, ipv6, HTTPS, &mut Vec::new())
    }

    /// Returns a number for the next probe, different for each.
    pub(super) fn token(&self) -> u32 {
        let number = u32::try_from(self.probes.len()).unwrap_or(0);
        // The upper half is in the MAC address of an unknown host.
        (self.random as u32).wrapping_add(number.wrapping_mul(0x9e37_79b9))
    }

    fn query(&mut self, to: SocketAddr, label: &str) {
        let token = self.token();
        let name = format!("leak-check-{token:08x}{:08x}", (self.random >> 32) as u32);
        let payload = dns_query(token, &name);
        self.add(Check::Dns, to, label.to_owned(), &Transport::Udp(payload), Token::Label(name));
    }

    pub(super) fn open(&mut self, check: Check, to: SocketAddr, what: &str) {
        let token = self.token();
        self.add(check, to, format!("{what} to {to}"), &Transport::Syn(token), Token::Sequence(token));
    }

    fn echo(&mut self, check: Check, to: IpAddr) {
        let token = self.token().to_be_bytes();
        let echo = Transport::Echo(u16::from_be_bytes([token[0], token[1]]), token.to_vec());
        self.add(check, SocketAddr::new(to, 0), format!("ICMP to {to}"), &echo, Token::Payload(token));
    }

    pub(super) fn datagram(
        &mut self,
        check: Check,
        to: SocketAddr,
        what: &str,
        payload: impl Fn([u8; 4]) -> Vec<u8>,
    ) {
        let token = self.token().to_be_bytes();
        let udp = Transport::Udp(payload(token));
        self.add(check, to, format!("{what} to {to}"), &udp, Token::Payload(token));
    }

    pub(super) fn add(
        &mut self,
        check: Check,
        to: SocketAddr,
        label: String,
        transport: &Transport,
        token: Token,
    ) {
        let Host { mac, v4, v6, entry, gateway, .. } = self.host;
        let from = if to.is_ipv6() { *v6 } else { *v4 };
        // Each probe is a flow of its own.
        let offset = u16::try_from(self.probes.len()).unwrap_or(0) + (self.random as u16 & 0x1fff);
        let from = SocketAddr::new(from, 49_152 + offset);
        let link = Link { source: *mac, destination: *gateway, vlan: entry.vlan };
        let frame = frame(link, from, to, transport);
        let Ok(Classified::Ip(packet)) = classify(&frame[..], entry.index) else { return };
        let evaluated = evaluate_packet(self.input, self.compiled, &self.subject, &packet);
        let verdict = &evaluated.verdict;
        let choice = evaluated.policy.map(|policy| if packet.ipv6 { &policy.v6 } else { &policy.v4 });
        let mut legs = BTreeSet::new();
        let expected = match (verdict.local, &verdict.proxy, verdict.decision, &verdict.interface) {
            (true, ..) => Expected::Answered,
            (_, _, Decision::Block, _) => Expected::Stopped(verdict.reason.clone()),
            (_, Some(proxy), ..) => Expected::Proxied(proxy.clone()),
            (.., None) => Expected::Stopped("there is no route".to_owned()),
            (.., Some(interface)) => {
                let uplink = self.compiled.legs.uplink(interface).map(|leg| leg.number);
                let of_policy: Option<BTreeSet<LegId>> = choice
                    .filter(|_| !verdict.ways.is_empty())
                    .map(|choice| legs_of(choice).into_iter().flatten().collect());
                legs = of_policy.unwrap_or_else(|| uplink.into_iter().collect());
                let known = legs.iter().filter_map(|leg| self.compiled.legs.get(*leg));
                let names = known.map(|leg| leg.interface.as_str()).chain([interface.as_str()]);
                Expected::Leaves { by: names.flat_map(|name| self.input.facts.layers(name)).collect() }
            }
        };
        let (interface, is_direct) = (entry.index, verdict.decision == Decision::Direct);
        self.probes.push(Probe { check, label, frame, interface, packet, expected, legs, is_direct, token });
    }
}

/// STUN binding request.
fn binding_request(token: [u8; 4]) -> Vec<u8> {
    let mut id = [0; 12];
    id[..4].copy_from_slice(&token);
    stun::binding_request(stun::TransactionId(id)).to_vec()
}

/// The visible beginning of a QUIC Initial packet, padded (RFC 9000, sections 14.1 and 17.2.2).
fn initial(token: [u8; 4]) -> Vec<u8> {
    let mut packet = [&[0xc3, 0, 0, 0, 1, 8][..], &token, &[0; 4], &[0, 0]].concat();
    packet.resize(1200, 0);
    packet
}

/// DNS query for an A record (RFC 1035, section 4.1).
fn dns_query(token: u32, label: &str) -> Vec<u8> {
    let id = token.to_be_bytes();
    let mut query = vec![id[0], id[1], 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in [label].into_iter().chain(ZONE) {
        query.push(u8::try_from(label.len()).unwrap_or(0));
        query.extend(label.as_bytes());
    }
    query.extend([0, 0, 1, 0, 1]);
    query
}

//! The leak counter: captures and classifies every packet that arrives at the remote end of the gateway's uplink.
//!
//! A leaked packet carries the gateway's own address after masquerading, so the source is not sufficient. The tests
//! therefore mark their traffic: it goes to addresses that no other traffic uses, or carries [`MARK`]. Outside a tunnel
//! such a packet is a leak, and so is any packet with a LAN address. The tap has its own packet parser, independent of
//! the code under test.

mod frame;

use std::collections::BTreeMap;
use std::fmt;
use std::io::ErrorKind;
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use anyhow::{Context, Result};
use nix::poll::{PollFd, PollFlags, poll};
use socket2::{Domain, SockAddr, Socket, Type};

use crate::name_server;
use crate::netns::Namespace;
use crate::openvpn;
use crate::packet_socket::{ALL_PROTOCOLS, link_address};
use crate::services::DNS;
use crate::socks;
use crate::topology::{WAN_V4, WAN_V6};
use crate::udp_over_tcp;
use crate::wireguard::{PORT, Place};
use frame::{Frame, Packet};

/// Prefix of the payload of marked packets.
pub const MARK: &[u8] = b"leak-me-not";

const BUFFER: usize = 32 << 20;
const SAMPLES: usize = 12;

/// Classification rules of packets.
#[derive(Clone, Debug)]
pub struct Rules {
    /// The gateway's own addresses on the uplink.
    own: [IpAddr; 2],
    endpoints: Vec<SocketAddr>,
    /// Addresses of the proxies.
    proxies: Vec<IpAddr>,
}

impl Rules {
    pub fn of_the_topology(exits: [Place; 2]) -> Self {
        Self::of_an_uplink([WAN_V4.into(), WAN_V6.into()], exits)
    }

    /// Returns the rules of an uplink on which the gateway has these addresses.
    pub fn of_an_uplink(own: [IpAddr; 2], exits: [Place; 2]) -> Self {
        let endpoints = exits
            .iter()
            .flat_map(|exit| [PORT, openvpn::PORT, udp_over_tcp::PORT].map(|port| (exit, port)))
            .flat_map(|(exit, port)| [SocketAddr::from((exit.v4, port)), SocketAddr::from((exit.v6, port))])
            .collect();
        let proxies = exits.iter().flat_map(|exit| [IpAddr::from(exit.v4), IpAddr::from(exit.v6)]).collect();
        Self { own, endpoints, proxies }
    }

    fn classify(&self, frame: &Frame<'_>) -> Class {
        let packet = match frame {
            Frame::Arp => return Class::Housekeeping,
            Frame::Other(_) => return Class::Unknown,
            Frame::Ip(packet) => packet,
        };
        if self.to_a_proxy(packet) || self.answers_a_proxy(packet) {
            return Class::Proxy;
        }
        if of_the_lan(packet.source) || of_the_tests(packet.destination) || carries_the_mark(packet.payload) {
            return Class::Leak;
        }
        if self.own.contains(&packet.source) && self.to_an_endpoint(packet) {
            return Class::Tunnel;
        }
        if self.own.contains(&packet.source) && asks_for_an_endpoint(packet) {
            return Class::Housekeeping;
        }
        let complains = self.own.contains(&packet.source) && self.answers_an_endpoint(packet);
        if packet.keeps_house() || complains { Class::Housekeeping } else { Class::Unknown }
    }

    /// Reports whether the packet is an ICMP error about a tunnel packet, such as after the gateway closed its
    /// endpoint.
    fn answers_an_endpoint(&self, packet: &Packet<'_>) -> bool {
        packet.quoted().is_some_and(|quoted| {
            quoted.is_udp()
                && quoted.source == packet.destination
                && quoted
                    .ports
                    .is_some_and(|(from, _)| self.endpoints.contains(&SocketAddr::new(quoted.source, from)))
        })
    }

    /// Reports whether the packet is of the gateway's own connection to a proxy, which shows its payload, or a datagram
    /// for it.
    fn to_a_proxy(&self, packet: &Packet<'_>) -> bool {
        let Some((_, to)) = packet.ports else { return false };
        let reaches = if packet.is_udp() { ![PORT, openvpn::PORT].contains(&to) } else { to == socks::PORT };
        reaches && self.own.contains(&packet.source) && self.proxies.contains(&packet.destination)
    }

    /// Reports whether the packet is an ICMP error about a datagram from a proxy, such as after the end of the relay.
    /// It quotes the datagram of the proxy.
    fn answers_a_proxy(&self, packet: &Packet<'_>) -> bool {
        let answers = self.own.contains(&packet.source) && self.proxies.contains(&packet.destination);
        let from_a_proxy = |quoted: Packet<'_>| {
            let port = quoted.ports.filter(|_| quoted.is_udp() && quoted.source == packet.destination);
            port.is_some_and(|(from, _)| ![PORT, openvpn::PORT].contains(&from))
        };
        answers && packet.quoted().is_some_and(from_a_proxy)
    }

    fn to_an_endpoint(&self, packet: &Packet<'_>) -> bool {
        let carries = |port: u16| match port {
            udp_over_tcp::PORT => packet.is_tcp(),
            openvpn::PORT => packet.is_udp() || packet.is_tcp(),
            _ => packet.is_udp(),
        };
        self.endpoints.iter().any(|endpoint| {
            carries(endpoint.port())
                && endpoint.ip() == packet.destination
                && (packet.later_fragment || packet.ports.is_some_and(|(_, to)| to == endpoint.port()))
        })
    }
}

/// Reports whether the packet is a DNS query of the gateway itself for the endpoint of a tunnel.
fn asks_for_an_endpoint(packet: &Packet<'_>) -> bool {
    let there = packet.destination == IpAddr::from(name_server::ADDRESS);
    there && packet.is_udp() && packet.ports.is_some_and(|(_, to)| to == DNS)
}

fn of_the_lan(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            [[192, 168, 10], [192, 168, 20]].contains(&[0, 1, 2].map(|i| address.octets()[i]))
        }
        IpAddr::V6(address) => {
            address.segments()[0] == 0xfd00 && [0x10, 0x20].contains(&address.segments()[1])
        }
    }
}

/// Reports whether the address is in a network of the servers: 198.18.0.0/15 and 2001:db8:18::/48.
fn of_the_tests(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => u32::from(address) >> 17 == u32::from(Ipv4Addr::new(198, 18, 0, 0)) >> 17,
        IpAddr::V6(address) => {
            u128::from(address) >> 80 == u128::from(Ipv6Addr::new(0x2001, 0xdb8, 0x18, 0, 0, 0, 0, 0)) >> 80
        }
    }
}

fn carries_the_mark(payload: &[u8]) -> bool {
    payload.windows(MARK.len()).any(|window| window == MARK)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Tunnel,
    Proxy,
    Housekeeping,
    Leak,
    Unknown,
}

/// Packets by family.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByFamily {
    pub v4: u64,
    pub v6: u64,
}

impl ByFamily {
    pub fn total(self) -> u64 {
        self.v4 + self.v6
    }

    fn add(&mut self, frame: &Frame<'_>) {
        match frame {
            Frame::Ip(Packet { source: IpAddr::V6(_), .. }) => self.v6 += 1,
            _ => self.v4 += 1,
        }
    }
}

/// Counters of the tap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets of a tunnel to one of the exits.
    pub tunnel: ByFamily,
    /// Packets of a tunnel by the exit's address.
    pub endpoints: BTreeMap<IpAddr, u64>,
    /// Fragmented tunnel packets, counted by their later fragments.
    pub fragments: u64,
    /// Packets to a proxy outside any tunnel.
    pub proxied: ByFamily,
    /// UDP packets of any kind.
    pub udp: u64,
    /// ARP, neighbour discovery, group membership, errors about packets of a tunnel.
    pub housekeeping: ByFamily,
    /// Packets of the tests or of a LAN address outside a tunnel.
    pub leaked: ByFamily,
    /// Leaked packets that were DNS queries.
    pub leaked_dns: u64,
    /// Packets that no rule matches and that are no traffic of the tests.
    pub unknown: ByFamily,
    /// Packets that the tap itself lost. If there are any, a zero above proves nothing.
    pub missed: u64,
    /// Descriptions of the first leaked and unknown packets.
    pub samples: Vec<String>,
}

impl Counts {
    /// Reports whether the tap saw no packet outside the tunnels and missed none.
    pub fn is_clean(&self) -> bool {
        self.is_clean_but_for_proxies() && self.proxied.total() == 0
    }

    /// Reports whether the tap saw no packet outside the tunnels and proxies and missed none.
    pub fn is_clean_but_for_proxies(&self) -> bool {
        self.leaked.total() == 0 && self.unknown.total() == 0 && self.missed == 0
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "leaked {} (IPv4) + {} (IPv6), unknown {}, in tunnels {}, to proxies {}, missed by the tap {}",
            self.leaked.v4,
            self.leaked.v6,
            self.unknown.total(),
            self.tunnel.total(),
            self.proxied.total(),
            self.missed
        )?;
        self.samples.iter().try_for_each(|sample| write!(f, "\n  {sample}"))
    }
}

/// An open tap. It counts from its creation. Dropping it closes it.
#[derive(Debug)]
pub struct Tap {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    socket: Socket,
    rules: Rules,
    counts: Mutex<Counts>,
    ending: AtomicBool,
}

impl Tap {
    pub fn open(namespace: &Namespace, interface: &str, rules: Rules) -> Result<Self> {
        let socket = namespace.within(|| listen(interface)).with_context(|| format!("tap {interface}"))?;
        let shared =
            Arc::new(Shared { socket, rules, counts: Mutex::default(), ending: AtomicBool::new(false) });
        let reader = shared.clone();
        let thread = std::thread::spawn(move || reader.read_until_the_end());
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Returns the counts since the tap was opened or reset, including packets that arrived just now.
    pub fn counts(&self) -> Counts {
        let mut counts = self.shared.counts();
        self.shared.drain(&mut counts);
        counts.clone()
    }

    /// Resets the counters and returns the counts so far.
    pub fn reset(&self) -> Counts {
        let mut counts = self.shared.counts();
        self.shared.drain(&mut counts);
        std::mem::take(&mut *counts)
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        self.shared.ending.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The panic was already printed.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn read_until_the_end(&self) {
        while !self.ending.load(Ordering::Relaxed) {
            let mut waiting = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
            // A failed wait only makes the next poll early.
            let _ = poll(&mut waiting, 100_u16);
            self.drain(&mut self.counts());
        }
    }

    fn drain(&self, counts: &mut Counts) {
        let mut buffer = vec![MaybeUninit::uninit(); 1 << 16];
        loop {
            match self.socket.recv_from(&mut buffer) {
                Ok((length, from)) => {
                    if !sent_by_us(&from) {
                        // SAFETY: the kernel has written this many bytes.
                        let bytes = unsafe { buffer[..length].assume_init_ref() };
                        self.count(&Frame::read(bytes), counts);
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => {
                    // The interface went down or away: its packets are not captured.
                    counts.missed += 1;
                    break;
                }
            }
        }
        counts.missed += lost_packets(&self.socket);
    }

    fn count(&self, frame: &Frame<'_>, counts: &mut Counts) {
        let class = self.rules.classify(frame);
        counts.udp += u64::from(matches!(frame, Frame::Ip(packet) if packet.is_udp()));
        match class {
            Class::Tunnel => {
                counts.tunnel.add(frame);
                if let Frame::Ip(packet) = frame {
                    *counts.endpoints.entry(packet.destination).or_default() += 1;
                    counts.fragments += u64::from(packet.later_fragment);
                }
            }
            Class::Proxy => counts.proxied.add(frame),
            Class::Housekeeping => counts.housekeeping.add(frame),
            Class::Leak => {
                counts.leaked.add(frame);
                counts.leaked_dns += u64::from(frame.is_dns());
            }
            Class::Unknown => counts.unknown.add(frame),
        }
        if matches!(class, Class::Leak | Class::Unknown) && counts.samples.len() < SAMPLES {
            counts.samples.push(format!("{class:?}: {frame}"));
        }
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn listen(interface: &str) -> Result<Socket> {
    // Without a protocol the socket receives nothing until it is bound to the interface.
    let socket = Socket::new(Domain::PACKET, Type::RAW, None).context("packet socket")?;
    enlarge_buffer(&socket)?;
    socket.bind(&link_address(interface, ALL_PROTOCOLS)?).context("bind")?;
    socket.set_nonblocking(true).context("nonblocking")?;
    Ok(socket)
}

/// Sets the buffer beyond the limit of ordinary sockets, so that a burst is not lost.
fn enlarge_buffer(socket: &Socket) -> Result<()> {
    nix::sys::socket::setsockopt(socket, nix::sys::socket::sockopt::RcvBufForce, &BUFFER)
        .context("receive buffer")
}

fn sent_by_us(from: &SockAddr) -> bool {
    // SAFETY: packet sockets report a sockaddr_ll, and the storage is zeroed beyond what was reported.
    let address = unsafe { &*from.as_ptr().cast::<libc::sockaddr_ll>() };
    address.sll_pkttype == libc::PACKET_OUTGOING
}

/// Returns the packets dropped because the buffer was full, since the previous call.
fn lost_packets(socket: &Socket) -> u64 {
    let mut statistics = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
    let mut length = size_of::<libc::tpacket_stats>() as libc::socklen_t;
    // SAFETY: the pointers refer to a structure of the given length.
    let answer = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            (&raw mut statistics).cast(),
            &raw mut length,
        )
    };
    if answer == 0 { u64::from(statistics.tp_drops) } else { 1 }
}

//! Packets that arrive at the ends of one network, in a form that is equal for both networks.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::ErrorKind;
use std::mem::MaybeUninit;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd as _;

use gateway_tests::netns::Namespace;
use gateway_tests::packet_socket::{ALL_PROTOCOLS, link_address};
use gateway_tests::packets::{Shown, TCP, UDP, complete_checksum};
use nix::sys::socket::{setsockopt, sockopt::RcvBufForce};
use socket2::{Domain, Protocol, Socket, Type};

use super::hosts::{End, Flow, LOAD, destination, is_destination};
use super::traffic::{self, Planned};

const ICMP: u8 = 1;
const ICMPV6: u8 = 58;
const RST: u8 = 0x04;
const BUFFER: usize = 32 << 20;

/// A packet that arrived, without what the kernel chooses at random.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Record {
    end: End,
    bytes: Vec<u8>,
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let content = traffic::content(&self.bytes);
        write!(f, "{:?} {content:?} {:02x?}", self.end, &self.bytes[..self.bytes.len().min(80)])
    }
}

/// Packets that have arrived, and those that may.
#[derive(Default)]
pub(super) struct Arrivals {
    sockets: BTreeMap<End, Socket>,
    /// Packets that arrived since the last comparison, and their counts.
    pub records: BTreeMap<Record, usize>,
    pub leaks: Vec<String>,
    /// Flows of the packets that were sent in the present state, by number. Others are late: the remote end of a tunnel
    /// keeps packets until a handshake.
    sent: BTreeMap<u32, Flow>,
    /// Numbers that arrived anywhere, or were answered.
    arrived: BTreeSet<u32>,
    /// Numbers of the present state, and where they arrived.
    pub trail: BTreeMap<u32, Vec<End>>,
    /// End and translated source of the last packet of each flow in the present state, to which replies go.
    pub returns: BTreeMap<Flow, (End, SocketAddr)>,
    /// Ends at which packets of a host to the internet may arrive.
    pub allowed: BTreeMap<u8, BTreeSet<End>>,
    /// Packets of the load.
    pub load: u64,
}

impl Arrivals {
    /// Opens an end. It replaces the former one, whose interface may be gone.
    pub(super) fn open(&mut self, end: End, namespace: &Namespace, interface: &str) {
        self.sockets.insert(end, listen(namespace, interface));
    }

    /// Begins another state: packets of the former one may arrive late, in one network only.
    pub(super) fn begin_state(&mut self) {
        self.receive();
        self.sent.clear();
        self.arrived.clear();
        self.trail.clear();
        self.returns.clear();
        self.records.clear();
    }

    pub(super) fn expect(&mut self, packets: &[Planned]) {
        self.arrived.clear();
        self.sent.extend(packets.iter().map(|planned| (planned.number, planned.flow)));
    }

    /// Number of the packets of the last [`expect`](Self::expect) that arrived anywhere, or were answered.
    pub(super) fn count(&self) -> usize {
        self.arrived.len()
    }

    pub(super) fn sockets(&self) -> impl Iterator<Item = &Socket> {
        self.sockets.values()
    }

    /// Reads what has arrived at all ends.
    pub(super) fn receive(&mut self) {
        for end in End::ALL {
            while let Some(frame) = self.sockets.get(&end).and_then(read) {
                self.record(end, frame);
            }
        }
    }

    /// Sets the ends at which packets of a host may arrive. What has arrived belongs to the former state.
    pub(super) fn allow(&mut self, host: u8, ends: &[End]) {
        self.receive();
        self.allowed.insert(host, ends.iter().copied().collect());
    }

    fn record(&mut self, end: End, frame: Vec<u8>) {
        let mut frame = match (end, frame.first().map(|byte| byte >> 4)) {
            (End::Lan | End::Segment | End::Uplink, _) => frame,
            (_, Some(4)) => [&[0; 12][..], &[8, 0], &frame].concat(),
            (_, Some(6)) => [&[0; 12][..], &[0x86, 0xdd], &frame].concat(),
            _ => return,
        };
        // Segments of the kernel itself, such as resets.
        complete_checksum(&mut frame);
        let Some(headers) = Headers::read(&frame) else { return };
        let content = traffic::content(&frame);
        if let Some((host, number)) = content {
            self.check_leak(end, host, &headers);
            if host == LOAD {
                self.load += 1;
                return;
            }
            if !self.sent.contains_key(&number) {
                return;
            }
            self.arrived.insert(number);
            self.trail.entry(number).or_default().push(end);
        }
        if !self.is_compared(end, &headers, &frame, content.is_some()) {
            return;
        }
        let Some(shown) = Shown::of(&frame, end.is_translated()) else { return };
        if end != End::Lan
            && shown.source_port != 0
            && let Some((_, number)) = content
            && let Some(flow) = self.sent.get(&number).copied()
        {
            self.set_return(flow, end, SocketAddr::new(headers.source, shown.source_port));
        }
        *self.records.entry(Record { end, bytes: shown.bytes }).or_default() += 1;
    }

    fn is_compared(&self, end: End, headers: &Headers, frame: &[u8], has_content: bool) -> bool {
        let Headers { source, destination, protocol, at, .. } = *headers;
        let is_from_lan = matches!(end, End::Lan | End::Segment);
        // Too long, and hop limit exceeded; of all other errors of the gateway the kernel limits the rate.
        let is_error = is_from_lan
            && has_content
            && match protocol {
                ICMP => matches!(frame.get(at..at + 2), Some([3, 4] | [11, _])) || is_destination(source),
                ICMPV6 => matches!(frame.get(at), Some(2 | 3)) || is_destination(source),
                _ => false,
            };
        let is_of_traffic =
            if end == End::Lan { is_destination(source) } else { is_destination(destination) };
        if protocol != TCP && protocol != UDP || !is_of_traffic {
            return is_error;
        }
        if let Some(identification) = headers.later_fragment {
            return self.sent.keys().any(|number| *number as u16 == identification);
        }
        let is_reset = protocol == TCP && frame.get(at + 13).is_some_and(|flags| flags & RST != 0);
        // The daemon sends keepalive probes in connections that have lost their tunnel, at times of its own.
        has_content || is_reset
    }

    /// Sets where replies of a flow go. After a kill of the daemon, the kernel may have given the address and port of
    /// another flow to this one.
    fn set_return(&mut self, flow: Flow, end: End, source: SocketAddr) {
        self.returns.retain(|other, at| *at != (end, source) || other.tcp != flow.tcp);
        self.returns.insert(flow, (end, source));
    }

    fn check_leak(&mut self, end: End, host: u8, headers: &Headers) {
        let Headers { source, protocol, .. } = *headers;
        // Errors of the gateway go to the sender of a packet, which they quote.
        if end == End::Lan || protocol != TCP && protocol != UDP {
            return;
        }
        let is_local = headers.destination == destination(source.is_ipv6(), true).ip();
        let is_allowed = match end {
            End::Segment => is_local,
            _ => !is_local && self.allowed.get(&host).is_some_and(|ends| ends.contains(&end)),
        };
        let of_lan = match source {
            IpAddr::V4(address) => address.octets()[..2] == [192, 168],
            IpAddr::V6(address) => address.segments()[0] == 0xfd00,
        };
        if !is_allowed || of_lan == end.is_translated() {
            self.leaks.push(format!("{end:?} got a packet of host {host} from {source}"));
        }
    }
}

/// Addresses, protocol and offset of the transport header of a frame.
struct Headers {
    source: IpAddr,
    destination: IpAddr,
    protocol: u8,
    at: usize,
    /// Identification of a fragment that is not the first.
    later_fragment: Option<u16>,
}

impl Headers {
    fn read(frame: &[u8]) -> Option<Headers> {
        let four = |at: usize| Some(IpAddr::from(*frame.get(at..)?.first_chunk::<4>()?));
        let six = |at: usize| Some(IpAddr::from(*frame.get(at..)?.first_chunk::<16>()?));
        let word = |at: usize| Some(u16::from_be_bytes(*frame.get(at..)?.first_chunk::<2>()?));
        let (source, destination, protocol, at) = match frame.get(12..14)? {
            [8, 0] => (four(26)?, four(30)?, *frame.get(23)?, 34),
            [0x86, 0xdd] => (six(22)?, six(38)?, *frame.get(20)?, 54),
            _ => return None,
        };
        let is_later = at == 34 && word(20)? & 0x1fff != 0;
        let later_fragment = if is_later { word(18) } else { None };
        Some(Headers { source, destination, protocol, at, later_fragment })
    }
}

/// Opens a socket that gets all packets that arrive by an interface.
fn listen(namespace: &Namespace, interface: &str) -> Socket {
    namespace.within(|| {
        // Bound before it gets packets, so that there are none of other interfaces.
        let socket = Socket::new(Domain::PACKET, Type::RAW, Some(Protocol::from(0))).expect("a socket");
        setsockopt(&socket, RcvBufForce, &BUFFER).expect("a buffer");
        let on: libc::c_int = 1;
        // SAFETY: the pointer refers to an integer of the given length.
        let failed = unsafe {
            let length = size_of::<libc::c_int>() as libc::socklen_t;
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_PACKET,
                PACKET_IGNORE_OUTGOING,
                (&raw const on).cast(),
                length,
            )
        };
        assert_eq!(failed, 0, "{}", std::io::Error::last_os_error());
        socket.bind(&link_address(interface, ALL_PROTOCOLS).expect("an address")).expect("bound");
        socket.set_nonblocking(true).expect("non-blocking");
        socket
    })
}

/// linux/if_packet.h
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;

fn read(socket: &Socket) -> Option<Vec<u8>> {
    let mut buffer = [MaybeUninit::uninit(); 70_000];
    loop {
        match socket.recv(&mut buffer) {
            Ok(length) => {
                // SAFETY: the kernel has written this many bytes.
                return Some(unsafe { buffer[..length].assume_init_ref() }.to_vec());
            }
            // The first error says that the interface was down.
            Err(error) if error.raw_os_error() == Some(libc::ENETDOWN) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
}

//! Packets of the flows of the tests, built whole, and the translated form in which they leave a gateway. Two gateways
//! that treat them alike send equal frames.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use gateway_common::checksum::{add, fold, sum};

/// MAC addresses of the gateway of the kernel tests.
pub const LAN_MAC: [u8; 6] = [2, 0, 0, 0x77, 0, 1];
pub const WAN_MAC: [u8; 6] = [2, 0, 0, 0x78, 0, 1];

/// Shortest length of an Ethernet frame without its check sequence (IEEE 802.3).
pub const SHORTEST: usize = 60;

pub const TCP: u8 = 6;
pub const UDP: u8 = 17;

pub fn mac(last: u8) -> [u8; 6] {
    [2, 0, 0, 0, 1, last]
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    pub source: SocketAddr,
    pub destination: SocketAddr,
    pub protocol: u8,
    pub hop_limit: u8,
    pub identification: u16,
    pub dont_fragment: bool,
    pub tcp_flags: u8,
    pub sequence: u32,
    pub acknowledgement: u32,
    pub payload: Vec<u8>,
    /// Number of bytes behind the packet. Network cards pad frames to 60 bytes (IEEE 802.3). They are not zero here.
    pub padding: usize,
    pub from: [u8; 6],
    pub to: [u8; 6],
}

impl Packet {
    /// A packet of a host of the LAN, whose address and MAC address end with the same number.
    pub fn from_host(source: SocketAddr, destination: SocketAddr, protocol: u8, host: u8) -> Packet {
        Packet {
            source,
            destination,
            protocol,
            hop_limit: 64,
            identification: 0,
            dont_fragment: true,
            tcp_flags: 0x10,
            sequence: 1,
            acknowledgement: 1,
            payload: Vec::new(),
            padding: 0,
            from: mac(host),
            to: LAN_MAC,
        }
    }

    pub fn marker(source_port: u16, port: u16) -> Packet {
        let source = SocketAddr::new(Ipv4Addr::new(192, 168, 77, 9).into(), source_port);
        let destination = SocketAddr::new(Ipv4Addr::new(203, 0, 113, 1).into(), port);
        Packet::from_host(source, destination, UDP, 9)
    }

    /// The reply of the remote end to this packet in the form in which it left, its source port being the same.
    pub fn translated_reply(&self) -> Packet {
        let translated = SocketAddr::new(translated(self.source.ip()), self.source.port());
        self.reply_to(translated)
    }

    pub fn reply_to(&self, translated: SocketAddr) -> Packet {
        Packet {
            source: self.destination,
            destination: translated,
            from: mac(9),
            to: WAN_MAC,
            ..self.clone()
        }
    }

    pub fn frame(&self) -> Vec<u8> {
        let mut transport =
            [self.source.port().to_be_bytes(), self.destination.port().to_be_bytes()].concat();
        let checksum_at = if self.protocol == UDP {
            transport.extend((8 + self.payload.len() as u16).to_be_bytes());
            transport.extend([0, 0]);
            6
        } else {
            transport.extend(self.sequence.to_be_bytes());
            transport.extend(self.acknowledgement.to_be_bytes());
            transport.extend([0x50, self.tcp_flags, 0x20, 0, 0, 0, 0, 0]);
            16
        };
        transport.extend(&self.payload);
        let checksum = !transport_sum(
            &octets(self.source.ip()),
            &octets(self.destination.ip()),
            self.protocol,
            &transport,
        );
        let checksum = if self.protocol == UDP && checksum == 0 { 0xffff } else { checksum };
        transport[checksum_at..checksum_at + 2].copy_from_slice(&checksum.to_ne_bytes());
        let length = transport.len() as u16;
        let mut frame = [self.to, self.from].concat();
        if self.source.is_ipv4() {
            frame.extend([8, 0]);
            let mut header = vec![0x45, 0x28];
            header.extend((20 + length).to_be_bytes());
            header.extend(self.identification.to_be_bytes());
            header.extend([
                if self.dont_fragment { 0x40 } else { 0 },
                0,
                self.hop_limit,
                self.protocol,
                0,
                0,
            ]);
            header.extend(octets(self.source.ip()));
            header.extend(octets(self.destination.ip()));
            let checksum = !fold(sum(&header));
            header[10..12].copy_from_slice(&checksum.to_ne_bytes());
            frame.extend(header);
        } else {
            frame.extend([0x86, 0xdd, 0x62, 0x81, 0x23, 0x45]);
            frame.extend(length.to_be_bytes());
            frame.extend([self.protocol, self.hop_limit]);
            frame.extend(octets(self.source.ip()));
            frame.extend(octets(self.destination.ip()));
        }
        frame.extend(transport);
        frame.resize(frame.len() + self.padding, 0xa5);
        frame
    }
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

pub(crate) fn transport_sum(source: &[u8], destination: &[u8], protocol: u8, transport: &[u8]) -> u16 {
    let mut pseudo = [source, destination].concat();
    pseudo.extend((transport.len() as u32).to_be_bytes());
    pseudo.extend([0, 0, 0, protocol]);
    fold(add(sum(&pseudo), sum(transport)))
}

/// Computes the checksum of a captured frame whose sender left that to the network card (`CHECKSUM_PARTIAL`): the field
/// holds only the sum of the pseudo-header. A virtual link passes such frames on as they are, which are the segments of
/// the kernel itself and those that it merged or split. Returns whether it was so.
pub fn complete_checksum(frame: &mut [u8]) -> bool {
    let number =
        |at: usize| frame.get(at..at + 2).map(|word| usize::from(word[0]) << 8 | usize::from(word[1]));
    let (at, end, protocol, addresses) = match frame.get(12..14) {
        // Fragments have no checksum of their own.
        Some([8, 0]) if frame.get(14) == Some(&0x45) && number(20).is_some_and(|word| word & 0x3fff == 0) => {
            (34, number(16).map(|length| 14 + length), frame.get(23).copied(), 26..34)
        }
        Some([0x86, 0xdd]) => (54, number(18).map(|length| 54 + length), frame.get(20).copied(), 22..54),
        _ => return false,
    };
    let field = match protocol {
        Some(UDP) => at + 6,
        Some(TCP) => at + 16,
        _ => return false,
    };
    let (Some(end), Some(protocol)) = (end, protocol) else { return false };
    if field + 2 > end || end > frame.len() {
        return false;
    }
    let length = (end - at) as u32;
    let pseudo = [&frame[addresses], &length.to_be_bytes(), &[0, 0, 0, protocol]].concat();
    if fold(sum(&pseudo)).to_ne_bytes() != frame[field..field + 2] {
        return false;
    }
    // The field is part of the sum.
    let checksum = !fold(sum(&frame[at..end]));
    let checksum = if protocol == UDP && checksum == 0 { 0xffff } else { checksum };
    frame[field..field + 2].copy_from_slice(&checksum.to_ne_bytes());
    true
}

/// Source address of packets of a host on the uplink.
pub fn translated(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => "198.51.100.2".parse().expect("an address"),
        IpAddr::V6(address) if address.segments()[0] == 0xfd77 => "2001:db8::2".parse().expect("an address"),
        global => global,
    }
}

/// A captured frame in a form that is equal for two gateways: conntrack draws translated ports at random, and the kernel
/// numbers its own ICMP messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    pub bytes: Vec<u8>,
    /// Source port of TCP and UDP.
    pub source_port: u16,
}

impl Shown {
    /// Reads a frame. All checksums must be valid. `to_wan` frames lose their source port.
    pub fn of(frame: &[u8], to_wan: bool) -> Option<Shown> {
        // Multicast: the gateway's own discovery.
        if frame.first()? & 1 != 0 {
            return None;
        }
        let mut bytes = frame.to_vec();
        let (at, protocol, source, destination) = match frame.get(12..14)? {
            [8, 0] => {
                assert_eq!(fold(sum(&frame[14..34])), 0xffff, "an invalid header checksum: {frame:02x?}");
                (34, frame[23], &frame[26..30], &frame[30..34])
            }
            [0x86, 0xdd] => (54, frame[20], &frame[22..38], &frame[38..54]),
            _ => return None,
        };
        // The gateway's own neighbour discovery.
        if protocol == 58 && frame[at] >= 130 {
            return None;
        }
        let length = match at {
            34 => u16::from_be_bytes([frame[16], frame[17]]) as usize - 20,
            _ => u16::from_be_bytes([frame[18], frame[19]]) as usize,
        };
        let padding = bytes.split_off(at + length);
        // Drivers pad what leaves by the IP stack.
        let is_padded =
            padding.is_empty() || frame.len() == SHORTEST && padding.iter().all(|byte| *byte == 0);
        assert!(is_padded, "padding: {frame:02x?}");
        let frame = &frame[..at + length];
        let is_fragment = at == 34 && (frame[20] & 0x3f, frame[21]) != (0, 0);
        let is_first = at == 54 || (frame[20] & 0x1f, frame[21]) == (0, 0);
        let mut source_port = 0;
        match protocol {
            TCP | UDP if is_first => {
                let folded = transport_sum(source, destination, protocol, &frame[at..]);
                assert!(is_fragment || folded == 0xffff, "an invalid checksum: {frame:02x?}");
                source_port = u16::from_be_bytes([frame[at], frame[at + 1]]);
                if to_wan {
                    let checksum = at + if protocol == UDP { 6 } else { 16 };
                    bytes[at..at + 2].fill(0);
                    bytes[checksum..checksum + 2].fill(0);
                }
            }
            1 => bytes[18..20].fill(0),
            _ => {}
        }
        if protocol == 1 {
            bytes[24..26].fill(0);
        }
        Some(Shown { bytes, source_port })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packets() -> Vec<Packet> {
        let ends = [("192.168.77.2:40000", "203.0.113.7:4433"), ("[fd77::2]:40000", "[2001:db8:9::7]:4433")];
        let all = ends.iter().flat_map(|(source, destination)| {
            [TCP, UDP].map(|protocol| {
                let (source, destination) = (source.parse().unwrap(), destination.parse().unwrap());
                // An odd length, whose last byte is padded.
                Packet { payload: vec![7, 8, 9], ..Packet::from_host(source, destination, protocol, 2) }
            })
        });
        all.collect()
    }

    /// Returns the offsets of the transport header and of its checksum.
    fn offsets(packet: &Packet) -> (usize, usize) {
        let at = if packet.source.is_ipv4() { 34 } else { 54 };
        (at, at + if packet.protocol == UDP { 6 } else { 16 })
    }

    /// Returns the frame as the kernel sends it with `CHECKSUM_PARTIAL`.
    fn partial(packet: &Packet) -> Vec<u8> {
        let mut frame = packet.frame();
        let (at, field) = offsets(packet);
        let (source, destination) = (octets(packet.source.ip()), octets(packet.destination.ip()));
        let length = (frame.len() - at) as u32;
        let pseudo = [source, destination, length.to_be_bytes().to_vec(), vec![0, 0, 0, packet.protocol]];
        let sum = fold(sum(&pseudo.concat()));
        frame[field..field + 2].copy_from_slice(&sum.to_ne_bytes());
        frame
    }

    #[test]
    fn sums_of_pseudo_headers_are_completed() {
        for packet in packets() {
            let mut frame = partial(&packet);
            assert_ne!(frame, packet.frame());
            assert!(complete_checksum(&mut frame), "{packet:?}");
            assert_eq!(frame, packet.frame(), "{packet:?}");
        }
    }

    #[test]
    fn whole_and_wrong_checksums_stay_as_they_are() {
        for packet in packets() {
            let whole = packet.frame();
            let mut frame = whole.clone();
            assert!(!complete_checksum(&mut frame), "{packet:?}");
            assert_eq!(frame, whole);
            let (_, field) = offsets(&packet);
            frame[field] ^= 0x10;
            let wrong = frame.clone();
            assert!(!complete_checksum(&mut frame), "{packet:?}");
            assert_eq!(frame, wrong);
        }
    }

    #[test]
    fn fragments_and_cut_frames_stay_as_they_are() {
        for packet in packets() {
            let frame = partial(&packet);
            for end in 0..frame.len() {
                assert!(!complete_checksum(&mut frame[..end].to_vec()), "{packet:?}, {end} bytes");
            }
        }
        let mut fragment = partial(&packets()[0]);
        fragment[20] = 0x20;
        assert!(!complete_checksum(&mut fragment));
    }
}

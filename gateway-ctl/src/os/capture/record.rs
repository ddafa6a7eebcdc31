//! Order of a capture, which the child reads, and the records that it writes.
//!
//! A record is its length in four bytes, the length of its JSON part in four bytes, the JSON part, and the bytes of a
//! packet. The daemon believes no length: the child has read bytes of others.

use std::io::{self, Read, Write};
use std::net::IpAddr;

use gateway_common::classify::IpPacket;
use gateway_common::wire::{Fragment, Mac, ServerNames};
use gateway_dissect::{LinkType, Summary};
use serde::{Deserialize, Serialize};

/// Maximum length of a record: the longest packet, its summary, and some room.
const MAX_RECORD_BYTES: usize = (256 << 10) + (64 << 10);

/// Order of a capture.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CaptureOrder {
    pub interfaces: Vec<OrderedInterface>,
    /// Filter expression of pcap-filter(7); empty without one.
    pub filter: String,
    pub max_packets: u64,
    pub max_seconds: u64,
    pub snaplen: u32,
    pub promiscuous: bool,
    /// Packets of TCP and UDP from or to these addresses and ports are left out.
    pub left_out: Vec<(IpAddr, u16)>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OrderedInterface {
    pub name: String,
    pub index: u32,
    pub link: LinkType,
    /// Its packets arrive a second time when they leave it.
    pub loopback: bool,
}

/// Failure of a capture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case", tag = "kind", content = "message")]
pub enum CaptureFailure {
    /// libpcap refused the filter, with this message.
    #[error("{0}")]
    Filter(String),
    #[error("libpcap, which compiles filters, is not installed: {0}")]
    NoLibpcap(String),
    #[error("{0}")]
    System(String),
}

/// Direction of a packet, seen from the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "CaptureDirection")]
pub enum Direction {
    In,
    Out,
}

/// Counters of the kernel for an interface of a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterfaceCounters {
    /// Packets that passed the filter.
    pub received: u64,
    /// Those of them that found no room in the ring.
    pub dropped: u64,
}

/// A packet.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CapturedFrame {
    /// Position in the list of the order.
    pub interface: usize,
    /// Nanoseconds since 1970.
    pub time_ns: u64,
    pub length: u32,
    pub direction: Direction,
    pub summary: Summary,
    pub flow: Option<PacketFlow>,
}

/// Record of the child.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Record {
    /// All sockets receive.
    Ready,
    Failed(CaptureFailure),
    /// The bytes of the packet follow.
    Packet(CapturedFrame),
    /// By the positions of the order.
    Counters(Vec<InterfaceCounters>),
    /// Packets that were left out, at the end of the capture.
    Ended {
        left_out: u64,
        end: ChildEnd,
    },
}

/// Cause of a capture's end, as far as the child knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChildEnd {
    Count,
    Duration,
    Stopped,
}

/// Fields of a packet that the decision function needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PacketFlow {
    pub mac: [u8; 6],
    pub source: IpAddr,
    pub destination: IpAddr,
    pub source_port: u16,
    pub destination_port: u16,
    pub protocol: u8,
    pub vlan: u16,
    pub opening: bool,
    pub payload: u8,
    pub later_fragment: bool,
    pub names: [u64; 4],
}

impl From<&IpPacket> for PacketFlow {
    fn from(packet: &IpPacket) -> PacketFlow {
        let address = |address: gateway_common::wire::Address| {
            if packet.ipv6 { IpAddr::V6(address.octets().into()) } else { address.into() }
        };
        PacketFlow {
            mac: packet.mac.octets(),
            source: address(packet.source),
            destination: address(packet.destination),
            source_port: packet.source_port,
            destination_port: packet.destination_port,
            protocol: packet.protocol,
            vlan: packet.vlan,
            opening: packet.opening,
            payload: packet.payload,
            later_fragment: packet.fragment == Fragment::Later,
            names: packet.names.0,
        }
    }
}

impl PacketFlow {
    /// Returns the packet as the decision function reads it.
    pub fn packet(&self, interface: u32, length: u32) -> IpPacket {
        IpPacket {
            source: self.source.into(),
            destination: self.destination.into(),
            interface,
            length,
            source_port: self.source_port,
            destination_port: self.destination_port,
            mac: Mac::new(self.mac),
            vlan: self.vlan,
            protocol: self.protocol,
            fragment: if self.later_fragment { Fragment::Later } else { Fragment::default() },
            ipv6: self.source.is_ipv6(),
            opening: self.opening,
            payload: self.payload,
            names: ServerNames(self.names),
            ..IpPacket::default()
        }
    }
}

/// Writes a record with the bytes of a packet.
pub(super) fn write(
    out: &mut impl Write,
    record: &Record,
    bytes: &[u8],
    buffer: &mut Vec<u8>,
) -> io::Result<()> {
    buffer.clear();
    serde_json::to_writer(&mut *buffer, record)?;
    let size = |length: usize| u32::try_from(length).map_err(io::Error::other);
    out.write_all(&size(buffer.len() + bytes.len())?.to_le_bytes())?;
    out.write_all(&size(buffer.len())?.to_le_bytes())?;
    out.write_all(buffer)?;
    out.write_all(bytes)
}

/// Reader of the records of a child.
#[derive(Debug)]
pub struct RecordReader<R> {
    from: R,
    buffer: Vec<u8>,
}

impl<R: Read> RecordReader<R> {
    pub fn new(from: R) -> Self {
        Self { from, buffer: Vec::new() }
    }

    /// Returns the reader below.
    pub fn get_ref(&self) -> &R {
        &self.from
    }

    /// Returns the next record and the bytes of its packet. `None` at the end.
    pub fn read_record(&mut self) -> io::Result<Option<(Record, &[u8])>> {
        let mut head = [0; 8];
        match self.from.read_exact(&mut head) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            read => read?,
        }
        let size = |bytes: &[u8]| bytes.iter().rev().fold(0, |size, byte| size << 8 | usize::from(*byte));
        let (length, json) = (size(&head[..4]), size(&head[4..]));
        if length > MAX_RECORD_BYTES || json > length {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a record has a wrong length"));
        }
        self.buffer.resize(length, 0);
        self.from.read_exact(&mut self.buffer)?;
        let (json, bytes) = self.buffer.split_at(json);
        Ok(Some((serde_json::from_slice(json)?, bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_as_they_were_written() {
        let (mut out, mut buffer) = (Vec::new(), Vec::new());
        write(&mut out, &Record::Ready, &[], &mut buffer).expect("written");
        let frame = CapturedFrame {
            interface: 1,
            time_ns: 7,
            length: 60,
            direction: Direction::Out,
            summary: gateway_dissect::Dissector::default().summarize(LinkType::Raw, &[0x45]),
            flow: None,
        };
        write(&mut out, &Record::Packet(frame), &[1, 2, 3], &mut buffer).expect("written");
        let mut reader = RecordReader::new(&out[..]);
        assert!(matches!(reader.read_record(), Ok(Some((Record::Ready, [])))));
        assert!(
            matches!(reader.read_record(), Ok(Some((Record::Packet(frame), [1, 2, 3]))) if frame.time_ns == 7)
        );
        assert!(matches!(reader.read_record(), Ok(None)));
    }

    #[test]
    fn record_with_a_wrong_length_is_refused() {
        for head in [[0xff; 8], [4, 0, 0, 0, 5, 0, 0, 0]] {
            assert!(RecordReader::new(&head[..]).read_record().is_err(), "{head:?}");
        }
        assert!(RecordReader::new(&[4, 0, 0, 0, 4, 0, 0, 0, b'"'][..]).read_record().is_err(), "cut off");
    }
}

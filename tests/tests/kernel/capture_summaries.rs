//! Summaries of captured packets against tshark: the same addresses and protocol for generated packets, for recorded traffic of
//! real clients (`tests/data/captures`), and for nearly all packets of captures that may be beside the repository.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gateway_dissect::{Dissector, LinkType, Protocol, Summary};
use gateway_tests::packets::{Packet, UDP};
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapReader, PcapWriter};
use pcap_file::pcapng::{Block, PcapNgReader};
use pcap_file::{DataLink, PcapError};

use crate::kernel::captures::files;

/// Type of the first block of a pcapng file.
const PCAPNG: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
/// Share of packets that may differ, in percent. tshark shows no TLS in a segment that begins within a record.
const MAX_DIFFERENT_PERCENT: usize = 1;
const MAX_DIFFERENT_PERCENT_OF_RECORDED: usize = 2;
/// Each packet stands for itself, as in a summary.
const WITHOUT_REASSEMBLY: [&str; 5] = [
    "tcp.desegment_tcp_streams:FALSE",
    "ip.defragment:FALSE",
    "ipv6.defragment:FALSE",
    "tls.desegment_ssl_records:FALSE",
    "tls.desegment_ssl_application_data:FALSE",
];

/// Protocols of the recorded traffic.
const RECORDED: [Protocol; 10] = [
    Protocol::Arp,
    Protocol::Icmp,
    Protocol::Icmpv6,
    Protocol::Tcp,
    Protocol::Dns,
    Protocol::Mdns,
    Protocol::Dhcp,
    Protocol::Dhcpv6,
    Protocol::Tls,
    Protocol::Quic,
];

/// Source, destination and protocol.
type Shown = (String, String, Option<Protocol>);

/// Returns what tshark shows of the packets of a file, by their number.
fn shown_by_tshark(path: &Path) -> BTreeMap<usize, Shown> {
    let mut command = Command::new("tshark");
    command.args(["-n", "-T", "fields", "-E", "occurrence=l"]);
    command.args(WITHOUT_REASSEMBLY.iter().flat_map(|option| ["-o", option]));
    let fields = ["frame.number", "_ws.col.Source", "_ws.col.Destination", "frame.protocols"];
    command.args(fields.iter().flat_map(|field| ["-e", field]));
    let output = command.arg("-r").arg(path).output().expect("tshark of `cargo xtask setup`");
    let text = String::from_utf8_lossy(&output.stdout);
    let line = |line: &str| {
        let [number, source, destination, protocols] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        let shown = (source.to_owned(), destination.to_owned(), innermost(protocols));
        (number.parse().expect("a number"), shown)
    };
    text.lines().map(line).collect()
}

/// Returns the innermost protocol of a chain that summaries know. What other protocols carry does not count.
fn innermost(chain: &str) -> Option<Protocol> {
    let mut found = None;
    for name in chain.split(':') {
        let protocol = match name {
            "eth" => Protocol::Ethernet,
            "arp" => Protocol::Arp,
            "ip" => Protocol::Ipv4,
            "ipv6" => Protocol::Ipv6,
            "igmp" => Protocol::Igmp,
            "tcp" => Protocol::Tcp,
            "udp" => Protocol::Udp,
            "dns" => return Some(Protocol::Dns),
            "mdns" => return Some(Protocol::Mdns),
            "dhcp" => return Some(Protocol::Dhcp),
            "dhcpv6" => return Some(Protocol::Dhcpv6),
            "tls" => return Some(Protocol::Tls),
            "quic" => return Some(Protocol::Quic),
            "wg" => return Some(Protocol::Wireguard),
            "stun" | "classicstun" => return Some(Protocol::Stun),
            // Their content is a part of another packet.
            "icmp" => return Some(Protocol::Icmp),
            "icmpv6" => return Some(Protocol::Icmpv6),
            "ethertype" | "vlan" | "vxlan" | "teredo" | "gre" | "sll" | "ppp" | "raw" | "null" => continue,
            other if other.starts_with("ipv6.") => continue,
            _ => return found,
        };
        found = Some(protocol);
    }
    found
}

/// Returns the summaries of the packets of a file. Records behind a damaged one are left out.
fn summaries(path: &Path) -> Vec<Summary> {
    let file = fs::read(path).expect("a capture");
    let mut dissector = Dissector::default();
    let mut found = Vec::new();
    let mut add = |link: DataLink, bytes: &[u8]| {
        let link = match link {
            DataLink::ETHERNET => LinkType::Ethernet,
            DataLink::RAW => LinkType::Raw,
            DataLink::LINUX_SLL => LinkType::LinuxSll,
            DataLink::PPP => LinkType::Ppp,
            DataLink::NULL => LinkType::Null,
            other => panic!("{}: {other:?}", path.display()),
        };
        found.push(dissector.summarize(link, bytes));
    };
    if file.starts_with(&PCAPNG) {
        let mut reader = PcapNgReader::new(&file[..]).expect("a capture");
        while let Some(Ok(block)) = reader.next_block() {
            if let Block::EnhancedPacket(packet) = block {
                let (number, data) = (packet.interface_id as usize, packet.data.into_owned());
                let link = reader.interfaces().get(number).map(|interface| interface.linktype);
                add(link.expect("an interface"), &data);
            }
        }
    } else {
        let mut reader = PcapReader::new(&file[..]).expect("a capture");
        let link = reader.header().datalink;
        loop {
            match reader.next_raw_packet() {
                Some(Ok(packet)) => add(link, &packet.data),
                Some(Err(
                    PcapError::IncompleteBuffer | PcapError::InvalidField(_) | PcapError::IoError(_),
                ))
                | None => {
                    break;
                }
                Some(Err(error)) => panic!("{}: {error}", path.display()),
            }
        }
    }
    found
}

/// Returns the number of packets, and the lines about those on which tshark does not agree.
fn compare(path: &Path) -> (usize, Vec<String>) {
    let (wanted, have) = (shown_by_tshark(path), summaries(path));
    let name = path.file_name().expect("a name").to_string_lossy();
    let differences = wanted.iter().filter_map(|(number, wanted)| {
        let summary = have.get(number - 1);
        let shown = summary.map(|one| (one.source.clone(), one.destination.clone(), Some(one.protocol)));
        if shown.as_ref() == Some(wanted) {
            return None;
        }
        Some(format!("{name} {number}: tshark {wanted:?}, here {shown:?} {:?}", summary.map(|one| &one.info)))
    });
    let differences = differences.collect();
    (wanted.len(), differences)
}

#[test]
fn summaries_of_generated_packets_are_those_of_tshark() {
    let query = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x03www\x07example\x03com\0\0\x01\0\x01";
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("generated.pcap");
    let header = PcapHeader { datalink: DataLink::ETHERNET, ..PcapHeader::default() };
    let file = fs::File::create(&path).expect("a file");
    let mut writer = PcapWriter::with_header(file, header).expect("a writer");
    let ends = [
        ("192.0.2.1:4000", "198.51.100.1:53"),
        ("[2001:db8::1]:4000", "[2001:db8::2]:5353"),
        ("192.0.2.1:9", "192.0.2.2:10"),
    ];
    for (source, destination) in ends {
        let (source, destination) = (source.parse().expect("one"), destination.parse().expect("another"));
        let packet = Packet { payload: query.to_vec(), ..Packet::from_host(source, destination, UDP, 2) };
        let frame = packet.frame();
        let length = u32::try_from(frame.len()).expect("a short frame");
        let packet = PcapPacket::new(std::time::Duration::from_secs(1), length, &frame);
        writer.write_packet(&packet).expect("written");
    }
    drop(writer);
    let protocols: Vec<Protocol> = summaries(&path).iter().map(|summary| summary.protocol).collect();
    assert_eq!(protocols, [Protocol::Dns, Protocol::Mdns, Protocol::Dns]);
    assert_eq!(compare(&path), (3, vec![]));
}

/// Compares the summaries of some files with what tshark shows. Returns the number of packets.
fn compare_all(files: &[PathBuf], max_different_percent: usize) -> usize {
    let (mut packets, mut differences) = (0, Vec::new());
    for path in files {
        let (of_file, different) = compare(path);
        packets += of_file;
        differences.extend(different);
    }
    println!("{}", differences.join("\n"));
    println!("{} of {packets} packets differ", differences.len());
    assert!(differences.len() * 100 <= packets * max_different_percent, "{} of {packets}", differences.len());
    packets
}

#[test]
fn summaries_of_recorded_traffic_are_those_of_tshark() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/captures");
    let entries = fs::read_dir(&folder).expect("the captures").map(|entry| entry.expect("a file").path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|end| end == "pcap")).collect();
    files.sort();
    assert!(compare_all(&files, MAX_DIFFERENT_PERCENT_OF_RECORDED) > 200);
    let found: BTreeSet<Protocol> =
        files.iter().flat_map(|path| summaries(path)).map(|summary| summary.protocol).collect();
    for protocol in RECORDED {
        assert!(found.contains(&protocol), "{protocol:?} is in no capture of {}", folder.display());
    }
}

#[test]
fn summaries_of_real_traffic_are_those_of_tshark() {
    let files = files();
    if files.is_empty() {
        let test = "kernel::capture_summaries::summaries_of_real_traffic_are_those_of_tshark";
        gateway_tests::skipped::report(test, "no captures at ../shared/data/pcaps");
        return;
    }
    compare_all(&files, MAX_DIFFERENT_PERCENT);
}

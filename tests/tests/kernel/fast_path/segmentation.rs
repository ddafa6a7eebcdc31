//! Segmentation offload: a packet that the hardware is to split stays whole on the fast path, with what it needs for that.

use std::io::ErrorKind;
use std::os::fd::AsRawFd as _;

use gateway_common::checksum::{fold, sum};
use gateway_common::wire::FastCounter;
use gateway_tests::netns::{self, Namespace};
use gateway_tests::packet_socket::{ALL_PROTOCOLS, link_address};
use socket2::{Domain, Protocol, Socket, Type};

use super::packet::{Packet, TCP, WAN_MAC};
use super::testbed::Testbed;
use super::{assert_same, converse, flows, show};

/// Length of the header before each frame (`struct virtio_net_hdr` of linux/virtio_net.h).
const PREFIX: usize = 10;
const NEEDS_CHECKSUM: u8 = 1;
const TCP_V4: u8 = 1;
const TCP_V6: u8 = 4;
const SEGMENTS: usize = 7;

/// Opens a packet socket whose frames have the header of their offloads.
fn open(namespace: &Namespace, interface: &str) -> Socket {
    namespace.within(|| {
        let all = i32::from((libc::ETH_P_ALL as u16).to_be());
        let socket = Socket::new(Domain::PACKET, Type::RAW, Some(Protocol::from(all))).expect("a socket");
        let (on, length) = (1i32, size_of::<i32>() as libc::socklen_t);
        // SAFETY: the option is an integer of this length.
        let result = unsafe {
            let value = (&raw const on).cast();
            libc::setsockopt(socket.as_raw_fd(), libc::SOL_PACKET, libc::PACKET_VNET_HDR, value, length)
        };
        assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
        socket.bind(&link_address(interface, ALL_PROTOCOLS).expect("an address")).expect("bound");
        socket.set_nonblocking(true).expect("nonblocking");
        socket
    })
}

/// Returns a packet that the hardware is to split into segments of `length` bytes, with its header.
fn offloaded(flow: &Packet, length: u16) -> Vec<u8> {
    let payload = vec![0x5a; SEGMENTS * usize::from(length)];
    let mut frame = Packet { payload, tcp_flags: 0x18, ..flow.clone() }.frame();
    let (kind, headers, addresses) = match flow.source.is_ipv4() {
        true => (TCP_V4, 34, 26..34),
        false => (TCP_V6, 54, 22..54),
    };
    let segment = (frame.len() - headers) as u16;
    let pseudo = [&frame[addresses], &[0, TCP], &segment.to_be_bytes()].concat();
    let partial = fold(sum(&pseudo));
    frame[headers + 16..headers + 18].copy_from_slice(&partial.to_ne_bytes());
    let words = [headers as u16 + 20, length, headers as u16, 16];
    [vec![NEEDS_CHECKSUM, kind], words.iter().flat_map(|word| word.to_ne_bytes()).collect(), frame].concat()
}

/// Returns the packets that left to the uplink with more than one segment, without the translated port.
fn taken(socket: &Socket) -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    loop {
        let mut buffer = [std::mem::MaybeUninit::uninit(); 70_000];
        let length = match socket.recv(&mut buffer) {
            Ok(length) => length,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return packets,
            Err(error) => panic!("{error}"),
        };
        // SAFETY: the kernel has written this many bytes.
        let mut packet: Vec<u8> = buffer[..length].iter().map(|byte| unsafe { byte.assume_init() }).collect();
        if packet.get(PREFIX + 6..PREFIX + 12) == Some(&WAN_MAC[..]) && length > 1500 {
            let ports = PREFIX + if packet[PREFIX + 12] == 8 { 34 } else { 54 };
            packet[ports..ports + 2].fill(0);
            // The kernel may say where the headers end, or leave it out.
            packet[2..4].fill(0);
            packets.push(packet);
        }
    }
}

#[test]
fn packets_that_the_hardware_splits_stay_whole() {
    netns::require_root().expect("root");
    let (mut on, mut off) = (Testbed::build(), Testbed::build());
    on.turn_on();
    for flow in flows().iter().filter(|flow| flow.protocol == TCP) {
        let seen = [&mut on, &mut off].map(|testbed| {
            converse(testbed, flow);
            let before = testbed.counted(FastCounter::Forwarded);
            let from = open(&testbed.namespaces[0], "host0");
            let to = open(&testbed.namespaces[1], "net0");
            for _ in 0..4 {
                from.send(&offloaded(flow, 1300)).expect("sent");
            }
            testbed.received();
            (taken(&to), testbed.counted(FastCounter::Forwarded) - before)
        });
        let [(with, forwarded), (without, stack_only)] = seen;
        // One of them may be a probe.
        assert!(forwarded >= 3 && stack_only == 0, "{forwarded} {stack_only} {flow:?}");
        assert_eq!(with.len(), 4, "{flow:?}");
        assert_eq!(with, without, "{flow:?}");
        for packet in &with {
            let gso_size = u16::from_ne_bytes([packet[4], packet[5]]);
            assert_eq!((packet[0], gso_size), (NEEDS_CHECKSUM, 1300), "{flow:?}");
            assert!(packet.len() > SEGMENTS * 1300, "{flow:?}");
        }
    }
}

#[test]
fn segments_longer_than_the_link_take_the_ip_stack() {
    netns::require_root().expect("root");
    let (mut on, mut off) = (Testbed::build(), Testbed::build());
    on.turn_on();
    for flow in flows().iter().filter(|flow| flow.protocol == TCP) {
        let before = on.counted(FastCounter::Exceptional);
        let [with, without] = [&mut on, &mut off].map(|testbed| {
            converse(testbed, flow);
            let from = open(&testbed.namespaces[0], "host0");
            // With its headers, longer than the uplink's MTU of 1400.
            from.send(&offloaded(flow, 1390)).expect("sent");
            let (to_lan, to_wan) = testbed.received();
            assert!(to_wan.is_empty(), "{flow:?}");
            show(&to_lan, false)
        });
        assert_eq!(on.counted(FastCounter::Exceptional) - before, 1, "{flow:?}");
        assert_eq!(with.len(), 1, "an ICMP message: {flow:?}");
        assert_same(&with, &without, flow);
    }
}

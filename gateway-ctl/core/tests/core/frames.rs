//! Frames that a device of the fixture sends.

use std::net::IpAddr;

use gateway_common::classify::{TCP, UDP};

/// Returns a frame of the device to an address.
pub(crate) fn frame(to: &str, protocol: u8, transport: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 1, 1, 2, 0, 0, 0, 0, 1];
    let length = u16::try_from(transport.len()).expect("a short packet");
    match to.parse().expect("an address") {
        IpAddr::V4(to) => {
            frame.extend([8, 0, 0x45, 0]);
            frame.extend((length + 20).to_be_bytes());
            frame.extend([0, 0, 0, 0, 64, protocol, 0, 0, 192, 168, 1, 7]);
            frame.extend(to.octets());
        }
        IpAddr::V6(to) => {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
            frame.extend(length.to_be_bytes());
            frame.extend([protocol, 64]);
            frame.extend([0xfd, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7]);
            frame.extend(to.octets());
        }
    }
    frame.extend(transport);
    frame
}

pub(crate) fn udp(to: &str, port: u16, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(payload.len() + 8).expect("a short datagram");
    let header = [40_000u16.to_be_bytes(), port.to_be_bytes(), length.to_be_bytes(), [0; 2]].concat();
    frame(to, UDP, &[&header, payload].concat())
}

pub(crate) fn segment(to: &str, port: u16, flags: u8, payload: &[u8]) -> Vec<u8> {
    let ports = [40_000u16.to_be_bytes(), port.to_be_bytes()].concat();
    let rest = [0, 0, 0, 1, 0, 0, 0, 1, 0x50, flags, 1, 0, 0, 0, 0, 0];
    frame(to, TCP, &[&ports[..], &rest, payload].concat())
}

/// A ClientHello of TLS 1.3 (RFC 8446, section 4.1.2) in one record.
pub(crate) fn client_hello(name: &str) -> Vec<u8> {
    let long = |number: usize| u16::try_from(number).expect("short").to_be_bytes();
    let name_list = [&[0u8][..], &long(name.len()), name.as_bytes()].concat();
    let server_name =
        [&[0u8, 0][..], &long(name_list.len() + 2), &long(name_list.len()), &name_list].concat();
    let versions = [0, 43, 0, 3, 2, 3, 4];
    let extensions = [&versions[..], &server_name].concat();
    let body =
        [&[3, 3][..], &[5; 32], &[0, 0, 2, 0x13, 1, 1, 0], &long(extensions.len()), &extensions].concat();
    let message = [&[1, 0][..], &long(body.len()), &body].concat();
    [&[0x16, 3, 1][..], &long(message.len()), &message].concat()
}

pub(crate) fn quic_initial() -> Vec<u8> {
    let mut packet = [&[0xc3u8, 0, 0, 0, 1, 8][..], &[9; 8], &[0, 0]].concat();
    packet.resize(1200, 0);
    packet
}

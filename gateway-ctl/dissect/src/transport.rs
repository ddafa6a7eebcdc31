//! Headers of TCP and UDP, and the choice of the protocol above them.

use std::net::IpAddr;

use etherparse::{TcpSlice, UdpSlice};

use crate::connections::Dissector;
use crate::{Endpoints, Protocol, Summary, application};

/// Reads a segment of TCP.
pub(crate) fn read_tcp(
    dissector: &mut Dissector,
    (source, destination): (IpAddr, IpAddr),
    bytes: &[u8],
    summary: &mut Summary,
) {
    summary.protocol = Protocol::Tcp;
    let Ok(segment) = TcpSlice::from_slice(bytes) else {
        let ports = bytes.first_chunk::<4>();
        summary.source_port = ports.map(|ports| u16::from_be_bytes([ports[0], ports[1]]));
        summary.destination_port = ports.map(|ports| u16::from_be_bytes([ports[2], ports[3]]));
        "malformed or cut off".clone_into(&mut summary.info);
        return;
    };
    let endpoints = Endpoints {
        source: (source, segment.source_port()),
        destination: (destination, segment.destination_port()),
    };
    summary.source_port = Some(segment.source_port());
    summary.destination_port = Some(segment.destination_port());
    let payload = segment.payload();
    summary.info = tcp_info(&segment, payload.len());
    if payload.is_empty() {
        return;
    }
    application::read_stream(dissector, &endpoints, payload, summary);
}

fn tcp_info(segment: &TcpSlice<'_>, length: usize) -> String {
    let flags = [
        (segment.syn(), "SYN"),
        (segment.fin(), "FIN"),
        (segment.rst(), "RST"),
        (segment.psh(), "PSH"),
        (segment.ack(), "ACK"),
    ];
    let set: Vec<&str> = flags.iter().filter(|flag| flag.0).map(|flag| flag.1).collect();
    format!(
        "{} > {} [{}] seq {} ack {} window {} length {length}",
        segment.source_port(),
        segment.destination_port(),
        set.join(", "),
        segment.sequence_number(),
        segment.acknowledgment_number(),
        segment.window_size(),
    )
}

/// Reads the header of a datagram of UDP. Returns its ends and its payload.
pub(crate) fn read_udp<'a>(
    (source, destination): (IpAddr, IpAddr),
    bytes: &'a [u8],
    summary: &mut Summary,
) -> Option<(Endpoints, &'a [u8])> {
    summary.protocol = Protocol::Udp;
    let Ok(datagram) = UdpSlice::from_slice_lax(bytes) else {
        "malformed or cut off".clone_into(&mut summary.info);
        return None;
    };
    let endpoints = Endpoints {
        source: (source, datagram.source_port()),
        destination: (destination, datagram.destination_port()),
    };
    summary.source_port = Some(datagram.source_port());
    summary.destination_port = Some(datagram.destination_port());
    let payload = datagram.payload();
    summary.info =
        format!("{} > {} length {}", datagram.source_port(), datagram.destination_port(), payload.len());
    Some((endpoints, payload))
}

/// Reads the payload of a datagram.
pub(crate) fn read_datagram(
    dissector: &mut Dissector,
    endpoints: &Endpoints,
    payload: &[u8],
    summary: &mut Summary,
) {
    if !payload.is_empty() {
        application::read_datagram(dissector, endpoints, payload, summary);
    }
}

//! QUIC packets (RFC 9000, section 17), and the server name in the client's first ones.

use gateway_core::quic_initial::{Handshake, Header, Version, header};
use rustls::SupportedCipherSuite;
use rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256;
use rustls::quic::{self, Keys};

use crate::tls;

/// Maximum length of a packet number; the sample of header protection begins behind it (RFC 9001, section 5.4.2).
const MAX_PACKET_NUMBER: usize = 4;
/// Maximum length of a connection ID of version 1.
const MAX_CONNECTION_ID: u8 = 20;

/// Returns the frames of an Initial packet, whose keys come from a connection ID in plain text (RFC 9001, section 5).
/// `None` if it does not have the keys of this connection ID. Decision 0102 says why.
pub fn frames(datagram: &[u8], header: &Header<'_>, connection_id: &[u8]) -> Option<Vec<u8>> {
    let SupportedCipherSuite::Tls13(suite) = TLS13_AES_128_GCM_SHA256 else { return None };
    let version = match header.version {
        Version::V1 => quic::Version::V1,
        Version::V2 => quic::Version::V2,
    };
    let keys = Keys::initial(version, suite, suite.quic?, connection_id, rustls::Side::Server).remote;
    let mut packet = datagram.get(..header.end)?.to_vec();
    let (head, rest) = packet.split_at_mut_checked(header.packet_number)?;
    let (number, rest) = rest.split_at_mut_checked(MAX_PACKET_NUMBER)?;
    let sample = rest.get(..keys.header.sample_len())?;
    keys.header.decrypt_in_place(sample, head.first_mut()?, number).ok()?;
    let length = usize::from(packet[0] & 3) + 1;
    let (head, payload) = packet.split_at_mut(header.packet_number + length);
    let number = head[header.packet_number..].iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
    let frames = keys.packet.decrypt_in_place(number, head, payload).ok()?;
    Some(frames.to_vec())
}

/// Returns the text about a datagram that begins with a packet with a long header. `None` if it does not.
pub(crate) fn read_long(datagram: &[u8]) -> Option<String> {
    let (first, version) = long_header(datagram)?;
    let name = match (version, first >> 4 & 3) {
        (0, _) => "version negotiation".to_owned(),
        (0x6b33_43cf, 1) | (_, 0) if version != 0x6b33_43cf || first >> 4 & 3 == 1 => initial(datagram),
        (0x6b33_43cf, 2) | (_, 1) => "0-RTT".to_owned(),
        (0x6b33_43cf, 3) | (_, 2) => "handshake".to_owned(),
        _ => "retry".to_owned(),
    };
    Some(format!("{name}, {} bytes", datagram.len()))
}

/// Reports whether a datagram may begin with a packet with a short header.
pub(crate) fn is_short(datagram: &[u8]) -> bool {
    datagram.len() >= 21 && datagram[0] & 0xc0 == 0x40
}

/// Returns the first byte and the version of a long header.
fn long_header(datagram: &[u8]) -> Option<(u8, u32)> {
    let (first, rest) = datagram.split_first()?;
    let version = u32::from_be_bytes(*rest.first_chunk()?);
    // The fixed bit is clear in version negotiation only.
    if first & 0x80 == 0 || first & 0x40 == 0 && version != 0 || !is_version(version) {
        return None;
    }
    let destination = *datagram.get(5)?;
    let source = *datagram.get(6 + usize::from(destination))?;
    let is_short = destination <= MAX_CONNECTION_ID && source <= MAX_CONNECTION_ID;
    (is_short && datagram.len() > 7 + usize::from(destination) + usize::from(source))
        .then_some((*first, version))
}

/// Versions 1 and 2, drafts, reserved ones, and version negotiation.
fn is_version(version: u32) -> bool {
    matches!(version, 0 | 1 | 0x6b33_43cf)
        || version & 0xffff_ff00 == 0xff00_0000
        || version & 0x0f0f_0f0f == 0x0a0a_0a0a
        || version & 0xffff_fff0 == 0xface_b000
}

fn initial(datagram: &[u8]) -> String {
    let Some(header) = header(datagram) else { return "initial".to_owned() };
    let Some(frames) = frames(datagram, &header, header.connection_id) else { return "initial".to_owned() };
    let mut stream = Handshake::default();
    stream.add(&frames);
    match stream.bytes() {
        [] => "initial".to_owned(),
        bytes => format!("initial, {}", tls::handshake(bytes)),
    }
}

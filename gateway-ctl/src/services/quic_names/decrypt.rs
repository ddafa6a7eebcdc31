//! Decryption of the client's Initial packets, whose keys come from a connection ID in plain text (RFC 9001, section 5).
//!
//! Decision 0102 says why.

use gateway_core::quic_initial::{Header, Version};
use rustls::SupportedCipherSuite;
use rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256;
use rustls::quic::{self, Keys};

/// Maximum length of a packet number; the sample of header protection begins behind it (RFC 9001, section 5.4.2).
const MAX_PACKET_NUMBER: usize = 4;

/// Returns the frames of the packet. `None` if it does not have the keys of this connection ID.
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

//! Target: Initial packets of QUIC.

use gateway_core::quic_initial::{Handshake, Name, header};

/// Reads packets, each behind its length of two bytes. Checks that a name that is known stays, also when each packet
/// arrives twice.
pub fn quic_initial(data: &[u8]) {
    let mut left = data;
    let (mut once, mut twice) = (Handshake::default(), Handshake::default());
    let mut known = Name::Open;
    while let Some((length, rest)) = left.split_first_chunk::<2>() {
        let (packet, rest) = rest.split_at(usize::from(u16::from_be_bytes(*length)).min(rest.len()));
        left = rest;
        if let Some(header) = header(packet) {
            assert!(header.packet_number <= header.end && header.end <= packet.len(), "{header:?}");
        }
        once.add(packet);
        twice.add(packet);
        twice.add(packet);
        assert_eq!(once.name(), twice.name(), "a packet that arrives twice");
        if known != Name::Open {
            assert_eq!(once.name(), known, "the name changes");
        }
        known = once.name();
    }
}

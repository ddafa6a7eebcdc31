//! Target: a ClientHello in one segment and in two.

use gateway_common::classify::{Classified, IpPacket, TCP, classify};
use gateway_common::client_hello::{begin, resume};
use gateway_common::wire::{ServerNames, flow_flags};

/// Checks that a ClientHello is read without harm, and that two segments show no other name than one. Two bytes say
/// where the second segment begins.
pub fn client_hello(data: &[u8]) {
    let Some((cut, stream)) = data.split_first_chunk::<2>() else { return };
    let cut = usize::from(u16::from_be_bytes(*cut)).min(stream.len());
    let whole = read(&frame(0, stream), begin);
    let first = read(&frame(0, &stream[..cut]), begin);
    if whole.payload & flow_flags::HELLO == 0 || first.payload != flow_flags::HELLO_OPEN {
        return;
    }
    let second = read(&frame(cut, &stream[cut..]), |frame, packet| {
        packet.hello = first.hello;
        resume(frame, packet)
    });
    let is_named = |packet: &IpPacket| packet.names != ServerNames::default();
    if is_named(&whole) && is_named(&second) {
        assert_eq!(whole.names, second.names, "two segments have another name than one");
    }
}

fn read(frame: &[u8], read: impl Fn(&[u8], &mut IpPacket) -> u32) -> IpPacket {
    let Ok(Classified::Ip(mut packet)) = classify(frame, 1) else { panic!("no IP packet") };
    read(frame, &mut packet);
    packet
}

/// Returns a frame with the payload of a TCP connection from this place on.
fn frame(place: usize, payload: &[u8]) -> Vec<u8> {
    let sequence = u32::try_from(place).expect("fuzzed streams are short");
    let mut frame = vec![2; 12];
    frame.extend([8, 0, 0x45, 0, 0, 40, 0, 0, 0, 0, 64, TCP, 0, 0, 10, 0, 0, 2, 203, 0, 113, 7]);
    frame.extend([0xc0, 0, 1, 0xbb]);
    frame.extend(sequence.to_be_bytes());
    frame.extend([0, 0, 0, 0, 0x50, 0x18, 1, 0, 0, 0, 0, 0]);
    frame.extend(payload);
    frame
}

//! Server name in the ClientHello of TLS (RFC 8446, section 4.1.2; RFC 6066, section 3) at the beginning of a TCP
//! connection. It may go on in later segments.

use core::hint::black_box;

use crate::blocks::is_https;
use crate::classify::{IpPacket, TCP};
use crate::packet::Packet;
use crate::wire::fields_before_extensions as field;
use crate::wire::{HelloProgress, NAME, ServerNames, flow_flags};

/// Length of the header of a record.
const RECORD: usize = 5;
/// Offset of the session id in a handshake message: behind its header, the version and the random bytes.
const SESSION_ID: usize = 4 + 2 + 32;
/// Number of fields from the session id to the length of the extensions.
const FIELDS: usize = 4;
/// Maximum number of extensions. Browsers send about 20.
const MAX_EXTENSIONS: usize = 40;
const SERVER_NAME: u16 = 0;
/// Header of an extension: type and length.
const EXTENSION: usize = 4;
/// Offset of the name in its extension: behind the length of the list, its type and its length.
const NAME_IN_EXTENSION: usize = 5;

/// Maximum length of a TCP header (RFC 9293, section 3.1): a segment that is no longer may have no payload.
const MAX_TCP_HEADER: u32 = 60;

/// Reports whether a connection to a port of HTTPS has not sent its whole ClientHello yet. Clients of other protocols there are
/// known by a segment that is longer than all headers.
#[inline(always)]
pub const fn is_awaited(packet: &IpPacket, shown: u8) -> bool {
    let may_be_empty = packet.length <= packet.transport as u32 + MAX_TCP_HEADER;
    let is_open = shown & flow_flags::HELLO_OPEN != 0;
    packet.protocol == TCP
        && is_https(packet.destination_port)
        && shown & flow_flags::HELLO == 0
        && (is_open || may_be_empty)
}

/// Reads the names of a ClientHello that begins in this segment. If it goes on in the next one, the payload is
/// [`flow_flags::HELLO_OPEN`] instead.
// Separate functions in the kernel program, because the stack is small.
#[inline(never)]
pub fn begin<P: Packet + ?Sized>(packet: &P, ip: &mut IpPacket) -> u32 {
    ip.names = ServerNames::default();
    ip.payload = flow_flags::HELLO;
    let Some((sequence, payload)) = payload(packet, ip) else { return 0 };
    let handshake = payload + RECORD;
    message(packet, ip, sequence.wrapping_sub(payload as u32), handshake)
}

/// Returns the names of a ClientHello that begins here, as far as these bytes show them.
pub fn names(handshake: &[u8]) -> ServerNames {
    let mut ip = IpPacket::default();
    message(handshake, &mut ip, 0, 0);
    ip.names
}

/// Reads a handshake message.
#[inline(always)]
fn message<P: Packet + ?Sized>(packet: &P, ip: &mut IpPacket, base: u32, handshake: usize) -> u32 {
    fields(packet, ip, base, handshake + SESSION_ID, field::SESSION_ID)
}

/// Reads a message from one of the fields before the extensions on. A segment may end before each of them; a field that two
/// segments share is not read.
#[inline(never)]
fn fields<P: Packet + ?Sized>(packet: &P, ip: &mut IpPacket, base: u32, mut at: usize, mut next: u32) -> u32 {
    for _ in 0..FIELDS {
        let width = if next == field::SESSION_ID || next == field::COMPRESSION_METHODS { 1 } else { 2 };
        let length = match width {
            1 => packet.load::<u8>(at).map(|length| length as usize),
            _ => packet.load::<u16>(at).map(|length| u16::from_be(length) as usize),
        };
        let Some(length) = length else {
            pause(packet, ip, base, at, next);
            return 0;
        };
        at += width;
        if next == field::LENGTH_OF_EXTENSIONS {
            return extensions(packet, ip, base, at, length);
        }
        at += length;
        next += field::SESSION_ID;
    }
    0
}

/// Keeps the progress if the segment ends before the next field.
#[inline(always)]
fn pause<P: Packet + ?Sized>(packet: &P, ip: &mut IpPacket, base: u32, at: usize, left: u32) {
    if at >= packet.length() as usize {
        ip.payload = flow_flags::HELLO_OPEN;
        ip.hello = HelloProgress { next: base.wrapping_add(at as u32), left };
    }
}

/// Goes on with a ClientHello whose [`HelloProgress`] the packet has. The payload is [`flow_flags::HELLO`] if it is
/// complete, and 0 if this segment does not go on with it.
#[inline(never)]
pub fn resume<P: Packet + ?Sized>(packet: &P, ip: &mut IpPacket) -> u32 {
    let progress = ip.hello;
    ip.names = ServerNames::default();
    ip.payload = 0;
    let Some((sequence, payload)) = payload(packet, ip) else { return 0 };
    let skipped = progress.next.wrapping_sub(sequence) as usize;
    // The segment ends before the next extension, or was sent after it.
    if skipped > packet.length() as usize || payload + skipped >= packet.length() as usize {
        return 0;
    }
    ip.payload = flow_flags::HELLO;
    let base = sequence.wrapping_sub(payload as u32);
    let at = payload + skipped;
    if progress.left < field::SESSION_ID {
        extensions(packet, ip, base, at, progress.left as usize)
    } else {
        fields(packet, ip, base, at, progress.left)
    }
}

/// Returns the sequence number and the offset of the payload of a TCP segment (RFC 9293, section 3.1).
#[inline(always)]
fn payload<P: Packet + ?Sized>(packet: &P, ip: &IpPacket) -> Option<(u32, usize)> {
    let transport = ip.transport as usize;
    let sequence = packet.load::<u32>(transport + 4)?;
    let words = packet.load::<u8>(transport + 12)? >> 4;
    Some((u32::from_be(sequence), transport + words as usize * 4))
}

/// Looks for the name among the extensions. `left` is their length from `at` on; the sequence number of an offset is
/// `base` more.
#[inline(never)]
fn extensions<P: Packet + ?Sized>(
    packet: &P,
    ip: &mut IpPacket,
    base: u32,
    mut at: usize,
    mut left: usize,
) -> u32 {
    for _ in 0..MAX_EXTENSIONS {
        if left < EXTENSION {
            return 0;
        }
        let Some(header) = packet.load::<[u16; 2]>(at) else {
            // A header that two segments share is not read.
            pause(packet, ip, base, at, left as u32);
            return 0;
        };
        at += EXTENSION;
        let length = u16::from_be(header[1]) as usize;
        if u16::from_be(header[0]) == SERVER_NAME {
            return name(packet, ip, at, length);
        }
        at += length;
        if left < EXTENSION + length {
            return 0;
        }
        left -= EXTENSION + length;
    }
    0
}

#[inline(never)]
fn name<P: Packet + ?Sized>(packet: &P, ip: &mut IpPacket, at: usize, extension: usize) -> u32 {
    let Some(length) = packet.load::<u16>(at + 3) else { return 0 };
    let length = u16::from_be(length) as usize;
    if length == 0 || length + NAME_IN_EXTENSION > extension {
        return 0;
    }
    let mut name = [0u8; NAME];
    // Of a longer name the end counts.
    let kept = if length > NAME { NAME } else { length };
    let begin = at + NAME_IN_EXTENSION + (length - kept);
    if packet.load_name(begin, kept, &mut name) {
        packet.read_names(&name, kept, length == kept, &mut ip.names);
    }
    // Opaque: without a result the compiler may leave a pointer to the stack in its place, which the verifier refuses.
    black_box(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::classify::{Classified, classify};

    const NAME: &str = "Mozilla.Cloudflare-DNS.com";

    fn extension(kind: u16, body: &[u8]) -> Vec<u8> {
        [&kind.to_be_bytes()[..], &(body.len() as u16).to_be_bytes(), body].concat()
    }

    fn server_name(name: &str) -> Vec<u8> {
        let length = name.len() as u16;
        let list = [&(length + 3).to_be_bytes()[..], &[0], &length.to_be_bytes(), name.as_bytes()].concat();
        extension(SERVER_NAME, &list)
    }

    fn hello(extensions: &[Vec<u8>]) -> Vec<u8> {
        let extensions = extensions.concat();
        let mut body = vec![3, 3];
        body.extend([7; 32]);
        body.extend([32].iter().chain(&[9; 32]));
        body.extend([0, 4, 0x13, 1, 0x13, 2, 1, 0]);
        body.extend((extensions.len() as u16).to_be_bytes());
        body.extend(extensions);
        let handshake = [&[1, 0][..], &(body.len() as u16).to_be_bytes(), &body].concat();
        [&[0x16, 3, 1][..], &(handshake.len() as u16).to_be_bytes(), &handshake].concat()
    }

    /// Returns the segment of a connection that begins at this place of the payload, as an Ethernet frame.
    fn segment(sequence: usize, payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![2; 12];
        frame.extend([8, 0, 0x45, 0]);
        frame.extend((40 + payload.len() as u16).to_be_bytes());
        frame.extend([0, 0, 0, 0, 64, TCP, 0, 0, 10, 0, 0, 2, 203, 0, 113, 7]);
        frame.extend([0xc0, 0, 1, 0xbb]);
        frame.extend((1000 + sequence as u32).to_be_bytes());
        frame.extend([0, 0, 0, 0, 0x50, 0x18, 1, 0, 0, 0, 0, 0]);
        frame.extend(payload);
        frame
    }

    fn packet(frame: &[u8]) -> IpPacket {
        let Ok(Classified::Ip(packet)) = classify(frame, 1) else { panic!("no IP packet") };
        packet
    }

    fn expected(name: &str) -> ServerNames {
        ServerNames::of(name)
    }

    #[test]
    fn a_name_is_found_among_other_extensions() {
        let bytes = hello(&[extension(0x1a1a, &[0]), extension(51, &[5; 80]), server_name(NAME)]);
        let frame = segment(0, &bytes);
        let mut ip = packet(&frame);
        assert_eq!(ip.payload, flow_flags::HELLO);
        begin(&frame[..], &mut ip);
        assert_eq!((ip.payload, ip.names), (flow_flags::HELLO, expected("mozilla.cloudflare-dns.com")));
        let without = segment(0, &hello(&[extension(51, &[5; 80])]));
        let mut ip = packet(&without);
        begin(&without[..], &mut ip);
        assert_eq!((ip.payload, ip.names), (flow_flags::HELLO, ServerNames::default()));
    }

    #[test]
    fn what_is_no_client_hello_is_not_taken_for_one() {
        for payload in [
            &b"GET / HTTP/1.1\r\n\r\n"[..],
            &[0x17, 3, 3, 0, 20, 1, 0, 0],
            &[0x16, 3, 3, 0, 20, 2, 0, 0],
            &[],
        ] {
            assert_eq!(packet(&segment(0, payload)).payload, 0, "{payload:?}");
        }
    }

    proptest! {
        /// Wherever segments meet, the name is found, unless they share a length, an extension's header or the name.
        #[test]
        fn a_name_in_a_later_segment_is_found(
            before in 0..1500usize,
            cuts in prop::collection::btree_set(prop_oneof![6..120usize, 100..1600usize], 1..4),
        ) {
            let key_share = extension(51, &vec![5; before]);
            let bytes = hello(&[extension(10, &[1, 2]), key_share, server_name(NAME), extension(16, &[0; 14])]);
            let name_at = bytes.windows(2).rposition(|pair| pair == b"Mo").unwrap() - 9;
            let shared = [(76, 2), (84, 2), (name_at, 9 + NAME.len()), (name_at - before - 4, 4), (name_at - before - 10, 4)];
            let is_read = |cut: &usize| !shared.iter().any(|(begin, length)| *cut > *begin && *cut < begin + length);
            let cuts: Vec<usize> = cuts.into_iter().filter(|cut| *cut < bytes.len()).filter(is_read).collect();
            let ends = cuts.iter().copied().chain([bytes.len()]);
            let begins = [0].into_iter().chain(cuts.iter().copied());
            let mut state = IpPacket::default();
            for (begin_at, end) in begins.zip(ends) {
                let frame = segment(begin_at, &bytes[begin_at..end]);
                let mut ip = packet(&frame);
                if begin_at == 0 {
                    prop_assert_eq!(ip.payload, flow_flags::HELLO);
                    begin(&frame[..], &mut ip);
                    state = ip;
                } else if state.payload == flow_flags::HELLO_OPEN {
                    ip.hello = state.hello;
                    resume(&frame[..], &mut ip);
                    // A segment that ends before the next field changes nothing.
                    if ip.payload != 0 {
                        state = ip;
                    }
                }
                if state.payload == flow_flags::HELLO_OPEN {
                    // The same segment again changes nothing.
                    let mut again = packet(&frame);
                    again.hello = state.hello;
                    resume(&frame[..], &mut again);
                    prop_assert_eq!(again.payload, 0);
                }
            }
            prop_assert_eq!((state.payload, state.names), (flow_flags::HELLO, expected("mozilla.cloudflare-dns.com")));
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(
            payload in prop::collection::vec(any::<u8>(), 0..300),
            next in any::<u32>(),
            left in any::<u16>(),
        ) {
            let frame = segment(0, &[&[0x16, 3, 1, 0, 9, 1][..], &payload].concat());
            let mut ip = packet(&frame);
            begin(&frame[..], &mut ip);
            ip.hello = HelloProgress { next, left: u32::from(left) };
            resume(&frame[..], &mut ip);
        }
    }
}

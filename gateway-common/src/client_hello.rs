//! Server name in the ClientHello of TLS (RFC 8446, section 4.1.2; RFC 6066, section 3) at the beginning of a TCP
//! connection. Its extensions may go on in later segments.

use core::hint::black_box;

use crate::classify::IpPacket;
use crate::packet::{NAME, Packet};
use crate::wire::{HelloProgress, ServerNames, flow_flags};

/// Length of the header of a record.
const RECORD: usize = 5;
/// Offset of the session id in a handshake message: behind its header, the version and the random bytes.
const SESSION_ID: usize = 4 + 2 + 32;
/// Maximum number of extensions. Browsers send about 20.
const MAX_EXTENSIONS: usize = 40;
const SERVER_NAME: u16 = 0;
/// Header of an extension: type and length.
const EXTENSION: usize = 4;
/// Offset of the name in its extension: behind the length of the list, its type and its length.
const NAME_IN_EXTENSION: usize = 5;

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
    // What is cut off before the extensions has no name.
    let Some(session) = packet.load::<u8>(handshake + SESSION_ID) else { return 0 };
    let mut at = handshake + SESSION_ID + 1 + session as usize;
    let Some(suites) = packet.load::<u16>(at) else { return 0 };
    at += 2 + u16::from_be(suites) as usize;
    let Some(compression) = packet.load::<u8>(at) else { return 0 };
    at += 1 + compression as usize;
    let Some(left) = packet.load::<u16>(at) else { return 0 };
    extensions(packet, ip, base, at + 2, u16::from_be(left) as usize)
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
    extensions(packet, ip, base, payload + skipped, progress.left as usize)
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
            if at >= packet.length() as usize {
                ip.payload = flow_flags::HELLO_OPEN;
                ip.hello = HelloProgress { next: base.wrapping_add(at as u32), left: left as u32 };
            }
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
        ip.names.read(&name, kept, length == kept);
    }
    // Opaque: without a result the compiler may leave a pointer to the stack in its place, which the verifier refuses.
    black_box(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::classify::{Classified, TCP, classify};

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
        /// Wherever two segments meet, the name is found, unless they share the extension's header or the name.
        #[test]
        fn a_name_in_a_later_segment_is_found(before in 0..1500usize, cut in 100..1600usize) {
            let key_share = extension(51, &vec![5; before]);
            let bytes = hello(&[extension(10, &[1, 2]), key_share, server_name(NAME), extension(16, &[0; 14])]);
            let cut = cut.min(bytes.len() - 1);
            let name_at = bytes.windows(2).rposition(|pair| pair == b"Mo").unwrap() - 9;
            let shares = |begin: usize, length: usize| cut > begin && cut < begin + length;
            prop_assume!(!shares(name_at, 9 + NAME.len()) && !shares(name_at - before - 4, 4));
            prop_assume!(!shares(name_at - before - 10, 4));
            let first = segment(0, &bytes[..cut]);
            let mut ip = packet(&first);
            begin(&first[..], &mut ip);
            if ip.payload == flow_flags::HELLO_OPEN {
                let rest = segment(cut, &bytes[cut..]);
                let mut next = packet(&rest);
                next.hello = ip.hello;
                // The same segment again changes nothing.
                let mut again = packet(&first);
                again.hello = ip.hello;
                resume(&first[..], &mut again);
                prop_assert_eq!(again.payload, 0);
                resume(&rest[..], &mut next);
                ip = next;
            }
            prop_assert_eq!((ip.payload, ip.names), (flow_flags::HELLO, expected("mozilla.cloudflare-dns.com")));
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

//! Frames that leave with a VLAN tag (IEEE 802.1Q).
//!
//! The kernel keeps the tag of a VLAN beside the frame. A VLAN with `reorder_hdr off` on an interface that inserts no tags
//! itself writes it into the frame, and the socket buffer is none of IP then.

use crate::classify::{ETHERTYPE_IPV4, ETHERTYPE_IPV6, MAX_VLAN_TAGS, is_vlan};
use crate::packet::Packet;
use crate::wire::Address;

const ETHERTYPE: usize = 12;
const TAG: usize = 4;
/// Offsets of the source address behind the ethertype (RFC 791, section 3.1; RFC 8200, section 3).
const SOURCE4: usize = 2 + 12;
const SOURCE6: usize = 2 + 8;

/// Returns the tag control information of the outermost tag, beside the frame or in it.
#[inline(always)]
pub fn outer_tag<P: Packet + ?Sized>(frame: &P) -> Option<u16> {
    if let Some(tag) = frame.stripped_vlan() {
        return Some(tag);
    }
    let [ethertype, tag] = frame.load::<[u16; 2]>(ETHERTYPE)?;
    if is_vlan(u16::from_be(ethertype)) { Some(u16::from_be(tag)) } else { None }
}

/// Returns whether the packet behind all tags in the frame is IPv6, and its source. No address if it is not IP or
/// truncated.
#[inline(always)]
pub fn source<P: Packet + ?Sized>(frame: &P) -> (bool, Option<Address>) {
    let mut offset = ETHERTYPE;
    for _ in 0..=MAX_VLAN_TAGS {
        match frame.load::<u16>(offset).map(u16::from_be) {
            Some(ETHERTYPE_IPV4) => {
                return (false, frame.load::<u32>(offset + SOURCE4).map(Address::v4_word));
            }
            Some(ETHERTYPE_IPV6) => return (true, frame.load::<Address>(offset + SOURCE6)),
            Some(ethertype) if is_vlan(ethertype) => offset += TAG,
            _ => break,
        }
    }
    (false, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(tags: &[u16], ethertype: u16, packet: &[u8]) -> Vec<u8> {
        let mut frame = vec![2; ETHERTYPE];
        for tag in tags {
            frame.extend([0x8100, *tag].map(u16::to_be_bytes).concat());
        }
        [&frame[..], &ethertype.to_be_bytes(), packet].concat()
    }

    #[test]
    fn the_source_is_behind_the_tags() {
        let (mut v4, mut v6) = ([0; 20], [0; 40]);
        v4[12..16].copy_from_slice(&[192, 168, 20, 7]);
        v6[8..24].copy_from_slice(&[7; 16]);
        for tags in [&[][..], &[20], &[0x6014, 5]] {
            let found = source(frame(tags, ETHERTYPE_IPV4, &v4).as_slice());
            assert_eq!(found, (false, Some(Address::v4([192, 168, 20, 7]))));
            assert_eq!(
                source(frame(tags, ETHERTYPE_IPV6, &v6).as_slice()),
                (true, Some(Address::v6([7; 16])))
            );
            assert_eq!(source(frame(tags, 0x8863, &v4).as_slice()), (false, None), "PPPoE");
            assert_eq!(source(frame(tags, ETHERTYPE_IPV4, &v4[..15]).as_slice()), (false, None));
            assert_eq!(outer_tag(frame(tags, ETHERTYPE_IPV4, &v4).as_slice()), tags.first().copied());
        }
        let hidden = frame(&[1; MAX_VLAN_TAGS + 1], ETHERTYPE_IPV4, &v4);
        assert_eq!(source(hidden.as_slice()), (false, None));
    }
}

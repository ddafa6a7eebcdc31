//! Unprotected part of the header.

/// Maximum length of a connection ID (RFC 9000, section 17.2).
const MAX_CONNECTION_ID: usize = 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    V1,
    /// RFC 9369.
    V2,
}

/// Header of the first packet in a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header<'a> {
    pub version: Version,
    /// Destination connection ID, from which the client's first packets have their keys.
    pub connection_id: &'a [u8],
    /// Offset of the packet number.
    pub packet_number: usize,
    /// Offset of the end of the packet; others may follow in the datagram.
    pub end: usize,
}

/// Reads the header of an Initial packet. `None` if the datagram begins with another packet, or is malformed.
pub fn header(datagram: &[u8]) -> Option<Header<'_>> {
    let first = *datagram.first()?;
    let version = u32::from_be_bytes(*datagram.get(1..)?.first_chunk()?);
    // Long header, fixed bit (RFC 9287: it may be cleared), type.
    let version = match (version, first >> 4 & 0b1011) {
        (1, 0b1000) => Version::V1,
        (0x6b33_43cf, 0b1001) => Version::V2,
        _ => return None,
    };
    let mut at = 5;
    let connection_id = connection_id(datagram, &mut at)?;
    self::connection_id(datagram, &mut at)?;
    let token = variable(datagram, &mut at)?;
    at = at.checked_add(usize::try_from(token).ok()?)?;
    let length = variable(datagram, &mut at)?;
    let end = at.checked_add(usize::try_from(length).ok()?)?;
    (end <= datagram.len()).then_some(Header { version, connection_id, packet_number: at, end })
}

fn connection_id<'a>(datagram: &'a [u8], at: &mut usize) -> Option<&'a [u8]> {
    let length = usize::from(*datagram.get(*at)?);
    let begin = *at + 1;
    *at = begin + length;
    (length <= MAX_CONNECTION_ID).then_some(datagram.get(begin..*at)?)
}

/// Reads an integer of variable length (RFC 9000, section 16).
pub(super) fn variable(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let first = *bytes.get(*at)?;
    let length = 1 << (first >> 6);
    let encoded = bytes.get(*at..at.checked_add(length)?)?;
    *at += length;
    Some(encoded[1..].iter().fold(u64::from(first & 0x3f), |value, byte| value << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_have_four_lengths() {
        // The examples of RFC 9000, appendix A.1.
        for (bytes, expected) in [
            (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c][..], 151_288_809_941_952_652),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
        ] {
            let mut at = 0;
            assert_eq!((variable(bytes, &mut at), at), (Some(expected), bytes.len()));
            assert_eq!(variable(&bytes[..bytes.len() - 1], &mut 0), None);
        }
    }

    #[test]
    fn an_initial_packet_tells_where_its_parts_are() {
        let mut datagram = vec![0xc3, 0, 0, 0, 1, 4, 1, 2, 3, 4, 2, 9, 9, 3, 7, 7, 7, 0x40, 20];
        let begin = datagram.len();
        datagram.extend([0; 30]);
        let expected = Header {
            version: Version::V1,
            connection_id: &[1, 2, 3, 4],
            packet_number: begin,
            end: begin + 20,
        };
        assert_eq!(header(&datagram), Some(expected));
        assert_eq!(header(&datagram[..begin + 19]), None, "cut off");
        datagram[0] = 0x83;
        assert_eq!(header(&datagram), Some(expected), "the fixed bit is cleared");
        datagram[0] = 0xd3;
        assert_eq!(header(&datagram), None, "0-RTT");
        datagram[1..5].copy_from_slice(&0x6b33_43cf_u32.to_be_bytes());
        assert_eq!(header(&datagram).map(|header| header.version), Some(Version::V2));
    }
}

//! Binding requests of STUN (RFC 8489), by which clients learn their address behind a NAT, and their answers. No I/O.

use std::net::{IpAddr, SocketAddr};

const COOKIE: [u8; 4] = 0x2112_a442_u32.to_be_bytes();
const HEADER: usize = 20;
const BINDING_REQUEST: [u8; 2] = [0, 1];
const BINDING_RESPONSE: [u8; 2] = [1, 1];
const XOR_MAPPED_ADDRESS: [u8; 2] = [0, 0x20];
const XOR_MAPPED_ADDRESS_OF_DRAFTS: [u8; 2] = [0x80, 0x20];
const SOFTWARE: [u8; 2] = [0x80, 0x22];
const FINGERPRINT: [u8; 2] = [0x80, 0x28];
const FINGERPRINT_MASK: u32 = 0x5354_554e;
/// Name of the software of clients of the mesh. Relays of the protocol answer no other.
const CLIENT: &[u8; 8] = b"tailnode";
/// Longest request that is read. Clients send 40 bytes.
pub const LONGEST_REQUEST: usize = 256;

/// The transaction of a binding request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transaction(pub [u8; 12]);

/// Reads a binding request. Its attributes must fill the message, and none of them matters.
pub fn parse_request(message: &[u8]) -> Option<Transaction> {
    let (header, mut attributes) = message.split_first_chunk::<HEADER>()?;
    let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
    if header[..2] != BINDING_REQUEST
        || header[4..8] != COOKIE
        || length != attributes.len()
        || message.len() > LONGEST_REQUEST
    {
        return None;
    }
    while !attributes.is_empty() {
        let (head, rest) = attributes.split_first_chunk::<4>()?;
        let padded = usize::from(u16::from_be_bytes([head[2], head[3]])).next_multiple_of(4);
        attributes = rest.get(padded..)?;
    }
    header[8..].try_into().ok().map(Transaction)
}

/// Writes a request, as relays of the protocol want it: with the name of the software, and a fingerprint.
pub fn request(transaction: Transaction) -> Vec<u8> {
    let attributes: u16 = 4 + 8 + 4 + 4;
    let mut message = [&BINDING_REQUEST[..], &attributes.to_be_bytes(), &COOKIE, &transaction.0].concat();
    message.extend(SOFTWARE);
    message.extend([0, 8]);
    message.extend(CLIENT);
    let fingerprint = crc32(&message) ^ FINGERPRINT_MASK;
    message.extend(FINGERPRINT);
    message.extend([0, 4]);
    message.extend(fingerprint.to_be_bytes());
    message
}

/// Tells whether a datagram has the form of an answer.
pub fn is_response(message: &[u8]) -> bool {
    message.len() >= HEADER && message[..2] == BINDING_RESPONSE && message[4..8] == COOKIE
}

/// Reads an answer: the transaction, and the address from which its request came.
pub fn parse_response(message: &[u8]) -> Option<(Transaction, SocketAddr)> {
    let (header, mut attributes) = message.split_first_chunk::<HEADER>()?;
    let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
    if !is_response(message) || length != attributes.len() {
        return None;
    }
    while !attributes.is_empty() {
        let (&[high, low, long, short], rest) = attributes.split_first_chunk()?;
        let length = usize::from(u16::from_be_bytes([long, short]));
        let value = rest.get(..length)?;
        if [XOR_MAPPED_ADDRESS, XOR_MAPPED_ADDRESS_OF_DRAFTS].contains(&[high, low]) {
            let transaction = Transaction(header[8..].try_into().ok()?);
            return Some((transaction, mapped(value, &header[4..])?));
        }
        attributes = rest.get(length.next_multiple_of(4)..)?;
    }
    None
}

/// Reads the address in an attribute. The cookie and the transaction mask it.
fn mapped(value: &[u8], mask: &[u8]) -> Option<SocketAddr> {
    let (&[_, family, high, low], address) = value.split_first_chunk()?;
    let port = u16::from_be_bytes([high ^ mask[0], low ^ mask[1]]);
    let plain: Vec<u8> = address.iter().zip(mask).map(|(byte, mask)| byte ^ mask).collect();
    let address: IpAddr = match family {
        1 => <[u8; 4]>::try_from(&*plain).ok().filter(|_| address.len() == 4)?.into(),
        2 => <[u8; 16]>::try_from(&*plain).ok().filter(|_| address.len() == 16)?.into(),
        _ => return None,
    };
    Some(SocketAddr::new(address, port))
}

/// Checksum of IEEE 802.3.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |sum: u32, _: u32| (sum >> 1) ^ if sum & 1 == 1 { 0xedb8_8320 } else { 0 };
    !bytes.iter().fold(u32::MAX, |sum, byte| (0..8).fold(sum ^ u32::from(*byte), step))
}

/// Writes the answer to a request: the address that it came from.
pub fn response(transaction: Transaction, source: SocketAddr) -> Vec<u8> {
    let mask = [&COOKIE[..], &transaction.0].concat();
    let (family, address) = match source.ip().to_canonical() {
        IpAddr::V4(address) => (1, address.octets().to_vec()),
        IpAddr::V6(address) => (2, address.octets().to_vec()),
    };
    let port = source.port() ^ u16::from_be_bytes([COOKIE[0], COOKIE[1]]);
    let length = 4 + u8::try_from(address.len()).unwrap_or(u8::MAX);
    let mut message = [&BINDING_RESPONSE[..], &[0, length + 4], &mask].concat();
    message.extend(XOR_MAPPED_ADDRESS);
    message.extend([0, length, 0, family]);
    message.extend(port.to_be_bytes());
    message.extend(address.iter().zip(&mask).map(|(byte, mask)| byte ^ mask));
    message
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn request_with(attributes: &[u8]) -> Vec<u8> {
        let length = u16::try_from(attributes.len()).unwrap().to_be_bytes();
        [&[0, 1][..], &length, &COOKIE, &[7; 12], attributes].concat()
    }

    #[test]
    fn request_with_attributes_is_answered() {
        assert_eq!(parse_request(&request_with(&[])), Some(Transaction([7; 12])));
        let software = [0x80, 0x22, 0, 8, b't', b'a', b'i', b'l', b'n', b'o', b'd', b'e'];
        assert_eq!(parse_request(&request_with(&software)), Some(Transaction([7; 12])));
    }

    #[test]
    fn other_messages_get_no_answer() {
        let mut response = request_with(&[]);
        response[0] = 1;
        assert_eq!(parse_request(&response), None);
        assert_eq!(parse_request(&request_with(&[0x80, 0x22, 0, 9, 1, 2, 3, 4])), None);
        assert_eq!(parse_request(&request_with(&[0; LONGEST_REQUEST])), None);
    }

    #[test]
    fn answer_has_the_masked_address() {
        // RFC 5769, 2.2: 192.0.2.1, port 32853.
        let id = [0xb7, 0xe7, 0xa7, 0x01, 0xbc, 0x34, 0xd6, 0x86, 0xfa, 0x87, 0xdf, 0xae];
        let message = response(Transaction(id), "192.0.2.1:32853".parse().unwrap());
        assert_eq!(message[..4], [1, 1, 0, 12]);
        assert_eq!(message[20..], [0, 0x20, 0, 8, 0, 1, 0xa1, 0x47, 0xe1, 0x12, 0xa6, 0x43]);
        // 2.3: 2001:db8:1234:5678:11:2233:4455:6677.
        let message =
            response(Transaction(id), "[2001:db8:1234:5678:11:2233:4455:6677]:32853".parse().unwrap());
        assert_eq!(message[24..28], [0, 2, 0xa1, 0x47]);
        assert_eq!(message[28..32], [0x01, 0x13, 0xa9, 0xfa]);
    }

    #[test]
    fn checksum_is_the_usual_one() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }

    proptest! {
        #[test]
        fn client_and_server_agree(v4: [u8; 4], v6: [u8; 16], port: u16, id: [u8; 12]) {
            prop_assert_eq!(parse_request(&request(Transaction(id))), Some(Transaction(id)));
            prop_assert!(!is_response(&request(Transaction(id))));
            for source in [SocketAddr::from((v4, port)), SocketAddr::from((v6, port))] {
                let answer = response(Transaction(id), source);
                let canonical = SocketAddr::new(source.ip().to_canonical(), port);
                prop_assert_eq!(parse_response(&answer), Some((Transaction(id), canonical)));
                prop_assert_eq!(parse_response(&answer[..answer.len() - 1]), None);
            }
        }

        #[test]
        fn no_bytes_make_the_client_fail(bytes: Vec<u8>) {
            parse_response(&bytes);
            let length = u16::try_from(bytes.len()).unwrap().to_be_bytes();
            parse_response(&[&BINDING_RESPONSE[..], &length, &COOKIE, &[7; 12], &bytes].concat());
        }

        #[test]
        fn answer_is_never_a_request(source: [u8; 4], port: u16, id: [u8; 12]) {
            let answer = response(Transaction(id), SocketAddr::from((source, port)));
            prop_assert_eq!(parse_request(&answer), None);
        }
    }
}

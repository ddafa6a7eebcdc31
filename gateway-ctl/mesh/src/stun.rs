//! Binding requests of STUN (RFC 8489), by which clients learn their address behind a NAT. No I/O.

use std::net::{IpAddr, SocketAddr};

const COOKIE: [u8; 4] = 0x2112_a442_u32.to_be_bytes();
const HEADER: usize = 20;
const BINDING_REQUEST: [u8; 2] = [0, 1];
const BINDING_RESPONSE: [u8; 2] = [1, 1];
const XOR_MAPPED_ADDRESS: [u8; 2] = [0, 0x20];
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

    fn request(attributes: &[u8]) -> Vec<u8> {
        let length = u16::try_from(attributes.len()).unwrap().to_be_bytes();
        [&[0, 1][..], &length, &COOKIE, &[7; 12], attributes].concat()
    }

    #[test]
    fn request_with_attributes_is_answered() {
        assert_eq!(parse_request(&request(&[])), Some(Transaction([7; 12])));
        let software = [0x80, 0x22, 0, 8, b't', b'a', b'i', b'l', b'n', b'o', b'd', b'e'];
        assert_eq!(parse_request(&request(&software)), Some(Transaction([7; 12])));
    }

    #[test]
    fn other_messages_get_no_answer() {
        let mut response = request(&[]);
        response[0] = 1;
        assert_eq!(parse_request(&response), None);
        assert_eq!(parse_request(&request(&[0x80, 0x22, 0, 9, 1, 2, 3, 4])), None);
        assert_eq!(parse_request(&request(&[0; LONGEST_REQUEST])), None);
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

    proptest! {
        #[test]
        fn answer_is_never_a_request(source: [u8; 4], port: u16, id: [u8; 12]) {
            let answer = response(Transaction(id), SocketAddr::from((source, port)));
            prop_assert_eq!(parse_request(&answer), None);
        }
    }
}

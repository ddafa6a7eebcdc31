//! STUN binding (RFC 8489): the request, and the address in the answer.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

const HEADER: usize = 20;
const MAGIC_COOKIE: [u8; 4] = [0x21, 0x12, 0xa4, 0x42];
const BINDING_REQUEST: u16 = 0x0001;
const BINDING_SUCCESS: u16 = 0x0101;
const BINDING_ERROR: u16 = 0x0111;
const MAPPED_ADDRESS: u16 = 0x0001;
const ERROR_CODE: u16 = 0x0009;
const XOR_MAPPED_ADDRESS: u16 = 0x0020;

/// Random number by which an answer is recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransactionId(pub [u8; 12]);

/// Answer to a binding request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BindingAnswer {
    /// Source of the request as the server saw it.
    Address(SocketAddr),
    /// Error code of the server (RFC 8489, section 14.8).
    Refused(u16),
}

/// Returns a binding request without attributes.
pub fn binding_request(id: TransactionId) -> [u8; HEADER] {
    let mut message = [0; HEADER];
    message[..2].copy_from_slice(&BINDING_REQUEST.to_be_bytes());
    message[4..8].copy_from_slice(&MAGIC_COOKIE);
    message[8..].copy_from_slice(&id.0);
    message
}

/// Reads the answer to a request. `None` for other messages, and for answers with neither an address nor an error.
///
/// Unknown attributes are skipped, also those that a client must understand (RFC 8489, section 14): none of them
/// changes the meaning of the address.
pub fn parse_answer(message: &[u8], id: TransactionId) -> Option<BindingAnswer> {
    let (header, attributes) = message.split_first_chunk::<HEADER>()?;
    let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
    if header[4..8] != MAGIC_COOKIE || header[8..] != id.0 || length != attributes.len() {
        return None;
    }
    let attributes = Attributes::read(attributes)?;
    match u16::from_be_bytes([header[0], header[1]]) {
        BINDING_SUCCESS => {
            let translated = attributes.find(XOR_MAPPED_ADDRESS).and_then(|value| xor_address(value, id));
            let plain = || attributes.find(MAPPED_ADDRESS).and_then(address);
            translated.or_else(plain).map(BindingAnswer::Address)
        }
        BINDING_ERROR => attributes.find(ERROR_CODE).and_then(error_code).map(BindingAnswer::Refused),
        _ => None,
    }
}

/// Attributes of a message: types and values.
struct Attributes<'a>(Vec<(u16, &'a [u8])>);

impl<'a> Attributes<'a> {
    /// Returns `None` if they do not fill the bytes. Values are padded to a multiple of four bytes.
    fn read(mut bytes: &'a [u8]) -> Option<Attributes<'a>> {
        let mut found = Vec::new();
        while let Some(([a, b, c, d], rest)) = bytes.split_first_chunk() {
            let length = usize::from(u16::from_be_bytes([*c, *d]));
            found.push((u16::from_be_bytes([*a, *b]), rest.get(..length)?));
            bytes = rest.get(length.next_multiple_of(4)..)?;
        }
        bytes.is_empty().then_some(Attributes(found))
    }

    /// Returns the first value of a type; others do not count (RFC 8489, section 14).
    fn find(&self, kind: u16) -> Option<&'a [u8]> {
        self.0.iter().find(|(of, _)| *of == kind).map(|(_, value)| *value)
    }
}

/// Reads a MAPPED-ADDRESS: family, port and address (RFC 8489, section 14.1).
fn address(value: &[u8]) -> Option<SocketAddr> {
    let ([_, family, a, b], address) = value.split_first_chunk()?;
    let address: IpAddr = match family {
        1 => Ipv4Addr::from(<[u8; 4]>::try_from(address).ok()?).into(),
        2 => Ipv6Addr::from(<[u8; 16]>::try_from(address).ok()?).into(),
        _ => return None,
    };
    Some(SocketAddr::new(address, u16::from_be_bytes([*a, *b])))
}

/// Reads an XOR-MAPPED-ADDRESS, which rewriting middleboxes do not recognise as an address (RFC 8489, section 14.2).
fn xor_address(value: &[u8], id: TransactionId) -> Option<SocketAddr> {
    let mask = [&MAGIC_COOKIE[..], &id.0].concat();
    let mut value = value.to_vec();
    let (head, address_bytes) = value.split_at_mut_checked(4)?;
    head[2..].iter_mut().zip(&mask).for_each(|(byte, mask)| *byte ^= mask);
    address_bytes.iter_mut().zip(&mask).for_each(|(byte, mask)| *byte ^= mask);
    address(&value)
}

/// Reads an ERROR-CODE: class 3 to 6, number 0 to 99.
fn error_code(value: &[u8]) -> Option<u16> {
    let class = u16::from(*value.get(2)? & 7);
    let number = u16::from(*value.get(3)?);
    ((3..=6).contains(&class) && number < 100).then_some(class * 100 + number)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Transaction ID of the test vectors (RFC 5769).
    const ID: TransactionId =
        TransactionId([0xb7, 0xe7, 0xa7, 0x01, 0xbc, 0x34, 0xd6, 0x86, 0xfa, 0x87, 0xdf, 0xae]);

    /// Sample IPv4 response (RFC 5769, section 2.2).
    const IPV4_RESPONSE: &[u8] =
        b"\x01\x01\x00\x3c\x21\x12\xa4\x42\xb7\xe7\xa7\x01\xbc\x34\xd6\x86\xfa\x87\xdf\xae\
        \x80\x22\x00\x0btest vector \x00\x20\x00\x08\x00\x01\xa1\x47\xe1\x12\xa6\x43\
        \x00\x08\x00\x14\x2b\x91\xf5\x99\xfd\x9e\x90\xc3\x8c\x74\x89\xf9\x2a\xf9\xba\x53\xf0\x6b\xe7\xd7\
        \x80\x28\x00\x04\xc0\x7d\x4c\x96";

    /// Sample IPv6 response (RFC 5769, section 2.3).
    const IPV6_RESPONSE: &[u8] =
        b"\x01\x01\x00\x48\x21\x12\xa4\x42\xb7\xe7\xa7\x01\xbc\x34\xd6\x86\xfa\x87\xdf\xae\
        \x80\x22\x00\x0btest vector \x00\x20\x00\x14\x00\x02\xa1\x47\
        \x01\x13\xa9\xfa\xa5\xd3\xf1\x79\xbc\x25\xf4\xb5\xbe\xd2\xb9\xd9\
        \x00\x08\x00\x14\xa3\x82\x95\x4e\x4b\xe6\x7b\xf1\x17\x84\xc9\x7c\x82\x92\xc2\x75\xbf\xe3\xed\x41\
        \x80\x28\x00\x04\xc8\xfb\x0b\x4c";

    fn message(kind: u16, attributes: &[(u16, &[u8])]) -> Vec<u8> {
        let mut body = Vec::new();
        for (kind, value) in attributes {
            body.extend(kind.to_be_bytes());
            body.extend(u16::try_from(value.len()).unwrap().to_be_bytes());
            body.extend(*value);
            body.resize(body.len().next_multiple_of(4), 0);
        }
        let mut message = binding_request(ID).to_vec();
        message[..2].copy_from_slice(&kind.to_be_bytes());
        message[2..4].copy_from_slice(&u16::try_from(body.len()).unwrap().to_be_bytes());
        message.extend(body);
        message
    }

    fn seen(address: &str) -> Option<BindingAnswer> {
        Some(BindingAnswer::Address(address.parse().unwrap()))
    }

    #[test]
    fn sample_responses_of_the_standard_are_read() {
        assert_eq!(parse_answer(IPV4_RESPONSE, ID), seen("192.0.2.1:32853"));
        assert_eq!(parse_answer(IPV6_RESPONSE, ID), seen("[2001:db8:1234:5678:11:2233:4455:6677]:32853"));
    }

    #[test]
    fn a_request_has_the_id_and_no_attributes() {
        let request = binding_request(ID);
        assert_eq!(request[..8], [0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42]);
        assert_eq!(request[8..], ID.0);
        assert_eq!(parse_answer(&request, ID), None, "a request is no answer");
    }

    #[test]
    fn the_plain_address_counts_without_a_translated_one() {
        let plain: &[u8] = &[0, 1, 0x80, 0x55, 192, 0, 2, 9];
        let translated: &[u8] = &[0, 1, 0xa1, 0x47, 0xe1, 0x12, 0xa6, 0x43];
        let answer = |attributes: &[(u16, &[u8])]| parse_answer(&message(BINDING_SUCCESS, attributes), ID);
        assert_eq!(answer(&[(MAPPED_ADDRESS, plain)]), seen("192.0.2.9:32853"));
        let both = [(MAPPED_ADDRESS, plain), (XOR_MAPPED_ADDRESS, translated)];
        assert_eq!(answer(&both), seen("192.0.2.1:32853"));
        assert_eq!(answer(&[(MAPPED_ADDRESS, plain), (MAPPED_ADDRESS, translated)]), seen("192.0.2.9:32853"));
        assert_eq!(answer(&[(XOR_MAPPED_ADDRESS, &plain[..7])]), None, "cut");
        assert_eq!(answer(&[(MAPPED_ADDRESS, &[0, 3, 0, 1, 192, 0, 2, 9])]), None, "another family");
        assert_eq!(answer(&[]), None);
    }

    #[test]
    fn a_refusal_has_its_code() {
        let answer = |value| parse_answer(&message(BINDING_ERROR, &[(ERROR_CODE, value)]), ID);
        assert_eq!(answer(b"\x00\x00\x04\x01Unauthorized"), Some(BindingAnswer::Refused(401)));
        assert_eq!(answer(&[0, 0, 2, 0]), None);
        assert_eq!(answer(&[0, 0, 4]), None);
    }

    #[test]
    fn other_messages_are_no_answer() {
        let other = TransactionId([0; 12]);
        assert_eq!(parse_answer(IPV4_RESPONSE, other), None, "another transaction");
        let longer = [IPV4_RESPONSE, &[0; 4]].concat();
        assert_eq!(parse_answer(&longer, ID), None, "a length that is not true");
        for end in 0..IPV4_RESPONSE.len() {
            assert_eq!(parse_answer(&IPV4_RESPONSE[..end], ID), None, "cut at {end}");
        }
        let mut unknown = IPV4_RESPONSE.to_vec();
        unknown[4] ^= 1;
        assert_eq!(parse_answer(&unknown, ID), None, "no magic cookie");
    }
}

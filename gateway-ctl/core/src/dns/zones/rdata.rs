//! RDATA in wire format: uncompressed, names in lower case.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gateway_model::domain::DomainName;
use gateway_model::record::{RecordData, RecordType, ServiceParams};

use crate::dns::name::{Name, NameRef};
use crate::dns::rtype;

/// Data of a record, and the name it refers to.
pub(super) struct Rdata {
    pub wire: Box<[u8]>,
    pub target: Option<Name>,
}

/// Returns none for data that fits no message.
pub(super) fn encode(record_type: RecordType, priority: Option<u16>, data: &RecordData) -> Option<Rdata> {
    let priority = priority.unwrap_or(record_type.default_priority()).to_be_bytes();
    let (mut wire, mut target) = (Vec::new(), None);
    let mut lead_to = |wire: &mut Vec<u8>, name: &DomainName| {
        let name = Name::from(name);
        wire.extend_from_slice(name.as_ref().wire());
        target = Some(name);
    };
    match data {
        RecordData::A(address) => wire.extend(address.octets()),
        RecordData::Aaaa(address) => wire.extend(address.octets()),
        RecordData::Name(name) => lead_to(&mut wire, name),
        RecordData::Mx(name) => {
            wire.extend(priority);
            lead_to(&mut wire, name);
        }
        RecordData::Txt(texts) => texts.iter().for_each(|text| strings(&mut wire, text)),
        RecordData::Srv { weight, port, target } => {
            wire.extend(priority);
            wire.extend(weight.to_be_bytes());
            wire.extend(port.to_be_bytes());
            lead_to(&mut wire, target);
        }
        RecordData::Caa { flags, tag, value } => {
            wire.push(*flags);
            wire.push(u8::try_from(tag.len()).ok()?);
            wire.extend_from_slice(tag.as_bytes());
            wire.extend_from_slice(value.as_bytes());
        }
        RecordData::Service { target, params } => {
            wire.extend(priority);
            lead_to(&mut wire, target);
            service_params(&mut wire, params)?;
        }
        RecordData::Ds { tag, algorithm, digest_type, digest } => {
            wire.extend(tag.to_be_bytes());
            wire.extend([*algorithm, *digest_type]);
            wire.extend_from_slice(digest);
        }
    }
    u16::try_from(wire.len()).ok()?;
    Some(Rdata { wire: wire.into(), target: target.filter(|name| !name.as_ref().is_root()) })
}

/// Encodes strings of at most 255 bytes, at least one (RFC 1035, section 3.3.14).
fn strings(wire: &mut Vec<u8>, text: &[u8]) {
    if text.is_empty() {
        wire.push(0);
    }
    for piece in text.chunks(255) {
        // At most 255.
        wire.push(piece.len() as u8);
        wire.extend_from_slice(piece);
    }
}

/// Encodes service parameters (RFC 9460, sections 2.2, 7 and 8; `ech` as of RFC 9848).
fn service_params(wire: &mut Vec<u8>, params: &ServiceParams) -> Option<()> {
    for (key, text) in params.iter() {
        let mut value = Vec::new();
        match key {
            0 => value.extend(params.mandatory().into_iter().flat_map(u16::to_be_bytes)),
            1 => {
                for id in text.split(',') {
                    value.push(u8::try_from(id.len()).ok()?);
                    value.extend_from_slice(id.as_bytes());
                }
            }
            2 => {}
            3 => value.extend(text.parse::<u16>().ok()?.to_be_bytes()),
            4 => {
                for address in text.split(',') {
                    value.extend(address.parse::<std::net::Ipv4Addr>().ok()?.octets());
                }
            }
            5 => value = STANDARD.decode(text).ok()?,
            6 => {
                for address in text.split(',') {
                    value.extend(address.parse::<std::net::Ipv6Addr>().ok()?.octets());
                }
            }
            _ => value.extend_from_slice(text.as_bytes()),
        }
        wire.extend(key.to_be_bytes());
        wire.extend(u16::try_from(value.len()).ok()?.to_be_bytes());
        wire.extend(value);
    }
    Some(())
}

/// Returns the name that data of any type refers to, in lower case.
pub(super) fn target(rtype: u16, data: &[u8]) -> Option<Name> {
    let at = match rtype {
        rtype::NS | rtype::CNAME | rtype::PTR | rtype::DNAME => 0,
        rtype::MX | rtype::SVCB | rtype::HTTPS => 2,
        rtype::SRV => 6,
        _ => return None,
    };
    let data = data.get(at..)?;
    let mut end = 0;
    while let Some(length @ 1..=63) = data.get(end) {
        end += 1 + usize::from(*length);
    }
    let wire = data.get(..end + 1)?.to_ascii_lowercase();
    NameRef::new(&wire).filter(|name| !name.is_root() || rtype == rtype::DNAME).map(NameRef::to_owned)
}

/// Returns the numbers at the end of an SOA record.
pub fn numbers(soa: &[u8]) -> Option<Times> {
    let numbers: &[u8; 20] = soa.last_chunk()?;
    let number =
        |at: usize| u32::from_be_bytes([numbers[at], numbers[at + 1], numbers[at + 2], numbers[at + 3]]);
    Some(Times {
        serial: number(0),
        refresh: number(4),
        retry: number(8),
        expire: number(12),
        minimum: number(16),
    })
}

/// Numbers of an SOA record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    pub serial: u32,
    pub refresh: u32,
    pub retry: u32,
    pub expire: u32,
    pub minimum: u32,
}

/// Encodes an SOA record (RFC 1035, section 3.3.13).
pub(super) fn soa(mname: NameRef<'_>, rname: NameRef<'_>, times: Times) -> Box<[u8]> {
    let Times { serial, refresh, retry, expire, minimum } = times;
    let numbers = [serial, refresh, retry, expire, minimum].map(u32::to_be_bytes).concat();
    [mname.wire(), rname.wire(), &numbers].concat().into()
}

#[cfg(test)]
mod tests {
    use gateway_model::record::parse;

    use super::*;

    fn wire(record_type: RecordType, text: &str) -> Vec<u8> {
        let parsed = parse(record_type, text).expect("a value");
        encode(record_type, parsed.priority, &parsed.data).expect("it fits").wire.into_vec()
    }

    #[test]
    fn rfc_1035_section_3() {
        use RecordType::*;
        assert_eq!(wire(A, "192.0.2.1"), [192, 0, 2, 1]);
        assert_eq!(wire(Cname, "WWW.example"), b"\x03www\x07example\0");
        assert_eq!(wire(Ptr, "a.example"), b"\x01a\x07example\0");
        assert_eq!(wire(Ns, "a.example"), b"\x01a\x07example\0");
        assert_eq!(wire(Mx, "10 a.example"), b"\0\x0a\x01a\x07example\0");
        assert_eq!(wire(Mx, "a.example"), b"\0\x0a\x01a\x07example\0");
        assert_eq!(wire(Mx, "0 ."), b"\0\0\0", "RFC 7505: no mail here");
        assert_eq!(wire(Txt, "hi"), b"\x02hi");
        assert_eq!(wire(Txt, ""), b"\0");
        let long = wire(Txt, &"x".repeat(300));
        assert_eq!((long.len(), long[0], long[256]), (302, 255, 45));
        assert_eq!(wire(Txt, "\"txtvers=1\" \"a\" \"\""), b"\x09txtvers=1\x01a\0", "RFC 6763, section 6.1");
        assert_eq!(wire(Txt, "\"\\195\\188\\000\""), b"\x03\xc3\xbc\0");
    }

    #[test]
    fn rfc_3596_rfc_2782_rfc_8659() {
        use RecordType::*;
        assert_eq!(wire(Aaaa, "2001:db8::1"), [0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(wire(Srv, "1 2 443 a.example"), b"\0\x01\0\x02\x01\xbb\x01a\x07example\0");
        assert_eq!(wire(Caa, "128 issue \"ca.example\""), b"\x80\x05issueca.example");
    }

    /// Checks the test vectors of appendix D.
    #[test]
    fn rfc_9460_appendix_d() {
        use RecordType::Svcb;
        let cases: [(&str, &[u8]); 7] = [
            ("0 foo.example.com.", b"\0\0\x03foo\x07example\x03com\0"),
            ("1 .", b"\0\x01\0"),
            ("16 foo.example.com. port=53", b"\0\x10\x03foo\x07example\x03com\0\0\x03\0\x02\0\x35"),
            ("1 foo.example.com. key667=hello", b"\0\x01\x03foo\x07example\x03com\0\x02\x9b\0\x05hello"),
            (
                "1 foo.example.com. ipv6hint=\"2001:db8::1,2001:db8::53:1\"",
                b"\0\x01\x03foo\x07example\x03com\0\0\x06\0\x20\
                  \x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\x53\0\x01",
            ),
            (
                "16 foo.example.org. alpn=h2,h3-19 mandatory=ipv4hint,alpn ipv4hint=192.0.2.1",
                b"\0\x10\x03foo\x07example\x03org\0\0\0\0\x04\0\x01\0\x04\0\x01\0\x09\x02h2\x05h3-19\
                  \0\x04\0\x04\xc0\0\x02\x01",
            ),
            (
                "1 . alpn=h2 no-default-alpn ech=AAEC",
                b"\0\x01\0\0\x01\0\x03\x02h2\0\x02\0\0\0\x05\0\x03\0\x01\x02",
            ),
        ];
        for (text, want) in cases {
            assert_eq!(wire(Svcb, text), want, "{text}");
        }
    }

    #[test]
    fn a_start_of_authority_has_two_names_and_five_numbers() {
        let name = NameRef::new(b"\x01a\0").expect("a name");
        let times = Times { serial: 1, refresh: 2, retry: 3, expire: 4, minimum: 5 };
        let wire = soa(name, NameRef::ROOT, times);
        assert_eq!(wire.as_ref(), b"\x01a\0\0\0\0\0\x01\0\0\0\x02\0\0\0\x03\0\0\0\x04\0\0\0\x05");
        assert_eq!(numbers(&wire), Some(times));
    }

    #[test]
    fn data_leads_to_names_in_lower_case() {
        let target = |rtype, data| target(rtype, data).map(|name| name.to_string());
        assert_eq!(target(rtype::CNAME, b"\x03wWw\x02ab\0").as_deref(), Some("www.ab"));
        assert_eq!(target(rtype::MX, b"\0\x01\x01A\0").as_deref(), Some("a"));
        assert_eq!(target(rtype::SRV, b"\0\0\0\0\0\0\0"), None, "the root is no target");
        assert_eq!(target(rtype::SVCB, b"\0\x01\x01a\0\0\x03\0\x02\0\x35").as_deref(), Some("a"));
        assert_eq!(target(rtype::NS, b"\x05a"), None);
        assert_eq!(target(rtype::TXT, b"\x01a\0"), None);
    }
}

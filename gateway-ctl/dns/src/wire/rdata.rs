//! Positions of names in RDATA: only names may contain pointers (RFC 3597, section 4).

use super::name::NameBuf;
use super::rtype;

#[derive(Clone, Copy, Debug)]
enum RdataPart {
    Fixed(usize),
    Name,
    /// A length, and as many bytes.
    Text,
    Rest,
}

const fn layout(rtype: u16) -> &'static [RdataPart] {
    use RdataPart::{Fixed, Name, Rest, Text};
    match rtype {
        rtype::A => &[Fixed(4)],
        rtype::AAAA => &[Fixed(16)],
        // Types 7 to 9 are MB, MG and MR.
        rtype::NS | rtype::CNAME | rtype::PTR | rtype::DNAME | 7..=9 => &[Name],
        rtype::SOA => &[Name, Name, Fixed(20)],
        // AFSDB, RT and KX.
        rtype::MX | 18 | 21 | 36 => &[Fixed(2), Name],
        // MINFO and RP.
        14 | 17 => &[Name, Name],
        rtype::SRV => &[Fixed(6), Name],
        // PX and NAPTR.
        26 => &[Fixed(2), Name, Name],
        35 => &[Fixed(4), Text, Text, Text, Name],
        rtype::RRSIG => &[Fixed(18), Name, Rest],
        rtype::NSEC => &[Name, Rest],
        rtype::SVCB | rtype::HTTPS => &[Fixed(2), Name, Rest],
        _ => &[Rest],
    }
}

/// Reports whether names in the data may be compressed.
pub(crate) const fn compressible(rtype: u16) -> bool {
    matches!(rtype, rtype::NS | rtype::CNAME | rtype::PTR | rtype::SOA | rtype::MX)
}

/// Returns the data without pointers. `None` if it does not match its type.
pub(crate) fn expand(message: &[u8], rtype: u16, data: std::ops::Range<usize>) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(data.len());
    let mut at = data.start;
    // Bytes after the data are not part of it. Pointers lead backwards.
    let message = message.get(..data.end)?;
    for part in layout(rtype) {
        let end = match part {
            RdataPart::Fixed(length) => at + length,
            RdataPart::Text => at + 1 + usize::from(*message.get(at)?),
            RdataPart::Rest => data.end,
            RdataPart::Name => {
                let (name, end) = NameBuf::expand(message, at)?;
                out.extend_from_slice(name.wire());
                at = end;
                continue;
            }
        };
        out.extend_from_slice(message.get(at..end)?);
        at = end;
    }
    (at == data.end && out.len() <= usize::from(u16::MAX)).then_some(out)
}

/// Pieces of data without pointers: true for names.
pub(crate) fn pieces(rtype: u16, data: &[u8]) -> Option<Vec<(bool, &[u8])>> {
    let mut pieces = Vec::with_capacity(3);
    let mut at = 0;
    for part in layout(rtype) {
        let (named, end) = match part {
            RdataPart::Fixed(length) => (false, at + length),
            RdataPart::Text => (false, at + 1 + usize::from(*data.get(at)?)),
            RdataPart::Rest => (false, data.len()),
            RdataPart::Name => (true, super::name::skip(data, at)?),
        };
        pieces.push((named, data.get(at..end)?));
        at = end;
    }
    (at == data.len()).then_some(pieces)
}

//! Reading and writing of the parts of an encoded record.

use std::net::IpAddr;

/// Writes a number in groups of seven bits, the lowest first (LEB128).
pub(super) fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Writes a number that may be negative, so that small ones are short (zigzag).
pub(super) fn put_signed(out: &mut Vec<u8>, number: i64) {
    put_number(out, ((number << 1) ^ (number >> 63)).cast_unsigned());
}

/// Writes a text with its length. Longer texts are cut at a character.
pub(super) fn put_text(out: &mut Vec<u8>, text: &str) {
    let mut end = text.len().min(usize::from(u8::MAX));
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    out.push(end as u8);
    out.extend_from_slice(&text.as_bytes()[..end]);
}

pub(super) fn put_address(out: &mut Vec<u8>, address: IpAddr) {
    match address {
        IpAddr::V4(four) => out.extend(four.octets()),
        IpAddr::V6(six) => out.extend(six.octets()),
    }
}

/// Reader of an encoded record. Each read returns `None` behind the end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        self.0.split_off(..length)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.first_chunk().copied()
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        self.0.split_off_first().copied()
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    /// A number in groups of seven bits. `None` if it has more than 64 bits.
    pub(super) fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let group = u64::from(byte & 0x7f);
            if group << shift >> shift != group {
                return None;
            }
            number |= group << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    pub(super) fn signed(&mut self) -> Option<i64> {
        let number = self.number()?;
        Some((number >> 1).cast_signed() ^ -((number & 1).cast_signed()))
    }

    pub(super) fn number32(&mut self) -> Option<u32> {
        u32::try_from(self.number()?).ok()
    }

    pub(super) fn text(&mut self) -> Option<&'a str> {
        let length = usize::from(self.byte()?);
        std::str::from_utf8(self.take(length)?).ok()
    }

    pub(super) fn address(&mut self, is_v6: bool) -> Option<IpAddr> {
        if is_v6 { self.array::<16>().map(IpAddr::from) } else { self.array::<4>().map(IpAddr::from) }
    }
}

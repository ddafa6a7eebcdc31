//! Names in messages, with the pointers of RFC 1035, section 4.1.4.

use std::fmt;

use gateway_core::dns::name::MAX;
use gateway_core::dns::{Name, NameRef};

/// Name without an allocation.
#[derive(Clone, Copy)]
pub struct NameBuf {
    bytes: [u8; MAX],
    length: u8,
}

impl NameBuf {
    /// The name at `at`, in lower case, and where it ends. Pointers lead backwards only, so they end.
    pub fn read(message: &[u8], at: usize) -> Option<(NameBuf, usize)> {
        let (mut name, end) = Self::expand(message, at)?;
        name.bytes[..usize::from(name.length)].make_ascii_lowercase();
        Some((name, end))
    }

    /// Reads a name, possibly compressed, and keeps the case of its letters. Returns the offset after it.
    pub fn expand(message: &[u8], mut at: usize) -> Option<(NameBuf, usize)> {
        let mut name = NameBuf { bytes: [0; MAX], length: 0 };
        let mut used = 0;
        let mut end = None;
        // A pointer must lead before the start of its own part.
        let mut before = at;
        loop {
            let length = usize::from(*message.get(at)?);
            match length {
                0 => {
                    name.length = u8::try_from(used + 1).ok()?;
                    return Some((name, end.unwrap_or(at + 1)));
                }
                1..=63 => {
                    let label = message.get(at..at + 1 + length)?;
                    // One byte stays for the empty label.
                    name.bytes.get_mut(used..used + label.len())?.copy_from_slice(label);
                    used += label.len();
                    if used >= MAX {
                        return None;
                    }
                    at += label.len();
                }
                0xc0.. => {
                    let target = (length & 0x3f) << 8 | usize::from(*message.get(at + 1)?);
                    if target >= before {
                        return None;
                    }
                    end.get_or_insert(at + 2);
                    before = target;
                    at = target;
                }
                _ => return None,
            }
        }
    }

    pub fn wire(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    /// None when it is not in lower case.
    pub fn as_ref(&self) -> Option<NameRef<'_>> {
        NameRef::new(self.wire())
    }

    pub fn to_name(&self) -> Option<Name> {
        self.as_ref().map(NameRef::to_owned)
    }
}

impl fmt::Debug for NameBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.wire().escape_ascii().fmt(f)
    }
}

/// A name in any case as text.
pub(crate) fn display(wire: &[u8]) -> String {
    let mut text = String::with_capacity(wire.len());
    let mut left = wire;
    while let Some(length @ 1..) = left.split_off_first().map(|length| usize::from(*length)) {
        let Some(label) = left.split_off(..length) else { break };
        if !text.is_empty() {
            text.push('.');
        }
        text.push_str(&label.escape_ascii().to_string());
    }
    if text.is_empty() { ".".into() } else { text }
}

/// Returns the end of the name at `at`, without following pointers.
pub(crate) fn skip(message: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match usize::from(*message.get(at)?) {
            0 => return Some(at + 1),
            length @ 1..=63 => at += 1 + length,
            0xc0.. => return message.get(at + 1).map(|_| at + 2),
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_are_followed_backwards_only() {
        let message = b"\x03WwW\x07example\x03com\0\x04mail\xc0\x04\xc0\x11";
        assert_eq!(NameBuf::read(message, 0).expect("a name").0.wire(), b"\x03www\x07example\x03com\0");
        let (mail, end) = NameBuf::read(message, 17).expect("a name");
        assert_eq!((mail.wire(), end), (&b"\x04mail\x07example\x03com\0"[..], 24));
        let (twice, end) = NameBuf::read(message, 24).expect("a name");
        assert_eq!((twice.wire(), end), (&b"\x04mail\x07example\x03com\0"[..], 26));
        for looping in [
            &b"\xc0\x00"[..],
            b"\x01a\xc0\x00",
            b"\xc0\x02\xc0\x00",
            b"\xc0\x05",
            b"\x80a",
            b"\x40a",
            b"\xc0",
        ] {
            assert!(NameBuf::read(looping, 0).is_none(), "{looping:?}");
        }
    }

    #[test]
    fn a_name_has_at_most_255_bytes() {
        let long: Vec<u8> = std::iter::repeat_n([1, b'a'], 128).flatten().chain([0]).collect();
        assert!(NameBuf::read(&long, 0).is_none());
        assert_eq!(NameBuf::read(&long, 2).expect("255 bytes").0.wire().len(), 255);
    }
}

//! Names in wire format: labels, each after its length byte, in lower case, the empty one last (RFC 1035, section 3.1).

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;

use gateway_model::domain::DomainName;

/// Maximum length of a name in wire format, in bytes.
pub const MAX: usize = 255;

/// Borrowed name in canonical form: lower case, uncompressed, at most [`MAX`] bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NameRef<'a>(&'a [u8]);

/// Owned name in canonical form.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Box<[u8]>);

impl<'a> NameRef<'a> {
    pub const ROOT: NameRef<'static> = NameRef(&[0]);

    /// Returns none unless the bytes are exactly one canonical name.
    pub fn new(wire: &'a [u8]) -> Option<NameRef<'a>> {
        let mut at = 0;
        loop {
            let length = usize::from(*wire.get(at)?);
            if length == 0 {
                return (at + 1 == wire.len() && wire.len() <= MAX).then_some(NameRef(wire));
            }
            let label = wire.get(at + 1..at + 1 + length)?;
            if length > 63 || label.iter().any(u8::is_ascii_uppercase) {
                return None;
            }
            at += 1 + length;
        }
    }

    pub const fn wire(self) -> &'a [u8] {
        self.0
    }

    pub const fn is_root(self) -> bool {
        self.0.len() == 1
    }

    /// Returns the name without its first label; none for the root.
    pub fn parent(self) -> Option<NameRef<'a>> {
        match self.0[0] {
            0 => None,
            length => Some(NameRef(&self.0[1 + usize::from(length)..])),
        }
    }

    /// Returns the name itself, then its parents, the root last.
    pub fn suffixes(self) -> impl Iterator<Item = NameRef<'a>> {
        std::iter::successors(Some(self), |name| name.parent())
    }

    pub fn labels(self) -> impl Iterator<Item = &'a [u8]> {
        self.suffixes().filter(|name| !name.is_root()).map(|name| &name.0[1..1 + usize::from(name.0[0])])
    }

    /// Returns whether the name is `zone` or below it.
    pub fn is_within(self, zone: NameRef<'_>) -> bool {
        self.suffixes().any(|name| name.0 == zone.0)
    }

    pub fn to_owned(self) -> Name {
        Name(self.0.into())
    }

    /// Compares names in canonical DNS order (RFC 4034, section 6.1): by labels from the last one on. A name comes
    /// before its subdomains.
    pub fn canonical_cmp(self, other: NameRef<'_>) -> Ordering {
        let (own, others) = (LabelOffsets::of(self), LabelOffsets::of(other));
        let mut pairs = own.backwards(self.0).zip(others.backwards(other.0));
        let differing = pairs.find_map(|(own, other)| Some(own.cmp(other)).filter(|order| order.is_ne()));
        differing.unwrap_or_else(|| own.count.cmp(&others.count))
    }

    /// Replaces the suffix `old` of the name by `new`. Returns none if the result would be too long.
    pub fn with_end(self, old: NameRef<'_>, new: NameRef<'_>) -> Option<Name> {
        let front = self.0.len().checked_sub(old.0.len())?;
        let wire = [self.0.get(..front)?, new.0].concat();
        NameRef::new(&wire).map(NameRef::to_owned)
    }
}

/// Offsets of the labels of a name.
struct LabelOffsets {
    at: [u8; MAX / 2 + 1],
    count: usize,
}

impl LabelOffsets {
    fn of(name: NameRef<'_>) -> LabelOffsets {
        let mut starts = LabelOffsets { at: [0; MAX / 2 + 1], count: 0 };
        let mut at = 0;
        while let Some(length @ 1..) = name.0.get(at).copied() {
            // A name has at most 255 bytes.
            starts.at[starts.count] = at as u8;
            starts.count += 1;
            at += 1 + usize::from(length);
        }
        starts
    }

    fn backwards<'a>(&'a self, wire: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        self.at[..self.count].iter().rev().map(move |at| {
            let at = usize::from(*at);
            &wire[at + 1..at + 1 + usize::from(wire[at])]
        })
    }
}

/// Maps look up names by their bytes.
impl Borrow<[u8]> for Name {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

impl Name {
    pub fn as_ref(&self) -> NameRef<'_> {
        NameRef(&self.0)
    }
}

impl From<&DomainName> for Name {
    fn from(name: &DomainName) -> Name {
        let mut wire = Vec::with_capacity(name.as_str().len() + 2);
        for label in name.as_str().split('.').filter(|label| !label.is_empty()) {
            // A domain name has labels of at most 63 bytes.
            wire.push(label.len() as u8);
            wire.extend_from_slice(label.as_bytes());
        }
        wire.push(0);
        Name(wire.into())
    }
}

/// Text form of RFC 1035, section 5.1, without the last dot; the root is a dot.
impl fmt::Display for NameRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_root() {
            return f.write_str(".");
        }
        for (index, label) in self.labels().enumerate() {
            if index > 0 {
                f.write_str(".")?;
            }
            let plain = |byte: &u8| matches!(byte, 0x21..=0x7e) && !matches!(byte, b'.' | b'\\');
            if let (true, Ok(label)) = (label.iter().all(plain), std::str::from_utf8(label)) {
                f.write_str(label)?;
                continue;
            }
            for byte in label {
                match byte {
                    b'.' | b'\\' => write!(f, "\\{}", char::from(*byte))?,
                    0x21..=0x7e => write!(f, "{}", char::from(*byte))?,
                    _ => write!(f, "\\{byte:03}")?,
                }
            }
        }
        Ok(())
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_ref().fmt(f)
    }
}

impl fmt::Debug for NameRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_form_in_messages_and_one_for_people() {
        let name = Name::from(&DomainName::parse("www.Example.com").expect("a name"));
        assert_eq!(name.as_ref().wire(), b"\x03www\x07example\x03com\0");
        assert_eq!(name.to_string(), "www.example.com");
        let suffixes: Vec<String> = name.as_ref().suffixes().map(|name| name.to_string()).collect();
        assert_eq!(suffixes, ["www.example.com", "example.com", "com", "."]);
        assert_eq!(NameRef::new(b"\x03a.\x01\0").expect("a name").to_string(), "a\\.\\001");
    }

    #[test]
    fn a_name_that_is_not_canonical_is_refused() {
        for wire in [&b""[..], b"\x03www", b"\x03wWw\0", b"\xc0\x0c", b"\0\0", b"\x40\0", &[0; 2]] {
            assert_eq!(NameRef::new(wire), None, "{wire:?}");
        }
        let long: Vec<u8> = std::iter::repeat_n([1, b'a'], 128).flatten().chain([0]).collect();
        assert_eq!(NameRef::new(&long), None);
        assert!(NameRef::new(&long[2..]).is_some());
    }

    #[test]
    fn a_name_is_within_itself_and_its_parents() {
        let name = NameRef::new(b"\x03www\x02ab\0").expect("a name");
        assert!(name.is_within(name) && name.is_within(NameRef::ROOT));
        assert!(name.is_within(NameRef::new(b"\x02ab\0").expect("a name")));
        assert!(!name.is_within(NameRef::new(b"\x01b\0").expect("a name")));
    }

    #[test]
    fn rfc_4034_section_6_1_order() {
        let sorted: [&[u8]; 9] = [
            b"\x07example\0",
            b"\x01a\x07example\0",
            b"\x08yljkjljk\x01a\x07example\0",
            b"\x01z\x01a\x07example\0",
            b"\x04zabc\x01a\x07example\0",
            b"\x01z\x07example\0",
            b"\x01\x01\x01z\x07example\0",
            b"\x01*\x01z\x07example\0",
            b"\x01\xc8\x01z\x07example\0",
        ];
        let names = sorted.map(|wire| NameRef::new(wire).expect("a name"));
        for (at, one) in names.iter().enumerate() {
            for (other_at, other) in names.iter().enumerate() {
                assert_eq!(one.canonical_cmp(*other), at.cmp(&other_at), "{one} {other}");
            }
        }
        assert_eq!(NameRef::ROOT.canonical_cmp(names[0]), Ordering::Less);
    }

    #[test]
    fn a_name_gets_another_end() {
        let name = |wire: &'static [u8]| NameRef::new(wire).expect("a name");
        let moved = name(b"\x01a\x01b\0").with_end(name(b"\x01b\0"), name(b"\x01c\x01d\0"));
        assert_eq!(moved.expect("it fits").to_string(), "a.c.d");
        let long: Vec<u8> = std::iter::repeat_n([1, b'a'], 127).flatten().chain([0]).collect();
        let long = NameRef::new(&long).expect("a name");
        assert!(name(b"\x01a\x01b\0").with_end(name(b"\x01b\0"), long).is_none());
    }
}

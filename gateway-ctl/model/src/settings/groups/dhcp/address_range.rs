//! One IPv4 address or a range of them, as text.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

/// Addresses from the first to the last, both included. Written as `192.168.1.20` or `192.168.1.20-192.168.1.29`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressRange {
    pub first: Ipv4Addr,
    pub last: Ipv4Addr,
}

impl AddressRange {
    pub fn contains(&self, address: Ipv4Addr) -> bool {
        (self.first..=self.last).contains(&address)
    }
}

impl FromStr for AddressRange {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<AddressRange, Self::Err> {
        const EXPECTED: &str = "Expected an IPv4 address or a range such as 192.168.1.20-192.168.1.29.";
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let parse = |text: &str| text.trim().parse::<Ipv4Addr>().map_err(|_| EXPECTED);
        let range = AddressRange { first: parse(first)?, last: parse(last)? };
        if range.first > range.last { Err("The range ends before it begins.") } else { Ok(range) }
    }
}

impl fmt::Display for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last {
            return self.first.fmt(f);
        }
        write!(f, "{}-{}", self.first, self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_read_and_shown() {
        for text in ["192.168.1.20", "192.168.1.20-192.168.1.29"] {
            assert_eq!(text.parse::<AddressRange>().map(|range| range.to_string()), Ok(text.to_owned()));
        }
        for text in ["", "a", "192.168.1.9-192.168.1.8", "192.168.1.9-", "192.168.1.0/24"] {
            assert!(text.parse::<AddressRange>().is_err(), "{text}");
        }
    }
}

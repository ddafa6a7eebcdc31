//! Vendors of MAC addresses, by the public listing of the IEEE Registration Authority.
//!
//! The list is embedded: lines of a vendor and its prefixes of 24, 28 and 36 bits, in hexadecimal digits. `cargo xtask
//! vendors` renews it.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::sync::LazyLock;

use flate2::read::GzDecoder;
use gateway_model::MacAddr;

static LIST: &[u8] = include_bytes!("vendors.gz");

/// Prefixes as numbers with their lengths in hexadecimal digits, and the offsets of their vendors in the text.
struct Vendors {
    text: String,
    by_prefix: BTreeMap<(u8, u64), (u32, u32)>,
}

static VENDORS: LazyLock<Vendors> = LazyLock::new(|| {
    let mut list = String::new();
    if let Err(error) = GzDecoder::new(LIST).read_to_string(&mut list) {
        tracing::error!(%error, "failed to read the list of vendors");
    }
    let (mut text, mut by_prefix) = (String::new(), BTreeMap::new());
    for line in list.lines() {
        let Some((vendor, prefixes)) = line.split_once('\t') else { continue };
        let begin = text.len() as u32;
        text.push_str(vendor);
        for prefix in prefixes.split(' ') {
            if let Ok(number) = u64::from_str_radix(prefix, 16) {
                by_prefix.insert((prefix.len() as u8, number), (begin, text.len() as u32));
            }
        }
    }
    text.shrink_to_fit();
    Vendors { text, by_prefix }
});

/// Returns the vendor of a MAC address. `None` for an address that software has made up, and for unknown prefixes.
pub fn vendor(mac: MacAddr) -> Option<&'static str> {
    if mac.is_local() || mac.is_multicast() {
        return None;
    }
    let [a, b, c, d, e, f] = mac.octets();
    let number = u64::from_be_bytes([0, 0, a, b, c, d, e, f]);
    let vendors = &*VENDORS;
    let of = |digits: u8| vendors.by_prefix.get(&(digits, number >> (4 * (12 - u32::from(digits)))));
    let (begin, end) = of(9).or_else(|| of(7)).or_else(|| of(6))?;
    vendors.text.get(*begin as usize..*end as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(mac: &str) -> Option<&'static str> {
        vendor(mac.parse().expect("a MAC address"))
    }

    #[test]
    fn vendors_are_found_by_the_longest_prefix() {
        assert_eq!(of("b8:27:eb:01:02:03"), Some("Raspberry Pi Foundation"));
        assert!(VENDORS.by_prefix.len() > 40_000);
        let (digits, number) = VENDORS.by_prefix.keys().rev().find(|(digits, _)| *digits == 9).expect("one");
        let octets = (number << (4 * (12 - u32::from(*digits)))).to_be_bytes();
        let long = MacAddr(octets[2..].try_into().expect("six octets"));
        let (begin, end) = VENDORS.by_prefix[&(9, *number)];
        assert_eq!(vendor(long), VENDORS.text.get(begin as usize..end as usize));
    }

    #[test]
    fn random_and_unknown_addresses_have_no_vendor() {
        assert_eq!(of("ba:27:eb:01:02:03"), None, "locally administered");
        assert_eq!(of("fc:ff:ff:ff:ff:ff"), None, "unassigned");
    }
}

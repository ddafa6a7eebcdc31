//! Keys of signed zones: ECDSA with the curve P-256 and SHA-256 (RFC 6605), one for each zone.

use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use p256::SecretKey;
use p256::elliptic_curve::sec1::ToSec1Point;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::domain::DomainName;
use crate::secret::Secret;

/// ECDSAP256SHA256.
pub const ALGORITHM: u8 = 13;
/// A key that signs everything and that the zone above may name (RFC 4034, section 2.1.1).
pub const FLAGS: u16 = 257;

/// A new key; none while the system gives no random numbers.
pub fn generate() -> Option<Secret> {
    let mut bytes = Zeroizing::new([0u8; 32]);
    // Nearly all numbers of 32 bytes are keys.
    for _ in 0..8 {
        getrandom::fill(bytes.as_mut_slice()).ok()?;
        if SecretKey::from_slice(bytes.as_slice()).is_ok() {
            return Some(Secret::new(STANDARD.encode(bytes.as_slice())));
        }
    }
    None
}

/// The public half: two coordinates. None if it is no key.
pub fn public(key: &Secret) -> Option<[u8; 64]> {
    let secret = SecretKey::from_slice(key.key()?.as_slice()).ok()?;
    let point = secret.public_key().to_sec1_point(false);
    // The first byte means that both coordinates follow (uncompressed point).
    point.as_bytes().get(1..)?.try_into().ok()
}

/// The record in zone file format.
pub fn show(public: &[u8; 64]) -> String {
    format!("{FLAGS} 3 {ALGORITHM} {}", STANDARD.encode(public))
}

/// Data of the DNSKEY record.
pub fn dnskey(public: &[u8]) -> Vec<u8> {
    [&FLAGS.to_be_bytes()[..], &[3, ALGORITHM], public].concat()
}

/// RFC 4034, appendix B.
pub fn tag(dnskey: &[u8]) -> u16 {
    let words =
        dnskey.chunks(2).map(|pair| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u32::from(*low)));
    let sum: u32 = words.sum();
    (sum + (sum >> 16)) as u16
}

/// Returns the data of the DS record of a zone with this wire-format name: tag, algorithm, digest type, SHA-256.
pub fn ds_of(name: &[u8], dnskey: &[u8]) -> Vec<u8> {
    let digest = Sha256::new().chain_update(name).chain_update(dnskey).finalize();
    [&tag(dnskey).to_be_bytes()[..], &[ALGORITHM, 2], digest.as_slice()].concat()
}

/// Returns the DS record in zone file format for a shown key.
pub(super) fn ds(zone: &DomainName, shown: &str) -> Option<String> {
    let public = STANDARD.decode(shown.rsplit(' ').next()?).ok()?;
    let mut name = Vec::new();
    for label in zone.as_str().split('.') {
        name.push(u8::try_from(label.len()).ok()?);
        name.extend_from_slice(label.as_bytes());
    }
    name.push(0);
    let key = dnskey(&public);
    let data = ds_of(&name, &key);
    let mut text = format!("{} {ALGORITHM} 2 ", tag(&key));
    data[4..].iter().try_for_each(|byte| write!(text, "{byte:02X}")).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of section 6.1.
    #[test]
    fn rfc_6605_section_6_1() {
        let key = Secret::new("GU6SnQ/Ou+xC5RumuIUIuJZteXT2z0O/ok1s38Et6mQ=");
        let public = public(&key).expect("a key");
        assert_eq!(
            show(&public),
            "257 3 13 GojIhhXUN/u4v54ZQqGSnyhWJwaubCvTmeexv7bR6edbkrSqQpF64cYbcB7wNcP+e+MAnLr+Wi9xMWyQLc8NAA=="
        );
        assert_eq!(tag(&dnskey(&public)), 55648);
        let name = DomainName::parse("example.net").expect("a name");
        assert_eq!(
            ds(&name, &show(&public)).as_deref(),
            Some("55648 13 2 B4C8C1FE2E7477127B27115656AD6256F424625BF5C1E2770CE6D6E37DF61D17")
        );
    }

    #[test]
    fn generated_keys_are_keys_and_not_the_same() {
        let (one, other) = (generate().expect("a key"), generate().expect("a key"));
        assert!(public(&one).is_some() && public(&one) != public(&other));
        let nothing = STANDARD.encode([0; 32]);
        assert!(public(&Secret::new(nothing)).is_none() && public(&Secret::new("AAAA")).is_none());
    }
}

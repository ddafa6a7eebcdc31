//! Ed25519 keys in the form of NATS: base32 of a prefix, the key, and a checksum.

use gateway_model::validated::PublicKey;

/// Prefix of the public key of a user, so that the text begins with `U`.
const USER_PREFIX: u8 = 20 << 3;
const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// Returns the key as the public key of a NATS user.
pub fn user_nkey(key: PublicKey) -> String {
    let mut bytes = vec![USER_PREFIX];
    bytes.extend_from_slice(key.bytes());
    bytes.extend_from_slice(&crc16(&bytes).to_le_bytes());
    base32(&bytes)
}

/// CRC-16 with the polynomial 0x1021 and without a start value (XMODEM).
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc: u16, byte| {
        (0..8).fold(crc ^ (u16::from(*byte) << 8), |crc, _| {
            if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 }
        })
    })
}

/// Base32 of RFC 4648 without padding.
fn base32(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(5) * 8);
    let (mut buffer, mut bits) = (0u32, 0);
    for byte in bytes {
        buffer = buffer << 8 | u32::from(*byte);
        bits += 8;
        while bits >= 5 {
            bits -= 5;
            text.push(char::from(ALPHABET[(buffer >> bits & 31) as usize]));
        }
        buffer &= (1 << bits) - 1;
    }
    if bits > 0 {
        text.push(char::from(ALPHABET[(buffer << (5 - bits) & 31) as usize]));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_those_of_the_standards() {
        for (bytes, text) in [("", ""), ("f", "MY"), ("foob", "MZXW6YQ"), ("foobar", "MZXW6YTBOI")] {
            assert_eq!(base32(bytes.as_bytes()), text);
        }
        assert_eq!(crc16(b"123456789"), 0x31c3);
        let text = user_nkey(PublicKey([7; 32]));
        assert!(text.starts_with('U') && text.len() == 56, "{text}");
    }
}

//! Key generation. `gateway_model::wgconf` defines the text form.

use x25519_dalek::{PublicKey, StaticSecret};
use zeroize::Zeroizing;

use super::Key;

/// A private key and its public key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyPair {
    pub private: Key,
    pub public: [u8; 32],
}

/// Returns a new key pair from the kernel's random source.
pub fn generate_keypair() -> Result<KeyPair, getrandom::Error> {
    let mut bytes = random()?;
    // Clamped as X25519 requires, so that the stored key is the key in use.
    bytes[0] &= 0b1111_1000;
    bytes[31] = (bytes[31] & 0b0111_1111) | 0b0100_0000;
    let private = Key::new(*bytes);
    let public = public_key(&private);
    Ok(KeyPair { private, public })
}

/// Returns a new preshared key from the kernel's random source.
pub fn generate_preshared_key() -> Result<Key, getrandom::Error> {
    Ok(Key::new(*random()?))
}

/// Returns the public key of a private key.
pub fn public_key(private: &Key) -> [u8; 32] {
    PublicKey::from(&StaticSecret::from(*private.expose())).to_bytes()
}

fn random() -> Result<Zeroizing<[u8; 32]>, getrandom::Error> {
    let mut bytes = Zeroizing::new([0; 32]);
    getrandom::fill(bytes.as_mut_slice())?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use gateway_model::wgconf::decode_key;

    use super::*;

    #[test]
    fn the_public_key_is_the_one_that_wg_computes() {
        // The key pair from RFC 7748, section 6.1 (Alice).
        let private = Key::from_base64("dwdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR25LCo=").expect("a key");
        let public = decode_key("hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=").expect("a key");
        assert_eq!(public_key(&private), public);
    }

    #[test]
    fn generated_keys_are_clamped_distinct_and_hidden() {
        let (first, second) = (generate_keypair().expect("random"), generate_keypair().expect("random"));
        assert_ne!(first, second);
        assert_eq!(first.public, public_key(&first.private));
        let bytes = first.private.expose();
        assert_eq!((bytes[0] & 7, bytes[31] & 0xc0), (0, 0x40));
        assert!(format!("{first:?}").contains("private: Key(***)"));
        assert_ne!(generate_preshared_key().expect("random"), generate_preshared_key().expect("random"));
    }
}

//! Fingerprints of keys: as OpenSSH writes them, and as words that can be spoken in any language.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use sha2::{Digest, Sha256};

use crate::validated::PublicKey;

/// Returns the SHA-256 of a key, as OpenSSH writes it.
pub fn fingerprint(key: PublicKey) -> String {
    format!("SHA256:{}", STANDARD_NO_PAD.encode(Sha256::digest(key.bytes())))
}

/// Returns the first 96 bits of the hash of a key as six words that can be spoken in any language: proquints.
pub fn fingerprint_words(key: PublicKey) -> String {
    const CONSONANTS: &[u8; 16] = b"bdfghjklmnprstvz";
    const VOWELS: &[u8; 4] = b"aiou";
    let hash = Sha256::digest(key.bytes());
    let word = |pair: &[u8]| -> String {
        let bits = usize::from(pair[0]) << 8 | usize::from(pair[1]);
        let letters = [
            CONSONANTS[bits >> 12 & 15],
            VOWELS[bits >> 10 & 3],
            CONSONANTS[bits >> 6 & 15],
            VOWELS[bits >> 4 & 3],
            CONSONANTS[bits & 15],
        ];
        letters.map(char::from).iter().collect()
    };
    hash.chunks_exact(2).take(6).map(word).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_proquints_of_the_hash() {
        let words = fingerprint_words(PublicKey([0; 32]));
        // SHA-256 of 32 zero bytes begins with 66687aadf862bd776c8fc18b.
        assert_eq!(words, "kinom-lopot-zodof-rujul-kufaz-sakar");
        assert_ne!(words, fingerprint_words(PublicKey([1; 32])));
    }
}

//! Sealing of blocks: records on disk are encrypted and authenticated by a key that is not there.

use std::fmt;
use std::io;

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::rand::{SecureRandom, SystemRandom};

/// Length of a key in bytes.
const KEY_BYTES: usize = 32;

/// Key of a journal. Each block has a random nonce, which stands before its records.
pub struct SealingKey(LessSafeKey);

impl fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SealingKey")
    }
}

impl SealingKey {
    /// Creates a key of 32 bytes. `None` for another length.
    pub fn new(bytes: &[u8]) -> Option<SealingKey> {
        if bytes.len() != KEY_BYTES {
            return None;
        }
        UnboundKey::new(&AES_256_GCM, bytes).ok().map(LessSafeKey::new).map(SealingKey)
    }

    /// Seals the records of a block, which is bound to its place by the ID of its first record.
    pub(crate) fn seal(&self, first: u64, records: &[u8]) -> io::Result<Vec<u8>> {
        let mut nonce = [0; NONCE_LEN];
        let failed = |_| io::Error::other("a block of records cannot be sealed");
        SystemRandom::new().fill(&mut nonce).map_err(failed)?;
        let mut body = records.to_vec();
        let associated = Aad::from(first.to_le_bytes());
        self.0
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), associated, &mut body)
            .map_err(failed)?;
        Ok([&nonce[..], &body].concat())
    }

    /// Opens the records of a block. `None` if they are not what was sealed there.
    pub(crate) fn open(&self, first: u64, mut sealed: Vec<u8>) -> Option<Vec<u8>> {
        let nonce = Nonce::try_assume_unique_for_key(sealed.get(..NONCE_LEN)?).ok()?;
        let associated = Aad::from(first.to_le_bytes());
        let length = self.0.open_within(nonce, associated, &mut sealed, NONCE_LEN..).ok()?.len();
        sealed.truncate(length);
        Some(sealed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_sealed_block_at_its_place_opens() {
        let key = SealingKey::new(&[7; KEY_BYTES]).expect("a key");
        let sealed = key.seal(3, b"records").expect("sealed");
        assert!(!sealed.windows(7).any(|window| window == b"records"));
        assert_eq!(key.open(3, sealed.clone()).as_deref(), Some(&b"records"[..]));
        assert_eq!(key.open(4, sealed.clone()), None, "another place");
        let other = SealingKey::new(&[8; KEY_BYTES]).expect("a key");
        assert_eq!(other.open(3, sealed.clone()), None, "another key");
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert_eq!(key.open(3, changed), None, "byte {at}");
        }
        assert_eq!(key.open(3, Vec::new()), None);
        assert!(SealingKey::new(&[7; 31]).is_none());
    }
}
